/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's page_pool, modelled in user space after a description: an array
 * of 128 as the cache of the one consumer, a FIFO of slots with a lock per end
 * behind it, and a locked allocator of single pages at the bottom. The kernel's
 * other work (struct page, DMA, NUMA, softirqs) is left out, in its favour.
 */
#ifndef MODEL_PAGE_POOL_H
#define MODEL_PAGE_POOL_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hop.h"

enum {
	MODEL_CACHE = 128,
	MODEL_REFILL = 64,
	MODEL_NONE = 0, /* an empty slot; no page */
};

struct model_lock {
	alignas(64) uint32_t is_held;
};

struct model_page_pool {
	/* Of the consumer. */
	alignas(64) uint32_t n_cached;
	word cache[MODEL_CACHE];
	uint64_t n_slow, n_ring_full;
	/* The ring: slots with a page or MODEL_NONE. */
	struct model_lock consumer_lock;
	uint32_t consumer;
	struct model_lock producer_lock;
	uint32_t producer;
	alignas(64) uint32_t ring_mask;
	word *ring;
	/* The page allocator: a stack. */
	struct model_lock buddy_lock;
	uint32_t n_free;
	word *free_pages;
	uint8_t *bytes; /* of the pages, if somebody touches them */
};

static inline void model_lock(struct model_lock *lock)
{
	while (__atomic_exchange_n(&lock->is_held, 1, __ATOMIC_ACQUIRE) != 0) {
		while (__atomic_load_n(&lock->is_held, __ATOMIC_RELAXED) != 0)
			relax();
	}
}

static inline void model_unlock(struct model_lock *lock)
{
	__atomic_store_n(&lock->is_held, 0, __ATOMIC_RELEASE);
}

static inline void model_free(void *state)
{
	struct model_page_pool *pool = state;

	free(pool->ring);
	free(pool->free_pages);
	free(pool->bytes);
	free(pool);
}

/* Pages have the numbers 1 to n_pages. n_ring: a power of two. */
static inline struct model_page_pool *
model_make(uint32_t n_pages, uint32_t n_ring, uint32_t page_bytes)
{
	struct model_page_pool *pool = aligned_alloc(64, sizeof(*pool));

	if (pool == NULL)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	pool->ring_mask = n_ring - 1;
	pool->ring = calloc(n_ring, sizeof(*pool->ring));
	pool->free_pages = calloc(n_pages, sizeof(*pool->free_pages));
	pool->bytes = calloc(n_pages, page_bytes);
	if (pool->ring == NULL || pool->free_pages == NULL ||
	    pool->bytes == NULL) {
		model_free(pool);
		return NULL;
	}
	while (pool->n_free < n_pages) {
		pool->free_pages[pool->n_free] = pool->n_free + 1;
		pool->n_free++;
	}
	return pool;
}

static inline uint32_t model_buddy_alloc(struct model_page_pool *pool,
					 word *pages, uint32_t n)
{
	model_lock(&pool->buddy_lock);
	n = n < pool->n_free ? n : pool->n_free;
	for (uint32_t i = 0; i < n; i++)
		pages[i] = pool->free_pages[--pool->n_free];
	model_unlock(&pool->buddy_lock);
	return n;
}

static inline void model_buddy_free(struct model_page_pool *pool,
				    const word *pages, uint32_t n)
{
	model_lock(&pool->buddy_lock);
	for (uint32_t i = 0; i < n; i++)
		pool->free_pages[pool->n_free++] = pages[i];
	model_unlock(&pool->buddy_lock);
}

/* Move at most 64 pages from the ring to the cache, under one lock. */
static inline bool model_refill(struct model_page_pool *pool)
{
	model_lock(&pool->consumer_lock);
	while (pool->n_cached < MODEL_REFILL) {
		word *slot = &pool->ring[pool->consumer & pool->ring_mask];
		const word page = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (page == MODEL_NONE)
			break;
		pool->cache[pool->n_cached++] = page;
		__atomic_store_n(slot, MODEL_NONE, __ATOMIC_RELEASE);
		pool->consumer++;
	}
	model_unlock(&pool->consumer_lock);
	return pool->n_cached > 0;
}

/* The slow path gets 64 pages at a time. */
static inline word model_alloc(struct model_page_pool *pool)
{
	if (pool->n_cached > 0)
		return pool->cache[--pool->n_cached];
	if (model_refill(pool))
		return pool->cache[--pool->n_cached];
	pool->n_slow++;
	pool->n_cached = model_buddy_alloc(pool, pool->cache, MODEL_REFILL);
	return pool->n_cached > 0 ? pool->cache[--pool->n_cached] : MODEL_NONE;
}

/* Return a page from another thread or outside the poll loop: to the ring. */
static inline void model_put_ring(struct model_page_pool *pool, word page)
{
	word *slot;
	bool is_full;

	model_lock(&pool->producer_lock);
	slot = &pool->ring[pool->producer & pool->ring_mask];
	is_full = __atomic_load_n(slot, __ATOMIC_ACQUIRE) != MODEL_NONE;
	if (!is_full) {
		__atomic_store_n(slot, page, __ATOMIC_RELEASE);
		pool->producer++;
	}
	model_unlock(&pool->producer_lock);
	if (is_full) {
		__atomic_add_fetch(&pool->n_ring_full, 1, __ATOMIC_RELAXED);
		model_buddy_free(pool, &page, 1);
	}
}

/* Return a burst under one lock: the kernel's later put_bulk. */
static inline void model_put_ring_bulk(struct model_page_pool *pool,
				       const word *pages, uint32_t n)
{
	uint32_t i;

	model_lock(&pool->producer_lock);
	for (i = 0; i < n; i++) {
		word *slot = &pool->ring[pool->producer & pool->ring_mask];

		if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != MODEL_NONE)
			break;
		__atomic_store_n(slot, pages[i], __ATOMIC_RELEASE);
		pool->producer++;
	}
	model_unlock(&pool->producer_lock);
	if (i < n) {
		__atomic_add_fetch(&pool->n_ring_full, n - i, __ATOMIC_RELAXED);
		model_buddy_free(pool, pages + i, n - i);
	}
}

/* The consumer returns a page to its own cache. */
static inline void model_put_direct(struct model_page_pool *pool, word page)
{
	if (pool->n_cached < MODEL_CACHE)
		pool->cache[pool->n_cached++] = page;
	else
		model_put_ring(pool, page);
}

#endif
