/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of other pools of the region: they are collected in open magazines of
 * their own pool, and go to its depot a magazine at a time, filled up to the
 * smaller of both pools' magazine sizes.
 *
 * The table has few slots; if none is free, the one that the pool maps to is
 * sent. An open magazine has at least one page. It is sent when it is full,
 * when a cache finds no pages, when two ticks of TICK_CALLS calls found nothing
 * new in it, and by mr_cache_flush(). Empty polls and calls that free count;
 * inlined single frees do not.
 *
 * Another thread may destroy a pool once all of its pages are back. So what is
 * sent counts as in flight until it arrives, and the last access to the pool is
 * to the counter for that, whose release pairs with the acquire in
 * mr_pool_destroy().
 */
#include <string.h>

#include "pool/cache.h"

enum { TICK_CALLS = 32 };

static void set_n_open(struct mr_cache *cache, uint32_t n)
{
	if (n == 0)
		cache->n_until_tick = 0;
	else if (cache->n_open == 0)
		cache->n_until_tick = TICK_CALLS;
	__atomic_store_n(&cache->n_open, n, __ATOMIC_RELAXED);
}

static void set_is_open(struct mri_magazine *magazine, uint32_t is_open)
{
	__atomic_store_n(&magazine->is_open, is_open, __ATOMIC_RELAXED);
}

/* Pages of another pool are counted there, where others also count. */
static void count_there(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELEASE);
}

static void send_open(struct mr_cache *cache, struct mri_open_magazine *open)
{
	struct mr_pool *pool = open->pool;
	struct mri_magazine *magazine = open->magazine;
	const uint32_t n = mri_magazine_n(magazine);

	open->pool = NULL;
	set_n_open(cache, cache->n_open - n);
	set_is_open(magazine, 0);
	mri_depot_put(&pool->depot.filled, magazine,
		      &cache->counters.depot_cas_failed);
	count_there(&pool->counters.n_to_depot, n);
	count_there(&pool->counters.n_direct_free, n);
}

/*
 * Pages that fit into an open magazine: no more than into one of the cache, or
 * it would hold more foreign pages than mr_cache_stats() reports.
 */
static uint32_t n_full(const struct mr_cache *cache, const struct mr_pool *pool)
{
	return mri_min_u32(cache->magazine_pages, mri_magazine_pages(pool));
}

/* The slot of a pool, or one that it may use. */
static struct mri_open_magazine *find_place(struct mr_cache *cache,
					    const struct mr_pool *pool)
{
	struct mri_open_magazine *unused = NULL;

	for (uint32_t i = 0; i < MR_OPEN_MAGAZINES; i++) {
		struct mri_open_magazine *open =
			&cache->open[(uint32_t)(pool->place + (int)i) %
				     MR_OPEN_MAGAZINES];

		if (open->pool == pool)
			return open;
		if (open->pool == NULL && unused == NULL)
			unused = open;
	}
	return unused != NULL ?
		       unused :
		       &cache->open[(uint32_t)pool->place % MR_OPEN_MAGAZINES];
}

/* Assign a slot of the table to a pool. False: no magazine. */
static bool take_place(struct mr_cache *cache, struct mri_open_magazine *open,
		       struct mr_pool *pool)
{
	if (open->pool != NULL)
		send_open(cache, open);
	open->magazine = mri_depot_take(&pool->depot, &pool->depot.empty,
					&cache->counters.depot_cas_failed);
	if (open->magazine == NULL)
		return false;
	open->pool = pool;
	open->n_seen = 0;
	set_is_open(open->magazine, 1);
	return true;
}

/* Put n pages into an open magazine, which has room for them. */
static inline void add_pages(struct mr_cache *cache,
			     struct mri_open_magazine *open,
			     const uint32_t *pages, uint32_t n)
{
	const uint32_t n_there = mri_magazine_n(open->magazine);

	memcpy(open->magazine->numbers + n_there, pages, n * sizeof(pages[0]));
	mri_magazine_set_n(open->magazine, n_there + n);
	set_n_open(cache, cache->n_open + n);
	if (n_there + n == n_full(cache, open->pool))
		send_open(cache, open);
}

bool mri_outbox_add(struct mr_cache *cache, uint64_t addr)
{
	for (uint32_t i = 0; i < MR_OPEN_MAGAZINES; i++) {
		struct mri_open_magazine *open = &cache->open[i];
		const struct mr_pool *pool = open->pool;
		uint32_t page;

		if (pool == NULL || !mri_pool_has(pool, addr))
			continue;
		page = mri_page_of(pool, addr);
		if (!mri_pool_is_simple(pool) ||
		    __atomic_load_n(&pool->owners[page], __ATOMIC_ACQUIRE) != 0)
			return false;
		mr_counter_add(&cache->counters.recycle_ring, 1);
		add_pages(cache, open, &page, 1);
		return true;
	}
	return false;
}

void mri_outbox_put(struct mr_cache *cache, struct mr_pool *pool,
		    const uint32_t *pages, uint32_t n)
{
	struct mri_open_magazine *open = find_place(cache, pool);

	while (n > 0) {
		uint32_t k;

		if (open->pool != pool && !take_place(cache, open, pool)) {
			mr_counter_add(&cache->counters.recycle_ring_full, n);
			mri_pool_put_pages(pool, pages, n);
			return;
		}
		k = mri_min_u32(n, n_full(cache, pool) -
					   mri_magazine_n(open->magazine));
		add_pages(cache, open, pages, k);
		pages += k;
		n -= k;
	}
}

/* Whether to send a slot because two ticks found it unchanged. */
static bool is_due(struct mri_open_magazine *open, bool is_tick)
{
	const uint32_t n = mri_magazine_n(open->magazine);
	const bool is_still = open->n_seen == n;

	if (is_tick)
		open->n_seen = n;
	return is_tick && is_still;
}

static void look_at_open(struct mr_cache *cache, bool is_tick)
{
	for (uint32_t i = 0; i < MR_OPEN_MAGAZINES; i++) {
		struct mri_open_magazine *open = &cache->open[i];
		bool is_starving;

		if (open->pool == NULL)
			continue;
		is_starving = __atomic_load_n(&open->pool->is_starving,
					      __ATOMIC_RELAXED) != 0;
		if (is_starving)
			__atomic_store_n(&open->pool->is_starving, 0,
					 __ATOMIC_RELAXED);
		if (is_starving || is_due(open, is_tick))
			send_open(cache, open);
	}
}

void mri_outbox_tick(struct mr_cache *cache)
{
	cache->n_until_tick = TICK_CALLS;
	look_at_open(cache, true);
}

/* Flush the rest: freed frags, and what mr_pool_trim() requested. */
static void flush_rest(struct mr_cache *cache)
{
	mri_block_flush(cache);
	if (__atomic_load_n(&cache->is_asked, __ATOMIC_RELAXED) != 0)
		mri_cache_give_back(cache);
}

/*
 * A core that is slightly faster than its work comes here between bursts.
 * Sending open magazines each time would send most with few pages.
 */
void mr_cache_idle(struct mr_cache *cache)
{
	flush_rest(cache);
	if (mri_cache_is_due(cache))
		mri_outbox_tick(cache);
	else if (cache->n_open != 0)
		look_at_open(cache, false);
}

void mr_cache_flush(struct mr_cache *cache)
{
	flush_rest(cache);
	if (cache->n_open == 0)
		return;
	for (uint32_t i = 0; i < MR_OPEN_MAGAZINES; i++)
		if (cache->open[i].pool != NULL)
			send_open(cache, &cache->open[i]);
}
