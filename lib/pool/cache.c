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
#include <assert.h>
#include <errno.h>

#include "mem/mem.h"
#include "pool/pool.h"

static void set_magazines(struct mr_cache *cache, struct mri_magazine *loaded,
			  struct mri_magazine *prev)
{
	__atomic_store_n(&cache->loaded, loaded, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->prev, prev, __ATOMIC_RELAXED);
}

/* Pages for the loaded magazine, which is empty. False: there are none. */
__attribute__((noinline, cold)) static bool refill(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	struct mri_magazine *loaded = cache->loaded;
	struct mri_magazine *filled;
	uint32_t n;

	if (mri_magazine_n(cache->prev) > 0) {
		set_magazines(cache, cache->prev, loaded);
		return true;
	}
	filled = mri_depot_take(&pool->depot, &pool->depot.filled,
				&cache->counters.depot_cas_failed);
	if (filled != NULL) {
		mri_depot_put(&pool->depot, &pool->depot.empty, loaded,
			      &cache->counters.depot_cas_failed);
		set_magazines(cache, filled, cache->prev);
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
		set_magazines(cache, cache->prev, full);
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
	set_magazines(cache, empty, full);
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

static void recycle(struct mr_cache *cache, uint32_t page)
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

static void set_open(struct mr_cache *cache, uint64_t addr, uint32_t n_left)
{
	__atomic_store_n(&cache->open_addr, addr, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->n_open_left, n_left, __ATOMIC_RELAXED);
}

/*
 * Frags of one chunk, from pages of several: one open page per cache. live[]
 * begins with as many frags as will be cut, so cutting costs no atomic.
 */
__attribute__((noinline)) static uint32_t
alloc_chunks(struct mr_cache *cache, uint64_t *addrs, uint32_t n)
{
	const struct mr_pool *pool = cache->pool;
	const uint32_t chunk_bytes = pool->chunk_bytes;
	const uint32_t n_per_page = 1u
				    << (pool->page_shift - pool->chunk_shift);
	uint64_t pages[MR_MAGAZINE_PAGES]; /* their addresses */
	uint64_t addr = cache->open_addr;
	uint32_t n_left = cache->n_open_left;
	uint32_t n_pages = 0, at = 0, n_done = 0;

	for (;;) {
		const uint32_t k = mri_min_u32(n - n_done, n_left);

		for (uint32_t i = 0; i < k; i++, addr += chunk_bytes)
			addrs[n_done + i] = addr;
		n_left -= k;
		n_done += k;
		if (n_done == n)
			break;
		if (at == n_pages) {
			n_pages = alloc_pages(
				cache, pages,
				mri_min_u32(MR_MAGAZINE_PAGES,
					    (n - n_done + n_per_page - 1) /
						    n_per_page));
			at = 0;
			if (n_pages == 0)
				break;
		}
		addr = pages[at++];
		n_left = n_per_page;
		__atomic_store_n(&pool->live[mri_page_of(pool, addr)],
				 (uint8_t)n_per_page, __ATOMIC_RELAXED);
	}
	set_open(cache, addr, n_left);
	return n_done;
}

uint32_t mr_frag_alloc_bulk(struct mr_cache *cache, uint64_t *addrs, uint32_t n,
			    uint32_t n_bytes)
{
	if (n_bytes == cache->page_bytes)
		return alloc_pages(cache, addrs, n);
	if (n_bytes == cache->pool->chunk_bytes)
		return alloc_chunks(cache, addrs, n);
	return 0;
}

/* A reference that is not simply a page of this pool with one owner. */
__attribute__((noinline)) static void put_other(struct mr_cache *cache,
						uint64_t addr)
{
	struct mr_pool *pool = cache->pool;
	bool is_shared;
	uint32_t page;

	if (!mri_pool_has(pool, addr))
		pool = mri_pool_of(pool->region, addr);
	if (pool == NULL) {
		mr_counter_add(&cache->counters.free_invalid, 1);
		return;
	}
	if (!mri_frag_put(pool, addr, &is_shared)) {
		mr_counter_add(&cache->counters.recycle_released_refcnt,
			       is_shared);
		return;
	}
	page = mri_page_of(pool, addr);
	if (pool == cache->pool) {
		recycle(cache, page);
	} else {
		mri_pool_put_pages(pool, &page, 1);
		mr_counter_add(&cache->counters.recycle_ring, 1);
	}
}

/* Address i of an array of addresses, or of anything that begins with one. */
static inline uint64_t addr_at(const char *addrs, uint32_t i, size_t stride)
{
	return *(const uint64_t *)(const void *)(addrs + i * stride);
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
			(addr_at(addrs, i, stride) - base) >> shift;

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
			for (uint32_t i = 0; i < k; i++)
				put_other(cache, addr_at(addrs, i, stride));
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
 * The same for pages of several chunks. Frags of one page often stand next to
 * each other in a burst: one look at live[] for all of them.
 */
__attribute__((noinline)) static void free_chunks(struct mr_cache *cache,
						  const char *addrs, uint32_t n,
						  size_t stride)
{
	struct mr_pool *pool = cache->pool;
	uint32_t i = 0, n_shared = 0;

	while (i < n) {
		uint64_t addr = addr_at(addrs, i, stride);
		const uint32_t page = mri_page_of(pool, addr);
		uint32_t n_last = 0;

		if (!mri_pool_has(pool, addr) ||
		    __atomic_load_n(&pool->live[page], __ATOMIC_RELAXED) == 0) {
			put_other(cache, addr);
			i++;
			continue;
		}
		do {
			const uint64_t chunk =
				(addr - pool->addr) >> pool->chunk_shift;

			if (mri_owner_put(&pool->owners[chunk]))
				n_last++;
			else
				n_shared++;
			if (++i == n)
				break;
			addr = addr_at(addrs, i, stride);
		} while ((addr - pool->addr) >> pool->page_shift == page);
		if (n_last > 0 && mri_live_put(&pool->live[page], n_last))
			recycle(cache, page);
	}
	mr_counter_add(&cache->counters.recycle_released_refcnt, n_shared);
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
	if (n == 1 && free_one(cache, addr_at(addrs, 0, stride)))
		return;
	if (cache->is_paged)
		free_pages(cache, addrs, n, stride);
	else
		free_chunks(cache, addrs, n, stride);
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

/* Under the pool's lock: whether it may have one more cache. */
static int check_room(const struct mr_pool *pool,
		      struct mr_reason *reterr_reason)
{
	const uint64_t n_needed = pool->n_committed + mri_cache_max_pages(pool);

	if (pool->n_caches == pool->max_caches)
		return mr_fail(reterr_reason, -ENOSPC,
			       "%s has all of its %u caches; raise "
			       "mr_pool_config.max_caches",
			       pool->name, pool->max_caches);
	/* A port that is open must not starve because a cache came later. */
	if (pool->n_ports > 0 && n_needed > pool->n_pages)
		return mr_fail(reterr_reason, -ENOMEM,
			       "a cache may hold %u pages, and others of %s "
			       "hold %llu: make it at least %llu pages, it has "
			       "%u",
			       mri_cache_max_pages(pool), pool->name,
			       (unsigned long long)pool->n_committed,
			       (unsigned long long)n_needed, pool->n_pages);
	return 0;
}

/* Two empty magazines. Certain to be there: there are four for each cache. */
static void load_cache(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	struct mri_magazine *loaded =
		mri_depot_take(&pool->depot, &pool->depot.empty,
			       &cache->counters.depot_cas_failed);
	struct mri_magazine *prev =
		mri_depot_take(&pool->depot, &pool->depot.empty,
			       &cache->counters.depot_cas_failed);

	assert(loaded != NULL && prev != NULL);
	set_magazines(cache, loaded, prev);
}

int mr_cache_create(struct mr_pool *pool, struct mr_cache **ret_cache,
		    struct mr_reason *reterr_reason)
{
	struct mr_cache *cache = mr_alloc(pool->ctx, 0, sizeof(*cache));
	int err;

	if (cache == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a cache");
	pthread_mutex_lock(&pool->lock);
	err = check_room(pool, reterr_reason);
	if (err < 0) {
		pthread_mutex_unlock(&pool->lock);
		mr_free(pool->ctx, cache);
		return err;
	}
	cache->pool = pool;
	cache->addr = pool->addr;
	cache->n_pages = pool->n_pages;
	cache->page_bytes = pool->page_bytes;
	cache->page_shift = pool->page_shift;
	cache->owners = pool->owners;
	cache->is_paged = pool->live == NULL;
	load_cache(cache);
	cache->next = pool->caches;
	pool->caches = cache;
	pool->n_caches++;
	pool->n_committed += mri_cache_max_pages(pool);
	pthread_mutex_unlock(&pool->lock);
	*ret_cache = cache;
	return 0;
}

/* The rest of the open page: as if its frags had been cut and freed. */
static void close_open_page(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	const uint32_t n_left = cache->n_open_left;
	const uint32_t page = mri_page_of(pool, cache->open_addr);

	set_open(cache, 0, 0);
	if (n_left > 0 && mri_live_put(&pool->live[page], n_left))
		recycle(cache, page);
}

static void empty_magazine(struct mr_cache *cache,
			   struct mri_magazine *magazine)
{
	struct mr_pool *pool = cache->pool;

	mri_page_free_bulk(&pool->page_alloc, magazine->numbers,
			   mri_magazine_n(magazine));
	mri_magazine_set_n(magazine, 0);
	mri_depot_put(&pool->depot, &pool->depot.empty, magazine,
		      &cache->counters.depot_cas_failed);
}

void mr_cache_destroy(struct mr_cache *cache)
{
	struct mr_pool *pool;
	struct mr_cache **link;
	const uint64_t *from;
	uint64_t *to;

	if (cache == NULL)
		return;
	pool = cache->pool;
	close_open_page(cache);

	pthread_mutex_lock(&pool->lock);
	/* To the page allocator: half-filled magazines would wear the depot. */
	empty_magazine(cache, cache->loaded);
	empty_magazine(cache, cache->prev);
	for (link = &pool->caches; *link != cache; link = &(*link)->next)
		;
	*link = cache->next;
	pool->n_caches--;
	pool->n_committed -= mri_cache_max_pages(pool);
	from = (const uint64_t *)&cache->counters;
	to = (uint64_t *)&pool->counters;
	for (size_t i = 0; i < sizeof(cache->counters) / sizeof(*from); i++)
		__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool->lock);
	mr_free(pool->ctx, cache);
}

struct mr_cache *mr_cache_adopt(struct mr_cache *cache)
{
	return cache; /* nothing in it knows its thread */
}

struct mr_pool *mr_cache_pool(const struct mr_cache *cache)
{
	return cache->pool;
}
