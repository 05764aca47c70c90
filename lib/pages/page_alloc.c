/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page allocator's groups: one word of bits per 32 KiB.
 *
 *     segment: buckets  0: -> group -> group      largest free block 1 page
 *                       1:                                           2 pages
 *                       2: -> group                                  4 pages
 *                       3: -> group -> group -> ...                  8: whole
 *
 * Freeing a page sets its bit. Nothing is merged: adjacent free pages are a
 * larger block anyway, and a bit that is already set is a double free. A buddy
 * allocator with a list per order would visit up to four lists to free a page.
 * Here a group moves from one list to another at most. The head of a list stays
 * even if its largest block has become too small for the list, until another
 * group is put in front of it or a block is wanted that it no longer has. Pages
 * are taken only from heads, so taking a page and returning it moves no group.
 *
 * Pages come from the lowest segment with free pages, so that high segments
 * drain and can be released. In the segment they come from the group whose
 * largest free block is the smallest one that suffices, so that free groups
 * stay whole.
 */
#include <errno.h>

#include "pages/page_alloc.h"

/* The first pages of the free blocks of 2^order pages in a group's word. */
static inline uint32_t blocks_of(uint32_t free, uint32_t order)
{
	for (uint32_t k = 0; k < order; k++)
		free = mri_page_pairs(free, k);
	return free;
}

/* The order of the largest free block in a group's word. */
static inline uint32_t bucket_of(uint32_t free)
{
	const uint32_t of_1 = free & free >> 1 & 0x5555;
	const uint32_t of_2 = of_1 & of_1 >> 2 & 0x1111;
	const uint32_t of_3 = of_2 & of_2 >> 4 & 0x0101;
	const uint32_t of_4 = of_3 & of_3 >> 8 & 0x0001;

	if (free == 0)
		return MRI_BUCKET_NONE;
	return (of_1 != 0) + (of_2 != 0) + (of_3 != 0) + (of_4 != 0);
}

/* A bit for each page of a block of 2^order pages. */
static inline uint32_t block_mask(uint32_t order)
{
	return (1u << (1u << order)) - 1;
}

__attribute__((noinline)) static void unlink_group(struct mri_page_alloc *pa,
						   uint32_t g)
{
	struct mri_page_group *group = &pa->groups[g];
	struct mri_page_segment *segment = &pa->segments[group->segment];

	if (group->next != 0)
		pa->groups[group->next - 1].prev = group->prev;
	if (group->prev != 0)
		pa->groups[group->prev - 1].next = group->next;
	else
		segment->heads[group->bucket] = group->next;
	if (segment->heads[group->bucket] == 0)
		segment->buckets &= ~(1u << group->bucket);
	group->bucket = MRI_BUCKET_NONE;
}

/*
 * Put a group that is in no list at the head of its list. The old head is moved
 * first, if its largest block has become too small for the list.
 */
__attribute__((noinline)) static void link_group(struct mri_page_alloc *pa,
						 uint32_t g)
{
	struct mri_page_group *group = &pa->groups[g];
	struct mri_page_segment *segment = &pa->segments[group->segment];
	const uint32_t bucket = bucket_of(group->free);
	uint32_t *head = &segment->heads[bucket];

	if (*head != 0 && bucket_of(pa->groups[*head - 1].free) != bucket) {
		const uint32_t low = *head - 1;

		unlink_group(pa, low);
		link_group(pa, low);
	}
	group->bucket = (uint8_t)bucket;
	group->prev = 0;
	group->next = *head;
	if (*head != 0)
		pa->groups[*head - 1].prev = g + 1;
	*head = g + 1;
	segment->buckets |= 1u << bucket;
}

/* Remove the head of a list, which has no free page left. */
static inline void unlink_head(struct mri_page_alloc *pa,
			       struct mri_page_group *head)
{
	struct mri_page_segment *segment = &pa->segments[head->segment];

	segment->heads[head->bucket] = head->next;
	if (head->next != 0)
		pa->groups[head->next - 1].prev = 0;
	else
		segment->buckets &= ~(1u << head->bucket);
	head->bucket = MRI_BUCKET_NONE;
}

/* Set the free pages of a group, n more than before. */
static inline void add_free(struct mri_page_alloc *pa, uint32_t g,
			    uint32_t free, uint32_t n)
{
	struct mri_page_group *group = &pa->groups[g];
	struct mri_page_segment *segment = &pa->segments[group->segment];

	if (segment->n_free == 0)
		pa->with_free |= 1u << group->segment;
	segment->n_free += n;
	__atomic_store_n(&pa->n_free, pa->n_free + n, __ATOMIC_RELAXED);
	group->free = (uint16_t)free;
	if (group->bucket == MRI_BUCKET_NONE) {
		link_group(pa, g);
	} else if (group->bucket != pa->group_shift &&
		   bucket_of(free) > group->bucket) {
		unlink_group(pa, g);
		link_group(pa, g);
	}
}

/* Set the free pages of the head of a list, n fewer than before. */
static inline void sub_free(struct mri_page_alloc *pa, uint32_t g,
			    uint32_t free, uint32_t n)
{
	struct mri_page_group *group = &pa->groups[g];
	struct mri_page_segment *segment = &pa->segments[group->segment];

	segment->n_free -= n;
	__atomic_store_n(&pa->n_free, pa->n_free - n, __ATOMIC_RELAXED);
	if (segment->n_free == 0)
		pa->with_free &= ~(1u << group->segment);
	group->free = (uint16_t)free;
	if (free == 0)
		unlink_head(pa, group);
}

/* The lowest segment in a set that has a block, or MRI_SEGMENT_NONE. */
static inline uint32_t lowest_with(const struct mri_page_alloc *pa,
				   uint32_t segments, uint32_t order)
{
	for (; segments != 0; segments &= segments - 1) {
		const uint32_t s = (uint32_t)__builtin_ctz(segments);

		if (pa->segments[s].buckets >> order != 0)
			return s;
	}
	return MRI_SEGMENT_NONE;
}

static inline uint32_t find_segment(const struct mri_page_alloc *pa,
				    uint32_t order)
{
	const uint32_t s = lowest_with(pa, pa->with_free & pa->near, order);

	if (s != MRI_SEGMENT_NONE)
		return s;
	return lowest_with(pa, pa->with_free & ~pa->near, order);
}

static inline uint32_t take(struct mri_page_alloc *pa, uint32_t order,
			    uint32_t n, uint32_t *ret_page,
			    uint32_t *ret_blocks)
{
	uint32_t g, free, blocks, left, n_taken = 0;

	for (;;) {
		const uint32_t s = find_segment(pa, order);
		const struct mri_page_segment *segment;

		if (s == MRI_SEGMENT_NONE)
			return 0;
		segment = &pa->segments[s];
		g = segment->heads[order + (uint32_t)__builtin_ctz(
						   segment->buckets >> order)] -
		    1;
		free = pa->groups[g].free;
		blocks = blocks_of(free, order);
		if (blocks != 0)
			break;
		/* The head no longer has such a block. */
		unlink_group(pa, g);
		link_group(pa, g);
	}
	left = blocks;
	if (order == 0 && n >= 1u << pa->group_shift &&
	    free == block_mask(pa->group_shift)) { /* a whole group */
		n_taken = 1u << pa->group_shift;
		left = free = 0;
	}
	for (; left != 0 && n_taken < n; left &= left - 1) {
		free &= ~(block_mask(order) << __builtin_ctz(left));
		n_taken++;
	}
	sub_free(pa, g, free, n_taken << order);
	*ret_page = g << pa->group_shift;
	*ret_blocks = blocks & ~left;
	return n_taken;
}

/* For single pages, the most frequent case, the compiler drops much of it. */
uint32_t mri_page_take(struct mri_page_alloc *pa, uint32_t order, uint32_t n,
		       uint32_t *ret_page, uint32_t *ret_blocks)
{
	return order == 0 ? take(pa, 0, n, ret_page, ret_blocks) :
			    take(pa, order, n, ret_page, ret_blocks);
}

uint32_t mri_page_take_one(struct mri_page_alloc *pa)
{
	const struct mri_page_segment *segment;
	uint32_t segments, g, free;

	if (!mri_lock_try(&pa->lock))
		return UINT32_MAX;
	segments = pa->with_free & pa->near;
	if (segments == 0 || pa->n_free <= pa->low_pages) {
		mri_lock_give(&pa->lock);
		return UINT32_MAX;
	}
	segment = &pa->segments[__builtin_ctz(segments)];
	g = segment->heads[__builtin_ctz(segment->buckets)] - 1;
	free = pa->groups[g].free;
	sub_free(pa, g, free & (free - 1), 1);
	pa->counters.alloc_calls++;
	pa->counters.alloc_pages++;
	mri_lock_give(&pa->lock);
	return (g << pa->group_shift) + (uint32_t)__builtin_ctz(free);
}

bool mri_page_back_one(struct mri_page_alloc *pa, uint32_t page)
{
	const uint32_t g = page >> pa->group_shift;
	const uint32_t bit = 1u << (page & ((1u << pa->group_shift) - 1));
	bool is_back;

	if (!mri_lock_try(&pa->lock))
		return false;
	is_back = page < pa->n_pages && (pa->groups[g].free & bit) == 0;
	if (is_back) {
		add_free(pa, g, pa->groups[g].free | bit, 1);
		pa->counters.free_calls++;
		pa->counters.free_pages++;
	}
	mri_lock_give(&pa->lock);
	return is_back;
}

void mri_page_back_end(struct mri_page_alloc *pa, struct mri_page_free_run *run)
{
	if (run->n_back == 0)
		return;
	add_free(pa, run->group, run->free, run->n_back);
	run->n_total += run->n_back;
	run->n_back = 0;
}

void mri_page_back(struct mri_page_alloc *pa, struct mri_page_free_run *run,
		   uint32_t order, uint32_t page)
{
	const uint32_t g = page >> pa->group_shift;
	const uint32_t at = page & ((1u << pa->group_shift) - 1);
	const uint32_t mask = block_mask(order) << at;

	if (page >= pa->n_pages || (page & ((1u << order) - 1)) != 0) {
		pa->counters.free_invalid++;
		return;
	}
	if (g != run->group) {
		mri_page_back_end(pa, run);
		run->group = g;
		run->free = pa->groups[g].free;
	}
	if ((run->free & mask) != 0) {
		pa->counters.free_double +=
			(uint32_t)__builtin_popcount(run->free & mask);
		return;
	}
	run->free |= mask;
	run->n_back += 1u << order;
}

void mri_page_refuse(struct mri_page_alloc *pa,
		     const struct mri_page_free_run *run, uint32_t order,
		     uint32_t page)
{
	const uint32_t g = page >> pa->group_shift;
	const uint32_t at = page & ((1u << pa->group_shift) - 1);
	const uint32_t free =
		(g == run->group ? run->free : pa->groups[g].free) &
		block_mask(order) << at;

	if (page < pa->n_pages && free != 0)
		pa->counters.free_double += (uint32_t)__builtin_popcount(free);
	else
		pa->counters.free_invalid++;
}

uint32_t mri_page_alloc_blocks(struct mri_page_alloc *pa, uint32_t order,
			       uint32_t *pages, uint32_t n)
{
	uint32_t n_done = 0, k = 1, first, blocks;

	if (order > pa->group_shift)
		return 0;
	mri_lock_take(&pa->lock);
	while (n_done < n && k > 0) {
		k = mri_page_take(pa, order, n - n_done, &first, &blocks);
		for (uint32_t i = 0; i < k; i++, blocks &= blocks - 1)
			pages[n_done + i] =
				first + (uint32_t)__builtin_ctz(blocks);
		n_done += k;
	}
	pa->counters.alloc_calls++;
	pa->counters.alloc_pages += (uint64_t)n_done << order;
	pa->counters.alloc_failed += n - n_done;
	pa->counters.inner_alloc += (uint64_t)n_done << order;
	mri_lock_give(&pa->lock);
	return n_done;
}

void mri_page_free_blocks(struct mri_page_alloc *pa, uint32_t order,
			  const uint32_t *pages, uint32_t n)
{
	struct mri_page_free_run run = { .group = UINT32_MAX };

	mri_lock_take(&pa->lock);
	for (uint32_t i = 0; i < n; i++)
		mri_page_back(pa, &run, order, pages[i]);
	mri_page_back_end(pa, &run);
	pa->counters.free_calls++;
	pa->counters.free_pages += run.n_total;
	pa->counters.inner_free += run.n_total;
	mri_lock_give(&pa->lock);
}

uint32_t mri_page_take_bulk(struct mri_page_alloc *pa, uint32_t *pages,
			    uint32_t n)
{
	return mri_page_alloc_blocks(pa, 0, pages, n);
}

void mri_page_back_bulk(struct mri_page_alloc *pa, const uint32_t *pages,
			uint32_t n)
{
	mri_page_free_blocks(pa, 0, pages, n);
}

void mri_page_alloc_append(struct mri_page_alloc *pa, uint32_t end_page,
			   int32_t numa_node, bool is_near)
{
	const uint32_t s = pa->n_segments++;
	const uint32_t first = s == 0 ? 0 : pa->segments[s - 1].end_page;
	const uint32_t n_per_group = 1u << pa->group_shift;

	pa->segments[s] = (struct mri_page_segment){ .first_page = first,
						     .end_page = end_page,
						     .numa_node = numa_node };
	__atomic_store_n(&pa->near,
			 is_near ? pa->near | 1u << s : pa->near & ~(1u << s),
			 __ATOMIC_RELAXED);
	for (uint32_t g = first >> pa->group_shift;
	     g < (end_page + n_per_group - 1) >> pa->group_shift; g++)
		pa->groups[g] =
			(struct mri_page_group){ .bucket = MRI_BUCKET_NONE,
						 .segment = (uint8_t)s };
}

/* From the end, so that the lists begin with the lowest pages. */
void mri_page_alloc_populate(struct mri_page_alloc *pa, uint32_t n_pages)
{
	const uint32_t n_per_group = 1u << pa->group_shift;
	uint32_t end = n_pages;

	while (end > pa->n_pages) {
		const uint32_t g = (end - 1) >> pa->group_shift;
		const uint32_t begin = g << pa->group_shift;
		const uint32_t from = begin > pa->n_pages ? begin : pa->n_pages;
		const uint32_t n = end - from;
		const uint32_t bits = (uint32_t)((1ull << n) - 1)
				      << (from & (n_per_group - 1));

		add_free(pa, g, pa->groups[g].free | bits, n);
		end = from;
	}
	__atomic_store_n(&pa->n_pages, n_pages, __ATOMIC_RELAXED);
}

bool mri_page_claim(struct mri_page_alloc *pa, uint32_t page, uint32_t order)
{
	const uint32_t g = page >> pa->group_shift;
	const uint32_t mask = block_mask(order)
			      << (page & ((1u << pa->group_shift) - 1));
	uint32_t free;

	if (page >= pa->n_pages || (page & ((1u << order) - 1)) != 0)
		return false;
	mri_lock_take(&pa->lock);
	free = pa->groups[g].free;
	if ((free & mask) != mask) {
		mri_lock_give(&pa->lock);
		return false;
	}
	/* To the head of its list, from where pages are taken. */
	unlink_group(pa, g);
	link_group(pa, g);
	sub_free(pa, g, free & ~mask, 1u << order);
	pa->counters.alloc_calls++;
	pa->counters.alloc_pages += 1u << order;
	mri_lock_give(&pa->lock);
	return true;
}

bool mri_page_alloc_remove_last(struct mri_page_alloc *pa)
{
	const uint32_t s = pa->n_segments - 1;
	struct mri_page_segment *segment = &pa->segments[s];
	const uint32_t n_pages = pa->n_pages - segment->first_page;

	if (segment->n_free < n_pages)
		return false;
	__atomic_store_n(&pa->n_free, pa->n_free - n_pages, __ATOMIC_RELAXED);
	pa->with_free &= ~(1u << s);
	pa->n_segments--;
	__atomic_store_n(&pa->n_pages, segment->first_page, __ATOMIC_RELAXED);
	return true;
}

int mri_page_alloc_init(struct mri_page_alloc *pa, uint32_t n_places,
			uint32_t max_pages, uint32_t page_shift)
{
	const uint32_t group_shift = MRI_GROUP_SHIFT - page_shift;
	const size_t n_groups = ((size_t)n_places >> group_shift) + 1;
	const size_t n_used = ((size_t)max_pages >> group_shift) + 1;

	pa->group_shift = group_shift;
	pa->max_pages = max_pages;
	pa->groups = mri_table_alloc(n_groups * sizeof(pa->groups[0]),
				     n_used * sizeof(pa->groups[0]));
	pa->links = mri_table_alloc(n_places * sizeof(pa->links[0]),
				    max_pages * sizeof(pa->links[0]));
	if (pa->groups == NULL || pa->links == NULL) {
		mri_page_alloc_fini(pa);
		return -ENOMEM;
	}
	return 0;
}

void mri_page_alloc_fini(struct mri_page_alloc *pa)
{
	mri_table_free(pa->groups);
	mri_table_free(pa->links);
}
