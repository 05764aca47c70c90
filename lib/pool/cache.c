/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Caches: one worker's pages, in two magazines.
 *
 *     alloc <--+                         +--> free
 *              |  loaded   prev          |
 *              +--[      ]-[      ]------+
 *                    |        |   one CAS per 64 pages
 *                  depot: filled, empty
 *
 * Two magazines (J. Bonwick and J. Adams, 2001) bound the trips to the depot to
 * one per 64 pages for any sequence of allocs and frees: whoever has just
 * fetched or sent a magazine has 64 pages, and room for 64, at hand.
 *
 * The hot part copies page numbers from or to the top of the loaded magazine,
 * in loops that a compiler can turn into vectors; whether a burst may go that
 * way is looked at once for all of it. All else is out of line, and counted.
 */
#include "pool/cache.h"

/* Pages for the loaded magazine, which is empty. False: there are none. */
__attribute__((noinline, cold)) static bool refill(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	struct mri_magazine *loaded = cache->loaded;
	struct mri_magazine *filled;
	uint32_t n;

	if (mri_magazine_n(cache->prev) > 0) {
		mri_cache_set_magazines(cache, cache->prev, loaded);
		return true;
	}
	filled = mri_depot_take(&pool->depot, &pool->depot.filled,
				&cache->counters.depot_cas_failed);
	if (filled != NULL) {
		mri_depot_put(&pool->depot, &pool->depot.empty, loaded,
			      &cache->counters.depot_cas_failed);
		mri_cache_set_magazines(cache, filled, cache->prev);
		mr_counter_add(&cache->counters.alloc_refill, 1);
		mr_counter_add(&cache->counters.n_from_depot,
			       mri_magazine_n(filled));
		return true;
	}
	n = mri_page_alloc_bulk(&pool->page_alloc, loaded->numbers,
				MR_MAGAZINE_PAGES);
	mri_magazine_set_n(loaded, n);
	mr_counter_add(&cache->counters.alloc_slow, n);
	return n > 0;
}

/* Room in the loaded magazine, which is full. */
__attribute__((noinline, cold)) static void make_room(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	struct mri_magazine *full = cache->loaded;
	struct mri_magazine *empty;

	if (mri_magazine_n(cache->prev) < MR_MAGAZINE_PAGES) {
		mri_cache_set_magazines(cache, cache->prev, full);
		return;
	}
	empty = mri_depot_take(&pool->depot, &pool->depot.empty,
			       &cache->counters.depot_cas_failed);
	if (empty == NULL) { /* too many magazines half full: rare */
		mri_page_free_bulk(&pool->page_alloc, full->numbers,
				   MR_MAGAZINE_PAGES);
		mri_magazine_set_n(full, 0);
		mr_counter_add(&cache->counters.recycle_ring_full,
			       MR_MAGAZINE_PAGES);
		return;
	}
	mr_counter_add(&cache->counters.n_to_depot, MR_MAGAZINE_PAGES);
	mr_counter_add(&cache->counters.recycle_cache_full, 1);
	/* The one filled longer ago goes; the warmer one stays. */
	mri_depot_put(&pool->depot, &pool->depot.filled, cache->prev,
		      &cache->counters.depot_cas_failed);
	mri_cache_set_magazines(cache, empty, full);
}

/* Addresses of the n pages on top of a magazine that has as many. */
static inline void pop_pages(const struct mr_cache *cache,
			     struct mri_magazine *loaded, uint64_t *addrs,
			     uint32_t n)
{
	const uint64_t base = cache->addr;
	const uint32_t shift = cache->page_shift;
	const uint32_t n_left = mri_magazine_n(loaded) - n;
	const uint32_t *pages = loaded->numbers + n_left;

	for (uint32_t i = 0; i < n; i++)
		addrs[i] = base + ((uint64_t)pages[i] << shift);
	mri_magazine_set_n(loaded, n_left);
}

/* More than the loaded magazine has. */
__attribute__((noinline)) static uint32_t
alloc_pages_over(struct mr_cache *cache, uint64_t *addrs, uint32_t n)
{
	uint32_t n_done = 0;

	for (;;) {
		const uint32_t k =
			mri_min_u32(n - n_done, mri_magazine_n(cache->loaded));

		pop_pages(cache, cache->loaded, addrs + n_done, k);
		n_done += k;
		if (n_done == n)
			break;
		if (!refill(cache)) {
			mr_counter_add(&cache->counters.alloc_empty,
				       n - n_done);
			break;
		}
	}
	mr_counter_add(&cache->counters.n_alloc, n_done);
	return n_done;
}

static inline uint32_t alloc_pages(struct mr_cache *cache, uint64_t *addrs,
				   uint32_t n)
{
	struct mri_magazine *loaded = cache->loaded;

	if (n > mri_magazine_n(loaded))
		return alloc_pages_over(cache, addrs, n);
	pop_pages(cache, loaded, addrs, n);
	mr_counter_add(&cache->counters.n_alloc, n);
	return n;
}

uint32_t mri_cache_alloc_pages(struct mr_cache *cache, uint64_t *addrs,
			       uint32_t n)
{
	return alloc_pages(cache, addrs, n);
}

void mri_cache_recycle(struct mr_cache *cache, uint32_t page)
{
	uint32_t n = mri_magazine_n(cache->loaded);

	if (n == MR_MAGAZINE_PAGES) {
		make_room(cache);
		n = mri_magazine_n(cache->loaded);
	}
	cache->loaded->numbers[n] = page;
	mri_magazine_set_n(cache->loaded, n + 1);
	mr_counter_add(&cache->counters.n_free, 1);
}

uint32_t mr_frag_alloc_bulk(struct mr_cache *cache, uint64_t *addrs, uint32_t n,
			    uint32_t n_bytes)
{
	if (n_bytes == cache->page_bytes)
		return alloc_pages(cache, addrs, n);
	if (n_bytes == cache->pool->chunk_bytes)
		return mri_chunk_alloc(cache, addrs, n);
	return 0;
}

/*
 * Page numbers of n addresses into the free part of a magazine. False, if they
 * are not all pages of this pool with one owner: then nothing has happened.
 *
 * The plain form, one address at a time with three branches, costs twice as
 * much. last - page borrows, and sets the top bit, where page > last.
 */
static inline bool take_sole(const struct mr_cache *cache, uint32_t *pages,
			     const char *addrs, uint32_t n, size_t stride)
{
	const uint64_t base = cache->addr;
	const uint64_t last = (uint64_t)cache->n_pages - 1;
	const uint32_t shift = cache->page_shift;
	const uint8_t *owners = cache->owners;
	uint64_t beyond = 0;
	uint32_t shared = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t page =
			(mri_addr_at(addrs, i, stride) - base) >> shift;

		pages[i] = (uint32_t)page;
		beyond |= last - page;
	}
	if (beyond >> 63)
		return false;
#pragma GCC unroll 8
	for (uint32_t i = 0; i < n; i++)
		shared |= __atomic_load_n(&owners[pages[i]], __ATOMIC_ACQUIRE);
	return shared == 0;
}

/* More than the loaded magazine has room for, or not all simply ours. */
__attribute__((noinline)) static void free_pages_over(struct mr_cache *cache,
						      const char *addrs,
						      uint32_t n, size_t stride)
{
	uint32_t n_freed = 0;

	while (n > 0) {
		struct mri_magazine *loaded = cache->loaded;
		const uint32_t n_full = mri_magazine_n(loaded);
		const uint32_t k = mri_min_u32(n, MR_MAGAZINE_PAGES - n_full);

		if (k == 0) {
			make_room(cache);
			continue;
		}
		if (take_sole(cache, loaded->numbers + n_full, addrs, k,
			      stride)) {
			mri_magazine_set_n(loaded, n_full + k);
			n_freed += k;
		} else {
			mri_cache_put(cache, addrs, k, stride);
		}
		addrs += k * stride;
		n -= k;
	}
	mr_counter_add(&cache->counters.n_free, n_freed);
}

/* Hot: n addresses, stride bytes apart, back to the cache. */
__attribute__((noinline)) static void
free_pages(struct mr_cache *cache, const char *addrs, uint32_t n, size_t stride)
{
	struct mri_magazine *loaded = cache->loaded;
	const uint32_t n_full = mri_magazine_n(loaded);

	if (n > MR_MAGAZINE_PAGES - n_full ||
	    !take_sole(cache, loaded->numbers + n_full, addrs, n, stride)) {
		free_pages_over(cache, addrs, n, stride);
		return;
	}
	mri_magazine_set_n(loaded, n_full + n);
	mr_counter_add(&cache->counters.n_free, n);
}

/*
 * One buffer alone, without the loops above, whose set-up costs more. False:
 * it is none of the simple ones, and nothing has happened.
 */
static inline bool free_one(struct mr_cache *cache, uint64_t addr)
{
	struct mri_magazine *loaded = cache->loaded;
	const uint32_t n_full = mri_magazine_n(loaded);
	const uint64_t page = (addr - cache->addr) >> cache->page_shift;

	if (!cache->is_paged || page >= cache->n_pages ||
	    n_full == MR_MAGAZINE_PAGES ||
	    __atomic_load_n(&cache->owners[page], __ATOMIC_ACQUIRE) != 0)
		return false;
	loaded->numbers[n_full] = (uint32_t)page;
	mri_magazine_set_n(loaded, n_full + 1);
	mr_counter_add(&cache->counters.n_free, 1);
	return true;
}

static inline void free_strided(struct mr_cache *cache, const void *addrs,
				uint32_t n, size_t stride)
{
	if (n == 1 && free_one(cache, mri_addr_at(addrs, 0, stride)))
		return;
	if (cache->is_paged)
		free_pages(cache, addrs, n, stride);
	else
		mri_chunk_free(cache, addrs, n, stride);
}

void mr_frag_free_bulk(struct mr_cache *cache, const uint64_t *addrs,
		       uint32_t n)
{
	free_strided(cache, addrs, n, sizeof(addrs[0]));
}

void mr_frame_free_bulk(struct mr_cache *cache, const struct mr_frame *frames,
			uint32_t n)
{
	free_strided(cache, frames, n, sizeof(frames[0]));
}
