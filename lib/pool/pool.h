/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the page pool.
 *
 * Pages are numbered from 0. All metadata is in dense tables outside the pages:
 *
 *   owners[]  one byte per page: the number of owners besides the first. It is
 *             0 for nearly all pages and then never written, so its cache
 *             lines stay shared between all cores.
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
 * Values in owners[]. MRI_OWNER_BLOCK: the page is part of a block, which has
 * the count of owners. MRI_OWNER_MAX: the most owners besides the first.
 * UINT8_MAX is reserved: mri_owner_put() stores it for a moment.
 */
enum { MRI_OWNER_BLOCK = UINT8_MAX - 1, MRI_OWNER_MAX = UINT8_MAX - 2 };

/* Counters of one cache. A pool keeps the sums of destroyed caches. */
struct mri_pool_counters {
	uint64_t n_alloc; /* pages that the application took from a cache */
	uint64_t n_free;  /* pages that it freed to a cache */
	uint64_t n_direct_alloc, n_direct_free; /* the same without a cache */
	uint64_t n_to_depot, n_from_depot;      /* pages */
	uint64_t alloc_refill, alloc_slow, alloc_empty;
	uint64_t recycle_cache_full, recycle_ring, recycle_ring_full;
	uint64_t recycle_released_refcnt, free_invalid, depot_cas_failed;
	/* Pages of blocks that were allocated for cutting, and freed. */
	uint64_t n_block_alloc, n_block_free;
	uint64_t alloc_slow_high_order, free_over, alloc_waive;
	uint64_t free_double, poison_broken;
};

/*
 * A magazine that a cache fills with pages of another pool. It has at least
 * one page. lib/pool/outbox.c
 */
struct mri_open_magazine {
	struct mr_pool *pool; /* of the pages; NULL: this entry is unused */
	struct mri_magazine *magazine;
	uint32_t n_seen; /* pages in it at the last check */
};

struct mr_cache {
	/*
	 * Hot, one cache line. pair.top counts the pages that left; frees are
	 * not counted: see mri_cache_sums(). An allocation of fast_bytes, and a
	 * free of pages below own_pages, access only this line and owners[].
	 */
	struct mri_pair pair;
	uint8_t *owners;
	uint64_t addr;       /* of page 0 */
	uint64_t fast_bytes; /* page_bytes; UINT64_MAX: no fast path */
	uint32_t own_pages;  /* pages of the pool, 0 if it is checked; written
			      * when the pool grows or shrinks; atomic */
	uint8_t page_shift;
	uint8_t n_until_tick; /* see mri_cache_is_due() */
	uint16_t magazine_pages;
	struct mr_pool *pool;
	/* Warm. */
	struct mri_pool_counters counters; /* without n_alloc and n_free */
	uint64_t n_fetched;    /* pages fetched from the pool minus pages
				* returned to it; modulo 2^64 */
	struct mr_cache *next; /* in pool->caches, under its lock */
	struct mri_block_run run;
	struct mr_frag_cache *frags; /* a list; under the pool's lock */
	uint32_t n_open;             /* pages in open magazines; atomic */
	uint32_t is_asked; /* mr_pool_trim() wants its pages; atomic */
	struct mri_open_magazine open[MR_OPEN_MAGAZINES];
	/* The last look of mr_cache_stats() or mr_pool_trim(); atomic. */
	uint64_t seen_activity, seen_ns;
	/* For checked pools, see safety.h. */
	uint64_t user;    /* thread that uses it; 0: none so far */
	const void *site; /* caller of the function that is running */
	bool is_user_told;
};

_Static_assert(offsetof(struct mr_cache, counters) == MRI_CACHE_LINE,
	       "what every call reads is one line");

/* State of mr_pool_trim() between calls. lib/pool/trim.c */
struct mri_trim {
	uint32_t n_first; /* pages when the pool was created */
	uint64_t n_high;  /* peak of pages in use; decays */
	/* When all pages of a segment were first seen free; UINT64_MAX: they
	 * are not all free. */
	uint64_t free_since_ns[MRI_PAGE_SEGMENTS];
};

/*
 * What a pool does with its pages besides keeping them: the checks of its
 * safety level, if it has any. site is the caller, for reports. Both tables are
 * in lib/pool/debug/safety.c.
 */
struct mri_checks {
	/* Allocate pages for cache, which has the site; returns how many. */
	uint32_t (*alloc)(struct mr_cache *cache, uint64_t *addrs, uint32_t n);
	/* As mri_cache_put(). */
	void (*free)(struct mr_cache *cache, const char *addrs, uint32_t n,
		     size_t stride);
	/*
	 * A page has no owner left. True: the caller must recycle it. cache
	 * freed it; NULL: no cache did.
	 */
	bool (*page_in)(struct mr_pool *pool, uint32_t page,
			struct mr_cache *cache, const void *site);
	/*
	 * n pages of a block, or of a caller without a cache: they are
	 * allocated; allocated again without having returned; returned.
	 */
	void (*out)(struct mr_pool *pool, uint32_t first, uint32_t n,
		    const void *site);
	void (*again)(struct mr_pool *pool, uint32_t first, uint32_t n,
		      const void *site);
	void (*in)(struct mr_pool *pool, uint32_t first, uint32_t n,
		   const void *site);
	/* An address that belongs to no pool was freed. */
	void (*invalid)(struct mr_pool *pool, uint64_t addr, const void *site);
};

extern const struct mri_checks mri_no_checks;

struct mr_pool {
	bool uses_owners; /* atomic; see mri_pool_use_owners() */
	/* Constant after creation. */
	uint32_t vector_bytes; /* of this CPU: 16, 32 or 64; see cache.c */
	struct mr_ctx *ctx;
	struct mr_region *region;
	bool owns_region;
	uint64_t addr;
	/*
	 * The most pages that the pool may have: the size of its tables. It has
	 * mri_pool_population() pages now.
	 */
	uint32_t n_pages;
	uint32_t page_bytes, page_shift;
	uint32_t headroom_bytes, tailroom_bytes;
	uint32_t max_caches;
	uint32_t asked_caches; /* as configured; 0: one per CPU */
	bool has_default_magazines;
	bool is_elastic;        /* grows when ports or caches need more pages */
	uint32_t segment_pages; /* growth step */
	uint32_t numa_node_plus_1; /* preferred; 0: none */
	uint64_t granule_bytes;    /* of its segments */
	bool is_reserved;          /* its address range in the region is */
	uint8_t *owners;
	int place; /* index among the region's tenants */
	const struct mri_checks *checks;
	struct mri_safety *safety; /* NULL: MR_SAFETY_COUNTS */
	char name[32];

	struct mri_depot depot; /* of page numbers */
	struct mri_blocks blocks;
	/*
	 * A cache found no page, so open magazines should be returned. Written
	 * only when this begins and ends, so the line stays shared.
	 */
	_Alignas(MRI_CACHE_LINE) uint32_t is_starving; /* atomic */

	_Alignas(MRI_CACHE_LINE) struct mri_page_alloc page_alloc;

	struct mri_trim trim;
	/* Held while segments are added and removed; see segments.c. */
	pthread_mutex_t grow_lock;
	bool is_frozen;   /* under grow_lock; see hand_over.h */
	/* A socketpair with what the next process needs after a crash, if
	 * is_kept (atomic); 0: there is none. */
	int keep_fds[2];
	bool is_kept;
	/* Another process has the pages: what is not free is not missing, and
	 * nothing is written to pages that are freed here. */
	bool is_away;
	uint64_t grow_again_ns; /* an empty pool does not grow before this */

	/* What ports and caches may hold, and a list of the caches. */
	_Alignas(MRI_CACHE_LINE) pthread_mutex_t lock;
	uint64_t n_committed;
	uint32_t n_ports;
	uint32_t n_caches;
	struct mr_cache *caches;
	/* Of destroyed caches, and of calls without a cache (atomic). */
	struct mri_pool_counters counters;
};

/* The inline functions of millrace/pool.h read these members. */
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
		       offsetof(struct mr_cache, n_until_tick) ==
			       offsetof(struct mr_cache_head, n_until_tick) &&
		       offsetof(struct mr_cache, magazine_pages) ==
			       offsetof(struct mr_cache_head, magazine_pages) &&
		       offsetof(struct mr_cache, pool) ==
			       offsetof(struct mr_cache_head, uses_owners) &&
		       offsetof(struct mr_pool, uses_owners) == 0 &&
		       offsetof(struct mri_magazine, numbers) ==
			       4 * sizeof(uint32_t),
	       "struct mr_cache_head is the head of struct mr_cache");

/* Add to a counter of a pool, which any thread may write. */
static inline void mri_counter_add_shared(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/*
 * Add the counters of a cache to sums. Frees are computed, not counted: pages
 * that left, plus pages in the cache, minus pages fetched. Returns the number
 * of pages in the cache. lib/pool/stats.c
 */
uint32_t mri_cache_sums(const struct mr_cache *cache,
			struct mri_pool_counters *sums);

/* Create the first segment with n_pages. lib/pool/segments.c */
int mri_pool_segments_init(struct mr_pool *pool, uint32_t n_pages,
			   struct mr_reason *reterr_reason);
/*
 * Grow a pool to n_pages, if necessary beyond the page allocator's max_pages.
 * n_pages must exceed the population. -ENOSPC, -ENOMEM. Call with grow_lock
 * held.
 */
int mri_pool_grow_to(struct mr_pool *pool, uint64_t n_pages,
		     struct mr_reason *reterr_reason);
/* How many magazines n_pages may need. lib/pool/pool.c */
uint32_t mri_pool_n_magazines(const struct mr_pool *pool, uint32_t n_pages);
/* Remove all segments. On failure nothing has changed. */
int mri_pool_segments_fini(struct mr_pool *pool,
			   struct mr_reason *reterr_reason);

/*
 * Add a segment, if the pool may grow and its page allocator has no block of
 * that order. Returns whether there is such a block or more room than before.
 * Slow: mmap() and page faults.
 */
bool mri_pool_grow_if_empty(struct mr_pool *pool, uint32_t order);

/* Whether a page in a magazine is on another NUMA node than requested. */
bool mri_pool_is_far(const struct mr_pool *pool, uint32_t page);

/* The number of pages that the pool has now. */
static inline uint32_t mri_pool_population(const struct mr_pool *pool)
{
	return mri_page_alloc_n_pages(&pool->page_alloc);
}

/* Whether freeing a page takes only a place in a magazine. */
static inline bool mri_pool_is_simple(const struct mr_pool *pool)
{
	return pool->safety == NULL;
}

/*
 * Update own_pages of a cache. Call with the pool's lock and grow_lock held. It
 * is 0 in a checked pool, so that frees need no further test.
 */
static inline void mri_cache_set_own_pages(struct mr_cache *cache)
{
	__atomic_store_n(&cache->own_pages,
			 mri_pool_is_simple(cache->pool) ?
				 mri_pool_population(cache->pool) :
				 0,
			 __ATOMIC_RELAXED);
}

/*
 * How long a cache has been idle, according to the calls of this function: each
 * stores in the cache what it saw. This costs the owner nothing.
 * lib/pool/stats.c
 */
uint64_t mri_cache_idle_ns(struct mr_cache *cache, uint64_t now_ns);
/* A number that changes whenever a cache does something. */
uint64_t mri_cache_activity(const struct mr_cache *cache);

/* The pool's pages in open magazines of caches. lib/pool/stats.c */
uint64_t mri_pool_n_held(const struct mr_pool *pool);

/*
 * How many pages a pool of this configuration needs for n_caches caches and
 * n_others other pages. By default, a larger pool has larger caches.
 * lib/pool/pool.c
 */
uint64_t mri_pool_with_caches(uint64_t n_others, uint32_t n_caches,
			      const struct mr_pool_config *asked);

/* The capacity of a magazine. */
static inline uint32_t mri_magazine_pages(const struct mr_pool *pool)
{
	return pool->depot.magazine_pages;
}

/* Return the pages of a magazine to the page allocator. */
static inline void mri_magazine_empty(struct mr_pool *pool,
				      struct mri_magazine *magazine)
{
	mri_page_back_bulk(&pool->page_alloc, magazine->numbers,
			   mri_magazine_n(magazine));
	mri_magazine_set_n(magazine, 0);
}

/* The same, and put it on the stack of empty magazines. */
static inline void mri_magazine_drop(struct mr_pool *pool,
				     struct mri_magazine *magazine,
				     uint64_t *n_failed)
{
	mri_magazine_empty(pool, magazine);
	mri_depot_put(&pool->depot.empty, magazine, n_failed);
}

/* Numbers of pages that mr_pool_stats() does not report separately. */
struct mri_pool_places {
	uint64_t n_in_blocks; /* in flight, in blocks that were cut */
	uint64_t n_page_alloc, n_quarantine;
};

/*
 * mr_pool_stats() and the numbers above, read together: a page that left an
 * open magazine between two reads would be in neither. lib/pool/stats.c
 */
int mri_pool_stats(const struct mr_pool *pool, struct mr_pool_stats *stats,
		   struct mri_pool_places *ret_places);

/* The most pages of a cache: in two magazines, and in n_open open ones. */
static inline uint32_t mri_cache_bound(const struct mr_pool *pool,
				       uint32_t n_open)
{
	return mr_cache_max_pages(mri_magazine_pages(pool)) +
	       n_open * mri_magazine_pages(pool);
}

/* The most pages of its own pool that a cache holds. */
static inline uint32_t mri_cache_max_pages(const struct mr_pool *pool)
{
	return mri_cache_bound(pool, 0);
}

/*
 * Check that the pool has n_pages beyond what it has committed, so that a new
 * user does not starve an open port. An elastic pool grows. -ENOMEM. Call with
 * grow_lock held, so that no segment is removed meanwhile, and with the pool's
 * lock held, which is released while the pool grows. The caller adds to
 * n_committed. lib/pool/pool.c
 */
int mri_pool_check_room(struct mr_pool *pool, const char *who, uint64_t n_pages,
			struct mr_reason *reterr_reason);

/*
 * Commit n_pages to a port, so that rings, caches and a burst per worker always
 * fit. n_workers is the number of workers that have or will have a cache. An
 * elastic pool grows. -ENOMEM; the reason has the number needed.
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
 * Call before writing a value other than 0 to owners[]. Sets a flag that is
 * never cleared. While it is clear, caches free without reading owners[], which
 * saves a third of the cost.
 *
 * A thread that frees a shared page, or a page of a block, got it, directly or
 * through others, from the thread that called this function, so it sees the
 * flag. While the flag is clear, no other owner has written to the page, so
 * there is nothing to acquire. Relaxed is enough.
 */
static inline void mri_pool_use_owners(struct mr_pool *pool)
{
	/* Reading first keeps the line shared. */
	if (!__atomic_load_n(&pool->uses_owners, __ATOMIC_RELAXED))
		__atomic_store_n(&pool->uses_owners, true, __ATOMIC_RELAXED);
}

/* Whether any page of the pool may have had a second owner. */
static inline bool mri_pool_uses_owners(const struct mr_pool *pool)
{
	return __atomic_load_n(&pool->uses_owners, __ATOMIC_RELAXED);
}

/* Whether a block counts the owners of addr. The caller owns part of it. */
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

/* The block that contains addr, for which mri_is_block() is true. */
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

/* Drop one owner's reference to a page. True: it was the last one. */
static inline bool mri_owner_put(uint8_t *owners)
{
	/*
	 * 0: only the caller owns the page. If two owners both read 1 here,
	 * both subtract. The second one finds 0, stores UINT8_MAX for a moment
	 * and is the last owner.
	 */
	if (__atomic_load_n(owners, __ATOMIC_ACQUIRE) == 0)
		return true;
	if (__atomic_fetch_sub(owners, 1, __ATOMIC_ACQ_REL) != 0)
		return false;
	__atomic_store_n(owners, 0, __ATOMIC_RELAXED);
	return true;
}

/* The same for the page of addr. If true, the caller must recycle it. */
static inline bool mri_page_put(struct mr_pool *pool, uint64_t addr)
{
	return mri_owner_put(&pool->owners[mri_page_of(pool, addr)]);
}

/* The pool in the region that contains addr, or NULL. Takes no lock. */
static inline struct mr_pool *mri_pool_of(const struct mr_region *region,
					  uint64_t addr)
{
	return (struct mr_pool *)mri_region_tenant(region, addr);
}

/*
 * Return a few idle pages to the page allocator: a magazine from the depot or
 * on its way to a cache, blocks, or pages in quarantine. False: there are none,
 * and only growing helps. lib/pool/direct.c
 */
bool mri_pool_reclaim(struct mr_pool *pool, uint32_t order);

/*
 * Move the depot's pages to the page allocator, which allocates the lowest
 * pages first: most ports have registered those.
 */
void mri_pool_empty_depot(struct mr_pool *pool);

/* Return pages that were freed without a cache of the pool. */
void mri_pool_put_pages(struct mr_pool *pool, const uint32_t *pages,
			uint32_t n);

#endif
