/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: 2^order pages that are one piece, and how their owners are counted.
 *
 *     page:      0   1   2   3   4 ...
 *     owners[]: 255 255 255 255  0      MRI_OWNER_BLOCK: not counted here
 *     orders[]:  2   2   2   2          so the first page is 0: a mask
 *     blocks:   page 0's line: shared, freed_local, owner
 *
 * The frag cache cuts frags of any size from a block, so owners cannot be
 * counted by page or chunk; there is one count for the block, in two parts. The
 * owner, which is the cache that cuts, counts what it issued and what came back
 * to itself, plainly. All others meet in shared, which begins far above zero,
 * so that nobody takes it for used up while the owner still cuts. Retiring the
 * block moves the owner's part into shared: what is left then is what is out,
 * and whoever brings it to zero sends the block back. At most one atomic for
 * the owner, one per run of frags of one block that come back together for
 * everybody else.
 *
 * Source: Linux, mm/page_frag_cache.c, whose pagecnt_bias charges all frags of
 * a page up front; there each free is an atomic.
 */
#ifndef POOL_BLOCK_H
#define POOL_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/pool.h>

#include "base/base.h"
#include "pool/depot/magazine.h"

enum {
	MRI_BLOCK_BYTES = 32768, /* of the largest; smaller are 2^n pages too */
	/* What shared is above the truth until the block is retired. */
	MRI_BLOCK_BIAS = 1 << 30,
	/* Blocks of the largest order fetched from the depot in one CAS. */
	MRI_BLOCK_BATCH = 4,
};

struct mr_cache;
struct mr_pool;

/* One block: a line of its own, as its writers are not those of the next. */
struct mri_block {
	uint32_t next;  /* place + 1 of the next one in the depot; atomic */
	uint32_t page;  /* the first */
	int32_t shared; /* atomic; see above */
	uint32_t freed_local;   /* by owner, before it retired the block */
	struct mr_cache *owner; /* atomic; NULL: retired */
	uint8_t order;          /* atomic for statistics */
	uint8_t is_whole;       /* one piece: its bounds are known */
	uint8_t was_shared;     /* atomic; a frag of it got another owner */
	uint8_t pad[37];
};

_Static_assert(sizeof(struct mri_block) == MRI_CACHE_LINE,
	       "a block has a line of its own");

/*
 * Of one pool. Lines lie by place: first those of blocks of the largest order,
 * one behind the other, then those that smaller ones need. What is not used is
 * never touched, and costs no memory.
 */
struct mri_blocks {
	struct mri_block *lines;
	uint8_t *orders; /* by page, where owners[] says block */
	size_t map_bytes;
	uint32_t max_order; /* 32 KiB of pages */
	uint32_t n_groups;  /* blocks of the largest order */
	/* Free ones: of the largest order, and of all below but pages. */
	_Alignas(MRI_CACHE_LINE) struct mri_stack depot;
	struct mri_stack small;
};

/*
 * References on one block that came back to a cache one after the other, and
 * were not given to the block yet.
 */
struct mri_block_run {
	uint64_t begin;          /* of the block, in the region */
	uint32_t n_bytes;        /* of the block; 0: there is no run */
	uint32_t n;              /* atomic */
	struct mr_pool *pool;    /* the block's */
	struct mri_block *block; /* atomic; NULL: there is no run */
};

/* One frag cache: what is being cut, and what was fetched to be cut next. */
struct mr_frag_cache {
	/* Hot: one line. */
	uint64_t begin;      /* of the block, in the region */
	uint32_t n_bytes;    /* of it; 0: there is none */
	uint32_t offset;     /* of what is free in it */
	uint32_t last;       /* where the last frag begins; MRI_FRAG_NONE */
	uint32_t n_issued;   /* references on the block; atomic */
	uint32_t generation; /* changes with each cut */
	uint32_t chunk_bytes, page_bytes;
	struct mr_cache *cache;  /* NULL: it was destroyed first */
	struct mri_block *block; /* atomic */
	/* Warm. */
	uint32_t n_fetched; /* atomic */
	struct mri_block *fetched[MRI_BLOCK_BATCH];
	const struct mr_ctx *ctx;
	struct mr_frag_cache *next; /* in cache->frags, under the pool's lock */
};

enum { MRI_FRAG_NONE = UINT32_MAX };

/* lib/pool/block.c: pages become blocks and blocks pages. -ENOMEM. */
int mri_blocks_init(struct mri_blocks *blocks, uint32_t max_pages,
		    uint32_t page_shift);
void mri_blocks_fini(struct mri_blocks *blocks);

/*
 * Blocks of the largest order that nobody owns yet; how many of at most
 * MRI_BLOCK_BATCH.
 */
uint32_t mri_block_fetch(struct mr_cache *cache, struct mri_block **blocks);
/* The same, back to the depot unused. */
void mri_block_unfetch(struct mr_cache *cache, struct mri_block *const *blocks,
		       uint32_t n);
/* A page of the cache itself as a block; NULL: there is none. */
struct mri_block *mri_block_fetch_page(struct mr_cache *cache);

/*
 * Free blocks become pages of the page allocator again: those that frag caches
 * of this cache have fetched, and those in the depot. How many pages. cache may
 * be NULL.
 */
uint32_t mri_block_reclaim(struct mr_pool *pool, struct mr_cache *cache);

/*
 * Pages, exclusively the caller's, become a block with one owner who has all of
 * it: what mr_page_alloc_bulk() hands out. It may be given back like any frag.
 */
void mri_block_open_whole(struct mr_pool *pool, uint32_t page, uint32_t order);
/*
 * Give the one reference on such a block back. True: it was the last one, and
 * its pages are plain and the caller's. False with *ret_is_block: others own
 * it still. False without: it is no such block, and nothing was done.
 */
bool mri_block_close_whole(struct mr_pool *pool, uint32_t page, uint32_t order,
			   bool *ret_is_block);

/*
 * Nothing is out any more: to the depot, or, where it is a page, to the cache,
 * which may be NULL or of another pool.
 */
void mri_block_back(struct mr_cache *cache, struct mr_pool *pool,
		    struct mri_block *block);

/*
 * Pages in blocks that were taken and of which nothing is out; and in blocks
 * that frag caches have fetched. Under the pool's lock.
 */
struct mri_block_sums {
	uint64_t n_idle, n_fetched;
};
void mri_block_sums(const struct mr_pool *pool, struct mri_block_sums *sums);

/* lib/pool/block_count.c: owners. The cache that cuts it is its owner now. */
void mri_block_start(struct mr_cache *cache, struct mri_block *block);
/* References that are out; for the owner. Below 0: too many came back. */
int64_t mri_block_n_out(const struct mri_block *block, uint32_t n_issued);
/* The owner begins again, if nothing is out. No atomic but a load. */
bool mri_block_restart(struct mr_cache *cache, struct mri_block *block,
		       uint32_t n_issued);
/* The owner is through with it. One atomic. */
void mri_block_retire(struct mr_cache *cache, struct mri_block *block,
		      uint32_t n_issued);

/*
 * Take n references off what is out of a retired block, or of one that somebody
 * else cuts. True: it is retired, they were the last ones, and it is the
 * caller's to give back. cache is for counting, as in mri_block_back().
 */
bool mri_block_sub(struct mri_block *block, uint32_t n, struct mr_cache *cache,
		   struct mr_pool *pool);
/* One more owner; false: as many as can be counted. */
bool mri_block_ref(struct mri_block *block);
/* No frag of it got another owner, or there is one reference left on it. */
bool mri_block_is_exclusive(const struct mri_block *block);

/* One reference on an address in a block comes back, through a cache. */
void mri_block_put(struct mr_cache *cache, struct mr_pool *pool, uint64_t addr);
/* The same with no cache. */
void mri_block_put_direct(struct mr_pool *pool, uint64_t addr);
/* Give what came back, and was not given to its block yet, to it. */
void mri_block_flush(struct mr_cache *cache);

/* The hot half of mri_block_put(): the same block as before. */
static inline bool mri_block_run_add(struct mri_block_run *run, uint64_t addr)
{
	if (addr - run->begin >= run->n_bytes)
		return false;
	__atomic_store_n(&run->n, run->n + 1, __ATOMIC_RELAXED);
	return true;
}

#endif
