/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_PAGE_H
#define MILLRACE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * The page allocator of a pool: blocks of pages, in bulk.
 *
 *     segment: | group | group | group | ...     a group is 32 KiB
 *     group:   | 1 1 0 0 1 1 1 1 |               one bit per free page
 *
 * A block of order k is 2^k pages that follow each other, aligned to their
 * size, 32 KiB at most. A group is a word of bits, so freeing a page is setting
 * a bit, and pages that lie beside each other have coalesced by that alone.
 * A cache comes here for a magazine of pages at a time, and a program that wants
 * pages without a cache, or blocks, comes here itself.
 *
 * A block that was allocated here may be given back here, or, like any buffer,
 * with mr_frag_free_bulk() or mr_frame_free_bulk() on any thread.
 */

/** Largest order of pages of 2 KiB; of 4 KiB it is 3, of 32 KiB 0. */
enum { MR_PAGE_MAX_ORDER = 4 };

/** Blocks, as a list: to compare with arrays, which are faster. */
struct mr_page_list {
	uint32_t first_plus_1; /**< page number plus 1; 0: empty */
	uint32_t n;            /**< blocks */
	uint32_t order;        /**< of each */
	uint32_t reserved;     /**< 0 */
};

/** The page allocator's counts; exact at rest. */
struct mr_page_stats {
	uint32_t size;       /**< sizeof(struct mr_page_stats) */
	uint32_t max_order;  /**< of this pool's pages */
	uint64_t n_pages;    /**< in segments */
	uint64_t max_pages;  /**< limit of growth */
	uint64_t n_free;     /**< pages here, in blocks of any order */
	uint64_t n_free_blocks[MR_PAGE_MAX_ORDER + 1]; /**< by largest order */
	uint32_t n_segments;
	uint32_t low_pages;  /**< watermark */
	uint64_t alloc_calls;  /**< bulk calls, each one lock round */
	uint64_t alloc_pages;  /**< pages that left */
	uint64_t alloc_failed; /**< blocks that were not to be had */
	uint64_t alloc_low;    /**< calls that met the watermark */
	uint64_t free_calls, free_pages;
	uint64_t free_double;  /**< pages that were free already: a bug */
	uint64_t n_grown, n_shrunk; /**< segments, so far */
};

/**
 * Allocate blocks.
 *
 * @param      pool   pool
 * @param      order  0..max_order: blocks of 2^order pages
 * @param[out] addrs  room for @p n addresses; [0, return) are set
 * @param      n      blocks wanted, 0 allowed
 *
 * @return blocks newly allocated, 0..n. A part is no error, 0 is: nothing is
 *         left, or @p order is too large. Where n would take the allocator
 *         below its watermark, one block is tried.
 *
 * Owner:  the caller, of the blocks, each one reference.
 * Thread: any.
 * Cost:   one lock round and one update of the counters per call. If there is
 *         no such block: what lies idle in depot and quarantine is fetched,
 *         a magazine or blocks at a time; then growth, if the pool may:
 *         mmap() and page faults.
 * Source: Linux 5.13, alloc_pages_bulk(), without its scan of the array.
 */
MR_API uint32_t mr_page_alloc_bulk(struct mr_pool *pool, uint32_t order,
				   uint64_t *addrs, uint32_t n);

/**
 * Fill the empty slots of an array, as the kernel's call does.
 *
 * @param         n      slots of @p addrs
 * @param[in,out] addrs  slots with MR_ADDR_NONE are filled
 *
 * @return slots that have a block now, those that had one before included; so
 *         @p n for an array that was full
 *
 * Owner, thread, cost: as mr_page_alloc_bulk(), and a look at each slot.
 * Source: Linux 5.13, __alloc_pages_bulk() with its fix of 2021-06-28.
 */
MR_API uint32_t mr_page_alloc_bulk_slots(struct mr_pool *pool, uint32_t order,
					 uint64_t *addrs, uint32_t n);

/**
 * Give blocks back.
 *
 * @param order  of each, as allocated
 * @param addrs  @p n addresses of first bytes
 *
 * Addresses that are no block of @p pool are counted (free_invalid), and so are
 * those that mr_frag_alloc_bulk() coloured: a block is named by its first byte.
 * Blocks that are free already are counted (free_double), or, while they wait
 * in the depot, as one free too many (free_over). All are left alone.
 *
 * Owner:  the pool. Thread: any. Cost: one lock round per call.
 */
MR_API void mr_page_free_bulk(struct mr_pool *pool, uint32_t order,
			      const uint64_t *addrs, uint32_t n);

/**
 * As mr_page_alloc_bulk(), onto the front of a list.
 *
 * @param[in,out] list  zeroed, or with blocks of the same @p order
 *
 * @return blocks newly allocated
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
 * Give all blocks of a list back; it is empty then.
 *
 * Owner: the pool. Thread: any, one per list. Cost: one lock round.
 */
MR_API void mr_page_free_list(struct mr_pool *pool, struct mr_page_list *list);

/**
 * Add a segment.
 *
 * @param n_pages  at least that many; 0: mr_pool_config.segment_pages
 *
 * @return 0, or
 *   -ENOSPC  the pool is at mr_pool_config.max_pages, or has 32 segments
 *   -ENOMEM  no memory for a segment
 *
 * A port that was opened before keeps the segments that it knew: `xdp:` copies
 * frames from new ones when it sends them.
 *
 * Owner: the pool. Thread: any; not a data path. Cost: mmap(), page faults.
 */
MR_API int mr_pool_grow(struct mr_pool *pool, uint32_t n_pages,
			struct mr_reason *reterr_reason);

/**
 * Give segments back to the system that are free as a whole, the last first,
 * while at least @p n_keep pages stay. The first segment stays, and so do as
 * many pages as open ports count on.
 *
 * @param[out] ret_n_pages  pages given back, 0 allowed; or NULL
 *
 * @return 0, or
 *   -EBUSY  the segment that was to go is registered by a port; the reason has
 *           the holder's name. The kernel would let it happen, and deliver
 *           zeros
 *
 * Pages in caches and in the depot are not free as a whole: mr_pool_tend().
 *
 * Owner: unchanged. Thread: any; not a data path.
 */
MR_API int mr_pool_shrink(struct mr_pool *pool, uint64_t n_keep,
			  uint64_t *ret_n_pages,
			  struct mr_reason *reterr_reason);

/**
 * Copy the statistics of the page allocator of @p pool.
 *
 * @param[in,out] stats  size set by the caller
 *
 * @return 0, or -EINVAL if stats->size is 0
 *
 * Thread: any. Cost: takes the allocator's lock.
 */
MR_API int mr_page_stats(const struct mr_pool *pool,
			 struct mr_page_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
