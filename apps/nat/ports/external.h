/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of addresses, each of which has an index, without gaps: those with
 * shared ports, the pool of the configuration, for arrays; they keep their
 * indices when addresses are added. And those of subscribers.
 */
#ifndef NAT_EXTERNAL_H
#define NAT_EXTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum { NAT_EXTERNAL_NONE = UINT32_MAX };

struct nat_externals {
	uint32_t n_addrs, n_ranges;
	struct nat_external_range {
		uint32_t first, last;        /* host order, both included */
		uint32_t index;              /* of first */
	} * ranges;                          /* in order of addresses */
	struct nat_external_range *by_index; /* the same, by index */
};

/* 0 or -ENOMEM. */
int nat_externals_init(struct nat_externals *externals,
		       const struct nat_config *config);
/* With room for n_max ranges; false: no memory. */
bool nat_externals_alloc(struct nat_externals *externals, uint32_t n_max);
/* After by_index was filled in. */
void nat_externals_sort(struct nat_externals *externals);
void nat_externals_fini(struct nat_externals *externals);

/*
 * The addresses of the inside networks, in configuration order, from which
 * deterministic ports are computed (RFC 7422). 0 or -ENOMEM.
 */
int nat_ordinals_init(struct nat_externals *ordinals,
		      const struct nat_config *config);

/*
 * The addresses of next, with those of old keeping their indices. False: an
 * address is gone, there are more than n_max, or no memory.
 */
bool nat_externals_extend(const struct nat_externals *old,
			  const struct nat_externals *next, uint32_t n_max,
			  struct nat_externals *ret_externals);

/* addr in host order; NAT_EXTERNAL_NONE: in none of the ranges. */
static inline uint32_t nat_external_index(const struct nat_externals *externals,
					  uint32_t addr)
{
	const struct nat_external_range *range = externals->ranges;

	/* The last range that begins at or below addr; branch-free, since
	 * branches on mixed addresses would be mispredicted. */
	for (uint32_t n = externals->n_ranges; n > 1;) {
		uint32_t half = n / 2;

		range += range[half].first <= addr ? half : 0;
		n -= half;
	}
	if (addr < range->first || addr > range->last)
		return NAT_EXTERNAL_NONE;
	return range->index + (addr - range->first);
}

/* Host order; index is below n_addrs. */
uint32_t nat_external_addr(const struct nat_externals *externals,
			   uint32_t index);

bool nat_externals_equal(const struct nat_externals *a,
			 const struct nat_externals *b);

#endif
