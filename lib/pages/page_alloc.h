/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the page allocator: the pages that no cache or magazine has.
 *
 * page_alloc.c knows groups and segments, and lock.c the lock around them. That
 * they are a pool's is known to lib/pool/page_bulk.c and page_segment.c.
 *
 * Pages are numbered through all segments; those in segments are [0, n_pages).
 * A group is 32 KiB of them, and a word with a bit for each that is free. It
 * stands in a list of its segment with the others that have the same largest
 * free block, so whoever wants a block finds the smallest that will do.
 */
#ifndef PAGES_PAGE_ALLOC_H
#define PAGES_PAGE_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "pages/lock.h"

/* MR_PAGE_MAX_ORDER, of an interface above this layer. */
enum { MRI_PAGE_MAX_ORDER = 4 };

enum {
	MRI_GROUP_SHIFT = 15, /* 32 KiB */
	MRI_ORDERS = MRI_PAGE_MAX_ORDER + 1,
	MRI_PAGE_SEGMENTS = 32,
	MRI_BUCKET_NONE = 255,
	MRI_SEGMENT_NONE = 255,
};

/* Five of them on a line, so that a free of any page touches one or two. */
struct mri_page_group {
	uint32_t next, prev; /* in its list, plus 1; 0: none */
	uint16_t free;       /* bit i: page i of the group */
	uint8_t bucket;      /* order of its largest free block; of the head of
			      * a list, the largest that it had */
	uint8_t segment;
};

struct mri_page_segment {
	uint32_t heads[MRI_ORDERS]; /* groups, plus 1; 0: none */
	uint32_t buckets;           /* bit k: heads[k] is one */
	uint32_t n_free;
	uint32_t first_page, end_page; /* that its memory holds */
	int32_t numa_node;             /* -1: nobody knows */
};

/*
 * Of the first pages of aligned free blocks of 2^k pages, as bits of a group's
 * word: those of blocks of twice the size.
 */
static inline uint32_t mri_page_pairs(uint32_t blocks, uint32_t k)
{
	static const uint32_t aligned[MRI_PAGE_MAX_ORDER] = { 0x5555, 0x1111,
							      0x0101, 0x0001 };

	return blocks & blocks >> (1u << k) & aligned[k];
}

/* Written under the lock, so plain. */
struct mri_page_counters {
	uint64_t alloc_calls, alloc_pages, alloc_failed, alloc_low;
	uint64_t free_calls, free_pages, free_double, free_invalid;
	uint64_t n_grown, n_shrunk;
	uint64_t inner_alloc, inner_free; /* of those, what others count too */
	/* Of the public calls, which no cache counts. */
	uint64_t direct_high_order, direct_empty, direct_shared;
};

struct mri_page_alloc {
	struct mri_lock lock;
	uint32_t group_shift; /* pages of a group; also the largest order */
	uint32_t n_free;      /* atomic, written under the lock */
	uint32_t with_free;   /* bit s: segment s has free pages */
	uint32_t near;        /* bit s: segment s is where the pool wants it;
			       * atomic, written under the lock */
	uint32_t n_pages;     /* population; atomic, written under the lock */
	uint32_t max_pages;   /* limit of growth; atomic */
	uint32_t low_pages;
	uint32_t n_segments;
	struct mri_page_group *groups;
	uint32_t *links; /* per page: the next one of a list, plus 1 */
	struct mri_page_counters counters;
	struct mri_page_segment segments[MRI_PAGE_SEGMENTS];
};

/*
 * Create tables for n_places pages, without any page. max_pages is the limit of
 * growth, which may be raised. -ENOMEM.
 */
int mri_page_alloc_init(struct mri_page_alloc *pa, uint32_t n_places,
			uint32_t max_pages, uint32_t page_shift);
void mri_page_alloc_fini(struct mri_page_alloc *pa);

/*
 * Append a segment whose memory ends at page end_page; and let the population
 * go up to n_pages, all of them free. The lock is the caller's matter.
 */
void mri_page_alloc_append(struct mri_page_alloc *pa, uint32_t end_page,
			   int32_t numa_node, bool is_near);
void mri_page_alloc_populate(struct mri_page_alloc *pa, uint32_t n_pages);

/*
 * Take the last segment out, if all its pages are free. False: they are not.
 */
bool mri_page_alloc_remove_last(struct mri_page_alloc *pa);

/* Up to n pages into an array; how many. One lock round per call. */
uint32_t mri_page_take_bulk(struct mri_page_alloc *pa, uint32_t *pages,
			    uint32_t n);
void mri_page_back_bulk(struct mri_page_alloc *pa, const uint32_t *pages,
			uint32_t n);

/*
 * The same for blocks, by the numbers of their first pages. They know nothing
 * of owners, and count nothing as in flight.
 */
uint32_t mri_page_alloc_blocks(struct mri_page_alloc *pa, uint32_t order,
			       uint32_t *pages, uint32_t n);
void mri_page_free_blocks(struct mri_page_alloc *pa, uint32_t order,
			  const uint32_t *pages, uint32_t n);

/*
 * One page, with its lock, counted as a public call: what the calls on arrays
 * do for one, without their loops. They leave to those what is not simple: a
 * lock that is taken; no page that is near, or none above the watermark
 * (UINT32_MAX); a page that is free, or is none (false).
 */
uint32_t mri_page_take_one(struct mri_page_alloc *pa);
bool mri_page_back_one(struct mri_page_alloc *pa, uint32_t page);

/* Pages that are in segments. Thread: any. */
static inline uint32_t mri_page_alloc_n_pages(const struct mri_page_alloc *pa)
{
	return __atomic_load_n(&pa->n_pages, __ATOMIC_RELAXED);
}

/* The limit to which it may grow by itself. Thread: any. */
static inline uint32_t mri_page_alloc_max_pages(const struct mri_page_alloc *pa)
{
	return __atomic_load_n(&pa->max_pages, __ATOMIC_RELAXED);
}

/* Pages that are free in it. Thread: any. */
static inline uint32_t mri_page_alloc_n_free(const struct mri_page_alloc *pa)
{
	return __atomic_load_n(&pa->n_free, __ATOMIC_RELAXED);
}

/*
 * For the public calls, under the lock. One block at a time, and for order 0
 * as many as one group has.
 */
struct mri_page_free_run {
	uint32_t group;  /* UINT32_MAX: none yet */
	uint32_t free;   /* its word, as it will be */
	uint32_t n_back; /* pages, of this group */
	uint32_t n_total;
};

uint32_t mri_page_take(struct mri_page_alloc *pa, uint32_t order, uint32_t n,
		       uint32_t *ret_page, uint32_t *ret_blocks);
void mri_page_back(struct mri_page_alloc *pa, struct mri_page_free_run *run,
		   uint32_t order, uint32_t page);
/* What is no block: count why. */
void mri_page_refuse(struct mri_page_alloc *pa,
		     const struct mri_page_free_run *run, uint32_t order,
		     uint32_t page);
void mri_page_back_end(struct mri_page_alloc *pa,
		       struct mri_page_free_run *run);

#endif
