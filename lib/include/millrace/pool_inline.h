/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_POOL_INLINE_H
#define MILLRACE_POOL_INLINE_H

#include <stdint.h>

#include <millrace/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * One buffer at a time, inline: the part of millrace/pool.h that has bodies,
 * which includes it.
 */

/** Of mr_cache_head.top: bits for the pages in the loaded magazine. */
enum { MR_TOP_BITS = 10, MR_TOP_MASK = (1 << MR_TOP_BITS) - 1 };

/** What the calls below see of a cache; nothing for programs. */
struct mr_cache_head {
	uint64_t top;          /**< pages that left << 10 | in the magazine */
	uint32_t *magazine;    /**< four words, and page numbers */
	uint32_t *prev;        /**< the other one */
	const uint8_t *owners; /**< by page, besides the first */
	uint64_t addr;         /**< of page 0 */
	uint64_t fast_bytes;   /**< what is simple to allocate */
	uint32_t fast_pages;   /**< pages below that are simple to free */
	uint16_t page_shift;
	uint16_t magazine_pages; /**< that one has room for */
};

/**
 * Pages in a magazine of a pool that is made with @p n_pages, if its config
 * does not say.
 *
 * @param n_caches  that will be alive at a time; mr_pool_create() takes
 *                  config.max_caches, or the CPUs online if that is 0
 *
 * @return n_pages / (8 * n_caches), a 32nd of them at most, rounded down to a
 *         power of two, 64 to 512: two magazines of each cache are a quarter of
 *         the pool, if 64 are not more than that already
 *
 * Owner: unchanged. Thread: any.
 */
static inline uint32_t mr_magazine_default_pages(uint32_t n_pages,
						 uint32_t n_caches)
{
	const uint64_t n_parts = n_caches > 4 ? UINT64_C(8) * n_caches : 32;
	uint32_t n = MR_MAGAZINE_PAGES;

	while (n < MR_MAGAZINE_MAX_PAGES && n * 2 * n_parts <= n_pages)
		n *= 2;
	return n;
}

/**
 * Pages of its own pool that a cache may hold.
 *
 * @return two magazines of @p magazine_pages, and one page being cut
 *
 * Owner: unchanged. Thread: any.
 */
static inline uint32_t mr_cache_max_pages(uint32_t magazine_pages)
{
	return 2 * magazine_pages + 1;
}

/**
 * Allocate one buffer: mr_frag_alloc_bulk() for one, inline.
 *
 * @return its address, or MR_ADDR_NONE
 *
 * Owner, thread: as mr_frag_alloc_bulk(). Cost: two loads and a store, as long
 * as the cache has pages and @p n_bytes is page_bytes; else a call.
 */
static inline uint64_t mr_frag_alloc(struct mr_cache *cache, uint32_t n_bytes)
{
	struct mr_cache_head *head = (struct mr_cache_head *)cache;
	const uint64_t top = head->top;
	const uint32_t n = (uint32_t)top & MR_TOP_MASK;

	if (n == 0 || n_bytes != head->fast_bytes) {
		uint64_t addr = MR_ADDR_NONE;

		mr_frag_alloc_bulk(cache, &addr, 1, n_bytes);
		return addr;
	}
	/* One more that left, one fewer in the magazine. */
	__atomic_store_n(&head->top, top + (1 << MR_TOP_BITS) - 1,
			 __ATOMIC_RELAXED);
	return head->addr +
	       ((uint64_t)head->magazine[4 + n - 1] << head->page_shift);
}

/**
 * Give one buffer back: mr_frag_free_bulk() for one, inline.
 *
 * Owner, thread: as mr_frag_free_bulk(). Cost: two loads and two stores, if it
 * is a page with one owner and the cache has room.
 */
static inline void mr_frag_free(struct mr_cache *cache, uint64_t addr)
{
	struct mr_cache_head *head = (struct mr_cache_head *)cache;
	const uint64_t page = (addr - head->addr) >> head->page_shift;
	const uint64_t top = head->top;
	const uint32_t n = (uint32_t)top & MR_TOP_MASK;

	if (page >= head->fast_pages || n == head->magazine_pages ||
	    __atomic_load_n(&head->owners[page], __ATOMIC_ACQUIRE) != 0) {
		mr_frag_free_bulk(cache, &addr, 1);
		return;
	}
	head->magazine[4 + n] = (uint32_t)page;
	__atomic_store_n(&head->top, top + 1, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
