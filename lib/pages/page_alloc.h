/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the page allocator, which has the pages that are in no cache and
 * no magazine.
 *
 * page_alloc.c manages groups and segments, under the lock of lock.c. Neither
 * depends on the pool: lib/pool/page_bulk.c and segments.c connect them.
 *
 * Pages are numbered across all segments, from 0 to n_pages - 1. A group is 32
 * KiB of them, and a word with a bit for each free page. A segment has a list
 * of groups for each size of their largest free block, so a search for a block
 * finds the smallest one that suffices.
 */
#ifndef PAGES_PAGE_ALLOC_H
#define PAGES_PAGE_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "pages/lock.h"

/* MR_PAGE_MAX_ORDER, which is defined in a layer above. */
enum { MRI_PAGE_MAX_ORDER = 4 };

enum {
	MRI_GROUP_SHIFT = 15, /* 32 KiB */
	MRI_ORDERS = MRI_PAGE_MAX_ORDER + 1,
	MRI_PAGE_SEGMENTS = 32,
	MRI_BUCKET_NONE = 255,
	MRI_SEGMENT_NONE = 255,
};

/* Five fit into a cache line, so a free of any page touches one or two. */
struct mri_page_group {
	uint32_t next, prev; /* groups of the list, plus 1; 0: none */
	uint16_t free;       /* bit i: page i of the group */
	uint8_t bucket;      /* order of its largest free block; the head of a
			      * list may have a smaller one by now */
	uint8_t segment;
};

struct mri_page_segment {
	uint32_t heads[MRI_ORDERS]; /* groups, plus 1; 0: none */
	uint32_t buckets;           /* bit k: heads[k] is not 0 */
	uint32_t n_free;
	uint32_t first_page, end_page; /* that fit into its memory */
	int32_t numa_node;             /* -1: unknown */
};

/*
 * Given a bit for the first page of each free block of 2^k pages in a group,
 * return the bits of those that begin an aligned free block of twice the size.
 */
static inline uint32_t mri_page_pairs(uint32_t blocks, uint32_t k)
{
	static const uint32_t aligned[MRI_PAGE_MAX_ORDER] = { 0x5555, 0x1111,
							      0x0101, 0x0001 };

	return blocks & blocks >> (1u << k) & aligned[k];
}

/* Written under the lock, so not atomic. */
struct mri_page_counters {
	uint64_t alloc_calls, alloc_pages, alloc_failed, alloc_low;
	uint64_t free_calls, free_pages, free_double, free_invalid;
	uint64_t n_grown, n_shrunk;
	uint64_t inner_alloc, inner_free; /* of those, counted elsewhere */
	/* Of public calls, which no cache counts. */
	uint64_t direct_high_order, direct_empty, direct_shared;
};

struct mri_page_alloc {
	struct mri_lock lock;
	uint32_t group_shift; /* pages of a group; also the largest order */
	uint32_t n_free;      /* atomic, written under the lock */
	uint32_t with_free;   /* bit s: segment s has free pages */
	uint32_t near;        /* bit s: segment s is on a preferred node;
			       * atomic, written under the lock */
	uint32_t n_pages;     /* population; atomic, written under the lock */
	uint32_t max_pages;   /* limit of growth; atomic */
	uint32_t low_pages;
	uint32_t n_segments;
	struct mri_page_group *groups;
	uint32_t *links; /* per page: the next page of a list, plus 1 */
	struct mri_page_counters counters;
	struct mri_page_segment segments[MRI_PAGE_SEGMENTS];
};

/*
 * Create the tables for n_places pages, but no pages. max_pages is the initial
 * limit of growth. -ENOMEM.
 */
int mri_page_alloc_init(struct mri_page_alloc *pa, uint32_t n_places,
			uint32_t max_pages, uint32_t page_shift);
void mri_page_alloc_fini(struct mri_page_alloc *pa);

/*
 * Append a segment whose memory ends at page end_page; then raise the
 * population to n_pages, with the new pages free. The caller holds the lock, if
 * others use the allocator.
 */
void mri_page_alloc_append(struct mri_page_alloc *pa, uint32_t end_page,
			   int32_t numa_node, bool is_near);
void mri_page_alloc_populate(struct mri_page_alloc *pa, uint32_t n_pages);

/* Take this block. False: it is none, or not all of it is free. */
bool mri_page_claim(struct mri_page_alloc *pa, uint32_t page, uint32_t order);

/* Remove the last segment. False: not all of its pages are free. */
bool mri_page_alloc_remove_last(struct mri_page_alloc *pa);

/* Take up to n pages; returns how many. Takes the lock once per call. */
uint32_t mri_page_take_bulk(struct mri_page_alloc *pa, uint32_t *pages,
			    uint32_t n);
void mri_page_back_bulk(struct mri_page_alloc *pa, const uint32_t *pages,
			uint32_t n);

/*
 * The same for blocks, by the numbers of their first pages. Owners are not
 * checked, and nothing is counted as in flight.
 */
uint32_t mri_page_alloc_blocks(struct mri_page_alloc *pa, uint32_t order,
			       uint32_t *pages, uint32_t n);
void mri_page_free_blocks(struct mri_page_alloc *pa, uint32_t order,
			  const uint32_t *pages, uint32_t n);

/*
 * Take or return one page, counted as a public call: a fast path without the
 * loops of the calls on arrays. If it fails, call those instead. Taking returns
 * UINT32_MAX if the lock is held, or if no near page is free above the
 * watermark. Returning is false if the lock is held, or if the page is free
 * already or not of this allocator.
 */
uint32_t mri_page_take_one(struct mri_page_alloc *pa);
bool mri_page_back_one(struct mri_page_alloc *pa, uint32_t page);

/* The population. Thread: any. */
static inline uint32_t mri_page_alloc_n_pages(const struct mri_page_alloc *pa)
{
	return __atomic_load_n(&pa->n_pages, __ATOMIC_RELAXED);
}

/* The limit of automatic growth. Thread: any. */
static inline uint32_t mri_page_alloc_max_pages(const struct mri_page_alloc *pa)
{
	return __atomic_load_n(&pa->max_pages, __ATOMIC_RELAXED);
}

/* The number of free pages. Thread: any. */
static inline uint32_t mri_page_alloc_n_free(const struct mri_page_alloc *pa)
{
	return __atomic_load_n(&pa->n_free, __ATOMIC_RELAXED);
}

/*
 * For the public calls, under the lock. mri_page_take() takes one block or, for
 * order 0, up to n pages of one group. Frees to the same group are collected in
 * a run, which mri_page_back_end() applies.
 */
struct mri_page_free_run {
	uint32_t group;  /* UINT32_MAX: none yet */
	uint32_t free;   /* its word after the run */
	uint32_t n_back; /* pages of this group so far */
	uint32_t n_total;
};

uint32_t mri_page_take(struct mri_page_alloc *pa, uint32_t order, uint32_t n,
		       uint32_t *ret_page, uint32_t *ret_blocks);
void mri_page_back(struct mri_page_alloc *pa, struct mri_page_free_run *run,
		   uint32_t order, uint32_t page);
/* Count an address that is no allocated block, by what it is. */
void mri_page_refuse(struct mri_page_alloc *pa,
		     const struct mri_page_free_run *run, uint32_t order,
		     uint32_t page);
void mri_page_back_end(struct mri_page_alloc *pa,
		       struct mri_page_free_run *run);

#endif
