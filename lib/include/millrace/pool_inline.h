/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_POOL_INLINE_H
#define MILLRACE_POOL_INLINE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/pool.h>

MR_BEGIN_DECLS

/**
 * @file
 * Inline calls for single buffers, and for bursts whose length the compiler
 * knows. <millrace/pool.h> includes this file.
 */

/** Of mr_cache_head.top: bits for the pages in the loaded magazine. */
enum { MR_TOP_BITS = 10, MR_TOP_MASK = (1 << MR_TOP_BITS) - 1 };

/** What the inline calls read of a cache; not for programs. */
struct mr_cache_head {
	uint64_t top;          /**< pages allocated << 10 | in the magazine */
	uint32_t *magazine;    /**< four words, then page numbers */
	uint32_t *prev;        /**< the other magazine */
	const uint8_t *owners; /**< by page: owners beyond the first */
	uint64_t addr;         /**< of page 0 */
	uint64_t fast_bytes;   /**< buffer size of the fast path */
	uint32_t own_pages;    /**< bound of the pool's page numbers; 0 if it
				*   checks each page; atomic */
	uint8_t page_shift;
	uint8_t n_until_tick;    /**< calls that free until the next look at
				  *   pages of other pools; 0: none here */
	uint16_t magazine_pages; /**< capacity of a magazine */
	const bool *uses_owners; /**< whether owners[] has to be looked at */
};

/**
 * Default magazine size of a pool created with @p n_pages.
 *
 * @param n_caches  caches alive at a time; mr_pool_create() uses
 *                  config.max_caches, or the online CPUs if that is 0
 *
 * @return 512 where the pool can spare it, else a smaller power of two, at
 *         least 64: the two magazines of a cache hold at most an eighth of the
 *         pool, and those of all caches a half, unless 64 is already more
 *
 * Owner: unchanged. Thread: any.
 */
static inline uint32_t mr_magazine_default_pages(uint32_t n_pages,
						 uint32_t n_caches)
{
	const uint64_t n_parts = n_caches > 4 ? UINT64_C(4) * n_caches : 16;
	uint32_t n = MR_MAGAZINE_PAGES;

	while (n < MR_MAGAZINE_MAX_PAGES && n * 2 * n_parts <= n_pages)
		n *= 2;
	return n;
}

/**
 * Pages of its own pool that a cache may hold.
 *
 * @return two magazines of @p magazine_pages
 *
 * Owner: unchanged. Thread: any.
 */
static inline uint32_t mr_cache_max_pages(uint32_t magazine_pages)
{
	return 2 * magazine_pages;
}

/**
 * Where a magazine has page number @p n; not for programs. Intel CPUs forward a
 * store to a load at once if both have their address in a register, but only
 * some cycles later if one of them adds an index.
 *
 * @return its slot, four words behind the head
 *
 * Owner: unchanged. Thread: the one that uses the cache.
 */
static inline uint32_t *mr_cache_slot(uint32_t *magazine, uint64_t n)
{
	uint32_t *slot = magazine + n;

	__asm__("" : "+r"(slot));
	return slot + 4;
}

/**
 * Allocate one buffer: mr_frag_alloc_bulk() for one, inline.
 *
 * @return its address, or MR_ADDR_NONE
 *
 * Owner, thread: as mr_frag_alloc_bulk().
 * Cost:   two loads and a store if the cache has pages and @p n_bytes is
 *                page_bytes; else a call.
 */
static inline uint64_t mr_frag_alloc(struct mr_cache *cache, uint32_t n_bytes)
{
	struct mr_cache_head *head = (struct mr_cache_head *)cache;
	const uint64_t top = head->top;
	const uint64_t n = top & MR_TOP_MASK;
	uint64_t page;

	if (n == 0 || n_bytes != head->fast_bytes) {
		uint64_t addr = MR_ADDR_NONE;

		mr_frag_alloc_bulk(cache, &addr, 1, n_bytes);
		return addr;
	}
	/* One more page allocated, one fewer in the magazine. */
	__atomic_store_n(&head->top, top + (1 << MR_TOP_BITS) - 1,
			 __ATOMIC_RELAXED);
	page = mr_cache_slot(head->magazine, n)[-1];
	return head->addr + (page << head->page_shift);
}

/**
 * Free one buffer: mr_frag_free_bulk() for one, inline.
 *
 * Owner, thread: as mr_frag_free_bulk().
 * Cost:   two loads and two stores if it is a page with one owner and
 *                the cache has room; else a call.
 */
static inline void mr_frag_free(struct mr_cache *cache, uint64_t addr)
{
	struct mr_cache_head *head = (struct mr_cache_head *)cache;
	const uint64_t page = (addr - head->addr) >> head->page_shift;
	const uint64_t top = head->top;
	const uint64_t n = top & MR_TOP_MASK;

	/* Pages that wait here are left to the next call. */
	if (page >= __atomic_load_n(&head->own_pages, __ATOMIC_RELAXED) ||
	    n == head->magazine_pages ||
	    __atomic_load_n(&head->owners[page], __ATOMIC_ACQUIRE) != 0) {
		mr_frag_free_bulk(cache, &addr, 1);
		return;
	}
	*mr_cache_slot(head->magazine, n) = (uint32_t)page;
	__atomic_store_n(&head->top, top + 1, __ATOMIC_RELAXED);
}

#if defined(__OPTIMIZE__) && !defined(MR_NO_INLINE_BURSTS)

/** Longest burst that is inlined: for longer ones, the call uses AVX2. */
enum { MR_INLINE_BURST = 16 };

/* The calls themselves. */
uint32_t mr_frag_alloc_burst(struct mr_cache *cache, uint64_t *addrs,
			     uint32_t n,
			     uint32_t n_bytes) __asm__("mr_frag_alloc_bulk");
void mr_frag_free_burst(struct mr_cache *cache, const uint64_t *addrs,
			uint32_t n) __asm__("mr_frag_free_bulk");

/*
 * These define no functions: they are what a compiler puts in place of a call,
 * extern inline of GNU C.
 */
extern inline __attribute__((gnu_inline, always_inline)) uint32_t
mr_frag_alloc_bulk(struct mr_cache *cache, uint64_t *addrs, uint32_t n,
		   uint32_t n_bytes)
{
	struct mr_cache_head *head = (struct mr_cache_head *)cache;
	const uint64_t base = head->addr, top = head->top;
	const uint32_t n_loaded = (uint32_t)top & MR_TOP_MASK;
	const uint32_t *pages = head->magazine + 4 + n_loaded - n;
	const uint32_t shift = head->page_shift;

	if (!__builtin_constant_p(n) || n < 2 || n > MR_INLINE_BURST ||
	    n > n_loaded || n_bytes != head->fast_bytes)
		return mr_frag_alloc_burst(cache, addrs, n, n_bytes);
	__atomic_store_n(&head->top, top + ((uint64_t)n << MR_TOP_BITS) - n,
			 __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n; i++)
		addrs[i] = base + ((uint64_t)pages[i] << shift);
	return n;
}

extern inline __attribute__((gnu_inline, always_inline)) void
mr_frag_free_bulk(struct mr_cache *cache, const uint64_t *addrs, uint32_t n)
{
	struct mr_cache_head *head = (struct mr_cache_head *)cache;
	const uint64_t base = head->addr, top = head->top;
	const uint32_t n_loaded = (uint32_t)top & MR_TOP_MASK;
	uint32_t *pages = head->magazine + 4 + n_loaded;
	const uint64_t n_pages =
		__atomic_load_n(&head->own_pages, __ATOMIC_RELAXED);
	const uint32_t shift = head->page_shift;
	uint64_t beyond = 0;

	if (!__builtin_constant_p(n) || n < 2 || n > MR_INLINE_BURST ||
	    head->n_until_tick == 1 || n + n_loaded > head->magazine_pages ||
	    __atomic_load_n(head->uses_owners, __ATOMIC_RELAXED)) {
		mr_frag_free_burst(cache, addrs, n);
		return;
	}
	if (head->n_until_tick != 0)
		head->n_until_tick--;
	/* A page that is not below n_pages borrows, which sets the top bit. */
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t page = (addrs[i] - base) >> shift;

		pages[i] = (uint32_t)page;
		beyond |= n_pages - 1 - page;
	}
	if (beyond >> 63)
		mr_frag_free_burst(cache, addrs, n);
	else
		__atomic_store_n(&head->top, top + n, __ATOMIC_RELAXED);
}

#endif

MR_END_DECLS

#endif
