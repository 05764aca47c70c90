/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of the page allocator. */
#ifndef SUPPORT_PAGE_UNIT_H
#define SUPPORT_PAGE_UNIT_H

#include "support/pool_unit.h"

#include <millrace/experimental/page.h>

static inline struct mr_page_stats page_stats(const struct mr_pool *pool)
{
	struct mr_page_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_page_stats(pool, &stats), 0);
	return stats;
}

/*
 * Inside of it, lists, words and sums agree: each group with a free page is in
 * the list of its largest free block. A head may be in that of a block that it
 * had. Returns the number of free pages.
 */
static inline uint32_t assert_page_lists(const struct mri_page_alloc *pa)
{
	const uint32_t n_per_group = 1u << pa->group_shift;
	uint32_t n_listed = 0, n_free_groups = 0, n_free = 0;

	for (uint32_t s = 0; s < pa->n_segments; s++) {
		uint32_t n_segment = 0;

		for (uint32_t k = 0; k <= pa->group_shift; k++) {
			uint32_t prev = 0, at = pa->segments[s].heads[k];

			assert_int_equal(pa->segments[s].buckets >> k & 1,
					 at != 0);
			for (; at != 0; at = pa->groups[at - 1].next) {
				const struct mri_page_group *g =
					&pa->groups[at - 1];

				assert_int_equal(g->prev, prev);
				assert_int_equal(g->bucket, k);
				assert_int_equal(g->segment, s);
				n_segment +=
					(uint32_t)__builtin_popcount(g->free);
				n_listed++;
				prev = at;
			}
		}
		assert_int_equal(n_segment, pa->segments[s].n_free);
		assert_int_equal(pa->with_free >> s & 1, n_segment > 0);
	}
	for (uint32_t g = 0; g < (pa->n_pages + n_per_group - 1) / n_per_group;
	     g++) {
		const uint32_t free = pa->groups[g].free;
		const uint32_t bucket = pa->groups[g].bucket;
		uint32_t largest = MRI_BUCKET_NONE;

		for (uint32_t k = 0; k <= pa->group_shift; k++)
			for (uint32_t i = 0; i < n_per_group; i += 1u << k)
				if ((~free >> i & ((1u << (1u << k)) - 1)) == 0)
					largest = k;
		if (largest != MRI_BUCKET_NONE && pa->groups[g].prev == 0)
			assert_in_range(bucket, largest, pa->group_shift);
		else
			assert_int_equal(bucket, largest);
		n_free_groups += free != 0;
		n_free += (uint32_t)__builtin_popcount(free);
	}
	assert_int_equal(n_listed, n_free_groups);
	assert_int_equal(n_free, pa->n_free);
	return n_free;
}

#endif
