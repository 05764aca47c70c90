/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_POOL_H
#define MILLRACE_POOL_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * Page pools and caches.
 *
 *     worker --- cache: two magazines of page numbers, no atomics
 *                  |
 *                depot: whole magazines, lock-free LIFO, one CAS each
 *                  |
 *                page allocator: the region's pages, a lock, cold
 *
 * A page is a pool's unit, 2 to 32 KiB. A frag is a slice of a page that holds
 * one reference on it: rx buffers are frags of one chunk, aligned to it; with
 * pages of one chunk, a frag is its page. A pool's pages lie in one piece of
 * its region, so page numbers and addresses are each a shift and an add away
 * from the other.
 *
 * Conservation is the law: at rest, n_free + n_in_flight == n_pages.
 */

struct mr_cache;
struct mr_ctx;
struct mr_pool;

/** Pages in a magazine: at least, and at most. */
enum { MR_MAGAZINE_PAGES = 64, MR_MAGAZINE_MAX_PAGES = 512 };

/** Magazines that a cache may have open for pages of other pools. */
enum { MR_OPEN_MAGAZINES = 4 };

/** What is checked while the pool runs; each level has those below it. */
enum mr_safety {
	MR_SAFETY_COUNTS = 0, /**< conservation, page numbers in range */
	MR_SAFETY_STATES = 1, /**< a state per page, exchanged atomically: double
			       *   frees, and who took what is in flight */
	MR_SAFETY_POISON = 2, /**< freed pages are filled with a pattern that is
			       *   looked for when they leave, and are used
			       *   again oldest first; AddressSanitizer is told,
			       *   where it was built in */
	MR_SAFETY_GUARD = 3,  /**< a freed page is not mapped accessible, and a
			       *   guard follows each page; no device can
			       *   register such memory */
};

/** Zero is the default of each member but size. */
struct mr_pool_config {
	uint32_t size;           /**< sizeof(struct mr_pool_config) */
	uint32_t n_pages;        /**< 0: 8192 */
	uint32_t page_bytes;     /**< 2048..32768, a power of two; 0: 4096 */
	uint32_t headroom_bytes; /**< before each frame; 0: 128 */
	uint32_t tailroom_bytes; /**< behind each frame */
	uint32_t chunk_bytes; /**< of an rx buffer: 2048 or 4096, at most a
			       *   page; 0: the smaller of page and 4096 */
	uint32_t max_caches;  /**< 0: 64 */
	enum mr_safety safety;    /**< see mr_pool_set_safety() */
	struct mr_region *region; /**< NULL: one of its own */
	const char *name;        /**< in messages; NULL: "pool" */
	uint32_t max_pages;     /**< limit of growth; 0: n_pages */
	uint32_t segment_pages; /**< to grow by; 0: 2 MiB of them */
	uint32_t low_pages; /**< watermark of mr_page_alloc_bulk(); 0: none */
	uint32_t numa_node_plus_1; /**< preferred, if the region is not bound
				    *   to one; 0: none */
	/** 64..512, a power of two: what caches and depot exchange at a time,
	 * and half of what a cache keeps; 0: mr_magazine_default_pages() */
	uint32_t magazine_pages;
};

/**
 * Where the pages are and how they got there. Names are those of the kernel's
 * page_pool statistics (Documentation/networking/page_pool.rst). Counters are
 * of pages, summed over all caches, alive and gone; exact at rest.
 */
struct mr_pool_stats {
	uint32_t size;       /**< sizeof(struct mr_pool_stats) */
	uint32_t page_bytes;
	uint32_t chunk_bytes;
	uint32_t headroom_bytes;
	uint64_t n_pages;    /**< population */
	uint64_t n_free;     /**< in caches, depot and page allocator */
	uint64_t n_in_flight; /**< allocated and not given back */
	uint64_t n_cached;   /**< of n_free: in caches */
	uint64_t n_depot;    /**< of n_free: in the depot */
	uint64_t n_open;     /**< of n_free: in open magazines of caches of
			      *   other pools, on their way back */
	uint64_t n_committed; /**< that open ports, caches and frag caches may
			       *   hold at most; others: docs/design/0003 */
	uint32_t n_caches;   /**< alive */
	uint32_t max_caches;

	uint64_t alloc_fast;   /**< pages from a cache's magazines */
	uint64_t alloc_refill; /**< magazines fetched from the depot */
	uint64_t alloc_slow;   /**< pages fetched from the page allocator */
	uint64_t alloc_slow_high_order; /**< of those by blocks above one page */
	uint64_t alloc_empty;  /**< pages asked for that were not to be had */
	uint64_t alloc_waive;  /**< given back for being on another NUMA node */
	uint64_t recycle_cached;     /**< into the cache's magazines */
	uint64_t recycle_cache_full; /**< magazines that went to the depot */
	uint64_t recycle_ring;       /**< pages of other pools sent home */
	uint64_t recycle_ring_full;  /**< to the page allocator instead */
	uint64_t recycle_released_refcnt; /**< references: others own it too */
	uint64_t free_invalid;       /**< addresses that no pool has: a bug */
	uint64_t free_double;        /**< pages that were free already: a bug */
	uint64_t free_over; /**< more freed than allocated: a bug, at rest; while
			     *   threads run it may show for a moment */
	uint64_t poison_broken;      /**< pages written to while free: a bug */
	uint64_t depot_cas_failed;   /**< lost races on the depot */
	uint32_t magazine_pages;     /**< that one has room for */
	uint32_t reserved;           /**< 0 */
};

/**
 * Make a pool and its pages.
 *
 * @param      ctx            context
 * @param      config         or NULL for the defaults; copied
 * @param[out] ret_pool       set on success
 * @param[out] reterr_reason  set on failure; or NULL
 *
 * @return 0, or
 *   -EINVAL  config->size, or a value is out of range; headroom and tailroom
 *            leave less than 64 bytes of a chunk
 *   -ENOMEM  no memory, or the region's address range is used up
 *   -EBUSY   MR_SAFETY_GUARD, and a device has registered the region
 *
 * Owner:  the caller, of the pool. Its region must outlive it.
 * Thread: any; of one region one at a time.
 * Cost:   one segment: mmap() and page faults for all of it.
 */
MR_API int mr_pool_create(struct mr_ctx *ctx,
			  const struct mr_pool_config *config,
			  struct mr_pool **ret_pool,
			  struct mr_reason *reterr_reason);

/**
 * Free the pool, and its region if it made it. NULL is allowed.
 *
 * @return 0, or
 *   -EBUSY  a port or a cache still uses it, pages are in flight, or another
 *           pool lies in the region that it made; the reason says who and how
 *           many, at MR_SAFETY_STATES and above the places that took most of
 *           them, and where the other pages are. Nothing was changed: call it
 *           again when they are back, as often as need be
 *
 * Owner:  on success nobody, on failure the caller.
 * Thread: one, with nobody else using the pool.
 */
MR_API int mr_pool_destroy(struct mr_pool *pool,
			   struct mr_reason *reterr_reason);

/**
 * The region that the pages of @p pool lie in.
 *
 * @return never NULL
 *
 * Owner: as it was; a region that the pool made ends with it. Thread: any.
 */
MR_API struct mr_region *mr_pool_region(const struct mr_pool *pool);

/**
 * Copy the statistics of @p pool.
 *
 * @param[in,out] stats  size set by the caller
 *
 * @return 0, or -EINVAL if stats->size is 0
 *
 * Thread: any.
 * Cost:   reads each cache's counters; takes the lock of the list of caches.
 */
MR_API int mr_pool_stats(const struct mr_pool *pool,
			 struct mr_pool_stats *stats);

/**
 * Change what is checked while the pool runs.
 *
 * @return 0, or
 *   -EINVAL  no such level; from or to MR_SAFETY_GUARD, which is the pool's
 *            layout and chosen when it is made
 *   -EBUSY   pages are in flight, or caches alive: nobody can say what they
 *            hold
 *   -ENOMEM  no memory for a state per page
 *
 * Owner: unchanged. Thread: one, with nobody else using the pool.
 */
MR_API int mr_pool_set_safety(struct mr_pool *pool, enum mr_safety safety,
			      struct mr_reason *reterr_reason);

/** Pages in flight that one place took, at MR_SAFETY_STATES and above. */
struct mr_leak {
	const void *site;    /**< return address of the call that took them */
	uint64_t n_pages;
	uint64_t oldest_ns;  /**< age of the oldest, to the janitor's tick */
	uint64_t addr;       /**< of the oldest */
};

/**
 * Who took the pages that are in flight.
 *
 * @param[out] leaks  room for @p n, most pages first
 *
 * @return places there are, which may be more than @p n; 0 below
 *         MR_SAFETY_STATES
 *
 * Owner: unchanged. Thread: any. Cost: a look at each page's state.
 */
MR_API uint32_t mr_pool_leaks(const struct mr_pool *pool,
			      struct mr_leak *leaks, uint32_t n);

/** What the janitor is to do; zero is the default of each member but size. */
struct mr_tend_config {
	uint32_t size;       /**< sizeof(struct mr_tend_config) */
	uint32_t n_keep;     /**< pages not to go below; 0: config.n_pages */
	uint64_t idle_ns;    /**< a segment idle for that long goes; 0: 10 s */
	uint32_t max_magazines; /**< to look at in one call; 0: 256 */
	uint32_t reserved;   /**< 0 */
};

/** What it did and found. */
struct mr_tend_report {
	uint32_t size;           /**< sizeof(struct mr_tend_report) */
	uint32_t n_magazines;    /**< looked at, and sorted by address */
	uint64_t n_pages_back;   /**< moved from depot to page allocator */
	uint64_t n_pages_shrunk; /**< given back to the system */
	uint64_t n_pages_grown;  /**< fetched ahead, below the watermark */
	uint64_t n_duplicates;   /**< pages that were free twice: a bug */
	char why[160]; /**< why nothing was shrunk; "" if nothing was to be */
};

/**
 * The janitor: call it now and then from a control thread.
 *
 * It takes half of the depot's magazines, rounded up, sorts their pages by
 * address, finds pages that are there twice, moves what has been idle to the
 * page allocator, and gives whole idle segments back to the system. Caches that
 * did nothing for idle_ns are asked for their free pages: the owner gives them
 * with its next mr_cache_idle(), if it did nothing since. Pages in quarantine
 * go if a call at least idle_ns ago saw them there.
 *
 * @param         config  or NULL for the defaults
 * @param[in,out] report  size set by the caller; or NULL
 *
 * @return 0, or -EINVAL if a size is 0
 *
 * Owner:  unchanged. Thread: any one at a time; the data path goes on, and may
 *         find the depot empty earlier.
 * Cost:   some 10 ns per page looked at; munmap() for a segment.
 */
MR_API int mr_pool_tend(struct mr_pool *pool,
			const struct mr_tend_config *config,
			struct mr_tend_report *report);

/**
 * Make one worker's share of @p pool.
 *
 * @return 0, or
 *   -ENOMEM  no memory, or there are ports and with one more cache they could
 *            run out of pages; the reason has the number of pages needed
 *   -ENOSPC  the pool has config.max_caches caches already
 *
 * Owner:  the caller, of the cache; one thread at a time uses it. Thread: any.
 */
MR_API int mr_cache_create(struct mr_pool *pool, struct mr_cache **ret_cache,
			   struct mr_reason *reterr_reason);

/**
 * Give the pages in @p cache back to the pool and free it. NULL is allowed.
 * Pages that are in flight are no matter. Frag caches of it that are left are a
 * bug: it is logged, and they are empty and stay so until they are destroyed.
 *
 * Owner:  nobody, of the cache; the pool, of its pages.
 * Thread: the one that uses @p cache.
 */
MR_API void mr_cache_destroy(struct mr_cache *cache);

/**
 * Let the calling thread go on with the cache of an owner that has ended.
 *
 * @param cache  its owner makes no call on it any more, and what it did
 *               happens before this call (joined, or told through a lock)
 *
 * @return the cache to use from now on; it may be @p cache
 *
 * At MR_SAFETY_STATES a cache remembers the thread that uses it, and a call
 * from another one that did not adopt it is logged, once.
 *
 * Owner:  the caller. Thread: the new one.
 */
MR_API struct mr_cache *mr_cache_adopt(struct mr_cache *cache);

/**
 * Send what is in open magazines to where it belongs, filled or not; and, if
 * mr_pool_tend() asked for them, all free pages to the page allocator. For who
 * goes to sleep, or is going to neither receive nor free for long.
 *
 * Owner:  unchanged. Thread: the one that uses @p cache.
 * Cost:   nothing if none is open; else one CAS or lock per magazine.
 */
MR_API void mr_cache_flush(struct mr_cache *cache);

/**
 * There was nothing to do: as mr_cache_flush(), but what is open waits for more
 * until its pool has run dry, or 32 to 64 calls that free or are idle have
 * found nothing new in it. mr_rx_burst() calls it when it comes back empty.
 *
 * Owner, Thread: as mr_cache_flush(). Cost: a load if none is open.
 */
MR_API void mr_cache_idle(struct mr_cache *cache);

/** What one cache holds, and may hold. */
struct mr_cache_stats {
	uint32_t size;        /**< sizeof(struct mr_cache_stats) */
	uint32_t max_pages;   /**< (2 + open) magazines, and one being cut */
	uint32_t n_pages;     /**< in its two magazines */
	uint32_t n_open;      /**< in open magazines, of whatever pool */
	uint64_t n_alloc;     /**< pages that left it, so far */
	uint64_t n_free;      /**< pages that came back to it */
	uint64_t idle_ns;     /**< since it was first seen as it is now, by this
			       *   call or the janitor */
};

/**
 * Copy the statistics of a cache.
 *
 * @param[in,out] stats  size set by the caller
 *
 * @return 0, or -EINVAL if stats->size is 0
 *
 * Thread: any, while the cache is alive.
 */
MR_API int mr_cache_stats(const struct mr_cache *cache,
			  struct mr_cache_stats *stats);

/** @return the pool of @p cache, never NULL. Owner: as it was. Thread: any. */
MR_API struct mr_pool *mr_cache_pool(const struct mr_cache *cache);

/**
 * Allocate buffers.
 *
 * A buffer is a chunk or a page, what is large enough. With n_bytes of just
 * that, it is aligned to it, as receive buffers must be. A shorter one begins at
 * a cache line that depends on the page: headers at the start of pages compete
 * for few sets of the CPU's caches. What is in front of it is headroom.
 *
 * @param      cache    the calling thread's cache
 * @param[out] addrs    room for @p n addresses; [0, return) are set
 * @param      n        buffers wanted, 0 allowed
 * @param      n_bytes  of each, up to the pool's page_bytes
 *
 * @return buffers allocated, 0..n; fewer only if the pool has no more, none
 *         if @p n_bytes is 0 or more than a page
 *
 * Owner:  the caller, of one reference per buffer.
 * Thread: the one that uses @p cache.
 * Cost:   a copy from the cache; one CAS per magazine to fetch more, or, if the
 *         depot is empty, the page allocator's lock, and growth of the pool, if
 *         it may. When the buffer is the page, a frag costs nothing more.
 */
MR_API uint32_t mr_frag_alloc_bulk(struct mr_cache *cache, uint64_t *addrs,
				   uint32_t n, uint32_t n_bytes);

/**
 * Give buffers back: mr_frame_free_bulk() for addresses.
 *
 * @param addrs  @p n addresses anywhere in the buffers
 * @param n      buffers, 0 allowed
 *
 * Owner:  the pool, of one reference per buffer.
 * Thread: the one that uses @p cache. Cost: as mr_frame_free_bulk().
 */
MR_API void mr_frag_free_bulk(struct mr_cache *cache, const uint64_t *addrs,
			      uint32_t n);

#ifdef __cplusplus
}
#endif

#include <millrace/pool_inline.h>

#endif
