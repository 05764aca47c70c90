/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages straight from and to the pool, with no cache involved: what opening and
 * closing a port does, and pages of another pool on their way home.
 */
#include <string.h>

#include "pool/pool.h"
#include "pool/safety.h"

static void count_refill(struct mr_pool *pool,
			 const struct mri_magazine *magazine)
{
	mri_counter_add_shared(&pool->counters.alloc_refill, 1);
	mri_counter_add_shared(&pool->counters.n_from_depot,
			       mri_magazine_n(magazine));
}

/* Pages that are on their way to a cache; so far nobody has got them back. */
static struct mri_magazine *steal(struct mr_pool *pool, uint64_t *n_failed)
{
	struct mri_magazine *magazine = mri_inbox_steal(pool, n_failed);

	if (magazine != NULL) {
		mri_counter_add_shared(&pool->counters.n_from_inbox,
				       mri_magazine_n(magazine));
		mri_counter_add_shared(&pool->counters.n_direct_free,
				       mri_magazine_n(magazine));
	}
	return magazine;
}

/* Up to n pages, by a segment more if there are none. */
static uint32_t take_free_pages(struct mr_pool *pool, uint32_t *pages,
				uint32_t n, bool may_grow)
{
	uint32_t n_got = mri_page_alloc_bulk(&pool->page_alloc, pages, n);

	if (n_got == 0 && n > 0 && may_grow && mri_pool_grow_if_empty(pool, 0))
		n_got = mri_page_alloc_bulk(&pool->page_alloc, pages, n);
	mri_counter_add_shared(&pool->counters.alloc_slow, n_got);
	return n_got;
}

/* Or who frees them sends them to a cache that had them long ago. */
static void forget_homes(struct mr_pool *pool, const uint32_t *pages,
			 uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(&pool->home[pages[i]], MRI_NO_HOME,
				 __ATOMIC_RELAXED);
}

/*
 * Pages for a caller without a cache: the page allocator's, then the depot's,
 * then new ones.
 */
static uint32_t take_pages(struct mr_pool *pool, uint32_t *pages, uint32_t n)
{
	uint64_t n_failed = 0;
	uint32_t n_done = take_free_pages(pool, pages, n, false);

	while (n_done < n) {
		struct mri_magazine *magazine = mri_depot_take(
			&pool->depot, &pool->depot.filled, &n_failed);
		uint32_t n_left, k;

		if (magazine == NULL && pool->home != NULL)
			magazine = steal(pool, &n_failed);
		else if (magazine != NULL)
			count_refill(pool, magazine);
		if (magazine == NULL && mri_block_reclaim(pool, NULL) > 0) {
			const uint32_t n_more = mri_page_alloc_bulk(
				&pool->page_alloc, pages + n_done, n - n_done);

			mri_counter_add_shared(&pool->counters.alloc_slow,
					       n_more);
			n_done += n_more;
			continue;
		}
		if (magazine == NULL)
			break;
		n_left = mri_magazine_n(magazine);
		k = mri_min_u32(n - n_done, n_left);
		n_left -= k;
		memcpy(pages + n_done, magazine->numbers + n_left,
		       k * sizeof(pages[0]));
		n_done += k;
		mri_page_free_bulk(&pool->page_alloc, magazine->numbers,
				   n_left);
		mri_magazine_set_n(magazine, 0);
		mri_depot_put(&pool->depot.empty, magazine, &n_failed);
	}
	if (n_done < n && pool->safety != NULL)
		n_done += mri_quarantine_take(&pool->safety->quarantine,
					      pages + n_done, n - n_done, 0);
	if (n_done < n)
		n_done +=
			take_free_pages(pool, pages + n_done, n - n_done, true);
	if (pool->home != NULL)
		forget_homes(pool, pages, n_done);
	mri_counter_add_shared(&pool->counters.depot_cas_failed, n_failed);
	mri_counter_add_shared(&pool->counters.n_direct_alloc, n_done);
	return n_done;
}

void mri_pool_put_pages(struct mr_pool *pool, const uint32_t *pages, uint32_t n)
{
	mri_page_free_bulk(&pool->page_alloc, pages, n);
	/* The last that touches the pool: see outbox.c. */
	__atomic_fetch_add(&pool->counters.n_direct_free, n, __ATOMIC_RELEASE);
}

uint32_t mr_pool_frag_alloc_bulk(struct mr_pool *pool, uint64_t *addrs,
				 uint32_t n, uint32_t n_bytes)
{
	uint32_t pages[MR_MAGAZINE_PAGES];
	uint32_t n_per_page, n_done = 0;

	if (n_bytes != pool->page_bytes && n_bytes != pool->chunk_bytes)
		return 0;
	n_per_page = pool->page_bytes / n_bytes;
	while (n_done < n) {
		const uint32_t n_want =
			mri_min_u32(MR_MAGAZINE_PAGES,
				    (n - n_done + n_per_page - 1) / n_per_page);
		const uint32_t n_got = take_pages(pool, pages, n_want);

		if (pool->safety != NULL)
			mri_checked_pages_out(pool, pages, n_got,
					      __builtin_return_address(0));

		for (uint32_t p = 0; p < n_got; p++) {
			const uint64_t addr =
				pool->addr +
				((uint64_t)pages[p] << pool->page_shift);
			/* Fewer than a page holds: the rest is never cut. */
			const uint32_t n_cut =
				mri_min_u32(n - n_done, n_per_page);

			if (n_per_page > 1)
				__atomic_store_n(&pool->live[pages[p]],
						 (uint8_t)n_cut,
						 __ATOMIC_RELAXED);
			for (uint32_t i = 0; i < n_cut; i++)
				addrs[n_done++] = addr + (uint64_t)i * n_bytes;
			if (pool->safety != NULL && n_per_page > 1)
				mri_checked_chunks_out(pool, addr, n_cut);
		}
		if (n_got < n_want)
			break;
	}
	mri_counter_add_shared(&pool->counters.alloc_empty,
			       (n - n_done + n_per_page - 1) / n_per_page);
	return n_done;
}

void mr_pool_frag_free_bulk(struct mr_pool *pool, const uint64_t *addrs,
			    uint32_t n)
{
	uint32_t pages[MR_MAGAZINE_PAGES];
	uint32_t n_pages = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mr_pool *home =
			mri_pool_has(pool, addrs[i]) ?
				pool :
				mri_pool_of(pool->region, addrs[i]);
		bool is_shared;
		uint32_t page;

		if (home == NULL) {
			mri_counter_add_shared(&pool->counters.free_invalid, 1);
			if (pool->safety != NULL)
				mri_checked_invalid(
					pool, addrs[i],
					__builtin_return_address(0));
			continue;
		}
		if (mri_is_block(home, addrs[i])) {
			mri_block_put_direct(home, addrs[i]);
			continue;
		}
		if (!mri_any_put(home, addrs[i], NULL,
				 __builtin_return_address(0), &is_shared)) {
			/* Not at home, which its last owner may destroy now. */
			mri_counter_add_shared(
				&pool->counters.recycle_released_refcnt,
				is_shared);
			continue;
		}
		page = mri_page_of(home, addrs[i]);
		if (home != pool) {
			mri_pool_put_pages(home, &page, 1);
			mri_counter_add_shared(&pool->counters.recycle_ring, 1);
			continue;
		}
		pages[n_pages++] = page;
		if (n_pages == MR_MAGAZINE_PAGES) {
			mri_pool_put_pages(pool, pages, n_pages);
			n_pages = 0;
		}
	}
	if (n_pages > 0)
		mri_pool_put_pages(pool, pages, n_pages);
}
