/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of a cache, for the files that share it:
 *
 *   cache.c       the hot path: pages of this pool with one owner
 *   free.c        freeing of references that are not simple
 *   block*.c      blocks, whose frags may have any size, and their owners
 *   frag.c        frag caches, which cut them
 *   outbox.c      pages for other pools, in open magazines
 *   cache_life.c  creation, destruction, adoption, flushing
 */
#ifndef POOL_CACHE_H
#define POOL_CACHE_H

#include "pool/depot/vector.h"
#include "pool/pool.h"

/* Count n pages that leave the pool straight for the application. */
static inline void mri_cache_pass_out(struct mr_cache *cache, uint32_t n)
{
	mr_counter_add(&cache->n_fetched, n);
	__atomic_store_n(&cache->pair.top,
			 cache->pair.top + ((uint64_t)n << MR_TOP_BITS),
			 __ATOMIC_RELAXED);
}

/* The opposite. */
static inline void mri_cache_pass_in(struct mr_cache *cache, uint32_t n)
{
	mr_counter_add(&cache->n_fetched, -(uint64_t)n);
}

/* Up to n whole pages of the pool; returns how many. lib/pool/cache.c */
uint32_t mri_cache_alloc_pages(struct mr_cache *cache, uint64_t *addrs,
			       uint32_t n);

/* The bound of the pool's page numbers. */
static inline uint32_t mri_cache_own_pages(const struct mr_cache *cache)
{
	return __atomic_load_n(&cache->own_pages, __ATOMIC_RELAXED);
}

/* Put free pages of this pool into the loaded magazine. */
void mri_cache_keep(struct mr_cache *cache, const uint32_t *pages, uint32_t n);

/*
 * Return free pages of any pool of the region. cache: the one that freed them,
 * or NULL. lib/pool/free.c
 */
void mri_pages_return(struct mr_cache *cache, struct mr_pool *pool,
		      const uint32_t *pages, uint32_t n);

/* Drop an owner. True: it was the last; the caller must recycle the page. */
static inline bool mri_last_put(struct mr_pool *pool, uint64_t addr,
				struct mr_cache *cache, const void *site,
				bool *ret_is_shared)
{
	*ret_is_shared = !mri_page_put(pool, addr);
	return !*ret_is_shared &&
	       pool->checks->page_in(pool, mri_page_of(pool, addr), cache,
				     site);
}

/* Free pages of another pool. lib/pool/outbox.c */
void mri_outbox_put(struct mr_cache *cache, struct mr_pool *pool,
		    const uint32_t *pages, uint32_t n);
/* Free a page of a pool with an open magazine. False: it is another page. */
bool mri_outbox_add(struct mr_cache *cache, uint64_t addr);
/* A tick: send the open magazines that are due. */
void mri_outbox_tick(struct mr_cache *cache);

/* Count a call that frees, if a magazine is open. True: a tick is due. */
static inline bool mri_cache_is_due(struct mr_cache *cache)
{
	return cache->n_until_tick != 0 && --cache->n_until_tick == 0;
}

/*
 * Called by the owner of a cache after a request by mr_pool_trim(): return all
 * free pages to the page allocator, unless it was active since.
 * lib/pool/cache_life.c
 */
void mri_cache_give_back(struct mr_cache *cache);

/*
 * Detach the frag caches of a cache that ends: they keep nothing and get
 * nothing. Returns how many. lib/pool/frag.c
 */
uint32_t mri_frag_caches_detach(struct mr_cache *cache);

/*
 * Free n references, at least one of which is not simply a page of this pool
 * with one owner. lib/pool/free.c
 */
void mri_cache_put(struct mr_cache *cache, const char *addrs, uint32_t n,
		   size_t stride);

/*
 * Add to a counter, given by its offset: the cache's own or, without a cache of
 * the pool, the pool's, which has several writers.
 */
static inline void mri_count(struct mr_cache *cache, struct mr_pool *pool,
			     size_t counter, uint64_t n)
{
	if (cache != NULL && cache->pool == pool)
		mr_counter_add((uint64_t *)(void *)((char *)&cache->counters +
						    counter),
			       n);
	else
		__atomic_fetch_add(
			(uint64_t *)(void *)((char *)&pool->counters + counter),
			n, __ATOMIC_RELAXED);
}

/* Address i of an array of addresses, or of anything that begins with one. */
static inline uint64_t mri_addr_at(const char *addrs, uint32_t i, size_t stride)
{
	return *(const uint64_t *)(const void *)(addrs + i * stride);
}

#endif
