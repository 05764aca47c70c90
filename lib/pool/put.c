/* SPDX-License-Identifier: BSD-3-Clause */
/* References that are not simply a page of the cache's pool with one owner. */
#include "pool/cache.h"

/* A reference that is not simply a page of this pool with one owner. */
static void put_one(struct mr_cache *cache, uint64_t addr)
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
	if (mri_is_block(pool, addr)) {
		mri_block_put(cache, pool, addr);
		return;
	}
	if (!mri_frag_put(pool, addr, &is_shared)) {
		mr_counter_add(&cache->counters.recycle_released_refcnt,
			       is_shared);
		return;
	}
	page = mri_page_of(pool, addr);
	if (pool == cache->pool) {
		mri_cache_recycle(cache, page);
	} else {
		mri_pool_put_pages(pool, &page, 1);
		mr_counter_add(&cache->counters.recycle_ring, 1);
	}
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
