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
 *     worker --- cache: two magazines of 64 page numbers, no atomics
 *                  |
 *                depot: whole magazines, lock-free LIFO, one CAS per 64 pages
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

/** Pages in one magazine, and in one exchange between a cache and the depot. */
enum { MR_MAGAZINE_PAGES = 64 };

/** Pages that a cache may hold: two magazines, and one that is being cut. */
enum { MR_CACHE_MAX_PAGES = 2 * MR_MAGAZINE_PAGES + 1 };

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
	uint32_t reserved;    /**< 0 */
	struct mr_region *region; /**< NULL: one of its own */
	const char *name;        /**< in messages; NULL: "pool" */
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
	uint64_t n_committed; /**< that open ports and caches may hold at most */
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
	uint64_t depot_cas_failed;   /**< lost races on the depot */
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
 *            leave less than 64 bytes of a page
 *   -ENOMEM  no memory, or the region's address range is used up
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
 *           many. Nothing was changed
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
 * Owner: as it was; the region of a pool that made its own ends with the pool.
 * Thread: any.
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
 * Make one worker's share of @p pool.
 *
 * @return 0, or
 *   -ENOMEM  no memory, or there are ports and with one more cache they could
 *            run out of pages; the reason has the number of pages needed
 *   -ENOSPC  the pool has config.max_caches caches already
 *
 * Owner:  the caller, of the cache; one thread uses it at a time, any thread.
 * Thread: any.
 */
MR_API int mr_cache_create(struct mr_pool *pool, struct mr_cache **ret_cache,
			   struct mr_reason *reterr_reason);

/**
 * Give the pages in @p cache back to the pool and free it. NULL is allowed.
 * Pages that are in flight are no matter.
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
 * Owner:  the caller. Thread: the new one.
 */
MR_API struct mr_cache *mr_cache_adopt(struct mr_cache *cache);

/**
 * The pool of @p cache.
 *
 * @return never NULL
 *
 * Owner: as it was. Thread: any.
 */
MR_API struct mr_pool *mr_cache_pool(const struct mr_cache *cache);

/**
 * Allocate buffers.
 *
 * @param      cache    the calling thread's cache
 * @param[out] addrs    room for @p n addresses; [0, return) are set
 * @param      n        buffers wanted, 0 allowed
 * @param      n_bytes  of each: the pool's chunk_bytes or its page_bytes; they
 *                      are aligned to it
 *
 * @return buffers allocated, 0..n; fewer only if the pool has no more, none
 *         if @p n_bytes is not one of those
 *
 * Owner:  the caller, of one reference per buffer.
 * Thread: the one that uses @p cache.
 * Cost:   a copy from the cache; one CAS per 64 pages to fetch more. When the
 *         buffer is the page, a frag costs nothing more.
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
 * Thread: the one that uses @p cache.
 * Cost:   no lock, no system call, no read of packet memory.
 */
MR_API void mr_frag_free_bulk(struct mr_cache *cache, const uint64_t *addrs,
			      uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
