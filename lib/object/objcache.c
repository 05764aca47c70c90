/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Caches of objects: two magazines (pair.h) in front of memory that does not
 * grow. In addition to the depot's filled and empty ones there is a partial
 * one, and a cursor for objects that were never used.
 *
 * Only creating and destroying a cache takes a lock or waits: a stopped thread
 * keeps up to three magazines, and what it was about to take from the cursor.
 */
#include <errno.h>

#include "object/objpool.h"

static struct mri_magazine *take(struct mr_objcache *cache,
				 struct mri_stack *stack)
{
	return mri_depot_take(&cache->pool->depot, stack,
			      &cache->counters.depot_cas_failed);
}

static void put(struct mr_objcache *cache, struct mri_stack *stack,
		const struct mri_magazine *magazine)
{
	mri_depot_put(stack, magazine, &cache->counters.depot_cas_failed);
}

/* Load never used objects. False: there are none. */
static bool take_unused(struct mr_objcache *cache)
{
	struct mr_objpool *pool = cache->pool;
	uint64_t first, n;

	/* Checking first keeps the cursor from running on forever. */
	if (__atomic_load_n(&pool->next_unused, __ATOMIC_RELAXED) >=
	    pool->n_unused)
		return false;
	first = __atomic_fetch_add(&pool->next_unused, cache->magazine_objects,
				   __ATOMIC_RELAXED);
	if (first >= pool->n_unused)
		return false;
	n = pool->n_unused - first;
	if (n > cache->magazine_objects)
		n = cache->magazine_objects;
	for (uint32_t i = 0; i < n; i++)
		cache->pair.loaded->numbers[i] = (uint32_t)(first + n - 1 - i);
	mri_pair_set_n_loaded(&cache->pair, (uint32_t)n);
	mr_counter_add(&cache->n_fetched, n);
	return true;
}

/* Refill the loaded magazine, which is empty. False: no objects. */
__attribute__((noinline, cold)) static bool refill_objects(void *user)
{
	struct mr_objcache *cache = user;
	struct mr_objpool *pool = cache->pool;
	uint64_t *n_failed = &cache->counters.depot_cas_failed;
	enum mri_exchange exchange =
		mri_pair_refill(&cache->pair, &pool->depot, n_failed);

	if (exchange == MRI_EXCHANGE_SWAP)
		return true;
	if (exchange == MRI_EXCHANGE_NONE) {
		struct mri_magazine *partial = take(cache, &pool->partial);

		if (partial == NULL)
			return take_unused(cache);
		mri_pair_fetch(&cache->pair, &pool->depot, partial, n_failed);
	}
	mr_counter_add(&cache->counters.alloc_refill, 1);
	mr_counter_add(&cache->n_fetched, mri_pair_n_loaded(&cache->pair));
	return true;
}

/*
 * Make room in the loaded magazine, which is full. False: there are more
 * objects than the pool has.
 */
__attribute__((noinline, cold)) static bool make_room(struct mr_objcache *cache)
{
	const enum mri_exchange exchange =
		mri_pair_make_room(&cache->pair, &cache->pool->depot,
				   &cache->counters.depot_cas_failed);

	if (exchange == MRI_EXCHANGE_DEPOT) {
		mr_counter_add(&cache->n_fetched,
			       -(uint64_t)cache->magazine_objects);
		mr_counter_add(&cache->counters.recycle_cache_full, 1);
	}
	return exchange != MRI_EXCHANGE_NONE;
}

static inline __attribute__((always_inline)) uint32_t
shift_out(const struct mri_obj_layout layout, void **objects,
	  const uint32_t *numbers, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		objects[i] =
			layout.memory + ((uint64_t)numbers[i] << layout.shift);
	return n;
}

/* As take_multiples(), but anything between objects has a bit below the unit.
 */
static inline __attribute__((always_inline)) bool
take_shifted(const struct mri_obj_layout layout, uint32_t *numbers,
	     void *const *objects, uint32_t n)
{
	uint64_t beyond = 0, bits = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t offset =
			(uintptr_t)objects[i] - (uintptr_t)layout.memory;
		const uint64_t number = offset >> layout.shift;

		numbers[i] = (uint32_t)number;
		bits |= offset;
		beyond |= layout.last - number;
	}
	return (beyond >> 63 | (bits & (layout.unit_bytes - 1))) == 0;
}

#define VECTORS(width, attributes)                                             \
	attributes static uint32_t shift_out_##width(                          \
		const struct mr_objcache *cache, void **objects,               \
		const uint32_t *numbers, uint32_t n)                           \
	{                                                                      \
		return shift_out(cache->layout, objects, numbers, n & ~15u);   \
	}                                                                      \
	attributes static bool take_shifted_##width(                           \
		const struct mr_objcache *cache, uint32_t *numbers,            \
		void *const *objects, uint32_t n)                              \
	{                                                                      \
		return take_shifted(cache->layout, numbers, objects,           \
				    n & ~15u);                                 \
	}

MRI_EACH_WIDTH(VECTORS)

/* Take n objects of the loaded magazine, which has enough. */
static inline __attribute__((always_inline)) uint32_t
alloc_burst(void *user, void *out, uint32_t n)
{
	struct mr_objcache *cache = user;
	const struct mri_obj_layout layout = cache->layout;
	const uint32_t *numbers =
		mri_pair_pop(&cache->pair, cache->pair.top, n);
	void **objects = out;

	if (layout.inverse == 1 && n % 16 == 0)
		return MRI_WIDE(cache->vector_bytes, shift_out, cache, objects,
				numbers, n);
	for (uint32_t i = 0; i < n; i++)
		objects[i] = mri_obj_at(&layout, numbers[i]);
	return n;
}

/* More than the loaded magazine has. */
__attribute__((noinline)) static uint32_t alloc_many(struct mr_objcache *cache,
						     void **objects, uint32_t n)
{
	return mri_pair_alloc(&cache->pair, cache, objects, n, alloc_burst,
			      refill_objects, &cache->counters.alloc_empty);
}

uint32_t mr_obj_alloc_bulk(struct mr_objcache *cache, void **objects,
			   uint32_t n)
{
	const uint64_t top = cache->pair.top;

	if (n > mri_top_n(top))
		return alloc_many(cache, objects, n);
	if (n != 1)
		return alloc_burst(cache, objects, n);
	/* One needs no loop, whose set-up costs more. */
	objects[0] =
		mri_obj_at(&cache->layout, *mri_pair_pop(&cache->pair, top, 1));
	return 1;
}

/*
 * Put the numbers of n objects into the free part of a magazine. False: one is
 * not an object; nothing was done. last - number borrows, and sets the top bit,
 * if number is above it, unless number has the top bit itself.
 *
 * Atomic stores keep the loop from becoming one of vectors, which multiply 64
 * bits in more steps than it saves.
 */
static inline bool take_multiples(const struct mri_obj_layout layout,
				  uint32_t *numbers, void *const *objects,
				  uint32_t n)
{
	uint64_t beyond = 0;

#pragma GCC unroll 4
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t number = mri_obj_number(&layout, objects[i]);

		__atomic_store_n(&numbers[i], (uint32_t)number,
				 __ATOMIC_RELAXED);
		beyond |= number | (layout.last - number);
	}
	return beyond >> 63 == 0;
}

static inline bool take_valid(const struct mr_objcache *cache,
			      uint32_t *numbers, void *const *objects,
			      uint32_t n)
{
	if (cache->layout.inverse != 1)
		return take_multiples(cache->layout, numbers, objects, n);
	if (n % 16 == 0)
		return MRI_WIDE(cache->vector_bytes, take_shifted, cache,
				numbers, objects, n);
	return take_shifted(cache->layout, numbers, objects, n);
}

/* More than the loaded magazine has room for, or not all of them ours. */
__attribute__((noinline)) static void
free_over(struct mr_objcache *cache, void *const *objects, uint32_t n)
{
	while (n > 0) {
		const uint64_t top = cache->pair.top;
		uint32_t *numbers =
			cache->pair.loaded->numbers + mri_top_n(top);
		uint32_t k = mri_min_u32(n, cache->magazine_objects -
						    mri_top_n(top));

		if (k == 0) {
			if (make_room(cache))
				continue;
			mr_counter_add(&cache->counters.free_invalid, n);
			return;
		}
		if (!take_valid(cache, numbers, objects, k)) {
			k = 1;
			if (!take_valid(cache, numbers, objects, 1)) {
				mr_counter_add(&cache->counters.free_invalid,
					       1);
				objects++;
				n--;
				continue;
			}
		}
		mri_pair_push(&cache->pair, top, k);
		objects += k;
		n -= k;
	}
}

/* A single object. False: not ours, or no room. */
static inline bool free_one(struct mr_objcache *cache, const void *object)
{
	const uint64_t top = cache->pair.top;
	const uint64_t number = mri_obj_number(&cache->layout, object);

	if (number > cache->layout.last ||
	    mri_top_n(top) == cache->magazine_objects)
		return false;
	cache->pair.loaded->numbers[mri_top_n(top)] = (uint32_t)number;
	mri_pair_push(&cache->pair, top, 1);
	return true;
}

/* Out of line, so that a single object does not pay for its registers. */
__attribute__((noinline)) static void
free_burst(struct mr_objcache *cache, void *const *objects, uint32_t n)
{
	const uint64_t top = cache->pair.top;
	const uint32_t n_full = mri_top_n(top);

	if (n > cache->magazine_objects - n_full ||
	    !take_valid(cache, cache->pair.loaded->numbers + n_full, objects,
			n))
		free_over(cache, objects, n);
	else
		mri_pair_push(&cache->pair, top, n);
}

void mr_obj_free_bulk(struct mr_objcache *cache, void *const *objects,
		      uint32_t n)
{
	if (n != 1 || !free_one(cache, objects[0]))
		free_burst(cache, objects, n);
}

/*
 * Two empty magazines. False: none, since objects freed twice can fill them
 * all.
 */
static bool load_cache(struct mr_objcache *cache)
{
	struct mri_stack *empty = &cache->pool->depot.empty;
	struct mri_magazine *loaded = take(cache, empty), *prev;

	if (loaded == NULL)
		return false;
	prev = take(cache, empty);
	if (prev == NULL) {
		put(cache, empty, loaded);
		return false;
	}
	mri_pair_begin(&cache->pair, loaded, prev);
	return true;
}

int mr_objcache_create(struct mr_objpool *pool, struct mr_objcache **ret_cache,
		       struct mr_reason *reterr_reason)
{
	struct mr_objcache *cache =
		mr_alloc(pool->ctx, MRI_CACHE_LINE, sizeof(*cache));

	if (cache == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a cache");
	pthread_mutex_lock(&pool->lock);
	if (pool->n_caches == pool->max_caches) {
		pthread_mutex_unlock(&pool->lock);
		mr_free(pool->ctx, cache);
		return mr_fail(reterr_reason, -ENOSPC,
			       "%s have all of their %u caches; raise "
			       "mr_objpool_config.max_caches",
			       pool->name, pool->max_caches);
	}
	cache->pool = pool;
	cache->layout = pool->layout;
	cache->magazine_objects = (uint16_t)pool->depot.magazine_pages;
	cache->vector_bytes = (uint16_t)mri_vector_bytes();
	if (!load_cache(cache)) {
		pthread_mutex_unlock(&pool->lock);
		mr_free(pool->ctx, cache);
		return mr_fail(reterr_reason, -ENOMEM,
			       "%s have no empty magazine for a cache: more "
			       "objects were freed than the pool has",
			       pool->name);
	}
	cache->next = pool->caches;
	pool->caches = cache;
	pool->n_caches++;
	pthread_mutex_unlock(&pool->lock);
	*ret_cache = cache;
	return 0;
}

/*
 * Under the lock: return a cache's magazine to the depot. One that is neither
 * full nor empty is filled up from the partial one, so that there is at most
 * one.
 */
static void give_back(struct mr_objcache *cache, struct mri_magazine *magazine)
{
	struct mr_objpool *pool = cache->pool;
	struct mri_magazine *partial = NULL;
	uint32_t n = mri_magazine_n(magazine);

	if (n > 0 && n < cache->magazine_objects)
		partial = take(cache, &pool->partial);
	if (partial != NULL) {
		uint32_t n_left = mri_magazine_n(partial);

		while (n < cache->magazine_objects && n_left > 0)
			magazine->numbers[n++] = partial->numbers[--n_left];
		mri_magazine_set_n(magazine, n);
		mri_magazine_set_n(partial, n_left);
		put(cache, n_left > 0 ? &pool->partial : &pool->depot.empty,
		    partial);
	}
	if (n == cache->magazine_objects)
		put(cache, &pool->depot.filled, magazine);
	else
		put(cache, n > 0 ? &pool->partial : &pool->depot.empty,
		    magazine);
}

void mr_objcache_destroy(struct mr_objcache *cache)
{
	struct mr_objpool *pool;
	struct mr_objcache **link;

	if (cache == NULL)
		return;
	pool = cache->pool;
	pthread_mutex_lock(&pool->lock);
	mri_objcache_sum(cache, &pool->counters);
	give_back(cache, mri_pair_unload(&cache->pair));
	give_back(cache, cache->pair.prev);
	for (link = &pool->caches; *link != cache; link = &(*link)->next)
		;
	*link = cache->next;
	pool->n_caches--;
	pthread_mutex_unlock(&pool->lock);
	mr_free(pool->ctx, cache);
}
