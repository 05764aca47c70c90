/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_OBJPOOL_H
#define MILLRACE_EXPERIMENTAL_OBJPOOL_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * Pools of objects of one size: flow entries, timers, headers.
 *
 *     thread --- cache: two magazines of object numbers, no atomics
 *                  |
 *                depot: whole magazines, lock-free LIFO, one CAS each
 *
 * The structure is that of a page pool, but the memory does not grow. A stopped
 * thread delays no other thread, and keeps only the objects in its cache.
 *
 * Source: J. D. Brouer, "Faster than SLAB caching of SKBs with qmempool",
 *         netdev 2014: a local cache in front of a shared queue.
 */

struct mr_ctx;
struct mr_objpool;
struct mr_objcache;

/** Zero is the default of each member but size and object_bytes. */
struct mr_objpool_config {
	uint32_t size;         /**< sizeof(struct mr_objpool_config) */
	uint32_t object_bytes; /**< 1..2^24, rounded up to align_bytes */
	uint32_t align_bytes;  /**< 8..4096, a power of two; 0: 64 */
	uint32_t max_caches;   /**< 0: 64 */
	uint64_t n_objects;    /**< 1..2^32 - 2 */
	/**
	 * The caller's memory for the objects, aligned to align_bytes, which
	 * must outlive the pool; NULL: the context's allocator provides it.
	 * With the caller's memory the pool begins empty: the caller makes the
	 * objects, at multiples of align_bytes within memory_bytes, and frees
	 * them into the pool.
	 */
	void *memory;
	uint64_t memory_bytes;
	const char *name;          /**< in messages; NULL: "objects" */
	uint32_t magazine_objects; /**< 64..512, a power of two: what caches and
				    *   depot exchange at a time, and half of
				    *   what a cache holds; 0: by n_objects, as
				    *   in a pool of that many pages */
	uint32_t reserved;         /**< 0 */
};

/** Counters of objects, summed over all caches; exact at rest. */
struct mr_objpool_stats {
	uint32_t size;         /**< sizeof(struct mr_objpool_stats) */
	uint32_t object_bytes; /**< after rounding */
	uint64_t n_objects;    /**< population */
	uint64_t n_free;       /**< in caches and depot, or never used */
	uint64_t n_in_flight;  /**< the others */
	uint64_t n_cached;     /**< of n_free: in caches */
	uint32_t n_caches, max_caches;
	uint64_t alloc_fast;         /**< objects allocated */
	uint64_t alloc_refill;       /**< magazines fetched from the depot */
	uint64_t alloc_empty;        /**< objects requested but not available */
	uint64_t recycle_cached;     /**< objects freed */
	uint64_t recycle_cache_full; /**< magazines moved to the depot */
	uint64_t free_invalid;       /**< addresses that are not an object: a
				      *   bug */
	uint64_t depot_cas_failed;   /**< failed compare-and-swaps */
};

/**
 * Create a pool of objects.
 *
 * @return 0, or
 *   -EINVAL  config->size, or a value is out of range
 *   -ENOMEM  no memory
 *
 * Owner:  the caller. Thread: any.
 * Cost:   zeroes all objects, unless the memory is the caller's.
 */
MR_API int mr_objpool_create(struct mr_ctx *ctx,
			     const struct mr_objpool_config *config,
			     struct mr_objpool **ret_pool,
			     struct mr_reason *reterr_reason);

/**
 * Free the pool. NULL is allowed.
 *
 * @return 0, or
 *   -EBUSY  it has caches or, unless the memory is the caller's, objects in
 *           flight; the reason has the numbers
 *
 * Owner: on success nobody. Thread: one, with nobody else using the pool.
 */
MR_API int mr_objpool_destroy(struct mr_objpool *pool,
			      struct mr_reason *reterr_reason);

/**
 * Create one thread's cache.
 *
 * @return 0, -ENOMEM, or -ENOSPC: there are max_caches
 *
 * Owner: the caller; one thread uses it at a time. Thread: any.
 */
MR_API int mr_objcache_create(struct mr_objpool *pool,
			      struct mr_objcache **ret_cache,
			      struct mr_reason *reterr_reason);

/**
 * Return the objects in @p cache to the pool and free it. NULL is allowed.
 *
 * Owner: nobody. Thread: the one that uses @p cache.
 */
MR_API void mr_objcache_destroy(struct mr_objcache *cache);

/**
 * Allocate objects.
 *
 * @param[out] objects  room for @p n pointers; [0, return) are set
 *
 * @return objects allocated, 0..n; fewer only if depot and cache are empty
 *
 * Owner:  the caller. Thread: the one that uses @p cache.
 * Cost:   a copy from the cache; one CAS pair per magazine. No lock.
 */
MR_API uint32_t mr_obj_alloc_bulk(struct mr_objcache *cache, void **objects,
				  uint32_t n);

/**
 * Free objects. A pointer outside the pool, or not to the first byte of an
 * object (in the caller's memory: not aligned to align_bytes), is ignored and
 * counted (free_invalid), as is an object beyond n_objects.
 *
 * Owner: the pool. Thread: the one that uses @p cache. Cost: as above.
 */
MR_API void mr_obj_free_bulk(struct mr_objcache *cache, void *const *objects,
			     uint32_t n);

/**
 * Copy the statistics of @p pool.
 *
 * @return 0, or -EINVAL if stats->size is 0
 *
 * Thread: any.
 */
MR_API int mr_objpool_stats(const struct mr_objpool *pool,
			    struct mr_objpool_stats *stats);

MR_END_DECLS

#endif
