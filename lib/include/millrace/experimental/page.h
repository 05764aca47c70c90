/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_PAGE_H
#define MILLRACE_EXPERIMENTAL_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/pool.h>

MR_BEGIN_DECLS

/**
 * @file
 * The page allocator of a pool: blocks of pages, in bulk.
 *
 *     segment: | group | group | group | ...     a group is 32 KiB
 *     group:   | 1 1 0 0 1 1 1 1 |               one bit per free page
 *
 * A block of order k is 2^k consecutive pages, aligned to their size, at most
 * 32 KiB. A group is a word of bits: freeing a page sets a bit, which also
 * coalesces it with its neighbours. Caches fetch pages from here by the
 * magazine; programs call it for blocks, or for pages without a cache.
 *
 * Free a block here or, like any buffer, with mr_frag_free_bulk() or
 * mr_frame_free_bulk() on any thread.
 */

/** Largest order, with pages of 2 KiB; 3 with 4 KiB, 0 with 32 KiB. */
enum { MR_PAGE_MAX_ORDER = 4 };

/** A list of blocks, for comparison with arrays, which are faster. */
struct mr_page_list {
	uint32_t first_plus_1; /**< page number plus 1; 0: empty */
	uint32_t n;            /**< blocks */
	uint32_t order;        /**< of each */
	uint32_t reserved;     /**< 0 */
};

/** Counters of the page allocator; exact at rest. */
struct mr_page_stats {
	uint32_t size;       /**< sizeof(struct mr_page_stats) */
	uint32_t max_order;  /**< of this pool's pages */
	uint64_t n_pages;    /**< in segments */
	uint64_t max_pages;  /**< limit of growth */
	uint64_t n_free;     /**< pages here, in blocks of any order */
	uint64_t n_free_blocks[MR_PAGE_MAX_ORDER + 1]; /**< by largest order */
	uint32_t n_segments;
	uint32_t low_pages;  /**< watermark */
	uint64_t alloc_calls;  /**< bulk calls; each takes the lock once */
	uint64_t alloc_pages;  /**< pages allocated */
	uint64_t alloc_failed; /**< blocks not available */
	uint64_t alloc_low;    /**< calls limited by the watermark */
	uint64_t free_calls, free_pages;
	uint64_t free_double;  /**< pages that were already free: a bug */
	uint64_t n_grown, n_shrunk; /**< segments added and released */
};

/**
 * Allocate blocks.
 *
 * @param      order  0..max_order: blocks of 2^order pages
 * @param[out] addrs  room for @p n addresses; [0, return) are set
 * @param      n      blocks wanted, 0 allowed
 *
 * @return blocks allocated, 0..n. Fewer than @p n is not an error; 0 means that
 *         nothing is left or @p order is too large. If @p n blocks would take
 *         the allocator below its watermark, it tries one.
 *
 * Owner: the caller, of one reference to each block. Thread: any.
 * Cost:   one lock and one update of the counters per call. If there is no such
 *         block, idle memory is fetched from depot and quarantine, a magazine
 *         or some blocks at a time; then the pool grows, if it may: mmap() and
 *         page faults.
 * Source: Linux 5.13, alloc_pages_bulk(), without its scan of the array.
 */
MR_API uint32_t mr_page_alloc_bulk(struct mr_pool *pool, uint32_t order,
				   uint64_t *addrs, uint32_t n);

/**
 * Free blocks.
 *
 * @param order  of each, as allocated
 * @param addrs  @p n addresses of first bytes
 *
 * Bad addresses are ignored and counted: as free_invalid if there is no block
 * of @p pool at the address (a coloured one of mr_frag_alloc_bulk() is not a
 * first byte), as free_double if the block is already free, or as free_over if
 * it is already in the depot.
 *
 * Owner:  the pool. Thread: any. Cost: one lock per call.
 */
MR_API void mr_page_free_bulk(struct mr_pool *pool, uint32_t order,
			      const uint64_t *addrs, uint32_t n);

/**
 * As mr_page_alloc_bulk(), to the front of a list.
 *
 * @param[in,out] list  zeroed, or with blocks of the same @p order
 *
 * @return blocks allocated
 *
 * Owner: the list's owner. Thread: as mr_page_alloc_bulk(), and one per list.
 */
MR_API uint32_t mr_page_alloc_list(struct mr_pool *pool, uint32_t order,
				   uint32_t n, struct mr_page_list *list);

/**
 * Take the first block off a list.
 *
 * @return false: it is empty
 *
 * Owner: the caller, of the block. Thread: one per list.
 */
MR_API bool mr_page_list_pop(struct mr_pool *pool, struct mr_page_list *list,
			     uint64_t *ret_addr);

/**
 * Free all blocks of a list, which is then empty.
 *
 * Owner: the pool. Thread: any, one per list. Cost: one lock.
 */
MR_API void mr_page_free_list(struct mr_pool *pool, struct mr_page_list *list);

/**
 * Add a segment. Open ports keep the segments they knew: `xdp:` copies frames
 * from new ones when it sends them.
 *
 * @param n_pages  at least that many; 0: mr_pool_config.segment_pages
 *
 * @return 0, or
 *   -ENOSPC  the pool is at mr_pool_config.max_pages, or has 32 segments
 *   -ENOMEM  no memory for a segment
 *
 * Owner: the pool. Thread: any; not a data path. Cost: mmap(), page faults.
 */
MR_API int mr_pool_grow(struct mr_pool *pool, uint32_t n_pages,
			struct mr_reason *reterr_reason);

/**
 * Release segments that are entirely free to the system, the last first, as
 * long as @p n_keep pages remain. The first segment stays, and so do the pages
 * that open ports rely on. Pages in caches and in the depot do not count as
 * free here: see mr_pool_trim().
 *
 * @param[out] ret_n_pages  pages released, 0 allowed; or NULL
 *
 * @return 0, or
 *   -EBUSY  a port has registered the segment; the reason names the holder. The
 *           kernel would release it, and the device would deliver zeros
 *
 * Owner: unchanged. Thread: any; not a data path.
 */
MR_API int mr_pool_shrink(struct mr_pool *pool, uint64_t n_keep,
			  uint64_t *ret_n_pages,
			  struct mr_reason *reterr_reason);

/** Arguments of mr_pool_trim(). Zero is the default of each member but size. */
struct mr_trim_config {
	uint32_t size;       /**< sizeof(struct mr_trim_config) */
	uint32_t n_keep;     /**< pages to keep at least; 0: config.n_pages */
	uint64_t idle_ns;    /**< idle time to release a segment; 0: 10 s */
	uint32_t max_magazines; /**< to look at per call; 0: 256 */
	uint32_t reserved;   /**< 0 */
};

/** Results of mr_pool_trim(). */
struct mr_trim_report {
	uint32_t size;           /**< sizeof(struct mr_trim_report) */
	uint32_t n_magazines;    /**< looked at, and sorted by address */
	uint64_t n_pages_back;   /**< moved from depot to page allocator */
	uint64_t n_pages_shrunk; /**< released to the system */
	uint64_t n_pages_grown;  /**< fetched in advance, below the watermark */
	uint64_t n_duplicates;   /**< pages that were free twice: a bug */
	char why[160]; /**< why nothing was released; "" if nothing should be */
};

/**
 * Trim the pool: call this periodically from a control thread.
 *
 * It takes half of the depot's magazines, rounded up, sorts their pages by
 * address, detects duplicates, moves idle pages to the page allocator, and
 * releases idle segments to the system. It requests the free pages of caches
 * that were idle for idle_ns: the owner returns them with its next
 * mr_cache_idle(), if it stayed idle. Pages in quarantine are released if a
 * call at least idle_ns ago saw them there.
 *
 * @param         config  or NULL for the defaults
 * @param[in,out] report  size set by the caller; or NULL
 *
 * @return 0, or -EINVAL if a size is 0
 *
 * Owner:  unchanged. Thread: any, one at a time; the data path continues, and
 *         may find the depot empty earlier.
 * Cost:   about 10 ns per page looked at; munmap() for a segment.
 */
MR_API int mr_pool_trim(struct mr_pool *pool,
			const struct mr_trim_config *config,
			struct mr_trim_report *report);

/**
 * Copy the statistics of the page allocator of @p pool.
 *
 * @return 0, or -EINVAL if stats->size, which the caller sets, is 0
 *
 * Thread: any. Cost: takes the allocator's lock.
 */
MR_API int mr_page_stats(const struct mr_pool *pool,
			 struct mr_page_stats *stats);

MR_END_DECLS

#endif
