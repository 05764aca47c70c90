/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_OBJPOOL_H
#define MILLRACE_OBJPOOL_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * Pools of objects of one size: flow entries, timers, headers.
 *
 *     thread --- cache: two magazines of object numbers, no atomics
 *                  |
 *                depot: whole magazines, lock-free LIFO, one CAS each
 *
 * The structure of a page pool in front of memory that does not grow. No
 * thread waits for another one: a thread that is stopped anywhere delays
 * nobody, and keeps what is in its cache.
 *
 * Source: J. D. Brouer, "Faster than SLAB caching of SKBs with qmempool",
 * netdev 2014: a local cache in front of a shared queue.
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
	 * Memory of the caller's to lie in, aligned to align_bytes, which
	 * outlives the pool; NULL: the context's allocator is asked. The pool
	 * then begins with no free object: the caller frees into it those that
	 * it made there, anywhere in memory_bytes, at multiples of align_bytes.
	 */
	void *memory;
	uint64_t memory_bytes;
	const char *name;          /**< in messages; NULL: "objects" */
	uint32_t magazine_objects; /**< 64..512, a power of two: what caches and
				    *   depot exchange at a time, and half of
				    *   what a cache keeps; 0: by n_objects, as in a
				    *   pool of so many pages */
	uint32_t reserved;         /**< 0 */
};

/** Counters are of objects, summed over all caches; exact at rest. */
struct mr_objpool_stats {
	uint32_t size;         /**< sizeof(struct mr_objpool_stats) */
	uint32_t object_bytes; /**< as rounded up */
	uint64_t n_objects;    /**< population */
	uint64_t n_free;       /**< in caches and depot, or never used */
	uint64_t n_in_flight;  /**< the others */
	uint64_t n_cached;     /**< of n_free: in caches */
	uint32_t n_caches, max_caches;
	uint64_t alloc_fast;         /**< objects that left */
	uint64_t alloc_refill;       /**< magazines fetched from the depot */
	uint64_t alloc_empty;        /**< asked for and not to be had */
	uint64_t recycle_cached;     /**< objects that came back */
	uint64_t recycle_cache_full; /**< magazines that went to the depot */
	uint64_t free_invalid;       /**< addresses that are no object: a bug */
	uint64_t depot_cas_failed;   /**< lost races on the depot */
};

/**
 * Make a pool of objects.
 *
 * @return 0, or
 *   -EINVAL  config->size, or a value is out of range
 *   -ENOMEM  no memory
 *
 * Owner:  the caller. Thread: any.
 * Cost:   zeroes all objects, if the memory is not the caller's.
 */
MR_API int mr_objpool_create(struct mr_ctx *ctx,
			     const struct mr_objpool_config *config,
			     struct mr_objpool **ret_pool,
			     struct mr_reason *reterr_reason);

/**
 * Free the pool. NULL is allowed.
 *
 * @return 0, or
 *   -EBUSY  caches are alive, or objects in flight, if the memory is not the
 *           caller's; the reason has how many
 *
 * Owner: on success nobody. Thread: one, with nobody else using the pool.
 */
MR_API int mr_objpool_destroy(struct mr_objpool *pool,
			      struct mr_reason *reterr_reason);

/**
 * Make one thread's cache.
 *
 * @return 0, or -ENOMEM, or -ENOSPC: there are max_caches
 *
 * Owner: the caller; one thread uses it at a time. Thread: any.
 */
MR_API int mr_objcache_create(struct mr_objpool *pool,
			      struct mr_objcache **ret_cache,
			      struct mr_reason *reterr_reason);

/**
 * Give the objects in @p cache back to the pool and free it. NULL is allowed.
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
 * Give objects back. Pointers outside the pool, or not to an object's first
 * byte (in memory of the caller's: not aligned to align_bytes), are counted
 * (free_invalid) and left alone. So are objects beyond n_objects, where they
 * find no place.
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

#ifdef __cplusplus
}
#endif

#endif
