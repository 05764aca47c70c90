/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: 2^order contiguous pages, and how their owners are counted.
 *
 *     page:      0   1   2   3   4 ...
 *     owners[]: 254 254 254 254  0      MRI_OWNER_BLOCK: not counted here
 *     orders[]:  2   2   2   2          so the first page is 0: a mask
 *     blocks:   page 0's line: shared, freed_local, owner
 *
 * The frag cache cuts frags of any size from a block, so owners cannot be
 * counted by page; there is one count for the block, in two parts. The
 * owner, which is the cache that cuts, counts what it issued and what returned
 * to itself, without atomics. All others use shared, which begins far above
 * zero, so that it cannot reach zero while the owner still cuts. Retiring the
 * block moves the owner's part into shared, which is then the number of
 * references; the thread that brings it to zero returns the block. This takes
 * at most one atomic for the owner, and for others one per run of frags of a
 * block that are freed together.
 *
 * Source: Linux, mm/page_frag_cache.c, whose pagecnt_bias charges all frags of
 * a page up front; there each free is an atomic.
 */
#ifndef POOL_BLOCK_H
#define POOL_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/experimental/frag.h>
#include <millrace/pool.h>

#include "base/base.h"
#include "pages/page_alloc.h"
#include "pool/depot/magazine.h"

enum {
	/* Of the largest; smaller ones have 2^n pages. */
	MRI_BLOCK_BYTES = 1 << MRI_GROUP_SHIFT,
	/* Offset of shared until the block is retired. */
	MRI_BLOCK_BIAS = 1 << 30,
	/* Blocks of the largest order fetched from the depot in one CAS. */
	MRI_BLOCK_BATCH = 4,
};

struct mr_cache;
struct mr_pool;

/* On its own cache line: neighbours have different writers. */
struct mri_block {
	/* Places + 1 of those below it in the depot; atomic. */
	uint32_t links[MRI_STACK_LINKS];
	uint32_t page;          /* the first */
	int32_t shared;         /* atomic; see above */
	uint32_t freed_local;   /* by owner, before it retired the block */
	struct mr_cache *owner; /* atomic; NULL: retired */
	uint8_t order;          /* atomic for statistics */
	uint8_t is_whole;       /* handed out whole: its bounds are known */
	uint8_t was_shared;     /* atomic; a frag of it got another owner */
	uint8_t pad[21];
};

_Static_assert(sizeof(struct mri_block) == MRI_CACHE_LINE,
	       "a block has a line of its own");

/*
 * The blocks of a pool. Lines are indexed by place: first those of blocks of
 * the largest order, in sequence, then those for smaller ones. Unused ones are
 * never touched, and use no memory.
 */
struct mri_blocks {
	struct mri_block *lines;
	uint8_t *orders; /* by page, for those marked as block in owners[] */
	uint32_t max_order; /* 32 KiB of pages */
	uint32_t n_groups;  /* blocks of the largest order */
	/* Free ones: of the largest order, and of all below but pages. */
	_Alignas(MRI_CACHE_LINE) struct mri_stack depot;
	struct mri_stack small;
};

/*
 * References on one block that returned to a cache in sequence, and were not
 * yet passed to the block.
 */
struct mri_block_run {
	uint64_t begin;          /* of the block, in the region */
	uint32_t n_bytes;        /* of the block; 0: no run */
	uint32_t n;              /* atomic */
	struct mr_pool *pool;    /* the block's */
	struct mri_block *block; /* atomic; NULL: no run */
};

/* A frag cache: the block being cut, and those to be cut next. */
struct mr_frag_cache {
	/* Hot: one line. */
	uint64_t begin;      /* of the block, in the region */
	uint32_t n_bytes;    /* of it; 0: none */
	uint32_t offset;     /* of its free part */
	uint32_t last;       /* offset of the last frag; MRI_FRAG_NONE */
	uint32_t n_issued;   /* references on the block; atomic */
	uint32_t epoch;      /* see generation_of() */
	uint32_t page_bytes;
	struct mr_cache *cache;  /* NULL: it was destroyed first */
	struct mri_block *block; /* atomic */
	/* Warm. */
	uint32_t n_fetched; /* atomic */
	struct mri_block *fetched[MRI_BLOCK_BATCH];
	const struct mr_ctx *ctx;
	struct mr_frag_cache *next; /* in cache->frags, under the pool's lock */
};

enum { MRI_FRAG_NONE = UINT32_MAX };

/* lib/pool/block.c: converts pages and blocks. -ENOMEM. */
int mri_blocks_init(struct mri_blocks *blocks, uint32_t max_pages,
		    uint32_t page_shift);
void mri_blocks_fini(struct mri_blocks *blocks);

/*
 * Fetch unowned blocks of the largest order; returns how many, at most
 * MRI_BLOCK_BATCH.
 */
uint32_t mri_block_fetch(struct mr_cache *cache, struct mri_block **blocks);
/* Return them to the depot unused. */
void mri_block_unfetch(struct mr_cache *cache, struct mri_block *const *blocks,
		       uint32_t n);
/* A page of the cache itself as a block; NULL: none. */
struct mri_block *mri_block_fetch_page(struct mr_cache *cache);

/*
 * Return free blocks to the page allocator as pages: those that frag caches of
 * this cache have fetched, and those in the depot. Returns how many pages.
 * cache may be NULL.
 */
uint32_t mri_block_reclaim(struct mr_pool *pool, struct mr_cache *cache);

/*
 * Make pages, exclusively the caller's, a block with a single owner of all of
 * it, as mr_page_alloc_bulk() hands out. It may be freed like any frag.
 */
void mri_block_open_whole(struct mr_pool *pool, uint32_t page, uint32_t order);
/*
 * Drop one reference on such a block. True: it was the last, and its pages are
 * now the caller's. False with *ret_is_block: it has other owners. False
 * without: not such a block, and nothing was done.
 */
bool mri_block_close_whole(struct mr_pool *pool, uint32_t page, uint32_t order,
			   bool *ret_is_block);

/*
 * The last reference is gone: return it to the depot or, if it is a page, to
 * the cache, which may be NULL or of another pool.
 */
void mri_block_back(struct mr_cache *cache, struct mr_pool *pool,
		    struct mri_block *block);

/*
 * Pages in used blocks without references, and in blocks that frag caches have
 * fetched. Under the pool's lock.
 */
struct mri_block_sums {
	uint64_t n_idle, n_fetched;
};
void mri_block_sums(const struct mr_pool *pool, struct mri_block_sums *sums);

/* lib/pool/block_refs.c: owners. Make the cache that cuts it its owner. */
void mri_block_start(struct mr_cache *cache, struct mri_block *block);
/* Outstanding references; for the owner. Below 0: too many returned. */
int64_t mri_block_n_out(const struct mri_block *block, uint32_t n_issued);
/* The owner starts over, if nothing is out. No atomic but a load. */
bool mri_block_restart(struct mr_cache *cache, struct mri_block *block,
		       uint32_t n_issued);
/* The owner is done with it. One atomic. */
void mri_block_retire(struct mr_cache *cache, struct mri_block *block,
		      uint32_t n_issued);

/*
 * Drop n references on a retired block, or on one that somebody else cuts.
 * True: it is retired, these were the last, and the caller must return it.
 * cache is for counting, as in mri_block_back().
 */
bool mri_block_sub(struct mri_block *block, uint32_t n, struct mr_cache *cache,
		   struct mr_pool *pool);
/* Add an owner; false: the count is at its limit. */
bool mri_block_ref(struct mri_block *block);
/* Whether no frag of it has a second owner, or only one reference is left. */
bool mri_block_is_exclusive(const struct mri_block *block);

/* Drop a reference on an address in a block, through a cache. */
void mri_block_put(struct mr_cache *cache, struct mr_pool *pool, uint64_t addr);
/* The same without a cache. */
void mri_block_put_direct(struct mr_pool *pool, uint64_t addr);
/* Pass what returned to its block. */
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
