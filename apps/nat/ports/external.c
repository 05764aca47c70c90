/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of external addresses: see external.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "external.h"

static int by_first(const void *a, const void *b)
{
	const struct nat_external_range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Sort, and merge ranges that overlap or touch. */
static void merge_ranges(struct nat_externals *externals)
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

bool nat_externals_alloc(struct nat_externals *externals, uint32_t n_max)
{
	externals->ranges =
		calloc(2ull * n_max + 1, sizeof(*externals->ranges));
	if (externals->ranges == NULL)
		return false;
	externals->ranges[0].first = 1; /* is empty if no range follows */
	externals->by_index = externals->ranges + n_max;
	return true;
}

int nat_externals_init(struct nat_externals *externals,
		       const struct nat_config *config)
{
	*externals = (struct nat_externals){ .n_ranges = config->n_pool };
	if (!nat_externals_alloc(externals, config->n_pool))
		return -ENOMEM;
	for (uint32_t i = 0; i < config->n_pool; i++) {
		externals->ranges[i].first = config->pool[i].first;
		externals->ranges[i].last = config->pool[i].last;
	}
	merge_ranges(externals);
	for (uint32_t i = 0; i < externals->n_ranges; i++) {
		struct nat_external_range *range = &externals->ranges[i];

		range->index = externals->n_addrs;
		externals->n_addrs += range->last - range->first + 1;
	}
	memcpy(externals->by_index, externals->ranges,
	       externals->n_ranges * sizeof(*externals->ranges));
	return 0;
}

void nat_externals_fini(struct nat_externals *externals)
{
	free(externals->ranges);
	*externals = (struct nat_externals){ 0 };
}

void nat_externals_sort(struct nat_externals *externals)
{
	memcpy(externals->ranges, externals->by_index,
	       externals->n_ranges * sizeof(*externals->ranges));
	qsort(externals->ranges, externals->n_ranges,
	      sizeof(*externals->ranges), by_first);
}

static void append_range(struct nat_externals *externals, uint64_t first,
			 uint64_t last)
{
	if (first > last)
		return;
	externals->by_index[externals->n_ranges++] =
		(struct nat_external_range){ (uint32_t)first, (uint32_t)last,
					     externals->n_addrs };
	externals->n_addrs += (uint32_t)(last - first) + 1;
}

int nat_ordinals_init(struct nat_externals *ordinals,
		      const struct nat_config *config)
{
	*ordinals = (struct nat_externals){ 0 };
	if (!nat_externals_alloc(ordinals, config->n_subscribers))
		return -ENOMEM;
	for (uint32_t i = 0; i < config->n_subscribers; i++) {
		const struct nat_prefix *net = &config->subscribers[i];

		append_range(ordinals, net->addr, net->addr | ~net->mask);
	}
	nat_externals_sort(ordinals);
	return 0;
}

/* Append what is new in a range, continuing with *i in old. False: a range of
 * old is not completely in next. */
static bool append_new(struct nat_externals *externals,
		       const struct nat_externals *old, uint32_t *i,
		       const struct nat_external_range *range)
{
	uint64_t at = range->first;

	for (; *i < old->n_ranges && old->ranges[*i].first <= range->last;
	     (*i)++) {
		const struct nat_external_range *kept = &old->ranges[*i];

		if (kept->first < at || kept->last > range->last)
			return false;
		append_range(externals, at, (uint64_t)kept->first - 1);
		at = (uint64_t)kept->last + 1;
	}
	append_range(externals, at, range->last);
	return true;
}

bool nat_externals_extend(const struct nat_externals *old,
			  const struct nat_externals *next, uint32_t n_max,
			  struct nat_externals *ret_externals)
{
	/* A range of old splits at most one new range. */
	uint32_t n_most = 2 * old->n_ranges + next->n_ranges + 1, i = 0;
	struct nat_externals externals = *old;

	if (old->n_ranges == 0 || next->n_addrs > n_max ||
	    !nat_externals_alloc(&externals, n_most))
		return false;
	memcpy(externals.by_index, old->by_index,
	       old->n_ranges * sizeof(*old->by_index));
	for (uint32_t r = 0; r < next->n_ranges; r++)
		if (!append_new(&externals, old, &i, &next->ranges[r]))
			break;
	if (externals.n_addrs != next->n_addrs || i < old->n_ranges) {
		nat_externals_fini(&externals);
		return false;
	}
	nat_externals_sort(&externals);
	*ret_externals = externals;
	return true;
}

uint32_t nat_external_addr(const struct nat_externals *externals,
			   uint32_t index)
{
	const struct nat_external_range *range = externals->by_index;

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
