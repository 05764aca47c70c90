/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two magazines of a cache, of pages or of objects:
 *
 *     alloc <--+                         +--> free
 *              |  loaded   prev          |
 *              +--[      ]-[      ]------+
 *                    |        |   one CAS per magazine
 *                  depot: filled, empty
 *
 * Two magazines (J. Bonwick and J. Adams, 2001) limit the trips to the depot to
 * one per magazine's worth for any sequence of allocs and frees: after fetching
 * or sending one, there are as many numbers, and room for as many, at hand.
 */
#ifndef POOL_PAIR_H
#define POOL_PAIR_H

#include "pool/depot/magazine.h"

struct mri_pair {
	/*
	 * Atomic: numbers that left so far << 10 | numbers in loaded. In one
	 * word, so that an alloc writes both with one store, and a reader of
	 * statistics sees a consistent pair.
	 */
	uint64_t top;
	struct mri_magazine *loaded; /* its own count is out of date */
	struct mri_magazine *prev;   /* atomic, for statistics */
};

static inline uint32_t mri_top_n(uint64_t top)
{
	return (uint32_t)top & MR_TOP_MASK;
}

static inline uint32_t mri_pair_n_loaded(const struct mri_pair *pair)
{
	return mri_top_n(__atomic_load_n(&pair->top, __ATOMIC_RELAXED));
}

static inline void mri_pair_set_n_loaded(struct mri_pair *pair, uint32_t n)
{
	__atomic_store_n(&pair->top, (pair->top & ~(uint64_t)MR_TOP_MASK) | n,
			 __ATOMIC_RELAXED);
}

/* Take n numbers from the top of the loaded magazine, which has enough. */
static inline const uint32_t *mri_pair_pop(struct mri_pair *pair, uint64_t top,
					   uint32_t n)
{
	__atomic_store_n(&pair->top, top + ((uint64_t)n << MR_TOP_BITS) - n,
			 __ATOMIC_RELAXED);
	return pair->loaded->numbers + mri_top_n(top) - n;
}

/* Add n numbers that are already stored in the loaded magazine. */
static inline void mri_pair_push(struct mri_pair *pair, uint64_t top,
				 uint32_t n)
{
	__atomic_store_n(&pair->top, top + n, __ATOMIC_RELAXED);
}

/* Unload the loaded magazine; another must be loaded at once. */
static inline struct mri_magazine *mri_pair_unload(struct mri_pair *pair)
{
	mri_magazine_set_n(pair->loaded, mri_pair_n_loaded(pair));
	return pair->loaded;
}

static inline void mri_pair_load(struct mri_pair *pair,
				 struct mri_magazine *magazine)
{
	pair->loaded = magazine;
	mri_pair_set_n_loaded(pair, mri_magazine_n(magazine));
}

static inline void mri_pair_set_prev(struct mri_pair *pair,
				     struct mri_magazine *magazine)
{
	__atomic_store_n(&pair->prev, magazine, __ATOMIC_RELAXED);
}

static inline void mri_pair_begin(struct mri_pair *pair,
				  struct mri_magazine *loaded,
				  struct mri_magazine *prev)
{
	mri_pair_load(pair, loaded);
	mri_pair_set_prev(pair, prev);
}

/* The numbers in both magazines, and how many have left by the same moment. */
static inline uint32_t mri_pair_n(const struct mri_pair *pair,
				  uint64_t *ret_n_left)
{
	const uint64_t top = __atomic_load_n(&pair->top, __ATOMIC_RELAXED);
	const struct mri_magazine *prev =
		__atomic_load_n(&pair->prev, __ATOMIC_RELAXED);

	*ret_n_left = top >> MR_TOP_BITS;
	return mri_top_n(top) + mri_magazine_n(prev);
}

/* Add the counters of a struct that has only counters. */
static inline void mri_counters_add(void *to, const void *from, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] +=
			mr_counter_get((const uint64_t *)from + i);
}

/*
 * Add the allocated and the freed numbers to the sums. Frees are not counted,
 * but follow from n_fetched: numbers fetched from outside minus those sent
 * there. Returns how many numbers are in both magazines.
 */
static inline uint32_t mri_pair_sums(const struct mri_pair *pair,
				     uint64_t n_fetched, uint64_t *n_alloc,
				     uint64_t *n_free)
{
	uint64_t n_left;
	const uint32_t n_here = mri_pair_n(pair, &n_left);

	*n_alloc += n_left;
	*n_free += n_left + n_here - n_fetched;
	return n_here;
}

static inline void mri_pair_swap(struct mri_pair *pair)
{
	mri_pair_begin(pair, pair->prev, mri_pair_unload(pair));
}

/* Both are empty: exchange the loaded one for a filled one of the depot. */
static inline void mri_pair_fetch(struct mri_pair *pair,
				  struct mri_depot *depot,
				  struct mri_magazine *filled,
				  uint64_t *n_failed)
{
	const struct mri_magazine *emptied = mri_pair_unload(pair);

	mri_magazine_prefetch(filled, mri_magazine_n(filled));
	mri_pair_load(pair, filled);
	mri_depot_put(&depot->empty, emptied, n_failed);
}

/*
 * Both are full: exchange one of them for an empty one of the depot, namely the
 * one filled longer ago, since the warmer one stays.
 */
static inline void mri_pair_send(struct mri_pair *pair, struct mri_depot *depot,
				 struct mri_magazine *empty, uint64_t *n_failed)
{
	const struct mri_magazine *filled = pair->prev;

	mri_magazine_prefetch_to_write(empty, depot->magazine_pages);
	mri_pair_begin(pair, empty, mri_pair_unload(pair));
	mri_depot_put(&depot->filled, filled, n_failed);
}

/* Where a new loaded magazine came from: nowhere, the cache, the depot. */
enum mri_exchange { MRI_EXCHANGE_NONE, MRI_EXCHANGE_SWAP, MRI_EXCHANGE_DEPOT };

/* The loaded magazine is empty: load one that is not. */
static inline enum mri_exchange mri_pair_refill(struct mri_pair *pair,
						struct mri_depot *depot,
						uint64_t *n_failed)
{
	struct mri_magazine *filled;

	if (mri_magazine_n(pair->prev) > 0) {
		mri_pair_swap(pair);
		return MRI_EXCHANGE_SWAP;
	}
	filled = mri_depot_take(depot, &depot->filled, n_failed);
	if (filled == NULL)
		return MRI_EXCHANGE_NONE;
	mri_pair_fetch(pair, depot, filled, n_failed);
	return MRI_EXCHANGE_DEPOT;
}

/* The loaded magazine is full: load one that is not. */
static inline enum mri_exchange mri_pair_make_room(struct mri_pair *pair,
						   struct mri_depot *depot,
						   uint64_t *n_failed)
{
	struct mri_magazine *empty;

	if (mri_magazine_n(pair->prev) < depot->magazine_pages) {
		mri_pair_swap(pair);
		return MRI_EXCHANGE_SWAP;
	}
	empty = mri_depot_take(depot, &depot->empty, n_failed);
	if (empty == NULL)
		return MRI_EXCHANGE_NONE;
	mri_pair_send(pair, depot, empty, n_failed);
	return MRI_EXCHANGE_DEPOT;
}

/*
 * Take n numbers, from one loaded magazine after another, until refill() finds
 * none: copy() takes n from the loaded one, as 64-bit words. Returns how many.
 */
static inline __attribute__((always_inline)) uint32_t
mri_pair_alloc(struct mri_pair *pair, void *cache, void *out, uint32_t n,
	       uint32_t (*copy)(void *cache, void *out, uint32_t n),
	       bool (*refill)(void *cache), uint64_t *n_missing)
{
	uint32_t n_done = 0;

	for (;;) {
		const uint32_t k =
			mri_min_u32(n - n_done, mri_pair_n_loaded(pair));

		n_done += copy(cache, (uint64_t *)out + n_done, k);
		if (n_done == n)
			return n;
		if (!refill(cache)) {
			mr_counter_add(n_missing, n - n_done);
			return n_done;
		}
	}
}

#endif
