/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches: creation, destruction, adoption, flushing. */
#include <errno.h>

#include "pool/cache.h"
#include "pool/debug/safety.h"

/* Under the pool's lock: whether it may have another cache. */
static int check_room(struct mr_pool *pool, struct mr_reason *reterr_reason)
{
	if (pool->n_caches == pool->max_caches)
		return mr_fail(reterr_reason, -ENOSPC,
			       "%s has all of its %u caches; raise "
			       "mr_pool_config.max_caches",
			       pool->name, pool->max_caches);
	return mri_pool_check_room(pool, "a cache", mri_cache_max_pages(pool),
				   reterr_reason);
}

/*
 * An empty magazine, or one with pages: the depot may be full of those sent
 * with few. NULL: all are in use, for example by mr_pool_trim().
 */
static struct mri_magazine *take_magazine(struct mr_cache *cache)
{
	struct mri_depot *depot = &cache->pool->depot;
	uint64_t *n_failed = &cache->counters.depot_cas_failed;
	struct mri_magazine *magazine =
		mri_depot_take(depot, &depot->empty, n_failed);

	if (magazine != NULL)
		return magazine;
	magazine = mri_depot_take(depot, &depot->filled, n_failed);
	if (magazine == NULL)
		return NULL;
	mr_counter_add(&cache->counters.n_from_depot, mri_magazine_n(magazine));
	mri_magazine_empty(cache->pool, magazine);
	return magazine;
}

/* Two empty magazines; false: not available. */
static bool load_cache(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	struct mri_magazine *loaded = take_magazine(cache), *prev;

	if (loaded == NULL)
		return false;
	prev = take_magazine(cache);
	if (prev == NULL) {
		mri_depot_put(&pool->depot.empty, loaded,
			      &cache->counters.depot_cas_failed);
		return false;
	}
	mri_pair_begin(&cache->pair, loaded, prev);
	return true;
}

int mr_cache_create(struct mr_pool *pool, struct mr_cache **ret_cache,
		    struct mr_reason *reterr_reason)
{
	struct mr_cache *cache =
		mr_alloc(pool->ctx, MRI_CACHE_LINE, sizeof(*cache));
	int err;

	if (cache == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a cache");
	/* Not while segments it relies on are being removed. */
	pthread_mutex_lock(&pool->grow_lock);
	pthread_mutex_lock(&pool->lock);
	err = check_room(pool, reterr_reason);
	if (err < 0)
		goto fail;
	cache->pool = pool;
	cache->addr = pool->addr;
	cache->fast_bytes =
		mri_pool_is_simple(pool) ? pool->page_bytes : UINT64_MAX;
	mri_cache_set_own_pages(cache);
	cache->page_shift = (uint8_t)pool->page_shift;
	cache->magazine_pages = (uint16_t)mri_magazine_pages(pool);
	cache->owners = pool->owners;
	if (!load_cache(cache)) {
		err = mr_fail(reterr_reason, -ENOMEM,
			      "%s has no free magazine for a cache: other "
			      "caches hold all of them",
			      pool->name);
		goto fail;
	}
	cache->seen_ns = mr_ctx_now_ns(pool->ctx);
	cache->next = pool->caches;
	pool->caches = cache;
	pool->n_caches++;
	pool->n_committed += mri_cache_max_pages(pool);
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_unlock(&pool->grow_lock);
	*ret_cache = cache;
	return 0;

fail:
	/* It has still counted what it moved. */
	__atomic_fetch_add(&pool->counters.n_from_depot,
			   cache->counters.n_from_depot, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_unlock(&pool->grow_lock);
	mr_free(pool->ctx, cache);
	return err;
}

void mr_cache_destroy(struct mr_cache *cache)
{
	struct mri_pool_counters sums = { 0 };
	struct mr_pool *pool;
	struct mr_cache **link;
	const uint64_t *from = (const uint64_t *)&sums;
	uint64_t *to;
	uint32_t n_frags;

	if (cache == NULL)
		return;
	pool = cache->pool;
	n_frags = mri_frag_caches_detach(cache);
	if (n_frags > 0)
		mr_log(pool->ctx, MR_LOG_ERROR,
		       "a cache of %s was destroyed before its %u frag caches, "
		       "whose allocations will fail",
		       pool->name, n_frags);
	mr_cache_flush(cache);

	pthread_mutex_lock(&pool->lock);
	/* To the page allocator: half-filled magazines would wear the depot. */
	mri_cache_sums(cache, &sums);
	mri_magazine_drop(pool, mri_pair_unload(&cache->pair),
			  &sums.depot_cas_failed);
	mri_magazine_drop(pool, cache->pair.prev, &sums.depot_cas_failed);
	for (link = &pool->caches; *link != cache; link = &(*link)->next)
		;
	*link = cache->next;
	pool->n_caches--;
	pool->n_committed -= mri_cache_max_pages(pool);
	to = (uint64_t *)&pool->counters;
	for (size_t i = 0; i < sizeof(sums) / sizeof(*from); i++)
		__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool->lock);
	mr_free(pool->ctx, cache);
}

/*
 * Return pages to the page allocator, so that their segments can be removed.
 * The magazines stay.
 */
static void give_pages(struct mr_cache *cache, const uint32_t *pages,
		       uint32_t n)
{
	mr_counter_add(&cache->n_fetched, -(uint64_t)n);
	mri_page_back_bulk(&cache->pool->page_alloc, pages, n);
}

__attribute__((noinline, cold)) void mri_cache_give_back(struct mr_cache *cache)
{
	struct mri_pair *pair = &cache->pair;

	__atomic_store_n(&cache->is_asked, 0, __ATOMIC_RELAXED);
	if (mri_cache_activity(cache) !=
	    __atomic_load_n(&cache->seen_activity, __ATOMIC_RELAXED))
		return;
	give_pages(cache, pair->loaded->numbers, mri_pair_n_loaded(pair));
	mri_pair_set_n_loaded(pair, 0);
	give_pages(cache, pair->prev->numbers, mri_magazine_n(pair->prev));
	mri_magazine_set_n(pair->prev, 0);
	/* This was not activity: it is still idle. */
	__atomic_store_n(&cache->seen_activity, mri_cache_activity(cache),
			 __ATOMIC_RELAXED);
}

struct mr_cache *mr_cache_adopt(struct mr_cache *cache)
{
	cache->user = mri_thread_self();
	return cache;
}

struct mr_pool *mr_cache_pool(const struct mr_cache *cache)
{
	return cache->pool;
}
