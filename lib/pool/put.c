/* SPDX-License-Identifier: BSD-3-Clause */
/* References that are not simply a page of the cache's pool with one owner. */
#include "pool/cache.h"
#include "pool/safety.h"

static void put_one(struct mr_cache *cache, uint64_t addr)
{
	struct mr_pool *pool = cache->pool;
	bool is_shared;

	if (!mri_pool_has(pool, addr))
		pool = mri_pool_of(pool->region, addr);
	/* A pool that may grow has its place for all that it may have. */
	if (pool == NULL || !mri_pool_has(pool, addr)) {
		mr_counter_add(&cache->counters.free_invalid, 1);
		if (cache->pool->safety != NULL)
			mri_checked_invalid(cache->pool, addr, cache->site);
		return;
	}
	if (mri_is_block(pool, addr)) {
		mri_block_put(cache, pool, addr);
		return;
	}
	if (!mri_any_put(pool, addr, cache, cache->site, &is_shared)) {
		mr_counter_add(&cache->counters.recycle_released_refcnt,
			       is_shared);
		return;
	}
	mri_cache_return(cache, pool, mri_page_of(pool, addr));
}

/* Pages of one pool, simple ones with one owner, that go in one go. */
struct batch {
	struct mr_pool *pool; /* NULL: none yet */
	uint32_t n;
	uint32_t pages[MR_MAGAZINE_PAGES];
};

/* Nothing here looks at another pool when its last page has gone home. */
static void put_batch(struct mr_cache *cache, struct batch *batch)
{
	struct mr_pool *pool = batch->pool;
	const uint32_t n = batch->n;

	if (n == 0)
		return;
	batch->n = 0;
	if (pool == cache->pool) {
		mri_cache_keep(cache, batch->pages, n);
		return;
	}
	batch->pool = NULL;
	mr_counter_add(&cache->counters.recycle_ring, n);
	mri_outbox_put(cache, pool, batch->pages, n);
}

static inline bool add_to_batch(struct mr_cache *cache, struct batch *batch,
				uint64_t addr)
{
	const struct mr_pool *pool = batch->pool;
	uint32_t page;

	if (pool == NULL || !mri_pool_has(pool, addr))
		return false;
	page = mri_page_of(pool, addr);
	if (__atomic_load_n(&pool->owners[page], __ATOMIC_ACQUIRE) != 0)
		return false;
	batch->pages[batch->n++] = page;
	if (batch->n == MR_MAGAZINE_PAGES)
		put_batch(cache, batch);
	return true;
}

/* The batch is that of the pool that an address is of, if it is a simple one.
 */
static bool turn_batch(struct mr_cache *cache, struct batch *batch,
		       uint64_t addr)
{
	struct mr_pool *pool = mri_pool_of(cache->pool->region, addr);

	if (pool == NULL || pool == cache->pool || pool == batch->pool ||
	    !mri_pool_is_simple(pool))
		return false;
	put_batch(cache, batch);
	batch->pool = pool;
	return true;
}

void mri_cache_put(struct mr_cache *cache, const char *addrs, uint32_t n,
		   size_t stride)
{
	struct batch own, other;

	own.pool = mri_pool_is_simple(cache->pool) ? cache->pool : NULL;
	own.n = 0;
	other.pool = NULL;
	other.n = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t addr = mri_addr_at(addrs, i, stride);

		if (add_to_batch(cache, &own, addr) ||
		    add_to_batch(cache, &other, addr))
			continue;
		if (!turn_batch(cache, &other, addr) ||
		    !add_to_batch(cache, &other, addr))
			put_one(cache, addr);
	}
	put_batch(cache, &own);
	put_batch(cache, &other);
	/* Statistics look for runs where they look for the cache. */
	if (cache->run.block != NULL && cache->run.pool != cache->pool)
		mri_block_flush(cache);
}

void mri_cache_return(struct mr_cache *cache, struct mr_pool *pool,
		      uint32_t page)
{
	if (pool == cache->pool) {
		mri_cache_keep(cache, &page, 1);
		return;
	}
	mr_counter_add(&cache->counters.recycle_ring, 1);
	mri_outbox_put(cache, pool, &page, 1);
}
