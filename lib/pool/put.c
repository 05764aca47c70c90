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

void mri_cache_put(struct mr_cache *cache, const char *addrs, uint32_t n,
		   size_t stride)
{
	for (uint32_t i = 0; i < n; i++)
		put_one(cache, mri_addr_at(addrs, i, stride));
	/* Statistics look for runs where they look for the cache. */
	if (cache->run.block != NULL && cache->run.pool != cache->pool)
		mri_block_flush(cache);
}

void mri_cache_recycle(struct mr_cache *cache, uint32_t page)
{
	mri_cache_return(cache, cache->pool, page);
}

void mri_cache_return(struct mr_cache *cache, struct mr_pool *pool,
		      uint32_t page)
{
	const uint32_t home = mri_home_of(pool, page);

	if (pool != cache->pool)
		mr_counter_add(&cache->counters.recycle_ring, 1);
	if (pool == cache->pool && (home == MRI_NO_HOME || home == cache->id))
		mri_cache_keep(cache, &page, 1);
	else
		mri_outbox_put(cache, pool, home, &page, 1);
}
