/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of subscribers: see subscriber.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "subscriber.h"

int nat_subscribers_create(struct mr_ctx *ctx, uint32_t n_max, uint64_t seed,
			   struct mr_flow_table **ret_table,
			   struct mr_reason *reterr_why)
{
	const struct mr_flow_config config = {
		.size = sizeof(config),
		.key_bytes = offsetof(struct nat_subscriber, n_mappings),
		.record_bytes = sizeof(struct nat_subscriber),
		.n_max = n_max,
		.seed = seed,
	};

	return mr_flow_create(ctx, &config, ret_table, reterr_why);
}

uint32_t nat_subscriber_get(struct mr_flow_table *table, uint32_t addr,
			    uint8_t realm)
{
	const uint32_t key[2] = { addr, realm };
	uint32_t id = mr_flow_find(table, key);

	if (id == MR_FLOW_NONE && mr_flow_add(table, key, &id) < 0)
		return MR_FLOW_NONE;
	return id;
}

void nat_subscriber_put(struct mr_flow_table *table, uint32_t id)
{
	const struct nat_subscriber *subscriber = nat_subscriber_at(table, id);
	uint32_t n = subscriber->n_mappings + subscriber->n_static;

	for (uint32_t proto = 0; proto < NAT_PROTOS; proto++)
		n += subscriber->n_blocks[proto];
	if (n == 0)
		mr_flow_remove(table, id);
}

static int by_first(const void *a, const void *b)
{
	const struct nat_external_range *r = a, *q = b;

	return r->first < q->first ? -1 : r->first > q->first;
}

int nat_ordinals_init(struct nat_externals *ordinals,
		      const struct nat_config *config)
{
	const uint32_t n = config->n_subscribers;
	uint32_t n_before = 0;

	*ordinals = (struct nat_externals){ .n_ranges = n };
	ordinals->ranges = calloc(n + 1u, sizeof(*ordinals->ranges));
	if (ordinals->ranges == NULL)
		return -ENOMEM;
	ordinals->ranges[n] = (struct nat_external_range){ 1, 0, 0 };
	for (uint32_t i = 0; i < n; i++) {
		const struct nat_prefix *prefix = &config->subscribers[i];

		ordinals->ranges[i] = (struct nat_external_range){
			prefix->addr, prefix->addr | ~prefix->mask, n_before
		};
		n_before += ~prefix->mask + 1;
	}
	qsort(ordinals->ranges, n, sizeof(*ordinals->ranges), by_first);
	return 0;
}

uint64_t nat_subscriber_count(const struct nat_config *config)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < config->n_subscribers; i++)
		n += (uint64_t)~config->subscribers[i].mask + 1;
	return n;
}
