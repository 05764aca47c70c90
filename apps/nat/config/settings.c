/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: from the bytes of the configuration file to checked ones. */
#include <errno.h>
#include <stdio.h>
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

static int check_all(struct yaml_reader *reader,
		     const struct nat_config *config)
{
	struct objections objections;
	int err = nat_config_check(config, nat_config_n_workers(config),
				   &objections);

	err |= dataplane_check(&config->plane, &objections);
	objections_report(&objections, reader);
	return err;
}

static int fill_config(struct yaml_reader *reader, uint32_t n_workers,
		       struct nat_config *config)
{
	yaml_node_t *root = yaml_root(reader);
	int err = 0;

	if (root == NULL)
		return yaml_fail(reader->errors, -EINVAL,
				 "%.120s: empty; inside and outside are "
				 "required",
				 reader->name);
	err = yaml_take_keys(reader, nat_keys, root, config);
	if (n_workers > 0) {
		config->plane.n_workers = n_workers;
		config->plane.n_cores = 0;
	}
	if (err == 0)
		err = nat_config_complete(config);
	if (err == 0)
		err = check_all(reader, config);
	if (err == -ENOMEM)
		yaml_fail(reader->errors, err, "%.120s: no memory",
			  reader->name);
	return err;
}

int nat_settings_parse(const char *name, const char *bytes, size_t n_bytes,
		       uint32_t n_workers, struct nat_config *ret_config,
		       struct yaml_errors *ret_errors)
{
	struct yaml_reader reader;
	struct nat_config config;
	int err = yaml_open(&reader, name, bytes, n_bytes, ret_errors);

	if (err < 0)
		return err;
	nat_config_init(&config);
	err = fill_config(&reader, n_workers, &config);
	yaml_close(&reader);
	if (err == 0)
		*ret_config = config;
	else
		nat_config_free(&config);
	return err;
}
