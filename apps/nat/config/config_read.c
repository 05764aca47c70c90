/* SPDX-License-Identifier: BSD-3-Clause */
/* Read a configuration file: from its bytes to checked settings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "addrs.h"
#include "keys.h"
#include "support/dataplane_keys.h"

void nat_config_free(struct nat_config *config)
{
	free(config->pool);
	free(config->subscribers);
	free(config->forwards);
	free(config->one_to_ones);
	free(config->excludes);
	nat_addrs_destroy(config->addrs);
	*config = (struct nat_config){ 0 };
}

int nat_config_complete(struct nat_config *config)
{
	const struct nat_side_config *inside = &config->sides[NAT_INSIDE];
	const struct nat_side_config *outside = &config->sides[NAT_OUTSIDE];

	if (config->n_pool == 0 && outside->n_addrs > 0) {
		config->pool = calloc(1, sizeof(config->pool[0]));
		if (config->pool == NULL)
			return -ENOMEM;
		config->pool[0] = (struct nat_range){ outside->addrs[0],
						      outside->addrs[0] };
		config->n_pool = 1;
	}
	if (config->n_subscribers == 0 && inside->n_addrs > 0) {
		config->subscribers =
			calloc(inside->n_addrs, sizeof(config->subscribers[0]));
		if (config->subscribers == NULL)
			return -ENOMEM;
		config->is_inside_subscribed = true;
		/* Two addresses in the same network count once. */
		for (uint32_t i = 0; i < inside->n_addrs; i++) {
			const struct nat_prefix *net = &inside->nets[i];
			bool is_known = false;

			for (uint32_t j = 0; j < config->n_subscribers; j++)
				is_known |= memcmp(net, &config->subscribers[j],
						   sizeof(*net)) == 0;
			if (!is_known)
				config->subscribers[config->n_subscribers++] =
					*net;
		}
	}
	return 0;
}

struct reading {
	struct nat_config config; /* first: what the keys fill in */
	uint32_t n_workers;
};

static int check_all(struct yaml_reader *reader, void *to)
{
	struct reading *reading = to;
	struct nat_config *config = &reading->config;
	struct objections objections;
	int err;

	if (reading->n_workers > 0) {
		config->plane.n_workers = reading->n_workers;
		config->plane.n_cores = 0;
	}
	err = nat_config_complete(config);
	if (err < 0)
		return err;
	err = nat_config_check(config, nat_config_n_workers(config),
			       &objections) |
	      dataplane_check(&config->plane, &objections);
	objections_report(&objections, reader);
	return err;
}

int nat_settings_parse(const char *name, const char *bytes, size_t n_bytes,
		       uint32_t n_workers, struct nat_config *ret_config,
		       struct yaml_errors *ret_errors)
{
	struct reading reading = { .n_workers = n_workers };
	int err;

	nat_config_init(&reading.config);
	err = yaml_read(name, bytes, n_bytes, nat_keys,
			" empty; inside and outside are required", check_all,
			&reading, ret_errors);
	if (err == 0)
		*ret_config = reading.config;
	else
		nat_config_free(&reading.config);
	return err;
}
