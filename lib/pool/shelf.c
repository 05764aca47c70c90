/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shelves: how many pages a cache keeps follows from what it does.
 *
 * A cache that allocates and frees more at a time than its two magazines hold
 * sends magazines to the depot and fetches them back: a CAS on a line that all
 * cores write, and, once other caches do the same, pages that were last used on
 * another core. Bonwick and Adams (2001) let the size of magazines grow with
 * the contention for the depot. A shelf has the same effect, while magazines of
 * one size go round between all caches: full ones stay with the cache, and
 * leave in the order in which they came, the last one first.
 *
 * It grows where it helps, that is, after short runs of trips to the depot in
 * one direction followed by short runs in the other. A cache that only
 * allocates, or only frees, never gets one. It is given back when the pool runs
 * dry, when the shrinker asks, and with the cache.
 */
#include "pool/cache.h"

/* Short runs before a shelf grows: a few may be an accident. */
enum { N_SHORT = 8, N_SHORT_MAX = 1 << 20 };

void mri_shelf_init(struct mri_shelf *shelf)
{
	*shelf = (struct mri_shelf){ .n_wait = N_SHORT };
}

static void set_n_filled(struct mri_shelf *shelf, uint32_t n)
{
	__atomic_store_n(&shelf->n_filled, n, __ATOMIC_RELAXED);
}

bool mri_shelf_fetch(struct mr_cache *cache)
{
	struct mri_shelf *shelf = &cache->shelf;
	const uint32_t i = shelf->n_filled - 1;

	if (shelf->n_filled == 0)
		return false;
	shelf->magazines[i] =
		mri_pair_load_filled(&cache->pair, shelf->magazines[i]);
	set_n_filled(shelf, i);
	return true;
}

bool mri_shelf_send(struct mr_cache *cache)
{
	struct mri_shelf *shelf = &cache->shelf;
	uint32_t i;

	mri_shelf_tick(cache);
	i = shelf->n_filled;
	if (i == shelf->n)
		return false;
	shelf->magazines[i] =
		mri_pair_load_empty(&cache->pair, shelf->magazines[i]);
	set_n_filled(shelf, i + 1);
	return true;
}

/* Magazines that the shelf may get: as many as the cache has, for twice that.
 */
static uint32_t n_allowed(const struct mr_cache *cache)
{
	const struct mr_pool *pool = cache->pool;
	const uint32_t pages = cache->magazine_pages;
	const uint32_t n = cache->shelf.n;
	const uint32_t max = 2 * MR_MAGAZINE_MAX_PAGES / pages - 2;
	const uint64_t n_pages = mri_pool_population(pool);
	const uint64_t n_free = mri_distance(
		__atomic_load_n(&pool->n_committed, __ATOMIC_RELAXED), n_pages);
	const uint64_t n_share = n_pages / MRI_SHELVES_SHARE;
	const uint64_t n_left = mri_distance(
		(uint64_t)pages *
			__atomic_load_n(&pool->n_shelved, __ATOMIC_RELAXED),
		n_free < n_share ? n_free : n_share);

	return mri_min_u32(mri_min_u32(n + 2, max - n),
			   (uint32_t)(n_left / pages));
}

/*
 * Two caches that grow at once may exceed what is allowed by what one of them
 * gets. Where nothing is to be had, it asks less and less often.
 */
static void grow(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	struct mri_shelf *shelf = &cache->shelf;
	const uint32_t n = shelf->n + n_allowed(cache);
	uint32_t i;

	for (i = shelf->n; i < n; i++) {
		shelf->magazines[i] =
			mri_depot_take(&pool->depot, &pool->depot.empty,
				       &cache->counters.depot_cas_failed);
		if (shelf->magazines[i] == NULL)
			break;
	}
	if (i == shelf->n && shelf->n_wait < N_SHORT_MAX)
		shelf->n_wait *= 2;
	__atomic_fetch_add(&pool->n_shelved, i - shelf->n, __ATOMIC_RELAXED);
	__atomic_store_n(&shelf->n, i, __ATOMIC_RELAXED);
}

void mri_shelf_note(struct mr_cache *cache, bool is_sent)
{
	struct mri_shelf *shelf = &cache->shelf;

	if (shelf->is_sending == is_sent) {
		shelf->n_run++;
		return;
	}
	shelf->n_short = shelf->n_run <= MRI_SHELF_MAX ? shelf->n_short + 1 : 0;
	shelf->n_run = 1;
	shelf->is_sending = is_sent;
	if (shelf->n_short >= shelf->n_wait) {
		shelf->n_short = 0;
		grow(cache);
	}
}

void mri_shelf_tick(struct mr_cache *cache)
{
	const uint32_t n_recalls =
		__atomic_load_n(&cache->pool->n_recalls, __ATOMIC_RELAXED);

	if (n_recalls == cache->shelf.n_recalls)
		return;
	cache->shelf.n_recalls = n_recalls;
	mri_shelf_close(cache);
}

void mri_shelf_close(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	struct mri_shelf *shelf = &cache->shelf;
	struct mri_pool_counters *counters = &cache->counters;
	const uint32_t n = shelf->n;

	if (n == 0)
		return;
	while (shelf->n_filled > 0) {
		const uint32_t i = shelf->n_filled - 1;

		mr_counter_add(&counters->n_to_depot, cache->magazine_pages);
		mr_counter_add(&cache->n_fetched,
			       -(uint64_t)cache->magazine_pages);
		set_n_filled(shelf, i);
		mri_depot_put(&pool->depot.filled, shelf->magazines[i],
			      &counters->depot_cas_failed);
		shelf->magazines[i] = NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		if (shelf->magazines[i] != NULL)
			mri_depot_put(&pool->depot.empty, shelf->magazines[i],
				      &counters->depot_cas_failed);
	__atomic_store_n(&shelf->n, 0, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&pool->n_shelved, n, __ATOMIC_RELAXED);
	shelf->n_wait = N_SHORT;
}
