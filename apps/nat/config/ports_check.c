/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the external ports suffice for subscribers and workers. */
#include "config.h"
#include "support/objections.h"

enum {
	MIN_BLOCK = 8,
	SLICE = 1 << 6, /* see ports/ports.h */
};

/* Each subscriber needs a block, computed or not. */
static int check_blocks(const struct nat_config *config, struct objections *ret)
{
	const struct nat_port_config *p = &config->ports;
	/* Without a size: the largest that suffices for all. */
	const uint32_t block = p->block > 0 ? p->block : MIN_BLOCK;
	const uint32_t first_block = (p->first + block - 1) / block;
	const uint32_t end_block = (p->last + 1u) / block;
	const uint64_t n_per_addr = end_block - first_block;
	const uint64_t n_subscribers = nat_config_n_subscribers(config);
	uint64_t n_blocks = 0;

	for (uint32_t i = 0; i < config->n_pool; i++)
		n_blocks += n_per_addr * nat_range_n(&config->pool[i]);
	if (n_blocks < n_subscribers)
		return object(ret, "ports",
			      p->is_deterministic ? "deterministic" : "block",
			      OBJECTION_WHOLE,
			      "%llu subscribers need a block each, but the "
			      "pool has %llu of %u ports; use smaller blocks, "
			      "more addresses, or fewer subscribers",
			      (unsigned long long)n_subscribers,
			      (unsigned long long)n_blocks, block);
	return 0;
}

int nat_config_check_ports(const struct nat_config *config, uint32_t n_workers,
		       struct objections *ret)
{
	const struct nat_port_config *p = &config->ports;
	const uint32_t n = p->last - p->first + 1u;
	const uint32_t block = p->block > 0 ? p->block : SLICE;

	if (p->first == 0)
		return object(ret, "ports", "range", OBJECTION_WHOLE,
			      "%u-%u: ports are 1 to 65535", p->first, p->last);
	if (p->first > p->last)
		return object(ret, "ports", "range", OBJECTION_WHOLE,
			      "%u-%u: the first is above the last", p->first,
			      p->last);
	if (p->block > 0 &&
	    ((p->block & (p->block - 1)) != 0 || p->block < MIN_BLOCK))
		return object(ret, "ports", "block", OBJECTION_WHOLE,
			      "%u is not a power of two of at least %d",
			      p->block, MIN_BLOCK);
	if (p->block > 0 && p->max_blocks == 0)
		return object(ret, "ports", "max_blocks", OBJECTION_WHOLE,
			      "is 0; a subscriber needs at least one block");
	/* Blocks begin at multiples of their size; each worker has its own. */
	if ((p->last + 1u) / block < (p->first + block - 1) / block + n_workers)
		return object(ret, "ports", p->block > 0 ? "block" : "range",
			      OBJECTION_WHOLE,
			      "%u ports are too few for %u worker%s with "
			      "blocks of %u; widen the range",
			      n, n_workers, n_workers == 1 ? "" : "s", block);
	if (p->is_deterministic && n_workers > 1)
		return object(ret, "ports", "deterministic", OBJECTION_WHOLE,
			      "needs one worker, not %u, because the address "
			      "alone determines the ports",
			      n_workers);
	return p->is_deterministic || p->block > 0 ? check_blocks(config, ret) :
						     0;
}
