/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way home, for pools with MR_RETURN_HOME.
 *
 *     cache that frees: open magazine --> inbox of the home --> its next refill
 *
 * home[] says which cache took a page. It is written when a cache fetches pages
 * from the depot, the page allocator or somebody else's inbox; a page that goes
 * back and forth between two caches keeps its home, and nothing is written.
 *
 * An inbox whose cache is gone is emptied into the depot. A push that began
 * before may come after that; then the magazine waits for the next cache with
 * this id, or for one that finds nothing elsewhere and looks into all of them.
 */
#include <errno.h>
#include <string.h>

#include "pool/cache.h"

int mri_inboxes_init(struct mr_pool *pool)
{
	const size_t home_bytes = pool->n_pages * sizeof(pool->home[0]);

	pool->home = mr_alloc(pool->ctx, 0, home_bytes);
	pool->inboxes = mr_alloc(pool->ctx, MRI_CACHE_LINE,
				 pool->max_caches * sizeof(pool->inboxes[0]));
	if (pool->home == NULL || pool->inboxes == NULL)
		return -ENOMEM;
	memset(pool->home, 0xff, home_bytes); /* MRI_NO_HOME */
	for (uint32_t id = 0; id < pool->max_caches; id++)
		mri_stack_init(&pool->inboxes[id].stack, pool->depot.magazines,
			       pool->depot.magazine_bytes);
	return 0;
}

void mri_inbox_open(struct mr_pool *pool, uint32_t id)
{
	__atomic_store_n(&pool->inboxes[id].is_alive, 1, __ATOMIC_RELAXED);
}

bool mri_inbox_push(struct mr_pool *pool, uint32_t id,
		    const struct mri_magazine *magazine, uint64_t *n_failed)
{
	struct mri_inbox *inbox = &pool->inboxes[id];

	if (__atomic_load_n(&inbox->is_alive, __ATOMIC_RELAXED) == 0)
		return false;
	mri_depot_put(&inbox->stack, magazine, n_failed);
	return true;
}

struct mri_magazine *mri_inbox_take(struct mr_pool *pool, uint32_t id,
				    uint64_t *n_failed)
{
	return mri_depot_take(&pool->depot, &pool->inboxes[id].stack, n_failed);
}

struct mri_magazine *mri_inbox_steal(struct mr_pool *pool, uint64_t *n_failed)
{
	struct mri_magazine *magazine = NULL;

	for (uint32_t id = 0; id < pool->max_caches && magazine == NULL; id++)
		if (!mri_stack_is_empty(&pool->inboxes[id].stack))
			magazine = mri_inbox_take(pool, id, n_failed);
	return magazine;
}

void mri_inbox_close(struct mr_pool *pool, uint32_t id)
{
	struct mri_pool_counters *counters = &pool->counters;
	struct mri_magazine *magazine;
	uint64_t n_failed = 0;

	__atomic_store_n(&pool->inboxes[id].is_alive, 0, __ATOMIC_RELAXED);
	while ((magazine = mri_inbox_take(pool, id, &n_failed)) != NULL) {
		const uint32_t n = mri_magazine_n(magazine);

		mri_depot_put(&pool->depot.filled, magazine, &n_failed);
		__atomic_fetch_add(&counters->n_from_inbox, n,
				   __ATOMIC_RELAXED);
		__atomic_fetch_add(&counters->n_to_depot, n, __ATOMIC_RELAXED);
		__atomic_fetch_add(&counters->n_direct_free, n,
				   __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&counters->depot_cas_failed, n_failed,
			   __ATOMIC_RELAXED);
}

void mri_inbox_claim(struct mr_cache *cache)
{
	uint16_t *home = cache->pool->home;
	const uint32_t n = mri_pair_n_loaded(&cache->pair);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t page = cache->pair.loaded->numbers[i];

		/* Read first: a line that many read is written when need be. */
		if (__atomic_load_n(&home[page], __ATOMIC_RELAXED) != cache->id)
			__atomic_store_n(&home[page], (uint16_t)cache->id,
					 __ATOMIC_RELAXED);
	}
}
