/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Caches of objects: the magazines of cache.c in front of memory that does not
 * grow.
 *
 *     alloc <--+                         +--> free
 *              |  loaded   prev          |
 *              +--[      ]-[      ]------+
 *                    |        |   one CAS per 64 objects
 *                  depot: filled, partial, empty
 *                    |
 *                  objects that were never used: a cursor
 *
 * No path but that of making and ending a cache takes a lock or waits: a thread
 * that is stopped keeps the three magazines that it may have, and what it was
 * about to take from the cursor.
 */
#include <assert.h>
#include <errno.h>

#include "pool/objpool.h"

static void set_magazines(struct mr_objcache *cache,
			  struct mri_magazine *loaded,
			  struct mri_magazine *prev)
{
	__atomic_store_n(&cache->loaded, loaded, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->prev, prev, __ATOMIC_RELAXED);
}

static struct mri_magazine *take(struct mr_objcache *cache,
				 struct mri_stack *stack)
{
	return mri_depot_take(&cache->pool->depot, stack,
			      &cache->counters.depot_cas_failed);
}

static void put(struct mr_objcache *cache, struct mri_stack *stack,
		const struct mri_magazine *magazine)
{
	mri_depot_put(&cache->pool->depot, stack, magazine,
		      &cache->counters.depot_cas_failed);
}

/* Objects that were never used, into an empty magazine. How many. */
static uint32_t take_unused(struct mr_objpool *pool,
			    struct mri_magazine *magazine)
{
	uint64_t first, n;

	/* Looking first keeps the cursor from running on for ever. */
	if (__atomic_load_n(&pool->next_unused, __ATOMIC_RELAXED) >=
	    pool->n_unused)
		return 0;
	first = __atomic_fetch_add(&pool->next_unused, MR_MAGAZINE_PAGES,
				   __ATOMIC_RELAXED);
	if (first >= pool->n_unused)
		return 0;
	n = pool->n_unused - first;
	if (n > MR_MAGAZINE_PAGES)
		n = MR_MAGAZINE_PAGES;
	for (uint32_t i = 0; i < n; i++)
		magazine->numbers[i] = (uint32_t)(first + n - 1 - i);
	mri_magazine_set_n(magazine, (uint32_t)n);
	return (uint32_t)n;
}

/* Objects for the loaded magazine, which is empty. False: there are none. */
__attribute__((noinline, cold)) static bool refill(struct mr_objcache *cache)
{
	struct mr_objpool *pool = cache->pool;
	struct mri_magazine *loaded = cache->loaded;
	struct mri_magazine *filled;

	if (mri_magazine_n(cache->prev) > 0) {
		set_magazines(cache, cache->prev, loaded);
		return true;
	}
	filled = take(cache, &pool->depot.filled);
	if (filled == NULL)
		filled = take(cache, &pool->partial);
	if (filled == NULL)
		return take_unused(pool, loaded) > 0;
	put(cache, &pool->depot.empty, loaded);
	set_magazines(cache, filled, cache->prev);
	mr_counter_add(&cache->counters.alloc_refill, 1);
	return true;
}

/*
 * Room in the loaded magazine, which is full. False: there are more objects
 * than the pool was made for.
 */
__attribute__((noinline, cold)) static bool make_room(struct mr_objcache *cache)
{
	struct mr_objpool *pool = cache->pool;
	struct mri_magazine *full = cache->loaded;
	struct mri_magazine *empty;

	if (mri_magazine_n(cache->prev) < MR_MAGAZINE_PAGES) {
		set_magazines(cache, cache->prev, full);
		return true;
	}
	empty = take(cache, &pool->depot.empty);
	if (empty == NULL)
		return false;
	/* The one filled longer ago goes; the warmer one stays. */
	put(cache, &pool->depot.filled, cache->prev);
	set_magazines(cache, empty, full);
	mr_counter_add(&cache->counters.recycle_cache_full, 1);
	return true;
}

/* The n objects on top of a magazine that has as many. */
static inline void pop_objects(const struct mr_objcache *cache,
			       struct mri_magazine *loaded, void **objects,
			       uint32_t n)
{
	const struct mri_obj_layout layout = cache->layout;
	const uint32_t n_left = mri_magazine_n(loaded) - n;
	const uint32_t *numbers = loaded->numbers + n_left;

	for (uint32_t i = 0; i < n; i++)
		objects[i] = mri_obj_at(&layout, numbers[i]);
	mri_magazine_set_n(loaded, n_left);
}

/* More than the loaded magazine has. */
__attribute__((noinline)) static uint32_t
alloc_over(struct mr_objcache *cache, void **objects, uint32_t n)
{
	uint32_t n_done = 0;

	for (;;) {
		const uint32_t k =
			mri_min_u32(n - n_done, mri_magazine_n(cache->loaded));

		pop_objects(cache, cache->loaded, objects + n_done, k);
		n_done += k;
		if (n_done == n)
			break;
		if (!refill(cache)) {
			mr_counter_add(&cache->counters.alloc_empty,
				       n - n_done);
			break;
		}
	}
	mr_counter_add(&cache->counters.n_alloc, n_done);
	return n_done;
}

uint32_t mr_obj_alloc_bulk(struct mr_objcache *cache, void **objects,
			   uint32_t n)
{
	struct mri_magazine *loaded = cache->loaded;

	if (n > mri_magazine_n(loaded))
		return alloc_over(cache, objects, n);
	pop_objects(cache, loaded, objects, n);
	mr_counter_add(&cache->counters.n_alloc, n);
	return n;
}

/*
 * Numbers of n objects into the free part of a magazine. False, if one of them
 * is none: then nothing has happened. last - number borrows, and sets the top
 * bit, where number is above it, unless number has the top bit itself.
 */
static inline bool take_valid(const struct mr_objcache *cache,
			      uint32_t *numbers, void *const *objects,
			      uint32_t n)
{
	const struct mri_obj_layout layout = cache->layout;
	uint64_t beyond = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t number = mri_obj_number(&layout, objects[i]);

		numbers[i] = (uint32_t)number;
		beyond |= number | (layout.last - number);
	}
	return beyond >> 63 == 0;
}

/* More than the loaded magazine has room for, or not all of them ours. */
__attribute__((noinline)) static void
free_over(struct mr_objcache *cache, void *const *objects, uint32_t n)
{
	uint32_t n_freed = 0;
	uint32_t n_invalid = 0;

	while (n > 0) {
		struct mri_magazine *loaded = cache->loaded;
		const uint32_t n_full = mri_magazine_n(loaded);
		uint32_t k = mri_min_u32(n, MR_MAGAZINE_PAGES - n_full);

		if (k == 0) {
			if (make_room(cache))
				continue;
			n_invalid += n;
			break;
		}
		if (take_valid(cache, loaded->numbers + n_full, objects, k)) {
			mri_magazine_set_n(loaded, n_full + k);
			n_freed += k;
		} else {
			const bool is_valid = take_valid(
				cache, loaded->numbers + n_full, objects, 1);

			k = 1;
			mri_magazine_set_n(loaded, n_full + is_valid);
			n_freed += is_valid;
			n_invalid += !is_valid;
		}
		objects += k;
		n -= k;
	}
	mr_counter_add(&cache->counters.n_free, n_freed);
	mr_counter_add(&cache->counters.free_invalid, n_invalid);
}

void mr_obj_free_bulk(struct mr_objcache *cache, void *const *objects,
		      uint32_t n)
{
	struct mri_magazine *loaded = cache->loaded;
	const uint32_t n_full = mri_magazine_n(loaded);

	if (n > MR_MAGAZINE_PAGES - n_full ||
	    !take_valid(cache, loaded->numbers + n_full, objects, n)) {
		free_over(cache, objects, n);
		return;
	}
	mri_magazine_set_n(loaded, n_full + n);
	mr_counter_add(&cache->counters.n_free, n);
}

int mr_objcache_create(struct mr_objpool *pool, struct mr_objcache **ret_cache,
		       struct mr_reason *reterr_reason)
{
	struct mr_objcache *cache =
		mr_alloc(pool->ctx, MRI_CACHE_LINE, sizeof(*cache));
	struct mri_magazine *loaded, *prev;

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
	loaded = take(cache, &pool->depot.empty);
	prev = take(cache, &pool->depot.empty);
	assert(loaded != NULL && prev != NULL);
	set_magazines(cache, loaded, prev);
	cache->next = pool->caches;
	pool->caches = cache;
	pool->n_caches++;
	pthread_mutex_unlock(&pool->lock);
	*ret_cache = cache;
	return 0;
}

/*
 * Under the lock: a cache's magazine to the depot. What is neither full nor
 * empty is filled up from the partial one, so that there is at most one.
 */
static void give_back(struct mr_objcache *cache, struct mri_magazine *magazine)
{
	struct mr_objpool *pool = cache->pool;
	struct mri_magazine *partial = NULL;
	uint32_t n = mri_magazine_n(magazine);

	if (n > 0 && n < MR_MAGAZINE_PAGES)
		partial = take(cache, &pool->partial);
	if (partial != NULL) {
		uint32_t n_left = mri_magazine_n(partial);

		while (n < MR_MAGAZINE_PAGES && n_left > 0)
			magazine->numbers[n++] = partial->numbers[--n_left];
		mri_magazine_set_n(magazine, n);
		mri_magazine_set_n(partial, n_left);
		put(cache, n_left > 0 ? &pool->partial : &pool->depot.empty,
		    partial);
	}
	if (n == MR_MAGAZINE_PAGES)
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
	give_back(cache, cache->loaded);
	give_back(cache, cache->prev);
	for (link = &pool->caches; *link != cache; link = &(*link)->next)
		;
	*link = cache->next;
	pool->n_caches--;
	mri_objpool_retire(pool, &cache->counters);
	pthread_mutex_unlock(&pool->lock);
	mr_free(pool->ctx, cache);
}
