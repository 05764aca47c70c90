/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Object pools: creation, destruction, statistics. The hot path is in
 * objcache.c.
 *
 * An object's number is its distance from the pool's memory in units. In our
 * own memory, a unit is an object; in the caller's, where objects may be
 * anywhere, it is align_bytes.
 *
 * Magazines: a cache has two and, inside of a call, a third one in hand. Those
 * on the stack of filled ones are full, and one at most is on that of partial
 * ones. So while there are no more than n_objects objects,
 *
 *     n_objects / magazine_objects + 1 + 3 * max_caches
 *
 * always leave an empty one for a cache whose two are full, and no free ever
 * fails for lack of one.
 */
#include <errno.h>
#include <stdio.h>

#include "object/objpool.h"

enum {
	DEFAULT_ALIGN_BYTES = 64,
	DEFAULT_MAX_CACHES = 64,
	MAX_CACHES = 4096,
	MIN_ALIGN_BYTES = 8,
	MAX_ALIGN_BYTES = 4096,
	MAX_OBJECT_BYTES = 1 << 24,
};

static int check_memory(const struct mr_objpool_config *c,
			struct mr_reason *reterr_reason)
{
	const uint64_t stride = mri_round_up(c->object_bytes, c->align_bytes);
	const uint64_t n_needed = (c->n_objects - 1) * stride + c->object_bytes;

	if (c->memory == NULL)
		return 0;
	if ((uintptr_t)c->memory % c->align_bytes != 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "memory at %p: must be aligned to %u bytes",
			       c->memory, c->align_bytes);
	if (c->memory_bytes < n_needed)
		return mr_fail(reterr_reason, -EINVAL,
			       "%llu bytes of memory: %llu objects of %u take "
			       "%llu",
			       (unsigned long long)c->memory_bytes,
			       (unsigned long long)c->n_objects,
			       c->object_bytes, (unsigned long long)n_needed);
	if (c->memory_bytes / c->align_bytes > UINT32_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "%llu bytes of memory: at most 2^32 times "
			       "align_bytes, which is %u",
			       (unsigned long long)c->memory_bytes,
			       c->align_bytes);
	return 0;
}

static int check_config(struct mr_objpool_config *c,
			struct mr_reason *reterr_reason)
{
	if (c->align_bytes == 0)
		c->align_bytes = DEFAULT_ALIGN_BYTES;
	if (c->magazine_objects == 0)
		c->magazine_objects =
			mri_magazine_default(c->n_objects, c->max_caches);
	if (c->max_caches == 0)
		c->max_caches = DEFAULT_MAX_CACHES;
	if (c->name == NULL)
		c->name = "objects";

	if (c->object_bytes == 0 || c->object_bytes > MAX_OBJECT_BYTES)
		return mr_fail(reterr_reason, -EINVAL,
			       "objects of %u bytes: must be 1 to %d",
			       c->object_bytes, MAX_OBJECT_BYTES);
	if (!mri_is_power_of_two(c->align_bytes) ||
	    c->align_bytes < MIN_ALIGN_BYTES ||
	    c->align_bytes > MAX_ALIGN_BYTES)
		return mr_fail(reterr_reason, -EINVAL,
			       "objects aligned to %u bytes: must be a power "
			       "of two, %d to %d",
			       c->align_bytes, MIN_ALIGN_BYTES,
			       MAX_ALIGN_BYTES);
	if (c->n_objects == 0 || c->n_objects > UINT32_MAX - 1)
		return mr_fail(
			reterr_reason, -EINVAL, "%llu objects: must be 1 to %u",
			(unsigned long long)c->n_objects, UINT32_MAX - 1);
	if (c->max_caches > MAX_CACHES)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u caches: a pool has at most %d",
			       c->max_caches, MAX_CACHES);
	if (!mri_is_magazine_size(c->magazine_objects))
		return mr_fail(reterr_reason, -EINVAL,
			       "magazines of %u objects: must be a power of "
			       "two, %d to %d",
			       c->magazine_objects, MR_MAGAZINE_PAGES,
			       MR_MAGAZINE_MAX_PAGES);
	return check_memory(c, reterr_reason);
}

/*
 * x with odd * x == 1 modulo 2^64, by Newton's method: odd is its own inverse
 * modulo 8, and each step doubles the number of correct bits.
 */
static uint64_t inverse_of(uint64_t odd)
{
	uint64_t x = odd;

	for (uint32_t n_bits = 3; n_bits < 64; n_bits *= 2)
		x *= 2 - odd * x;
	return x;
}

static void set_layout(struct mr_objpool *pool,
		       const struct mr_objpool_config *c)
{
	struct mri_obj_layout *layout = &pool->layout;

	pool->object_bytes =
		(uint32_t)mri_round_up(c->object_bytes, c->align_bytes);
	layout->unit_bytes = pool->object_bytes;
	layout->last = c->n_objects - 1;
	if (c->memory != NULL) {
		layout->unit_bytes = c->align_bytes;
		layout->last =
			(c->memory_bytes - c->object_bytes) / c->align_bytes;
	}
	layout->shift = (uint32_t)__builtin_ctz(layout->unit_bytes);
	layout->inverse = inverse_of(layout->unit_bytes >> layout->shift);
}

int mr_objpool_create(struct mr_ctx *ctx,
		      const struct mr_objpool_config *config,
		      struct mr_objpool **ret_pool,
		      struct mr_reason *reterr_reason)
{
	struct mr_objpool_config c;
	struct mr_objpool *pool;
	uint32_t n_magazines;
	int err;

	err = mri_copy_sized(&c, config, sizeof(c), "mr_objpool_config",
			     reterr_reason);
	if (err < 0)
		return err;
	err = check_config(&c, reterr_reason);
	if (err < 0)
		return err;

	pool = mr_alloc(ctx, MRI_CACHE_LINE, sizeof(*pool));
	if (pool == NULL)
		goto no_memory;
	pool->ctx = ctx;
	pool->n_objects = c.n_objects;
	pool->max_caches = c.max_caches;
	snprintf(pool->name, sizeof(pool->name), "%s", c.name);
	set_layout(pool, &c);
	n_magazines = (uint32_t)(c.n_objects / c.magazine_objects) + 1 +
		      3 * c.max_caches;
	if (mri_depot_init(&pool->depot, n_magazines, n_magazines,
			   c.magazine_objects) < 0)
		goto free_pool;
	mri_stack_init(&pool->partial, pool->depot.magazines,
		       pool->depot.magazine_bytes);
	pool->owns_memory = c.memory == NULL;
	pool->n_unused = pool->owns_memory ? c.n_objects : 0;
	pool->layout.memory = c.memory;
	if (pool->owns_memory)
		pool->layout.memory = mr_alloc(
			ctx, c.align_bytes, c.n_objects * pool->object_bytes);
	if (pool->layout.memory == NULL)
		goto free_depot;
	pthread_mutex_init(&pool->lock, NULL);
	*ret_pool = pool;
	return 0;

free_depot:
	mri_depot_fini(&pool->depot);
free_pool:
	mr_free(ctx, pool);
no_memory:
	return mr_fail(reterr_reason, -ENOMEM,
		       "no memory for %llu objects of %u bytes",
		       (unsigned long long)c.n_objects, c.object_bytes);
}

int mr_objpool_destroy(struct mr_objpool *pool, struct mr_reason *reterr_reason)
{
	struct mr_objpool_stats s = { .size = sizeof(s) };

	if (pool == NULL)
		return 0;
	mr_objpool_stats(pool, &s);
	if (s.n_caches > 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "%s is in use by %u caches; destroy them first",
			       pool->name, s.n_caches);
	/* In the caller's memory, they only lose their pool. */
	if (pool->owns_memory && s.n_in_flight > 0)
		return mr_fail(
			reterr_reason, -EBUSY,
			"%llu of the %s are in flight: allocated and not freed",
			(unsigned long long)s.n_in_flight, pool->name);
	if (pool->owns_memory)
		mr_free(pool->ctx, pool->layout.memory);
	mri_depot_fini(&pool->depot);
	pthread_mutex_destroy(&pool->lock);
	mr_free(pool->ctx, pool);
	return 0;
}

/* Objects neither appear nor vanish, so n_free follows from the rest. */
uint32_t mri_objcache_sum(const struct mr_objcache *cache,
			  struct mri_obj_counters *sums)
{
	mri_counters_add(sums, &cache->counters, sizeof(*sums));
	return mri_pair_sums(&cache->pair, mr_counter_get(&cache->n_fetched),
			     &sums->n_alloc, &sums->n_free);
}

int mr_objpool_stats(const struct mr_objpool *pool,
		     struct mr_objpool_stats *stats)
{
	struct mr_objpool *p = (struct mr_objpool *)pool; /* for its lock */
	struct mri_obj_counters c = { 0 };
	struct mr_objpool_stats s = { .object_bytes = pool->object_bytes,
				      .n_objects = pool->n_objects,
				      .max_caches = pool->max_caches };

	pthread_mutex_lock(&p->lock);
	mri_counters_add(&c, &pool->counters, sizeof(c));
	for (const struct mr_objcache *cache = pool->caches; cache != NULL;
	     cache = cache->next)
		s.n_cached += mri_objcache_sum(cache, &c);
	s.n_caches = pool->n_caches;
	pthread_mutex_unlock(&p->lock);

	if (pool->owns_memory)
		s.n_free = mri_distance(mri_distance(c.n_free, c.n_alloc),
					pool->n_objects);
	else
		s.n_free = mri_distance(c.n_alloc, c.n_free);
	s.n_in_flight = mri_distance(s.n_free, pool->n_objects);
	s.alloc_fast = c.n_alloc;
	s.alloc_refill = c.alloc_refill;
	s.alloc_empty = c.alloc_empty;
	s.recycle_cached = c.n_free;
	s.recycle_cache_full = c.recycle_cache_full;
	s.free_invalid = c.free_invalid;
	s.depot_cas_failed = c.depot_cas_failed;
	return mri_fill_sized(stats, &s, sizeof(s));
}
