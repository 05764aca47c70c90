/* SPDX-License-Identifier: BSD-3-Clause */
/* What two configurations must have in common for their tables to be alike. */
#include "config.h"

/* FNV-1a: no one chooses two configurations to be mistaken for each other. */
static uint64_t add(uint64_t sum, const void *bytes, size_t n_bytes)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n_bytes; i++)
		sum = (sum ^ at[i]) * 0x100000001b3ull;
	return sum;
}

static uint64_t add_number(uint64_t sum, uint64_t n)
{
	return add(sum, &n, sizeof(n));
}

static uint64_t add_forwards(uint64_t sum, const struct nat_config *config)
{
	for (uint32_t i = 0; i < config->n_forwards; i++) {
		const struct nat_port_forward *f = &config->forwards[i];

		sum = add_number(sum, f->outside_addr);
		sum = add_number(sum, f->inside_addr);
		sum = add_number(sum, f->outside_first);
		sum = add_number(sum, f->outside_last);
		sum = add_number(sum, f->inside_first);
		sum = add_number(sum, f->proto_mask);
	}
	return sum;
}

static uint64_t add_ports(uint64_t sum, const struct nat_port_config *ports)
{
	sum = add_number(sum, ports->first);
	sum = add_number(sum, ports->last);
	sum = add_number(sum, ports->block);
	return add_number(sum, ports->is_deterministic);
}

uint64_t nat_config_digest(const struct nat_config *c)
{
	uint64_t sum = 0xcbf29ce484222325ull;

	sum = add_number(sum, c->n_pool);
	sum = add(sum, c->pool, c->n_pool * sizeof(c->pool[0]));
	sum = add_number(sum, c->n_subscribers);
	sum = add(sum, c->subscribers,
		  c->n_subscribers * sizeof(c->subscribers[0]));
	sum = add_number(sum, c->n_forwards);
	sum = add_forwards(sum, c);
	sum = add_number(sum, c->n_one_to_ones);
	sum = add(sum, c->one_to_ones,
		  c->n_one_to_ones * sizeof(c->one_to_ones[0]));
	for (uint32_t i = 0; i < NAT_PROTOS; i++)
		sum = add_number(sum, c->filtering[i]);
	sum = add(sum, &c->timeouts, sizeof(c->timeouts));
	sum = add_ports(sum, &c->ports);
	sum = add_number(sum, c->max_mappings);
	sum = add_number(sum, c->max_sessions);
	return add_number(sum, c->passes_other_protocols);
}
