/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frees every reference that is not simply a page of the cache's own pool with
 * one owner; through a cache, or without one while ports open and close.
 *
 *     owner:   this pool | another pool of the region | none: counted
 *     last of: a block | a page
 *     goes to: magazines of the cache | an open magazine, for another pool |
 *              without a cache: the page allocator
 */
#include "pool/cache.h"

#define COUNTER(name) offsetof(struct mri_pool_counters, name)

void mri_pages_return(struct mr_cache *cache, struct mr_pool *pool,
		      const uint32_t *pages, uint32_t n)
{
	if (cache == NULL) {
		mri_pool_put_pages(pool, pages, n);
	} else if (cache->pool == pool) {
		mri_cache_keep(cache, pages, n);
	} else {
		mr_counter_add(&cache->counters.recycle_ring, n);
		mri_outbox_put(cache, pool, pages, n);
	}
}

/* Pages of one pool, with no owner left, to be returned together. */
struct batch {
	struct mr_pool *pool; /* NULL: none yet */
	uint32_t n;
	uint32_t pages[MR_MAGAZINE_PAGES];
};

/* State of one call. */
struct giver {
	struct mr_pool *pool;
	struct mr_cache *cache; /* of pool; or NULL */
	const void *site;
	struct batch own, other;
};

static void batch_begin(struct batch *batch, struct mr_pool *pool)
{
	batch->pool = pool;
	batch->n = 0;
}

/* Does not touch another pool after its last page has been returned. */
static void send_batch(struct giver *g, struct batch *batch)
{
	struct mr_pool *pool = batch->pool;
	const uint32_t n = batch->n;

	batch->n = 0;
	if (pool != g->pool) {
		batch_begin(batch, NULL);
		if (g->cache == NULL)
			mri_counter_add_shared(&g->pool->counters.recycle_ring,
					       n);
	}
	mri_pages_return(g->cache, pool, batch->pages, n);
}

static inline void add_page(struct giver *g, struct batch *batch, uint32_t page)
{
	batch->pages[batch->n++] = page;
	if (batch->n == MR_MAGAZINE_PAGES)
		send_batch(g, batch);
}

/* A page with one owner, from the simple pool of a batch. */
static inline bool put_simple(struct giver *g, struct batch *batch,
			      uint64_t addr)
{
	const struct mr_pool *pool = batch->pool;
	uint32_t page;

	if (pool == NULL || !mri_pool_is_simple(pool) ||
	    !mri_pool_has(pool, addr))
		return false;
	page = mri_page_of(pool, addr);
	if (__atomic_load_n(&pool->owners[page], __ATOMIC_ACQUIRE) != 0)
		return false;
	add_page(g, batch, page);
	return true;
}

static void put_one(struct giver *g, uint64_t addr)
{
	struct mr_pool *pool = mri_pool_has(g->pool, addr) ?
				       g->pool :
				       mri_pool_of(g->pool->region, addr);
	struct batch *batch = pool == g->pool ? &g->own : &g->other;
	bool is_shared;

	/* The usual case: the first page of another pool. */
	if (batch->n == 0 && batch == &g->other) {
		batch_begin(batch, pool);
		if (put_simple(g, batch, addr))
			return;
		batch_begin(batch, NULL);
	}

	/* A growable pool reserves the addresses of its maximum size. */
	if (pool == NULL || !mri_pool_has(pool, addr)) {
		mri_count(g->cache, g->pool, COUNTER(free_invalid), 1);
		g->pool->checks->invalid(g->pool, addr, g->site);
	} else if (mri_is_block(pool, addr)) {
		if (g->cache != NULL)
			mri_block_put(g->cache, pool, addr);
		else
			mri_block_put_direct(pool, addr);
	} else if (mri_last_put(pool, addr, g->cache, g->site, &is_shared)) {
		if (batch->pool != pool) {
			if (batch->n > 0)
				send_batch(g, batch);
			batch_begin(batch, pool);
		}
		add_page(g, batch, mri_page_of(pool, addr));
	} else {
		/* Not counted there: its last owner may destroy it now. */
		mri_count(g->cache, g->pool, COUNTER(recycle_released_refcnt),
			  is_shared);
	}
}

/* Put the leading frags that are of the run's block; returns how many. */
static inline uint32_t put_run(struct mri_block_run *run, const char *addrs,
			       uint32_t n, size_t stride)
{
	const uint64_t begin = run->begin;
	const uint32_t n_bytes = run->n_bytes;
	uint32_t k = 0;

	while (k < n && mri_addr_at(addrs, k, stride) - begin < n_bytes)
		k++;
	if (k > 0)
		__atomic_store_n(&run->n, run->n + k, __ATOMIC_RELAXED);
	return k;
}

static inline void put_all(struct giver *g, const char *addrs, uint32_t n,
			   size_t stride)
{
	uint32_t i = 0;

	batch_begin(&g->own, g->pool);
	batch_begin(&g->other, NULL);
	while (i < n) {
		const uint64_t addr = mri_addr_at(addrs, i++, stride);

		if (put_simple(g, &g->own, addr) ||
		    put_simple(g, &g->other, addr))
			continue;
		put_one(g, addr);
		if (g->cache != NULL)
			i += put_run(&g->cache->run, addrs + i * stride, n - i,
				     stride);
	}
	if (g->own.n > 0)
		send_batch(g, &g->own);
	if (g->other.n > 0)
		send_batch(g, &g->other);
}

/*
 * Free a burst of pages of one other pool, if all of them only need a place in
 * an open magazine. False: this is not so, and nothing was done.
 */
static bool put_all_other(struct mr_cache *cache, const char *addrs, uint32_t n,
			  size_t stride)
{
	const uint64_t first = mri_addr_at(addrs, 0, stride);
	struct mr_pool *pool = mri_pool_of(cache->pool->region, first);
	uint32_t pages[MR_MAGAZINE_PAGES], owners = 0, n_pages;

	if (n > MR_MAGAZINE_PAGES || pool == NULL || pool == cache->pool ||
	    !mri_pool_is_simple(pool))
		return false;
	n_pages = mri_pool_population(pool);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t page =
			(mri_addr_at(addrs, i, stride) - pool->addr) >>
			pool->page_shift;

		if (page >= n_pages)
			return false;
		pages[i] = (uint32_t)page;
		owners |=
			__atomic_load_n(&pool->owners[page], __ATOMIC_ACQUIRE);
	}
	if (owners != 0)
		return false;
	mri_pages_return(cache, pool, pages, n);
	return true;
}

void mri_cache_put(struct mr_cache *cache, const char *addrs, uint32_t n,
		   size_t stride)
{
	const uint32_t k = put_run(&cache->run, addrs, n, stride);
	struct giver g;

	addrs += k * stride;
	n -= k;
	if (n == 0 || (n > 1 && put_all_other(cache, addrs, n, stride)))
		return;
	g.pool = cache->pool;
	g.cache = cache;
	g.site = cache->site;
	put_all(&g, addrs, n, stride);
	/* Statistics look for runs in the pool of the cache. */
	if (cache->run.block != NULL && cache->run.pool != cache->pool)
		mri_block_flush(cache);
}

void mr_pool_frag_free_bulk(struct mr_pool *pool, const uint64_t *addrs,
			    uint32_t n)
{
	struct giver g;

	g.pool = pool;
	g.cache = NULL;
	g.site = __builtin_return_address(0);
	put_all(&g, (const char *)addrs, n, sizeof(addrs[0]));
}
