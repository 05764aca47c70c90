/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: counting of owners.
 *
 *     owner                          others
 *     start    shared = BIAS
 *     cut      n_issued++
 *     free     freed_local++         shared -= k      cannot reach 0
 *     retire   shared -= BIAS - (n_issued - freed_local)
 *              0: returns the block  shared -= k      0: returns the block
 *
 * A count below zero means that more frags were freed than cut. This is counted
 * (free_over). Only the thread that crosses zero returns the block, so nothing
 * else breaks, and the next start resets shared.
 *
 * Order: the release on shared by each returning reference pairs with the
 * acquire by the last one, so all accesses to a frag happen before the block is
 * cut again. All are read-modify-writes of one word, so that the last one's
 * acquire pairs with each of them.
 */
#include "pool/cache.h"

/* More owners are refused; no program needs as many. */
enum { MAX_SHARED = MRI_BLOCK_BIAS + MRI_BLOCK_BIAS / 2 };

enum { OVER = offsetof(struct mri_pool_counters, free_over) };

static void begin(struct mr_cache *cache, struct mri_block *block)
{
	__atomic_store_n(&block->freed_local, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&block->was_shared, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&block->owner, cache, __ATOMIC_RELAXED);
	__atomic_store_n(&block->shared, MRI_BLOCK_BIAS, __ATOMIC_RELAXED);
}

void mri_block_start(struct mr_cache *cache, struct mri_block *block)
{
	begin(cache, block);
	if (block->order == 0) /* it left the cache as a page */
		return;
	mr_counter_add(&cache->counters.n_block_alloc, 1u << block->order);
	cache->pool->checks->out(cache->pool, block->page, 1u << block->order,
				 cache->site);
}

int64_t mri_block_n_out(const struct mri_block *block, uint32_t n_issued)
{
	const uint32_t freed_local =
		__atomic_load_n(&block->freed_local, __ATOMIC_RELAXED);

	return (int64_t)__atomic_load_n(&block->shared, __ATOMIC_ACQUIRE) -
	       MRI_BLOCK_BIAS + n_issued - freed_local;
}

bool mri_block_restart(struct mr_cache *cache, struct mri_block *block,
		       uint32_t n_issued)
{
	const int64_t n_out = mri_block_n_out(block, n_issued);

	/* With nothing out, nobody else may touch shared. */
	if (n_out > 0)
		return false;
	if (n_out < 0)
		mri_count(cache, cache->pool, OVER, (uint64_t)-n_out);
	begin(cache, block);
	cache->pool->checks->again(cache->pool, block->page, 1u << block->order,
				   cache->site);
	return true;
}

void mri_block_retire(struct mr_cache *cache, struct mri_block *block,
		      uint32_t n_issued)
{
	const uint32_t n_own = n_issued - block->freed_local;
	const int32_t n = MRI_BLOCK_BIAS - (int32_t)n_own;
	int64_t n_out;

	__atomic_store_n(&block->owner, NULL, __ATOMIC_RELAXED);
	n_out = (int64_t)__atomic_fetch_sub(&block->shared, n,
					    __ATOMIC_ACQ_REL) -
		n;
	if (n_out > 0)
		return;
	if (n_out < 0)
		mri_count(cache, cache->pool, OVER, (uint64_t)-n_out);
	mri_block_back(cache, cache->pool, block);
}

bool mri_block_sub(struct mri_block *block, uint32_t n, struct mr_cache *cache,
		   struct mr_pool *pool)
{
	const int64_t n_before = __atomic_fetch_sub(&block->shared, (int32_t)n,
						    __ATOMIC_ACQ_REL);

	if (n_before >= n)
		return n_before == n;
	mri_count(cache, pool, OVER,
		  (uint64_t)(n_before > 0 ? n - n_before : n));
	/* Somebody still cuts it: not the end, but 2^30 frees too many. */
	return n_before > 0 &&
	       __atomic_load_n(&block->owner, __ATOMIC_RELAXED) == NULL;
}

bool mri_block_ref(struct mri_block *block)
{
	if (__atomic_load_n(&block->shared, __ATOMIC_RELAXED) >= MAX_SHARED)
		return false;
	/* First: the thread that gets the new reference must see it. */
	__atomic_store_n(&block->was_shared, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&block->shared, 1, __ATOMIC_RELAXED);
	return true;
}

bool mri_block_is_exclusive(const struct mri_block *block)
{
	return __atomic_load_n(&block->was_shared, __ATOMIC_RELAXED) == 0 ||
	       __atomic_load_n(&block->shared, __ATOMIC_ACQUIRE) == 1;
}

/* Pass n references that returned through the cache to their block. */
static void give(struct mr_cache *cache, struct mr_pool *pool,
		 struct mri_block *block, uint32_t n)
{
	/* Only this thread writes or removes our name there. */
	const struct mr_cache *owner =
		__atomic_load_n(&block->owner, __ATOMIC_RELAXED);

	if (owner == cache) {
		__atomic_store_n(&block->freed_local, block->freed_local + n,
				 __ATOMIC_RELAXED);
		return;
	}
	if (owner == NULL) /* likely to go to the depot */
		mri_prefetch_to_write(&pool->blocks.depot);
	if (mri_block_sub(block, n, cache, pool))
		mri_block_back(cache, pool, block);
}

void mri_block_flush(struct mr_cache *cache)
{
	struct mri_block_run *run = &cache->run;
	struct mri_block *block = run->block;
	const uint32_t n = run->n;

	if (block == NULL)
		return;
	run->n_bytes = 0;
	__atomic_store_n(&run->block, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&run->n, 0, __ATOMIC_RELAXED);
	give(cache, run->pool, block, n);
}

void mri_block_put(struct mr_cache *cache, struct mr_pool *pool, uint64_t addr)
{
	struct mri_block_run *run = &cache->run;
	struct mri_block_run before;
	struct mri_block *block;

	if (mri_block_run_add(run, addr))
		return;
	before = *run;
	block = mri_block_of(pool, addr);
	run->begin = pool->addr + ((uint64_t)block->page << pool->page_shift);
	run->n_bytes = pool->page_bytes << block->order;
	run->pool = pool;
	__atomic_store_n(&run->block, block, __ATOMIC_RELAXED);
	__atomic_store_n(&run->n, 1, __ATOMIC_RELAXED);
	mri_prefetch_to_write(block);
	/* Last, as it may free the block, and that flushes what is here. */
	if (before.block != NULL)
		give(cache, before.pool, before.block, before.n);
}

void mri_block_put_direct(struct mr_pool *pool, uint64_t addr)
{
	struct mri_block *block = mri_block_of(pool, addr);

	if (mri_block_sub(block, 1, NULL, pool))
		mri_block_back(NULL, pool, block);
}
