/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of the object pools: objpool.c, objcache.c. */
#ifndef OBJECT_OBJPOOL_H
#define OBJECT_OBJPOOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/experimental/objpool.h>

#include "base/base.h"
#include "pool/depot/pair.h"
#include "pool/depot/vector.h"

/*
 * Converts between numbers and addresses. An object lies at memory + number *
 * unit_bytes; unit_bytes is 2^shift times an odd number, and inverse * odd == 1
 * modulo 2^64.
 */
struct mri_obj_layout {
	char *memory;
	uint64_t inverse;
	uint64_t last; /* the highest number of an object */
	uint32_t unit_bytes, shift;
};

/*
 * The number of an address; above layout->last if it is not an object's.
 *
 * Multiplying by the inverse and rotating map the 2^64 offsets one to one, and
 * multiples of unit_bytes to their quotients. So nothing else maps there: one
 * comparison detects what is outside the memory or between objects.
 */
static inline uint64_t mri_obj_number(const struct mri_obj_layout *layout,
				      const void *object)
{
	const uint64_t x = ((uintptr_t)object - (uintptr_t)layout->memory) *
			   layout->inverse;

	return x >> layout->shift | x << (-layout->shift & 63);
}

static inline void *mri_obj_at(const struct mri_obj_layout *layout,
			       uint32_t number)
{
	return layout->memory + (uint64_t)number * layout->unit_bytes;
}

/* Counters of each cache; a pool keeps those of destroyed ones. */
struct mri_obj_counters {
	uint64_t n_alloc, n_free; /* objects that left, and came back */
	uint64_t alloc_refill, alloc_empty, recycle_cache_full;
	uint64_t free_invalid, depot_cas_failed;
};

struct mr_objcache {
	/* Hot: one line. */
	struct mri_pair pair;
	struct mri_obj_layout layout;
	uint16_t magazine_objects;
	uint16_t vector_bytes; /* of this CPU; see vector.h */
	/* Warm. */
	struct mri_obj_counters counters; /* without n_alloc and n_free */
	uint64_t n_fetched; /* objects from the depot, minus those sent to it;
			     * modulo 2^64 */
	struct mr_objpool *pool;
	struct mr_objcache *next; /* in pool->caches, under its lock */
};

_Static_assert(offsetof(struct mr_objcache, counters) <= MRI_CACHE_LINE,
	       "what every call reads is one line");

struct mr_objpool {
	/* Read-only after creation. */
	struct mr_ctx *ctx;
	struct mri_obj_layout layout;
	uint64_t n_objects;
	uint64_t n_unused; /* that are the pool's from the beginning */
	uint32_t object_bytes;
	uint32_t max_caches;
	bool owns_memory;
	char name[32];

	/* Magazines: full ones, empty ones, and one neither full nor empty. */
	struct mri_depot depot;
	struct mri_stack partial;
	/* Objects below this number were handed out at least once; atomic. */
	_Alignas(MRI_CACHE_LINE) uint64_t next_unused;

	_Alignas(MRI_CACHE_LINE) pthread_mutex_t lock;
	uint32_t n_caches;
	struct mr_objcache *caches;
	struct mri_obj_counters counters; /* of destroyed caches */
};

/*
 * Add what a cache counted to sums; returns the objects in it.
 * lib/object/objpool.c
 */
uint32_t mri_objcache_sum(const struct mr_objcache *cache,
			  struct mri_obj_counters *sums);

#endif
