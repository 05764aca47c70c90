/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_POOL_H
#define MILLRACE_POOL_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/region.h>

MR_BEGIN_DECLS

/**
 * @file
 * Page pools and caches.
 *
 *     worker --- cache: two magazines of page numbers; no atomics
 *                  |
 *                depot: whole magazines, lock-free LIFO, one CAS each
 *                  |
 *                page allocator: the region's pages, a lock, slow path
 *
 * A page is a pool's unit, 2 to 32 KiB, and the buffer that drivers post. A
 * frag is a slice of a page, or of a block of pages, that holds one reference
 * to it. A pool's pages are contiguous in its region, so a shift and an
 * addition convert between page number and address.
 *
 * The invariant is conservation: at rest, n_free + n_in_flight == n_pages.
 */

struct mr_cache;
struct mr_ctx;
struct mr_pool;

/** Pages in a magazine: minimum and maximum. */
enum { MR_MAGAZINE_PAGES = 64, MR_MAGAZINE_MAX_PAGES = 512 };

/** Open magazines for pages of other pools, per cache. */
enum { MR_OPEN_MAGAZINES = 4 };

/** What is checked at run time; each level includes those before it. */
enum mr_safety {
	MR_SAFETY_COUNTS = 0, /**< conservation, valid page numbers */
	MR_SAFETY_STATES = 1, /**< a state per page, exchanged atomically:
			       *   detects double frees, and records who took
			       *   what is in flight */
	MR_SAFETY_POISON = 2, /**< freed pages are filled with a pattern,
			       *   checked on allocation, and reused oldest
			       *   first; AddressSanitizer knows, if built in */
};

/** Zero is the default of each member but size. */
struct mr_pool_config {
	uint32_t size;           /**< sizeof(struct mr_pool_config) */
	uint32_t n_pages;        /**< see mr_pool_size_for(); 0: 8192, and
				  *   mr_port_open() and mr_cache_create() add
				  *   what they need, up to max_pages or
				  *   1048576 */
	uint32_t page_bytes;     /**< of a buffer: 2048..32768, a power of two
				  *   (`xdp:` takes 2048 and 4096); 0: 4096 */
	uint32_t headroom_bytes; /**< before each frame; 0: 128 */
	uint32_t tailroom_bytes; /**< after each frame */
	uint32_t max_caches;  /**< 0: 64 */
	enum mr_safety safety;    /**< see mr_pool_set_safety() */
	struct mr_region *region; /**< NULL: the pool creates one */
	const char *name;        /**< in messages; NULL: "pool" */
	uint32_t max_pages;     /**< limit of growth; 0: n_pages */
	uint32_t segment_pages; /**< growth step; 0: 2 MiB of pages */
	uint32_t low_pages; /**< watermark of mr_page_alloc_bulk(); 0: none */
	uint32_t numa_node_plus_1; /**< preferred, if the region is not bound
				    *   to one; 0: none */
	/**
	 * 64..512, a power of two: what caches and depot exchange at a time,
	 * and half of what a cache holds; 0: mr_magazine_default_pages()
	 */
	uint32_t magazine_pages;
	uint32_t is_elastic; /**< 1: grow for ports and caches as with n_pages 0,
			      *   whatever n_pages is */
};

/**
 * Where the pages are and how they got there. Names are those of the kernel's
 * page_pool statistics (Documentation/networking/page_pool.rst). Counters are
 * of pages, summed over all caches, past and present; exact at rest.
 */
struct mr_pool_stats {
	uint32_t size;       /**< sizeof(struct mr_pool_stats) */
	uint32_t page_bytes;
	uint32_t headroom_bytes;
	uint64_t n_pages;    /**< population */
	uint64_t n_free;     /**< in caches, depot and page allocator */
	uint64_t n_in_flight; /**< allocated and not freed */
	uint64_t n_cached;   /**< of n_free: in caches */
	uint64_t n_depot;    /**< of n_free: in the depot */
	uint64_t n_open;     /**< of n_free: in open magazines of other pools'
			      *   caches, on their way back */
	uint64_t n_committed; /**< most that open ports, caches and frag caches
			       *   may hold; others: docs/design/0003 */
	uint32_t n_caches;   /**< alive */
	uint32_t max_caches;

	uint64_t alloc_fast;   /**< pages from a cache's magazines */
	uint64_t alloc_refill; /**< magazines fetched from the depot */
	uint64_t alloc_slow;   /**< pages fetched from the page allocator */
	uint64_t alloc_slow_high_order; /**< of those, in blocks larger than a
					 *   page */
	uint64_t alloc_empty;  /**< pages requested but not available */
	uint64_t alloc_waive;  /**< returned for being on another NUMA node */
	uint64_t recycle_cached;     /**< into the cache's magazines */
	uint64_t recycle_cache_full; /**< magazines moved to the depot */
	uint64_t recycle_ring;       /**< pages returned to other pools */
	uint64_t recycle_ring_full;  /**< to the page allocator instead */
	uint64_t recycle_released_refcnt; /**< references released: the page has
					   *   other owners */
	uint64_t free_invalid;       /**< addresses in no pool: a bug */
	uint64_t free_double;        /**< pages that were already free: a bug */
	uint64_t free_over; /**< more freed than allocated: a bug at rest; may
			     *   show briefly while threads run */
	uint64_t poison_broken;      /**< pages written to while free: a bug */
	uint64_t depot_cas_failed;   /**< failed compare-and-swaps */
	uint32_t magazine_pages;     /**< capacity of a magazine */
	uint32_t reserved;           /**< 0 */
};

/**
 * Choose the number of pages of a pool for all ports of a program, before the
 * first one opens, so that each registers every page. Opens nothing.
 *
 *     config = { .size = sizeof(config), .n_pages = 2048 };
 *     mr_pool_size_for(ctx, specs, 2, 1, 1, &config, &why);
 *     mr_pool_create(ctx, &config, &pool, &why);
 *
 * @param         specs      of the ports, as for mr_port_open()
 * @param         n_specs    how many, 0 allowed
 * @param         n_workers  mr_port_config.n_workers of each port; 0: 1
 * @param         n_caches   caches that will exist: one per worker, and those
 *                           that the program creates
 * @param[in,out] config     of the pool to create. In: all members; n_pages is
 *                           what the program holds in addition: frames between
 *                           bursts, hand-off rings, frag caches, other pools'
 *                           ports. Out: n_pages is the total
 *
 * @return 0; n_pages is then enough to open these ports and to create these
 *         caches, in any order. Or, with config unchanged,
 *   -EINVAL  a spec does not parse, a value is out of range, or the pool would
 *            be too large
 *   -ENODEV  no such driver in @p ctx, or no such device
 *
 * Owner:  unchanged. Thread: as mr_port_open().
 * Cost:   reads how many queues each device has.
 */
MR_API int mr_pool_size_for(struct mr_ctx *ctx, const char *const *specs,
			    uint32_t n_specs, uint32_t n_workers,
			    uint32_t n_caches, struct mr_pool_config *config,
			    struct mr_reason *reterr_reason);

/**
 * Create a pool and its pages.
 *
 * @param      config    or NULL for the defaults; copied
 * @param[out] ret_pool  set on success
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
 * Free the pool, and its region if the pool created it. NULL is allowed.
 *
 * @return 0, or, with nothing changed,
 *   -EBUSY  a port or a cache uses it, pages are in flight, or another pool
 *           lies in its region. The reason says who, how many pages and where
 *           they are; at MR_SAFETY_STATES and above, also which call sites took
 *           most of them. Call again when they are back
 *
 * Owner:  on success nobody, on failure the caller.
 * Thread: one, with nobody else using the pool.
 */
MR_API int mr_pool_destroy(struct mr_pool *pool,
			   struct mr_reason *reterr_reason);

/**
 * The region of @p pool.
 *
 * @return never NULL
 *
 * Owner: as it was; a region that the pool created ends with it. Thread: any.
 */
MR_API struct mr_region *mr_pool_region(const struct mr_pool *pool);

/**
 * Copy the statistics of @p pool.
 *
 * @return 0, or -EINVAL if stats->size, which the caller sets, is 0
 *
 * Thread: any.
 * Cost:   reads each cache's counters; takes the lock of the list of caches.
 */
MR_API int mr_pool_stats(const struct mr_pool *pool,
			 struct mr_pool_stats *stats);

/**
 * Change the run-time checks.
 *
 * @return 0, or
 *   -EINVAL  no such level
 *   -EBUSY   pages are in flight, or there are caches, whose contents are
 *            unknown
 *   -ENOMEM  no memory for a state per page
 *
 * Owner: unchanged. Thread: one, with nobody else using the pool.
 */
MR_API int mr_pool_set_safety(struct mr_pool *pool, enum mr_safety safety,
			      struct mr_reason *reterr_reason);

/** Pages in flight from one call site, at MR_SAFETY_STATES and above. */
struct mr_leak {
	const void *site;    /**< return address of the call that took them */
	uint64_t n_pages;
	uint64_t oldest_ns;  /**< age of the oldest, as precise as the interval
			      *   of mr_pool_trim() */
	uint64_t addr;       /**< of the oldest */
	uint64_t reserved[4];
};

/**
 * Which call sites took the pages in flight.
 *
 * @param[out] leaks  room for @p n, most pages first
 *
 * @return number of call sites, which may be more than @p n; 0 below
 *         MR_SAFETY_STATES
 *
 * Owner: unchanged. Thread: any. Cost: a look at each page's state.
 */
MR_API uint32_t mr_pool_leaks(const struct mr_pool *pool,
			      struct mr_leak *leaks, uint32_t n);

/**
 * Create one worker's cache of @p pool.
 *
 * @return 0, or
 *   -ENOMEM  no memory, or one more cache could starve the open ports of pages;
 *            the reason has the number of pages needed. A pool with the default
 *            n_pages grows instead
 *   -ENOSPC  the pool already has config.max_caches caches
 *
 * Owner:  the caller, of the cache; one thread uses it at a time. Thread: any.
 */
MR_API int mr_cache_create(struct mr_pool *pool, struct mr_cache **ret_cache,
			   struct mr_reason *reterr_reason);

/**
 * Return the pages in @p cache to the pool and free it. NULL is allowed. Pages
 * may still be in flight. Remaining frag caches are a bug: they are logged and
 * emptied, and stay empty until they are destroyed.
 *
 * Owner:  nobody, of the cache; the pool, of its pages.
 * Thread: the one that uses @p cache.
 */
MR_API void mr_cache_destroy(struct mr_cache *cache);

/**
 * Take over the cache of an owner that has ended. At MR_SAFETY_STATES a cache
 * remembers its thread, and a call from one that did not adopt it is logged
 * once.
 *
 * @param cache  its owner makes no more calls on it, and what it did happens
 *               before this call (joined, or synchronized by a lock)
 *
 * @return the cache to use from now on; it may be @p cache
 *
 * Owner:  the caller. Thread: the new one.
 */
MR_API struct mr_cache *mr_cache_adopt(struct mr_cache *cache);

/**
 * Return open magazines to their pools, full or not, and, if mr_pool_trim()
 * requested it, all free pages to the page allocator. Call before sleeping, or
 * before not receiving or freeing for a long time.
 *
 * Owner:  unchanged. Thread: the one that uses @p cache.
 * Cost:   nothing if none is open; else one CAS or lock per magazine.
 */
MR_API void mr_cache_flush(struct mr_cache *cache);

/**
 * Report an idle poll: as mr_cache_flush(), but an open magazine waits for more
 * pages until its pool has run dry, or 32 to 64 frees and idle polls have added
 * none to it. Frees by mr_frag_free() of pages of @p cache do not count. An
 * empty mr_rx_burst() calls this.
 *
 * Owner, Thread: as mr_cache_flush(). Cost: a load if none is open.
 */
MR_API void mr_cache_idle(struct mr_cache *cache);

/** What one cache holds, and may hold. */
struct mr_cache_stats {
	uint32_t size;        /**< sizeof(struct mr_cache_stats) */
	uint32_t max_pages;   /**< in two magazines and the open ones */
	uint32_t n_pages;     /**< in its two magazines */
	uint32_t n_open;      /**< in open magazines, of any pool */
	uint64_t n_alloc;     /**< pages allocated from it */
	uint64_t n_free;      /**< pages freed to it */
	uint64_t idle_ns;     /**< since this call or mr_pool_trim() first saw
			       *   it in its present state */
};

/**
 * Copy the statistics of a cache.
 *
 * @return 0, or -EINVAL if stats->size, which the caller sets, is 0
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
 * A buffer is a page. If n_bytes is page_bytes, it begins at the page, as
 * receive buffers must. A shorter one begins at a cache line that depends on
 * the page, because headers at the start of pages would compete for few sets of
 * the CPU's caches. The space in front of it is headroom.
 *
 * @param      cache    the calling thread's cache
 * @param[out] addrs    room for @p n addresses; [0, return) are set
 * @param      n        buffers wanted, 0 allowed
 * @param      n_bytes  of each, up to the pool's page_bytes
 *
 * @return buffers allocated, 0..n; fewer only if the pool has no more, none if
 *         @p n_bytes is 0 or more than a page
 *
 * Owner:  the caller, of one reference per buffer.
 * Thread: the one that uses @p cache.
 * Cost:   a copy from the cache; one CAS per magazine to fetch more, or, if the
 *         depot is empty, the page allocator's lock and growth of the pool, if
 *         it may. Where the compiler knows @p n, 2 to 16, it is inlined.
 */
MR_API uint32_t mr_frag_alloc_bulk(struct mr_cache *cache, uint64_t *addrs,
				   uint32_t n, uint32_t n_bytes);

/**
 * Free buffers: mr_frame_free_bulk() for addresses.
 *
 * @param addrs  @p n addresses anywhere in the buffers
 * @param n      buffers, 0 allowed
 *
 * Owner:  the pool, of one reference per buffer.
 * Thread: the one that uses @p cache. Cost: as mr_frame_free_bulk().
 */
MR_API void mr_frag_free_bulk(struct mr_cache *cache, const uint64_t *addrs,
			      uint32_t n);

MR_END_DECLS

#include <millrace/pool_inline.h>

#endif
