/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the page pool.
 *
 * Pages are numbered from 0. Side metadata is dense and never in the page:
 *
 *   owners[]  one byte per page: how many owners it has besides the first,
 *             so 0 for nearly all, and then never written: the lines stay
 *             shared between all cores.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/driver_frame.h>
#include <millrace/experimental/page.h>
#include <millrace/pool.h>

#include "base/base.h"
#include "mem/mem.h"
#include "pages/page_alloc.h"
#include "pool/block.h"
#include "pool/depot/pair.h"

#define MRI_POOL_MAX_PAGES (1u << 28)

enum { MRI_POOL_PAGE_BYTES = 4096 }; /* by default */

/*
 * In owners[]: owners are counted for a block that the page is part of; and the
 * most owners besides the first. UINT8_MAX is neither: mri_owner_put() passes
 * through it.
 */
enum { MRI_OWNER_BLOCK = UINT8_MAX - 1, MRI_OWNER_MAX = UINT8_MAX - 2 };

/* Counters that each cache has for itself; a pool keeps those of dead ones. */
struct mri_pool_counters {
	uint64_t n_alloc; /* pages that left a cache for the application */
	uint64_t n_free;  /* pages that came back to a cache from it */
	uint64_t n_direct_alloc, n_direct_free; /* the same, with no cache */
	uint64_t n_to_depot, n_from_depot;      /* pages */
	uint64_t alloc_refill, alloc_slow, alloc_empty;
	uint64_t recycle_cache_full, recycle_ring, recycle_ring_full;
	uint64_t recycle_released_refcnt, free_invalid, depot_cas_failed;
	/* Pages of blocks that were taken to be cut, and came back. */
	uint64_t n_block_alloc, n_block_free;
	uint64_t alloc_slow_high_order, free_over, alloc_waive;
	uint64_t free_double, poison_broken;
};

/*
 * A magazine that a cache fills with pages of another pool. At least one is in
 * it. lib/pool/outbox.c
 */
struct mri_open_magazine {
	struct mr_pool *pool; /* of the pages; NULL: none is open here */
	struct mri_magazine *magazine;
	uint32_t n_seen; /* pages in it when it was last looked at */
};

struct mr_cache {
	/*
	 * Hot: one line. Pages that left are counted in pair.top, those that
	 * came back are not: see mri_cache_sums(). An alloc of fast_bytes, and
	 * a free of pages below own_pages without attention flags, need
	 * nothing beyond this line but owners[].
	 */
	struct mri_pair pair;
	uint8_t *owners;
	uint64_t addr;       /* of page 0 */
	uint64_t fast_bytes; /* page_bytes; UINT64_MAX: no alloc is simple */
	uint32_t own_pages;  /* those of the pool, 0 if it is checked; whoever
			      * grows or shrinks it writes this; atomic */
	uint8_t page_shift;
	uint8_t attention; /* MR_ATTENTION_*: what frees have to look at */
	uint16_t magazine_pages;
	struct mr_pool *pool;
	/* Warm. */
	struct mri_pool_counters counters; /* without n_alloc and n_free */
	uint64_t n_fetched; /* pages that it got from the pool, less those that
			     * it gave back to it; modulo 2^64 */
	struct mr_cache *next; /* in pool->caches, under its lock */
	struct mri_block_run run;
	struct mr_frag_cache *frags; /* those of this cache; pool's lock */
	uint32_t n_open;             /* pages in open magazines; atomic */
	uint32_t n_puts;             /* calls that found some open */
	uint32_t is_asked; /* by mr_pool_trim() to give back; atomic */
	struct mri_open_magazine open[MR_OPEN_MAGAZINES];
	/* As mr_cache_stats() or mr_pool_trim() last saw it; both atomic. */
	uint64_t seen_activity, seen_ns;
	/* Of a checked pool: see safety.h. */
	uint64_t user;    /* thread that uses it; 0: none so far */
	const void *site; /* who made the call that is under way */
	bool is_user_told;
};

_Static_assert(offsetof(struct mr_cache, counters) == MRI_CACHE_LINE,
	       "what every call reads is one line");

/* What mr_pool_trim() remembers from call to call. lib/pool/trim.c */
struct mri_trim {
	uint32_t n_first; /* pages that the pool was made with */
	uint64_t n_high;  /* most that were in use; decays */
	/* Since when all pages are in the page allocator; UINT64_MAX: not. */
	uint64_t free_since_ns[MRI_PAGE_SEGMENTS];
};

struct mr_pool {
	bool uses_owners; /* atomic; see mri_pool_use_owners() */
	/* Read only once it is made. */
	uint32_t vector_bytes; /* of this CPU: 16, 32 or 64; see cache.c */
	struct mr_ctx *ctx;
	struct mr_region *region;
	bool owns_region;
	uint64_t addr;
	/*
	 * Of its tables, and of bounds: the pages that it may have. Those that
	 * it has are mri_pool_population().
	 */
	uint32_t n_pages;
	uint32_t page_bytes, page_shift;
	uint32_t headroom_bytes, tailroom_bytes;
	uint32_t max_caches;
	uint32_t asked_caches; /* of the configuration; 0: by the CPUs */
	bool has_default_magazines;
	bool is_elastic; /* its size is an estimate: grows for ports, caches */
	uint32_t segment_pages;    /* to grow by */
	uint32_t numa_node_plus_1; /* preferred; 0: none */
	uint64_t granule_bytes;    /* of its segments */
	bool is_reserved;          /* a range of addresses in the region */
	uint8_t *owners;
	int place;                 /* among its region's tenants */
	struct mri_safety *safety; /* NULL: MR_SAFETY_COUNTS */
	char name[32];

	struct mri_depot depot; /* of page numbers */
	struct mri_blocks blocks;
	/*
	 * Some cache found no page: what is open should come back. Written
	 * when that begins and ends, so the line stays shared.
	 */
	_Alignas(MRI_CACHE_LINE) uint32_t is_starving; /* atomic */

	_Alignas(MRI_CACHE_LINE) struct mri_page_alloc page_alloc;

	struct mri_trim trim;
	/* Held while segments come and go; see page_segment.c. */
	pthread_mutex_t grow_lock;
	uint64_t grow_again_ns; /* not before, if the pool is empty again */

	/* What ports and caches may hold; and the caches themselves. */
	_Alignas(MRI_CACHE_LINE) pthread_mutex_t lock;
	uint64_t n_committed;
	uint32_t n_ports;
	uint32_t n_caches;
	struct mr_cache *caches;
	/* Of dead caches and of the calls without one; the latter are atomic.
	 */
	struct mri_pool_counters counters;
};

/* The inline calls of millrace/pool.h read these members. */
_Static_assert(offsetof(struct mr_cache, pair.top) ==
			       offsetof(struct mr_cache_head, top) &&
		       offsetof(struct mr_cache, pair.loaded) ==
			       offsetof(struct mr_cache_head, magazine) &&
		       offsetof(struct mr_cache, owners) ==
			       offsetof(struct mr_cache_head, owners) &&
		       offsetof(struct mr_cache, addr) ==
			       offsetof(struct mr_cache_head, addr) &&
		       offsetof(struct mr_cache, fast_bytes) ==
			       offsetof(struct mr_cache_head, fast_bytes) &&
		       offsetof(struct mr_cache, own_pages) ==
			       offsetof(struct mr_cache_head, own_pages) &&
		       offsetof(struct mr_cache, page_shift) ==
			       offsetof(struct mr_cache_head, page_shift) &&
		       offsetof(struct mr_cache, attention) ==
			       offsetof(struct mr_cache_head, attention) &&
		       offsetof(struct mr_cache, magazine_pages) ==
			       offsetof(struct mr_cache_head, magazine_pages) &&
		       offsetof(struct mr_cache, pool) ==
			       offsetof(struct mr_cache_head, uses_owners) &&
		       offsetof(struct mr_pool, uses_owners) == 0 &&
		       offsetof(struct mri_magazine, numbers) ==
			       4 * sizeof(uint32_t),
	       "struct mr_cache_head is the head of struct mr_cache");

/* Add to a counter that any thread may write: those of a pool. */
static inline void mri_counter_add_shared(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/*
 * Add the counters of a cache to sums. A free counts nothing: the pages that
 * came back are those that left, plus those in the cache, less those fetched.
 * Returns the pages in the cache. lib/pool/stats.c
 */
uint32_t mri_cache_sums(const struct mr_cache *cache,
			struct mri_pool_counters *sums);

/* Segments, with n_pages of the first. lib/pool/page_segment.c */
int mri_pool_segments_init(struct mr_pool *pool, uint32_t n_pages,
			   struct mr_reason *reterr_reason);
/*
 * Grow a pool to n_pages, more than it has, beyond max_pages of the allocator
 * if necessary. -ENOSPC, -ENOMEM. Under grow_lock.
 */
int mri_pool_grow_to(struct mr_pool *pool, uint64_t n_pages,
		     struct mr_reason *reterr_reason);
/* How many magazines n_pages may need. lib/pool/pool.c */
uint32_t mri_pool_n_magazines(const struct mr_pool *pool, uint32_t n_pages);
/* On failure nothing was changed. */
int mri_pool_segments_fini(struct mr_pool *pool,
			   struct mr_reason *reterr_reason);

/*
 * One more segment for a pool whose page allocator has no block of that order,
 * if it may grow. True: there is one, or more room than before. Cold: mmap()
 * and page faults.
 */
bool mri_pool_grow_if_empty(struct mr_pool *pool, uint32_t order);

/* Whether a page that is in a magazine is on a NUMA node that is not wanted. */
bool mri_pool_is_far(const struct mr_pool *pool, uint32_t page);

/* Pages that there are. */
static inline uint32_t mri_pool_population(const struct mr_pool *pool)
{
	return mri_page_alloc_n_pages(&pool->page_alloc);
}

/* Whether a returning page needs only a place in a magazine. */
static inline bool mri_pool_is_simple(const struct mr_pool *pool)
{
	return pool->safety == NULL;
}

/*
 * Tell a cache. Under the pool's lock and grow_lock. A pool that checks each
 * page has no own pages in this sense, so that single frees need no other test.
 */
static inline void mri_cache_set_own_pages(struct mr_cache *cache)
{
	/* Not by its attention flags: its owner may be changing them. */
	const bool is_checked = !mri_pool_is_simple(cache->pool);

	__atomic_store_n(&cache->own_pages,
			 is_checked ? 0 : mri_pool_population(cache->pool),
			 __ATOMIC_RELAXED);
}

/*
 * How long a cache has been idle, as far as callers of this function saw. Each
 * call stores what it saw in the cache; the owner does nothing for this.
 * lib/pool/stats.c
 */
uint64_t mri_cache_idle_ns(struct mr_cache *cache, uint64_t now_ns);
/* A number that changes whenever a cache does something. */
uint64_t mri_cache_activity(const struct mr_cache *cache);

/* Pages that caches have in open magazines. lib/pool/stats.c */
uint64_t mri_pool_n_held(const struct mr_pool *pool);

/*
 * How many pages a pool of this configuration needs for n_caches caches and
 * n_others other pages. A larger pool has larger caches by default.
 * lib/pool/pool.c
 */
uint64_t mri_pool_with_caches(uint64_t n_others, uint32_t n_caches,
			      const struct mr_pool_config *asked);

/* Pages that a magazine has room for. */
static inline uint32_t mri_magazine_pages(const struct mr_pool *pool)
{
	return pool->depot.magazine_pages;
}

/* Its pages to the page allocator; and the magazine to the empty ones. */
static inline void mri_magazine_empty(struct mr_pool *pool,
				      struct mri_magazine *magazine)
{
	mri_page_back_bulk(&pool->page_alloc, magazine->numbers,
			   mri_magazine_n(magazine));
	mri_magazine_set_n(magazine, 0);
}

static inline void mri_magazine_drop(struct mr_pool *pool,
				     struct mri_magazine *magazine,
				     uint64_t *n_failed)
{
	mri_magazine_empty(pool, magazine);
	mri_depot_put(&pool->depot.empty, magazine, n_failed);
}

/* Pages by places that mr_pool_stats() does not tell apart. */
struct mri_pool_places {
	uint64_t n_in_blocks; /* of those in flight: blocks that were cut */
	uint64_t n_page_alloc, n_quarantine;
};

/*
 * As mr_pool_stats(), and the places of the same look: pages that leave an open
 * magazine between two looks would be in neither. lib/pool/stats.c
 */
int mri_pool_stats(const struct mr_pool *pool, struct mr_pool_stats *stats,
		   struct mri_pool_places *ret_places);

/* Pages that a cache may hold: in two magazines, and in n_open open ones. */
static inline uint32_t mri_cache_bound(const struct mr_pool *pool,
				       uint32_t n_open)
{
	return mr_cache_max_pages(mri_magazine_pages(pool)) +
	       n_open * mri_magazine_pages(pool);
}

/* Those of its own pool alone. */
static inline uint32_t mri_cache_max_pages(const struct mr_pool *pool)
{
	return mri_cache_bound(pool, 0);
}

/*
 * Check that n_pages can be held in addition to what was committed, so that a
 * later user does not starve an open port. An elastic pool grows. -ENOMEM.
 * Under grow_lock, so that no segment that is counted on is removed, and the
 * pool's lock, which is released while the pool grows; the caller adds to
 * n_committed. lib/pool/pool.c
 */
int mri_pool_check_room(struct mr_pool *pool, const char *who, uint64_t n_pages,
			struct mr_reason *reterr_reason);

/*
 * Commit n pages to a port, so that rings, caches and a burst per worker always
 * fit. n_workers have a cache or will have one. An elastic pool grows. -ENOMEM,
 * with the number needed.
 */
int mri_pool_commit(struct mr_pool *pool, const char *who, uint64_t n_pages,
		    uint32_t n_workers, struct mr_reason *reterr_reason);
void mri_pool_uncommit(struct mr_pool *pool, uint64_t n_pages);

static inline bool mri_pool_has(const struct mr_pool *pool, uint64_t addr)
{
	return (addr - pool->addr) >> pool->page_shift <
	       mri_pool_population(pool);
}

static inline uint32_t mri_page_of(const struct mr_pool *pool, uint64_t addr)
{
	return (uint32_t)((addr - pool->addr) >> pool->page_shift);
}

/*
 * Call before a value other than 0 is written to owners[]. The flag stays set.
 * Until then, caches free without reading owners[], which saves a third of the
 * cost.
 *
 * A thread that frees a shared page, or a page of a block, got it, directly or
 * through others, from the thread that called this function, so it sees the
 * flag. While the flag is false, no other owner has written to the page, so
 * nothing has to be acquired. Relaxed is enough.
 */
static inline void mri_pool_use_owners(struct mr_pool *pool)
{
	/* Looking first keeps the line shared. */
	if (!__atomic_load_n(&pool->uses_owners, __ATOMIC_RELAXED))
		__atomic_store_n(&pool->uses_owners, true, __ATOMIC_RELAXED);
}

/* Whether a page of the pool may have had a second owner. */
static inline bool mri_pool_uses_owners(const struct mr_pool *pool)
{
	return __atomic_load_n(&pool->uses_owners, __ATOMIC_RELAXED);
}

/* Whether a block counts the owners of addr. The caller owns some of it. */
static inline bool mri_is_block(const struct mr_pool *pool, uint64_t addr)
{
	return __atomic_load_n(&pool->owners[mri_page_of(pool, addr)],
			       __ATOMIC_ACQUIRE) == MRI_OWNER_BLOCK;
}

static inline struct mri_block *mri_block_at(const struct mri_blocks *blocks,
					     uint32_t page)
{
	const uint32_t in_group = page & ((1u << blocks->max_order) - 1);

	return &blocks->lines[(size_t)in_group * blocks->n_groups +
			      (page >> blocks->max_order)];
}

/* The block that has an address for which mri_is_block() holds. */
static inline struct mri_block *mri_block_of(const struct mr_pool *pool,
					     uint64_t addr)
{
	const uint32_t page = mri_page_of(pool, addr);
	const uint32_t order = pool->blocks.orders[page];

	return mri_block_at(&pool->blocks, page >> order << order);
}

static inline uint64_t mri_page_addr(const struct mr_pool *pool, uint32_t page)
{
	return pool->addr + ((uint64_t)page << pool->page_shift);
}

/* Give one owner's reference on a page back. True: it was the last one. */
static inline bool mri_owner_put(uint8_t *owners)
{
	/*
	 * 0 is "no owner but the caller". Two owners who both read 1 here both
	 * subtract; the second finds 0, leaves UINT8_MAX for a moment and is
	 * the last one.
	 */
	if (__atomic_load_n(owners, __ATOMIC_ACQUIRE) == 0)
		return true;
	if (__atomic_fetch_sub(owners, 1, __ATOMIC_ACQ_REL) != 0)
		return false;
	__atomic_store_n(owners, 0, __ATOMIC_RELAXED);
	return true;
}

/* The same of the page that has addr, which is then the caller's to recycle. */
static inline bool mri_page_put(struct mr_pool *pool, uint64_t addr)
{
	return mri_owner_put(&pool->owners[mri_page_of(pool, addr)]);
}

/* The pool of the region that has addr, or NULL. No lock. */
static inline struct mr_pool *mri_pool_of(const struct mr_region *region,
					  uint64_t addr)
{
	return (struct mr_pool *)mri_region_tenant(region, addr);
}

/*
 * Return a few idle pages to the page allocator: a magazine of the depot, one
 * that is on its way to a cache, blocks, or pages in quarantine. False: there
 * are none, and only growing helps. lib/pool/direct.c
 */
bool mri_pool_reclaim(struct mr_pool *pool, uint32_t order);

/*
 * Move the depot's pages to the page allocator, which allocates the lowest
 * first: those that most ports have registered.
 */
void mri_pool_empty_depot(struct mr_pool *pool);

/* Pages that came back with no cache of the pool involved. */
void mri_pool_put_pages(struct mr_pool *pool, const uint32_t *pages,
			uint32_t n);

#endif
