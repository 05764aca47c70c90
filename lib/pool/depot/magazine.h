/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Magazines of numbers, and the depot through which caches exchange them.
 *
 * The user defines what a number means: a page of a pool, an object of an
 * object pool. A magazine is in one place at a time: in a cache, or on the
 * depot's stack of filled or of empty ones. Its memory is not freed while the
 * depot exists, which makes the depot's reads safe.
 */
#ifndef POOL_MAGAZINE_H
#define POOL_MAGAZINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/pool.h>

#include "base/base.h"

/*
 * The depot determines the capacity, at least MR_MAGAZINE_PAGES. numbers[]
 * begins four words in: the inline calls of millrace/pool.h depend on it.
 */
struct mri_magazine {
	_Alignas(MRI_CACHE_LINE) uint32_t next; /* place + 1 of the next one on
						 * a stack; atomic */
	uint32_t n;       /* numbers[0, n) are free; atomic, for statistics */
	uint32_t is_open; /* a cache fills it; atomic, for statistics */
	uint32_t place;   /* in the depot */
	uint32_t numbers[];
};

/*
 * Lock-free stack (R. K. Treiber, 1986) of elements in an array that begin with
 * a uint32_t: the place of the next one, plus one. The head is the place of the
 * top element, plus one, and a tag that changes with every push and pop, so
 * that a head that left and returned is not mistaken for the same.
 *
 * An element may begin with the places of the MRI_STACK_LINKS below it: then a
 * thread that pops as many reads the first one's line only, and can prefetch
 * all others at once.
 */
enum { MRI_STACK_LINKS = 4 };

struct mri_stack {
	uint64_t head; /* tag << 32 | place + 1; atomic */
	char *elements;
	uint32_t element_bytes;
	bool has_links; /* MRI_STACK_LINKS, not one */
};

/* depot.c. n_failed counts lost races; it is the caller's own. */
void mri_stack_init(struct mri_stack *stack, void *elements,
		    uint32_t element_bytes);
void mri_stack_push(struct mri_stack *stack, uint32_t place,
		    uint64_t *n_failed);
/* -1: empty. */
int64_t mri_stack_pop(struct mri_stack *stack, uint64_t *n_failed);
/* Pop the top n, 1 or more, in one CAS, the topmost first; returns how many. */
uint32_t mri_stack_pop_bulk(struct mri_stack *stack, uint32_t *places,
			    uint32_t n, uint64_t *n_failed);
/* How many there are, up to max; approximate while others push and pop. */
uint32_t mri_stack_n(const struct mri_stack *stack, uint32_t max);

/* A plain load, which leaves the line with those who push. */
static inline bool mri_stack_is_empty(const struct mri_stack *stack)
{
	return (uint32_t)__atomic_load_n(&stack->head, __ATOMIC_RELAXED) == 0;
}

static inline bool mri_is_magazine_size(uint32_t n)
{
	return mri_is_power_of_two(n) && n >= MR_MAGAZINE_PAGES &&
	       n <= MR_MAGAZINE_MAX_PAGES;
}

/*
 * mr_magazine_default_pages() for n of anything and max_caches of a config, 0
 * if not given. lib/pool/depot/depot.c
 */
uint32_t mri_magazine_default(uint64_t n, uint32_t max_caches);

struct mri_depot {
	/*
	 * On one line: exchanging a magazine uses both stacks, and fetches it
	 * once.
	 */
	_Alignas(MRI_CACHE_LINE) struct mri_stack filled;
	struct mri_stack empty;
	char *magazines; /* one every magazine_bytes */
	size_t magazine_bytes;
	/* Not written by bursts. */
	_Alignas(MRI_CACHE_LINE) uint32_t n_magazines; /* atomic */
	uint32_t magazine_pages;                       /* capacity of each */
};

_Static_assert(offsetof(struct mri_depot, n_magazines) == MRI_CACHE_LINE,
	       "both stacks are on one line");

/* Create a depot of n_magazines, all empty, with room for max_magazines.
 * -ENOMEM. */
int mri_depot_init(struct mri_depot *depot, uint32_t max_magazines,
		   uint32_t n_magazines, uint32_t magazine_pages);
/* Add empty magazines up to n_magazines. One thread at a time. */
void mri_depot_grow(struct mri_depot *depot, uint32_t n_magazines);
void mri_depot_fini(struct mri_depot *depot);

static inline uint32_t mri_depot_n(const struct mri_depot *depot)
{
	return __atomic_load_n(&depot->n_magazines, __ATOMIC_RELAXED);
}

static inline struct mri_magazine *mri_depot_at(const struct mri_depot *depot,
						uint32_t place)
{
	return (struct mri_magazine *)(void *)(depot->magazines +
					       place * depot->magazine_bytes);
}

/* Take a magazine from one of the depot's stacks; NULL: none. */
static inline struct mri_magazine *mri_depot_take(struct mri_depot *depot,
						  struct mri_stack *stack,
						  uint64_t *n_failed)
{
	const int64_t place = mri_stack_pop(stack, n_failed);

	return place < 0 ? NULL : mri_depot_at(depot, (uint32_t)place);
}

static inline void mri_depot_put(struct mri_stack *stack,
				 const struct mri_magazine *magazine,
				 uint64_t *n_failed)
{
	mri_stack_push(stack, magazine->place, n_failed);
}

/*
 * Another core has filled or emptied it: prefetch its lines all at once. Those
 * of n numbers from the top; and those of all numbers, for writing.
 */
static inline void mri_magazine_prefetch(const struct mri_magazine *magazine,
					 uint32_t n)
{
	for (uint32_t i = 0; i < n; i += MRI_CACHE_LINE / sizeof(uint32_t))
		__builtin_prefetch(&magazine->numbers[n - 1 - i]);
}

static inline void
mri_magazine_prefetch_to_write(const struct mri_magazine *magazine, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += MRI_CACHE_LINE / sizeof(uint32_t))
		mri_prefetch_to_write(&magazine->numbers[i]);
}

/* Atomic for readers of statistics, who read others' magazines. */
static inline uint32_t mri_magazine_n(const struct mri_magazine *magazine)
{
	return __atomic_load_n(&magazine->n, __ATOMIC_RELAXED);
}

static inline void mri_magazine_set_n(struct mri_magazine *magazine, uint32_t n)
{
	__atomic_store_n(&magazine->n, n, __ATOMIC_RELAXED);
}

#endif
