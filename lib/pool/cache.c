/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Caches: one worker's pages, in two magazines (pair.h).
 *
 * The hot part copies page numbers from or to the top of the loaded magazine,
 * in loops that compilers vectorize; one check decides for the whole burst.
 * Everything else is out of line, and counted.
 */
#define MR_NO_INLINE_BURSTS /* defined here */

#include <string.h>

#include "pool/cache.h"

static inline __attribute__((always_inline)) uint32_t
to_addrs(const struct mr_cache *cache, uint64_t *addrs, const uint32_t *pages,
	 uint32_t n)
{
	const uint64_t base = cache->addr;
	const uint32_t shift = cache->page_shift;

	for (uint32_t i = 0; i < n; i++)
		addrs[i] = base + ((uint64_t)pages[i] << shift);
	return n;
}

/*
 * False: not all are below own_pages. A loop over the addresses with a branch
 * for each costs twice as much. last - page borrows, and sets the
 * top bit, where page > last.
 */
static inline __attribute__((always_inline)) bool
to_pages(const struct mr_cache *cache, uint32_t *pages, const char *addrs,
	 uint32_t n, size_t stride)
{
	const uint64_t base = cache->addr;
	const uint64_t last = (uint64_t)mri_cache_own_pages(cache) - 1;
	const uint32_t shift = cache->page_shift;
	uint64_t beyond = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t page =
			(mri_addr_at(addrs, i, stride) - base) >> shift;

		pages[i] = (uint32_t)page;
		beyond |= last - page;
	}
	return beyond >> 63 == 0;
}

/*
 * Frags that are shorter than their buffer by a cache line or more begin at one
 * of its first lines, which one depends on the page (J. Bonwick, 1994: slab
 * colouring). If all had the same offset from a power of two, their headers
 * would share few sets of the CPU's caches: 2 of 64, and 32 of 1024, with pages
 * of 2 KiB. The hash spreads pages whose lines go to the same set.
 */
static inline __attribute__((always_inline)) void
colour_burst(uint64_t *addrs, uint32_t n, uint32_t shift, uint32_t n_colours)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t hash =
			(uint32_t)(addrs[i] >> shift) * UINT32_C(0x9e3779b1);

		addrs[i] += ((hash >> 16) * n_colours >> 16) * MRI_CACHE_LINE;
	}
}

/*
 * The pages that came from the depot are of another NUMA node than requested:
 * return them to the page allocator, which supplies near ones if it can. Once
 * only, until a near one comes, to spare the allocator.
 */
__attribute__((noinline, cold)) static void waive_pages(struct mr_cache *cache)
{
	struct mri_pair *pair = &cache->pair;
	const uint32_t n = mri_pair_n_loaded(pair);

	mr_counter_add(&cache->counters.alloc_waive, n);
	mri_page_back_bulk(&cache->pool->page_alloc, pair->loaded->numbers, n);
	mri_pair_set_n_loaded(pair, 0);
}

/* A magazine came from the depot. False: its pages are not wanted. */
static bool accept_magazine(struct mr_cache *cache)
{
	struct mri_pool_counters *counters = &cache->counters;
	const struct mr_pool *pool = cache->pool;
	const uint32_t n = mri_pair_n_loaded(&cache->pair);

	mr_counter_add(&counters->n_from_depot, n);
	if (pool->numa_node_plus_1 != 0 &&
	    mri_pool_is_far(pool, cache->pair.loaded->numbers[0])) {
		waive_pages(cache);
		return false;
	}
	mr_counter_add(&counters->alloc_refill, 1);
	mr_counter_add(&cache->n_fetched, n);
	return true;
}

/* Load pages from the page allocator; returns how many. */
static uint32_t fetch_pages(struct mr_cache *cache)
{
	const uint32_t n = mri_page_take_bulk(&cache->pool->page_alloc,
					      cache->pair.loaded->numbers,
					      cache->magazine_pages);

	mri_pair_set_n_loaded(&cache->pair, n);
	mr_counter_add(&cache->counters.alloc_slow, n);
	mr_counter_add(&cache->n_fetched, n);
	return n;
}

/* Refill the loaded magazine, which is empty. False: no pages. */
__attribute__((noinline)) static bool refill_pages(void *user)
{
	struct mr_cache *cache = user;
	struct mr_pool *pool = cache->pool;
	const enum mri_exchange exchange = mri_pair_refill(
		&cache->pair, &pool->depot, &cache->counters.depot_cas_failed);

	if (exchange == MRI_EXCHANGE_SWAP ||
	    (exchange == MRI_EXCHANGE_DEPOT && accept_magazine(cache)))
		return true;
	if (fetch_pages(cache) > 0)
		return true;
	mri_block_flush(cache); /* it may free a page */
	if (mri_pair_n_loaded(&cache->pair) > 0 ||
	    (mri_block_reclaim(pool, cache) > 0 && fetch_pages(cache) > 0))
		return true;
	/* Caches of other pools send the open magazines of this one. */
	if (__atomic_load_n(&pool->is_starving, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&pool->is_starving, 1, __ATOMIC_RELAXED);
	return mri_pool_grow_if_empty(pool, 0) && fetch_pages(cache) > 0;
}

/* Make room in the loaded magazine, which is full. */
__attribute__((noinline)) static void make_room(struct mr_cache *cache)
{
	struct mri_pool_counters *counters = &cache->counters;
	const uint32_t n = cache->magazine_pages;
	const enum mri_exchange exchange = mri_pair_make_room(
		&cache->pair, &cache->pool->depot, &counters->depot_cas_failed);

	if (exchange == MRI_EXCHANGE_SWAP)
		return;
	mr_counter_add(&cache->n_fetched, -(uint64_t)n);
	if (exchange == MRI_EXCHANGE_DEPOT) {
		mr_counter_add(&counters->n_to_depot, n);
		mr_counter_add(&counters->recycle_cache_full, 1);
		return;
	}
	/* Too many half-full magazines: rare. */
	mri_page_back_bulk(&cache->pool->page_alloc,
			   cache->pair.loaded->numbers, n);
	mri_pair_set_n_loaded(&cache->pair, 0);
	mr_counter_add(&counters->recycle_ring_full, n);
}

void mri_cache_keep(struct mr_cache *cache, const uint32_t *pages, uint32_t n)
{
	while (n > 0) {
		const uint64_t top = cache->pair.top;
		const uint32_t k =
			mri_min_u32(n, cache->magazine_pages - mri_top_n(top));

		if (k == 0) {
			make_room(cache);
			continue;
		}
		memcpy(cache->pair.loaded->numbers + mri_top_n(top), pages,
		       k * sizeof(pages[0]));
		mri_pair_push(&cache->pair, top, k);
		pages += k;
		n -= k;
	}
}

/* Whether all of n pages of this pool have one owner. */
static inline __attribute__((always_inline)) bool
are_exclusive(const struct mr_cache *cache, const uint32_t *pages, uint32_t n)
{
	const uint8_t *owners = cache->owners;
	uint32_t shared = 0;

#pragma GCC unroll 8
	for (uint32_t i = 0; i < n; i++)
		shared |= __atomic_load_n(&owners[pages[i]], __ATOMIC_ACQUIRE);
	return shared == 0;
}

__attribute__((noinline)) static void free_not_simple(struct mr_cache *cache,
						      const char *addrs,
						      uint32_t n, size_t stride,
						      const void *site)
{
	cache->site = site;
	cache->pool->checks->free(cache, addrs, n, stride);
}

/* More than the loaded magazine has room for. */
__attribute__((noinline)) static void free_pages_over(struct mr_cache *cache,
						      const char *addrs,
						      uint32_t n, size_t stride,
						      const void *site)
{
	while (n > 0) {
		const uint64_t top = cache->pair.top;
		uint32_t *pages = cache->pair.loaded->numbers + mri_top_n(top);
		uint32_t k =
			mri_min_u32(n, cache->magazine_pages - mri_top_n(top));

		if (k == 0) {
			make_room(cache);
			continue;
		}
		if (to_pages(cache, pages, addrs, k, stride) &&
		    (!mri_pool_uses_owners(cache->pool) ||
		     are_exclusive(cache, pages, k))) {
			mri_pair_push(&cache->pair, top, k);
		} else { /* it makes room itself */
			k = mri_min_u32(n, MR_MAGAZINE_PAGES);
			free_not_simple(cache, addrs, k, stride, site);
		}
		addrs += k * stride;
		n -= k;
	}
}

/*
 * Free pages of this pool whose numbers are in the magazine already, and whose
 * owners have to be looked at.
 */
__attribute__((noinline)) static void free_owned(struct mr_cache *cache,
						 const char *addrs, uint32_t n,
						 size_t stride,
						 const void *site)
{
	const uint64_t top = cache->pair.top;
	const uint32_t *pages = cache->pair.loaded->numbers + mri_top_n(top);

	/* All of a burst that begins with a frag are likely to be frags. */
	if (n > 0 &&
	    __atomic_load_n(&cache->owners[pages[0]], __ATOMIC_RELAXED) !=
		    MRI_OWNER_BLOCK &&
	    are_exclusive(cache, pages, n))
		mri_pair_push(&cache->pair, top, n);
	else
		free_not_simple(cache, addrs, n, stride, site);
}

/*
 * Free n addresses, stride bytes apart, to a cache that need not check. Calls
 * come last in each case, so that no register is saved.
 */
static inline __attribute__((always_inline)) void
free_pages(struct mr_cache *cache, const char *addrs, uint32_t n, size_t stride,
	   const void *site)
{
	const uint64_t top = cache->pair.top;
	uint32_t *pages = cache->pair.loaded->numbers + mri_top_n(top);

	if (n + mri_top_n(top) > cache->magazine_pages)
		free_pages_over(cache, addrs, n, stride, site);
	else if (!to_pages(cache, pages, addrs, n, stride))
		free_not_simple(cache, addrs, n, stride, site);
	else if (mri_pool_uses_owners(cache->pool))
		free_owned(cache, addrs, n, stride, site);
	else
		mri_pair_push(&cache->pair, top, n);
}

/*
 * Hot: one per stride, so that the stride is a constant, and one for multiples
 * of 4, which leave no remainder after vectors of 16 bytes.
 */
__attribute__((noinline)) static void free_addrs_4(struct mr_cache *cache,
						   const uint64_t *addrs,
						   uint32_t n, const void *site)
{
	free_pages(cache, (const char *)addrs, n & ~3u, sizeof(addrs[0]), site);
}

__attribute__((noinline)) static void free_addrs(struct mr_cache *cache,
						 const uint64_t *addrs,
						 uint32_t n, const void *site)
{
	free_pages(cache, (const char *)addrs, n, sizeof(addrs[0]), site);
}

__attribute__((noinline)) static void free_frames(struct mr_cache *cache,
						  const struct mr_frame *frames,
						  uint32_t n, const void *site)
{
	free_pages(cache, (const char *)frames, n, sizeof(frames[0]), site);
}

#define VECTORS(width, attributes)                                             \
	attributes static uint32_t to_addrs_##width(                           \
		const struct mr_cache *cache, uint64_t *addrs,                 \
		const uint32_t *pages, uint32_t n)                             \
	{                                                                      \
		return to_addrs(cache, addrs, pages, n & ~15u);                \
	}                                                                      \
	attributes static void colour_##width(uint64_t *addrs, uint32_t n,     \
					      uint32_t shift,                  \
					      uint32_t n_colours)              \
	{                                                                      \
		colour_burst(addrs, n & ~15u, shift, n_colours);               \
	}                                                                      \
	attributes static void free_addrs_##width(                             \
		struct mr_cache *cache, const uint64_t *addrs, uint32_t n,     \
		const void *site)                                              \
	{                                                                      \
		free_pages(cache, (const char *)addrs, n & ~15u,               \
			   sizeof(addrs[0]), site);                            \
	}                                                                      \
	attributes static void free_frames_##width(                            \
		struct mr_cache *cache, const struct mr_frame *frames,         \
		uint32_t n, const void *site)                                  \
	{                                                                      \
		free_pages(cache, (const char *)frames, n & ~15u,              \
			   sizeof(frames[0]), site);                           \
	}

MRI_EACH_WIDTH(VECTORS)

/* Call the one for this CPU, where n is a multiple of 16. */
#define WIDE(cache, function, ...)                                             \
	MRI_WIDE((cache)->pool->vector_bytes, function, __VA_ARGS__)

/* Take n pages of the loaded magazine, which has enough, as addresses. */
static inline __attribute__((always_inline)) uint32_t
alloc_burst(void *user, void *addrs, uint32_t n)
{
	struct mr_cache *cache = user;
	const uint32_t *pages = mri_pair_pop(&cache->pair, cache->pair.top, n);

	return n % 16 == 0 ? WIDE(cache, to_addrs, cache, addrs, pages, n) :
			     to_addrs(cache, addrs, pages, n);
}

/* More than the loaded magazine has. */
uint32_t mri_cache_alloc_pages(struct mr_cache *cache, uint64_t *addrs,
			       uint32_t n)
{
	return mri_pair_alloc(&cache->pair, cache, addrs, n, alloc_burst,
			      refill_pages, &cache->counters.alloc_empty);
}

static void colour(const struct mr_cache *cache, uint64_t *addrs, uint32_t n,
		   uint32_t n_left)
{
	const uint32_t n_colours = n_left / MRI_CACHE_LINE + 1;

	if (n % 16 == 0)
		WIDE(cache, colour, addrs, n, cache->page_shift, n_colours);
	else
		colour_burst(addrs, n, cache->page_shift, n_colours);
}

/* Anything but one page, or a burst of pages from the loaded magazine. */
__attribute__((noinline)) static uint32_t
alloc_other(struct mr_cache *cache, uint64_t *addrs, uint32_t n,
	    uint32_t n_bytes, const void *site)
{
	const struct mr_pool *pool = cache->pool;

	if (n_bytes == 0 || n_bytes > pool->page_bytes)
		return 0;
	cache->site = site;
	n = pool->checks->alloc(cache, addrs, n);
	if (pool->page_bytes - n_bytes >= MRI_CACHE_LINE)
		colour(cache, addrs, n, pool->page_bytes - n_bytes);
	return n;
}

uint32_t mr_frag_alloc_bulk(struct mr_cache *cache, uint64_t *addrs, uint32_t n,
			    uint32_t n_bytes)
{
	const uint64_t top = cache->pair.top;

	if (n > mri_top_n(top) || n_bytes != cache->fast_bytes)
		return alloc_other(cache, addrs, n, n_bytes,
				   __builtin_return_address(0));
	if (n == 1) {
		addrs[0] = cache->addr +
			   ((uint64_t)*mri_pair_pop(&cache->pair, top, 1)
			    << cache->page_shift);
		return 1;
	}
	return alloc_burst(cache, addrs, n);
}

/* A frag of another block than the last one freed. */
__attribute__((noinline)) static void put_in_block(struct mr_cache *cache,
						   uint64_t addr)
{
	mri_block_put(cache, cache->pool, addr);
	if (mri_cache_is_due(cache))
		mri_outbox_tick(cache);
}

/*
 * A single buffer, without the loops above, whose set-up costs more: a page, or
 * a frag of a block. False: neither is simple, and nothing was done.
 */
static inline bool free_one(struct mr_cache *cache, uint64_t addr)
{
	const uint64_t top = cache->pair.top;
	const uint64_t page = (addr - cache->addr) >> cache->page_shift;
	uint8_t owners;

	if (page >= mri_cache_own_pages(cache)) {
		if (!mri_block_run_add(&cache->run, addr))
			return false;
		goto freed;
	}
	owners = __atomic_load_n(&cache->owners[page], __ATOMIC_ACQUIRE);
	if (owners == MRI_OWNER_BLOCK) {
		if (mri_block_run_add(&cache->run, addr))
			goto freed;
		put_in_block(cache, addr);
		return true;
	}
	if (owners != 0 || mri_top_n(top) == cache->magazine_pages)
		return false;
	cache->pair.loaded->numbers[mri_top_n(top)] = (uint32_t)page;
	mri_pair_push(&cache->pair, top, 1);
freed: /* look last, so that no register is saved */
	if (mri_cache_is_due(cache))
		mri_outbox_tick(cache);
	return true;
}

static inline void free_all_addrs(struct mr_cache *cache, const uint64_t *addrs,
				  uint32_t n, const void *site)
{
	if (n % 16 == 0)
		WIDE(cache, free_addrs, cache, addrs, n, site);
	else if (n % 4 == 0)
		free_addrs_4(cache, addrs, n, site);
	else
		free_addrs(cache, addrs, n, site);
}

static inline void free_all_frames(struct mr_cache *cache,
				   const struct mr_frame *frames, uint32_t n,
				   const void *site)
{
	if (n % 16 == 0)
		WIDE(cache, free_frames, cache, frames, n, site);
	else
		free_frames(cache, frames, n, site);
}

__attribute__((noinline)) static void
tick_and_free_addrs(struct mr_cache *cache, const uint64_t *addrs, uint32_t n,
		    const void *site)
{
	mri_outbox_tick(cache);
	free_all_addrs(cache, addrs, n, site);
}

__attribute__((noinline)) static void
tick_and_free_frames(struct mr_cache *cache, const struct mr_frame *frames,
		     uint32_t n, const void *site)
{
	mri_outbox_tick(cache);
	free_all_frames(cache, frames, n, site);
}

/* A single buffer that free_one() cannot free. */
__attribute__((noinline)) static void
free_other(struct mr_cache *cache, const uint64_t *addr, const void *site)
{
	const size_t stride = sizeof(*addr);

	if (mri_cache_is_due(cache))
		mri_outbox_tick(cache);
	if (!mri_pool_is_simple(cache->pool) || !mri_outbox_add(cache, *addr))
		free_pages_over(cache, (const char *)addr, 1, stride, site);
}

void mr_frag_free_bulk(struct mr_cache *cache, const uint64_t *addrs,
		       uint32_t n)
{
	if (n == 1) {
		if (!free_one(cache, addrs[0]))
			free_other(cache, addrs, __builtin_return_address(0));
		return;
	}
	if (mri_cache_is_due(cache))
		tick_and_free_addrs(cache, addrs, n,
				    __builtin_return_address(0));
	else
		free_all_addrs(cache, addrs, n, __builtin_return_address(0));
}

void mr_frame_free_bulk(struct mr_cache *cache, const struct mr_frame *frames,
			uint32_t n)
{
	if (n == 1) {
		if (!free_one(cache, frames[0].addr))
			free_other(cache, &frames[0].addr,
				   __builtin_return_address(0));
		return;
	}
	if (mri_cache_is_due(cache))
		tick_and_free_frames(cache, frames, n,
				     __builtin_return_address(0));
	else
		free_all_frames(cache, frames, n, __builtin_return_address(0));
}
