/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: where they come from and where they go.
 *
 *     page allocator --> depot --> fetched by a frag cache --> cut
 *           ^              ^                                    |
 *           |              +--- the last of its frags is back --+
 *           +--- when pages are wanted (mri_block_reclaim)
 *           +--- small <--- blocks of lower orders come back
 *
 * A block stays intact in the depot, a lock-free stack, so that freeing takes
 * no lock. Frag caches take a few of the largest order at a time, so that the
 * head of the stack does not move between the freeing and the cutting core for
 * each block. Those of lower orders, in a separate stack, are only used when
 * pages are wanted.
 *
 * A frag cache may also use a single page of its cache as a block, which
 * returns as a page.
 */
#include <errno.h>
#include <string.h>

#include "pool/cache.h"
#include "pool/hand_over.h"

/* Blocks of lower orders to turn into pages at a time: at least 32 pages. */
enum { MAX_RECLAIM = 16 };

int mri_blocks_init(struct mri_blocks *blocks, uint32_t max_pages,
		    uint32_t page_shift)
{
	const uint32_t block_shift = (uint32_t)__builtin_ctz(MRI_BLOCK_BYTES);
	size_t n_lines;

	blocks->max_order = block_shift - page_shift;
	blocks->n_groups = (max_pages + (1u << blocks->max_order) - 1) >>
			   blocks->max_order;
	n_lines = (size_t)blocks->n_groups << blocks->max_order;
	blocks->lines =
		mri_table_alloc(n_lines * (sizeof(struct mri_block) + 1), 0);
	if (blocks->lines == NULL)
		return -ENOMEM;
	blocks->orders = (uint8_t *)(blocks->lines + n_lines);
	mri_stack_init(&blocks->depot, blocks->lines, sizeof(struct mri_block));
	mri_stack_init(&blocks->small, blocks->lines, sizeof(struct mri_block));
	blocks->depot.has_links = blocks->small.has_links = true;
	return 0;
}

void mri_blocks_fini(struct mri_blocks *blocks)
{
	mri_table_free(blocks->lines);
	blocks->lines = NULL;
}

/* Set owners[] for each page of a block. */
static void mark(struct mr_pool *pool, uint32_t page, uint32_t order,
		 uint8_t owners)
{
	for (uint32_t i = page; i < page + (1u << order); i++)
		__atomic_store_n(&pool->owners[i], owners, __ATOMIC_RELAXED);
}

/* Make the caller's pages a block without owner or references. */
static struct mri_block *make_block(struct mr_pool *pool, uint32_t page,
				    uint32_t order)
{
	struct mri_block *block = mri_block_at(&pool->blocks, page);

	for (uint32_t i = page; i < page + (1u << order); i++)
		pool->blocks.orders[i] = (uint8_t)order;
	mri_pool_use_owners(pool);
	mark(pool, page, order, MRI_OWNER_BLOCK);
	block->page = page;
	__atomic_store_n(&block->order, (uint8_t)order, __ATOMIC_RELAXED);
	block->is_whole = 0;
	return block;
}

/* The reverse: single pages again. */
static void unmake_block(struct mr_pool *pool, const struct mri_block *block)
{
	mark(pool, block->page, block->order, 0);
}

static uint32_t place_of(const struct mri_blocks *blocks,
			 const struct mri_block *block)
{
	return (uint32_t)(block - blocks->lines);
}

uint32_t mri_block_fetch(struct mr_cache *cache, struct mri_block **blocks)
{
	struct mr_pool *pool = cache->pool;
	const uint32_t order = pool->blocks.max_order;
	uint32_t numbers[MRI_BLOCK_BATCH]; /* of places, then of pages */
	uint32_t n;

	if (order == 0)
		return 0; /* a page is as large, and caches have pages */
	n = mri_stack_pop_bulk(&pool->blocks.depot, numbers, MRI_BLOCK_BATCH,
			       &cache->counters.depot_cas_failed);
	mr_counter_add(&cache->counters.n_from_depot, (uint64_t)n << order);
	for (uint32_t i = 0; i < n; i++) {
		blocks[i] = &pool->blocks.lines[numbers[i]];
		mri_prefetch_to_write(blocks[i]);
	}
	if (n > 0)
		return n;
	n = mri_page_alloc_blocks(&pool->page_alloc, order, numbers,
				  MRI_BLOCK_BATCH);
	mr_counter_add(&cache->counters.alloc_slow, (uint64_t)n << order);
	mr_counter_add(&cache->counters.alloc_slow_high_order,
		       (uint64_t)n << order);
	for (uint32_t i = 0; i < n; i++)
		blocks[i] = make_block(pool, numbers[i], order);
	return n;
}

void mri_block_unfetch(struct mr_cache *cache, struct mri_block *const *blocks,
		       uint32_t n)
{
	struct mri_blocks *all = &cache->pool->blocks;

	for (uint32_t i = 0; i < n; i++)
		mri_stack_push(&all->depot, place_of(all, blocks[i]),
			       &cache->counters.depot_cas_failed);
	mr_counter_add(&cache->counters.n_to_depot,
		       (uint64_t)n << all->max_order);
}

struct mri_block *mri_block_fetch_page(struct mr_cache *cache)
{
	uint64_t addr;

	if (cache->pool->checks->alloc(cache, &addr, 1) == 0)
		return NULL;
	return make_block(cache->pool, mri_page_of(cache->pool, addr), 0);
}

/*
 * Keep a block of the largest order for the frag cache of this cache, if that
 * is cutting and holds less than it may. The depot's line stays where it is.
 */
static bool keep_block(struct mr_cache *cache, struct mri_block *block)
{
	struct mr_frag_cache *frags = cache->frags;
	uint32_t n;

	if (frags == NULL || frags->block == NULL ||
	    block->order != cache->pool->blocks.max_order)
		return false;
	n = frags->n_fetched;
	if (n >= MRI_BLOCK_BATCH - 1)
		return false;
	frags->fetched[n] = block;
	__atomic_store_n(&frags->n_fetched, n + 1, __ATOMIC_RELAXED);
	return true;
}

void mri_block_back(struct mr_cache *cache, struct mr_pool *pool,
		    struct mri_block *block)
{
	struct mri_blocks *blocks = &pool->blocks;
	const uint32_t page = block->page, order = block->order;
	const bool is_own = cache != NULL && cache->pool == pool;
	const void *site = cache != NULL ? cache->site : NULL;
	uint64_t n_failed = 0;

	if (order == 0) {
		unmake_block(pool, block);
		if (pool->checks->page_in(pool, page, cache, site))
			mri_pages_return(cache, pool, &page, 1);
		return;
	}
	pool->checks->in(pool, page, 1u << order, site);
	/* Before it is gone, or its pages would be in flight twice. */
	if (is_own)
		mr_counter_add(&cache->counters.n_block_free, 1u << order);
	if (is_own && keep_block(cache, block))
		return;
	mri_count(cache, pool, offsetof(struct mri_pool_counters, n_to_depot),
		  1u << order);
	mri_stack_push(order == blocks->max_order ? &blocks->depot :
						    &blocks->small,
		       place_of(blocks, block), &n_failed);
	mri_count(cache, pool,
		  offsetof(struct mri_pool_counters, depot_cas_failed),
		  n_failed);
	if (!is_own) /* the last access to the pool: see outbox.c */
		__atomic_fetch_add(&pool->counters.n_block_free, 1u << order,
				   __ATOMIC_RELEASE);
}

/* Free blocks to the page allocator; returns how many pages. */
static uint32_t unmake_blocks(struct mr_pool *pool, struct mri_block **blocks,
			      uint32_t n)
{
	uint32_t n_pages = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t order = blocks[i]->order, page = blocks[i]->page;

		n_pages += 1u << order;
		unmake_block(pool, blocks[i]);
		mri_page_free_blocks(&pool->page_alloc, order, &page, 1);
	}
	return n_pages;
}

uint32_t mri_block_reclaim(struct mr_pool *pool, struct mr_cache *cache)
{
	uint32_t places[MAX_RECLAIM];
	struct mri_block *blocks[MAX_RECLAIM] = { NULL };
	struct mr_frag_cache *frags = cache != NULL ? cache->frags : NULL;
	uint64_t n_failed = 0;
	uint32_t n_pages = 0, n;

	/* Only this thread changes the list and what it has fetched. */
	for (; frags != NULL; frags = frags->next) {
		n_pages +=
			unmake_blocks(pool, frags->fetched, frags->n_fetched);
		__atomic_store_n(&frags->n_fetched, 0, __ATOMIC_RELAXED);
	}
	if (n_pages > 0)
		return n_pages;
	/* First those that frag caches do not use. */
	n = mri_stack_pop_bulk(&pool->blocks.small, places, MAX_RECLAIM,
			       &n_failed);
	if (n == 0)
		n = mri_stack_pop_bulk(&pool->blocks.depot, places,
				       MRI_BLOCK_BATCH, &n_failed);
	for (uint32_t i = 0; i < n; i++)
		blocks[i] = &pool->blocks.lines[places[i]];
	n_pages = unmake_blocks(pool, blocks, n);
	mri_count(cache, pool, offsetof(struct mri_pool_counters, n_from_depot),
		  n_pages);
	mri_count(cache, pool,
		  offsetof(struct mri_pool_counters, depot_cas_failed),
		  n_failed);
	return n_pages;
}

void mri_block_open_whole(struct mr_pool *pool, uint32_t page, uint32_t order)
{
	struct mri_block *block = make_block(pool, page, order);

	block->is_whole = 1;
	__atomic_store_n(&block->was_shared, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&block->owner, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&block->shared, 1, __ATOMIC_RELAXED);
}

void mri_block_claim(struct mr_pool *pool, uint32_t page, uint32_t order)
{
	mri_block_open_whole(pool, page, order);
	/* It may have been cut: nothing is known of its bounds. */
	mri_block_at(&pool->blocks, page)->is_whole = 0;
}

bool mri_block_close_whole(struct mr_pool *pool, uint32_t page, uint32_t order,
			   bool *ret_is_block)
{
	const uint64_t addr = pool->addr + ((uint64_t)page << pool->page_shift);
	struct mri_block *block = mri_block_at(&pool->blocks, page);

	*ret_is_block = mri_is_block(pool, addr) && block->page == page &&
			block->order == order && block->is_whole;
	if (!*ret_is_block || !mri_block_sub(block, 1, NULL, pool))
		return false;
	unmake_block(pool, block);
	return true;
}

/* For statistics, which see blocks that are not theirs. */
static uint32_t n_pages_of(const struct mri_block *block)
{
	return 1u << __atomic_load_n(&block->order, __ATOMIC_RELAXED);
}

/* References that caches of the pool owe to a block. */
static uint32_t n_pending(const struct mr_pool *pool,
			  const struct mri_block *block)
{
	uint32_t n = 0;

	for (const struct mr_cache *c = pool->caches; c != NULL; c = c->next)
		if (__atomic_load_n(&c->run.block, __ATOMIC_RELAXED) == block)
			n += __atomic_load_n(&c->run.n, __ATOMIC_RELAXED);
	return n;
}

/* Whether the run of a cache before this one is of the same block. */
static bool is_seen(const struct mr_pool *pool, const struct mr_cache *until,
		    const struct mri_block *block)
{
	const struct mr_cache *c = pool->caches;

	while (c != until &&
	       __atomic_load_n(&c->run.block, __ATOMIC_RELAXED) != block)
		c = c->next;
	return c != until;
}

/* Pages of the block that a frag cache cuts, if it has no references. */
static uint32_t n_idle_cut(const struct mr_pool *pool,
			   const struct mr_frag_cache *frags)
{
	const struct mri_block *block =
		__atomic_load_n(&frags->block, __ATOMIC_RELAXED);
	const uint32_t n_issued =
		__atomic_load_n(&frags->n_issued, __ATOMIC_RELAXED);

	return block != NULL && mri_block_n_out(block, n_issued) <=
					n_pending(pool, block) ?
		       n_pages_of(block) :
		       0;
}

void mri_block_sums(const struct mr_pool *pool, struct mri_block_sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	for (const struct mr_cache *c = pool->caches; c != NULL; c = c->next) {
		const struct mri_block *block =
			__atomic_load_n(&c->run.block, __ATOMIC_RELAXED);

		for (const struct mr_frag_cache *frags = c->frags;
		     frags != NULL; frags = frags->next) {
			const uint32_t n_fetched = __atomic_load_n(
				&frags->n_fetched, __ATOMIC_RELAXED);

			sums->n_fetched += (uint64_t)n_fetched
					   << pool->blocks.max_order;
			sums->n_idle += n_idle_cut(pool, frags);
		}
		/* Retired, and its last references are on their way. */
		if (block != NULL && !is_seen(pool, c, block) &&
		    __atomic_load_n(&block->shared, __ATOMIC_RELAXED) <=
			    (int64_t)n_pending(pool, block))
			sums->n_idle += n_pages_of(block);
	}
}
