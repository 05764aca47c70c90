/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages straight from the pool, without a cache, for opening and closing ports.
 * free.c has the way back.
 */
#include "pool/debug/safety.h"

static bool reclaim_magazine(struct mr_pool *pool)
{
	struct mri_pool_counters *counters = &pool->counters;
	uint64_t n_failed = 0;
	struct mri_magazine *magazine =
		mri_depot_take(&pool->depot, &pool->depot.filled, &n_failed);

	if (magazine != NULL) {
		mri_counter_add_shared(&counters->alloc_refill, 1);
		mri_counter_add_shared(&counters->n_from_depot,
				       mri_magazine_n(magazine));
		mri_magazine_drop(pool, magazine, &n_failed);
	}
	mri_counter_add_shared(&counters->depot_cas_failed, n_failed);
	return magazine != NULL;
}

void mri_pool_empty_depot(struct mr_pool *pool)
{
	uint32_t n = mri_depot_n(&pool->depot);

	while (n-- > 0 && reclaim_magazine(pool))
		;
}

bool mri_pool_reclaim(struct mr_pool *pool, uint32_t order)
{
	/* Blocks best serve callers that want contiguous pages. */
	if (order > 0 && mri_block_reclaim(pool, NULL) > 0)
		return true;
	return reclaim_magazine(pool) || mri_block_reclaim(pool, NULL) > 0 ||
	       mri_quarantine_reclaim(pool);
}

/* Pages for a caller without a cache. */
static uint32_t take_pages(struct mr_pool *pool, uint32_t *pages, uint32_t n,
			   const void *site)
{
	uint32_t n_done = 0;

	while (n_done < n) {
		n_done += mri_page_take_bulk(&pool->page_alloc, pages + n_done,
					     n - n_done);
		if (n_done < n && !mri_pool_reclaim(pool, 0) &&
		    !mri_pool_grow_if_empty(pool, 0))
			break;
	}
	for (uint32_t i = 0; i < n_done; i++)
		pool->checks->out(pool, pages[i], 1, site);
	mri_counter_add_shared(&pool->counters.alloc_slow, n_done);
	mri_counter_add_shared(&pool->counters.n_direct_alloc, n_done);
	return n_done;
}

void mri_pool_put_pages(struct mr_pool *pool, const uint32_t *pages, uint32_t n)
{
	mri_page_back_bulk(&pool->page_alloc, pages, n);
	/* The last access to the pool: see outbox.c. */
	__atomic_fetch_add(&pool->counters.n_direct_free, n, __ATOMIC_RELEASE);
}

uint32_t mr_pool_frag_alloc_bulk(struct mr_pool *pool, uint64_t *addrs,
				 uint32_t n)
{
	uint32_t pages[MR_MAGAZINE_PAGES];
	uint32_t n_done = 0;

	while (n_done < n) {
		const uint32_t n_want =
			mri_min_u32(MR_MAGAZINE_PAGES, n - n_done);
		const uint32_t n_got = take_pages(pool, pages, n_want,
						  __builtin_return_address(0));

		for (uint32_t i = 0; i < n_got; i++)
			addrs[n_done++] = mri_page_addr(pool, pages[i]);
		if (n_got < n_want)
			break;
	}
	mri_counter_add_shared(&pool->counters.alloc_empty, n - n_done);
	return n_done;
}

uint64_t mr_pool_n_direct(const struct mr_pool *pool)
{
	uint64_t n_pages = mri_page_alloc_n_free(&pool->page_alloc);

	if (!mri_stack_is_empty(&pool->depot.filled))
		n_pages += mri_magazine_pages(pool);
	return n_pages;
}

uint32_t mr_pool_keep_below(struct mr_pool *pool, uint64_t *addrs, uint32_t n,
			    uint64_t n_bytes)
{
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (addrs[i] < n_bytes)
			addrs[n_kept++] = addrs[i];
		else
			mr_pool_frag_free_bulk(pool, &addrs[i], 1);
	}
	return n_kept;
}
