/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of external addresses; external.h says what for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "external.h"

static int by_first(const void *a, const void *b)
{
	const struct nat_external_range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Sorts, and makes one of ranges that overlap or touch. */
static void merge(struct nat_externals *externals)
{
	struct nat_external_range *ranges = externals->ranges;
	uint32_t n = 0;

	qsort(ranges, externals->n_ranges, sizeof(*ranges), by_first);
	for (uint32_t i = 0; i < externals->n_ranges; i++) {
		if (n > 0 &&
		    ranges[i].first <= (uint64_t)ranges[n - 1].last + 1) {
			if (ranges[i].last > ranges[n - 1].last)
				ranges[n - 1].last = ranges[i].last;
		} else {
			ranges[n++] = ranges[i];
		}
	}
	externals->n_ranges = n;
}

static void cut_out(struct nat_externals *externals, uint32_t addr)
{
	struct nat_external_range *ranges = externals->ranges;

	for (uint32_t i = 0; i < externals->n_ranges; i++) {
		struct nat_external_range *range = &ranges[i];

		if (addr < range->first || addr > range->last)
			continue;
		if (range->first == range->last) {
			*range = ranges[--externals->n_ranges];
		} else if (addr == range->first) {
			range->first++;
		} else {
			if (addr != range->last)
				ranges[externals->n_ranges++] =
					(struct nat_external_range){
						addr + 1, range->last, 0
					};
			range->last = addr - 1;
		}
		return;
	}
}

int nat_externals_init(struct nat_externals *externals,
		       const struct nat_config *config)
{
	/* Each address that is cut out adds a range at most; and one that is
	 * never there, for lookups in an empty pool. */
	uint32_t n_max = config->n_pool + config->n_one_to_ones + 1;
	uint64_t n_addrs = 0;

	*externals = (struct nat_externals){ .n_ranges = config->n_pool };
	externals->ranges = calloc(n_max, sizeof(*externals->ranges));
	if (externals->ranges == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < config->n_pool; i++) {
		externals->ranges[i].first = config->pool[i].first;
		externals->ranges[i].last = config->pool[i].last;
	}
	merge(externals);
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		cut_out(externals, config->one_to_ones[i].outside_addr);
	qsort(externals->ranges, externals->n_ranges,
	      sizeof(*externals->ranges), by_first);
	for (uint32_t i = 0; i < externals->n_ranges; i++) {
		struct nat_external_range *range = &externals->ranges[i];

		range->index = (uint32_t)n_addrs;
		n_addrs += (uint64_t)range->last - range->first + 1;
		if (n_addrs >= NAT_EXTERNAL_NONE) {
			nat_externals_fini(externals);
			return -E2BIG;
		}
	}
	externals->n_addrs = (uint32_t)n_addrs;
	if (externals->n_ranges == 0)
		externals->ranges[0] = (struct nat_external_range){ 1, 0, 0 };
	return 0;
}

void nat_externals_fini(struct nat_externals *externals)
{
	free(externals->ranges);
	*externals = (struct nat_externals){ 0 };
}

uint32_t nat_external_addr(const struct nat_externals *externals,
			   uint32_t index)
{
	const struct nat_external_range *range = externals->ranges;

	for (uint32_t n = externals->n_ranges; n > 1;) {
		uint32_t half = n / 2;

		range += range[half].index <= index ? half : 0;
		n -= half;
	}
	return range->first + (index - range->index);
}

bool nat_externals_equal(const struct nat_externals *a,
			 const struct nat_externals *b)
{
	return a->n_ranges == b->n_ranges &&
	       memcmp(a->ranges, b->ranges, a->n_ranges * sizeof(*a->ranges)) ==
		       0;
}
