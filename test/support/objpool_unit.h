/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of object pools. */
#ifndef SUPPORT_OBJPOOL_UNIT_H
#define SUPPORT_OBJPOOL_UNIT_H

#include "support/unit.h"

#include <stdbool.h>

#include "object/objpool.h"

struct objects {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_objpool *pool;
	struct mr_objcache *cache;
};

static inline void objects_open(struct objects *f,
				const struct mr_objpool_config *config)
{
	struct mr_objpool_config c = *config;

	c.size = sizeof(c);
	memset(f, 0, sizeof(*f));
	f->ctx = test_ctx(&f->allocator);
	assert_int_equal(mr_objpool_create(f->ctx, &c, &f->pool, NULL), 0);
	assert_int_equal(mr_objcache_create(f->pool, &f->cache, NULL), 0);
}

static inline struct mr_objpool_stats obj_stats(const struct mr_objpool *pool)
{
	struct mr_objpool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_objpool_stats(pool, &stats), 0);
	return stats;
}

/* The conservation invariant: exactly what the test has is in flight. */
static inline void assert_obj_in_flight(const struct mr_objpool *pool,
					uint64_t n)
{
	const struct mr_objpool_stats s = obj_stats(pool);

	assert_int_equal(s.n_in_flight, n);
	assert_int_equal(s.n_free + s.n_in_flight, s.n_objects);
}

/*
 * With no cache alive: no magazine is lost, at most one is neither full nor
 * empty, and they hold, with what was never used, all free objects.
 */
static inline void assert_obj_magazines(struct mr_objpool *pool)
{
	struct mri_depot *depot = &pool->depot;
	struct mri_stack *stacks[] = { &depot->filled, &pool->partial,
				       &depot->empty };
	uint64_t n_failed = 0, n_free = 0;
	uint32_t n = 0, n_partial = 0;

	for (uint32_t i = 0; i < 3; i++) {
		struct mri_magazine *magazine;

		while ((magazine = mri_depot_take(depot, stacks[i],
						  &n_failed)) != NULL) {
			if (i == 0)
				assert_int_equal(magazine->n,
						 depot->magazine_pages);
			if (i == 1)
				assert_in_range(magazine->n, 1,
						depot->magazine_pages - 1);
			if (i == 2)
				assert_int_equal(magazine->n, 0);
			n_partial += i == 1;
			n_free += magazine->n;
			n++;
		}
	}
	assert_int_equal(n, depot->n_magazines);
	assert_true(n_partial <= 1);
	if (pool->n_unused > pool->next_unused)
		n_free += pool->n_unused - pool->next_unused;
	assert_int_equal(n_free, obj_stats(pool).n_free);
}

static inline void objects_close(struct objects *f)
{
	mr_objcache_destroy(f->cache);
	assert_obj_magazines(f->pool);
	assert_int_equal(mr_objpool_destroy(f->pool, NULL), 0);
	mr_ctx_destroy(f->ctx);
	assert_int_equal(f->allocator.n_out, 0);
}

static inline void *alloc_object(struct mr_objcache *cache)
{
	void *object = NULL;

	assert_int_equal(mr_obj_alloc_bulk(cache, &object, 1), 1);
	return object;
}

static inline void free_object(struct mr_objcache *cache, void *object)
{
	mr_obj_free_bulk(cache, &object, 1);
}

#endif
