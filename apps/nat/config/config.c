/* SPDX-License-Identifier: BSD-3-Clause */
/* A translator's settings: derived values, and freeing them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "addrs.h"
#include "config.h"

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
