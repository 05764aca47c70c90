/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a pool: counters of each cache, summed on request.
 *
 * Only a cache writes its counters, so the data path shares no cache line.
 * Pages in flight are the difference of two sums, pages allocated and freed.
 */
#include <string.h>

#include "pool/debug/safety.h"

uint32_t mri_cache_sums(const struct mr_cache *cache,
			struct mri_pool_counters *sums)
{
	mri_counters_add(sums, &cache->counters, sizeof(*sums));
	return mri_pair_sums(&cache->pair, mr_counter_get(&cache->n_fetched),
			     &sums->n_alloc, &sums->n_free);
}

uint64_t mri_pool_n_held(const struct mr_pool *pool)
{
	const uint32_t n_magazines = mri_depot_n(&pool->depot);
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_magazines; i++) {
		const struct mri_magazine *magazine =
			mri_depot_at(&pool->depot, i);

		if (__atomic_load_n(&magazine->is_open, __ATOMIC_RELAXED) != 0)
			n += mri_magazine_n(magazine);
	}
	return n;
}

uint64_t mri_cache_activity(const struct mr_cache *cache)
{
	return __atomic_load_n(&cache->pair.top, __ATOMIC_RELAXED) +
	       (mr_counter_get(&cache->n_fetched) << 32) +
	       __atomic_load_n(&cache->n_open, __ATOMIC_RELAXED);
}

uint64_t mri_cache_idle_ns(struct mr_cache *cache, uint64_t now_ns)
{
	const uint64_t seen = mri_cache_activity(cache);

	/* Two who look at once may both write: the same, nearly. */
	if (__atomic_load_n(&cache->seen_activity, __ATOMIC_RELAXED) != seen) {
		__atomic_store_n(&cache->seen_activity, seen, __ATOMIC_RELAXED);
		__atomic_store_n(&cache->seen_ns, now_ns, __ATOMIC_RELAXED);
	}
	return mri_distance(__atomic_load_n(&cache->seen_ns, __ATOMIC_RELAXED),
			    now_ns);
}

int mr_cache_stats(const struct mr_cache *cache, struct mr_cache_stats *stats)
{
	struct mr_cache *c = (struct mr_cache *)cache; /* for what was seen */
	const struct mr_pool *pool = cache->pool;
	struct mri_pool_counters sums = { 0 };
	struct mr_cache_stats s = {
		.max_pages = mri_cache_bound(pool, MR_OPEN_MAGAZINES),
		.n_pages = mri_cache_sums(cache, &sums),
		.n_open = __atomic_load_n(&cache->n_open, __ATOMIC_RELAXED),
		.n_alloc = sums.n_alloc,
		.n_free = sums.n_free,
		.idle_ns = mri_cache_idle_ns(c, mr_ctx_now_ns(pool->ctx)),
	};

	return mri_fill_sized(stats, &s, sizeof(s));
}

/* What the page allocator has, and counted of its public calls. */
static void add_page_alloc(struct mri_page_alloc *pa,
			   struct mri_pool_counters *c, struct mr_pool_stats *s)
{
	const struct mri_page_counters *from = &pa->counters;
	uint64_t n_direct;

	mri_lock_take(&pa->lock);
	s->n_pages = pa->n_pages;
	s->n_free = pa->n_free;
	n_direct = from->alloc_pages - from->inner_alloc;
	c->n_direct_alloc += n_direct;
	c->n_direct_free += from->free_pages - from->inner_free;
	c->alloc_slow += n_direct;
	c->alloc_empty += from->direct_empty;
	c->free_invalid += from->free_invalid;
	c->recycle_released_refcnt += from->direct_shared;
	c->alloc_slow_high_order += from->direct_high_order;
	c->free_double += from->free_double;
	mri_lock_give(&pa->lock);
}

int mr_pool_stats(const struct mr_pool *pool, struct mr_pool_stats *stats)
{
	struct mri_pool_places places;

	return mri_pool_stats(pool, stats, &places);
}

/* What is counted as it is shown. */
static void copy_counters(const struct mri_pool_counters *c,
			  struct mr_pool_stats *s)
{
	s->alloc_fast = c->n_alloc;
	s->alloc_refill = c->alloc_refill;
	s->alloc_slow = c->alloc_slow;
	s->alloc_empty = c->alloc_empty;
	s->alloc_waive = c->alloc_waive;
	s->recycle_cached = c->n_free;
	s->recycle_cache_full = c->recycle_cache_full;
	s->recycle_ring = c->recycle_ring;
	s->recycle_ring_full = c->recycle_ring_full;
	s->recycle_released_refcnt = c->recycle_released_refcnt;
	s->free_invalid = c->free_invalid;
	s->alloc_slow_high_order = c->alloc_slow_high_order;
	s->free_double = c->free_double;
	s->poison_broken = c->poison_broken;
	s->depot_cas_failed = c->depot_cas_failed;
}

int mri_pool_stats(const struct mr_pool *pool, struct mr_pool_stats *stats,
		   struct mri_pool_places *ret_places)
{
	struct mr_pool *p = (struct mr_pool *)pool; /* for its locks */
	struct mri_pool_counters c = { 0 };
	struct mr_pool_stats s = { .page_bytes = pool->page_bytes,
				   .headroom_bytes = pool->headroom_bytes,
				   .max_caches = pool->max_caches,
				   .magazine_pages = mri_magazine_pages(pool) };
	uint64_t n_out, n_back;
	struct mri_block_sums blocks;

	s.n_open = mri_pool_n_held(pool);
	pthread_mutex_lock(&p->lock);
	mri_counters_add(&c, &pool->counters, sizeof(c));
	for (struct mr_cache *cache = pool->caches; cache != NULL;
	     cache = cache->next)
		s.n_cached += mri_cache_sums(cache, &c);
	mri_block_sums(pool, &blocks);
	s.n_committed = pool->n_committed;
	s.n_caches = pool->n_caches;
	pthread_mutex_unlock(&p->lock);

	add_page_alloc(&p->page_alloc, &c, &s);
	*ret_places = (struct mri_pool_places){
		.n_in_blocks = mri_distance(c.n_block_free + blocks.n_idle,
					    c.n_block_alloc),
		.n_page_alloc = s.n_free,
		.n_quarantine = mri_safety_n_held(pool),
	};
	s.n_free += ret_places->n_quarantine;
	s.n_cached += blocks.n_idle + blocks.n_fetched;
	s.n_depot = mri_distance(c.n_from_depot, c.n_to_depot);
	s.n_free += s.n_cached + s.n_depot + s.n_open;
	n_out = c.n_alloc + c.n_direct_alloc + c.n_block_alloc;
	n_back = c.n_free + c.n_direct_free + c.n_block_free + blocks.n_idle +
		 s.n_open;
	s.n_in_flight = mri_distance(n_back, n_out);
	s.free_over = c.free_over + mri_distance(n_out, n_back);
	copy_counters(&c, &s);
	return mri_fill_sized(stats, &s, sizeof(s));
}
