/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool's segments: it reserves addresses for its maximum size at creation,
 * and fills them from the start.
 *
 *     pool->addr
 *     | segment 0 | segment 1 |      reserved        |
 *     0           .           n_pages                max_pages
 *
 * So page numbers are dense, and [0, n_pages) exist. Segments are removed in
 * reverse order. A pool that never grows reserves nothing, and its memory goes
 * where it fits. A pool of the default size grows only for ports and caches;
 * the rest of its reservation goes to a second pool of the region.
 *
 * Locks: grow_lock, then the pool's or the region's, then the allocator's.
 */
#include <errno.h>
#include <string.h>

#include "mem/mem.h"
#include "pool/debug/safety.h"
#include "pool/hand_over.h"

/* A data path that finds the pool empty must not ask the system each time. */
static const uint64_t GROW_AGAIN_NS = UINT64_C(100) * 1000 * 1000;

static const uint64_t MAX_GRANULE_BYTES = UINT64_C(2) << 20;
static const uint64_t MIN_GRANULE_BYTES = UINT64_C(64) << 10;

/*
 * Segments are multiples of it, so that each can begin on a huge page if the
 * previous one could.
 */
static uint64_t granule_of(const struct mr_pool *pool, uint64_t n_bytes)
{
	const uint64_t os_page = mri_os_page_bytes(
		mri_segment_best(n_bytes, pool->region->os_pages));

	if (os_page > MAX_GRANULE_BYTES)
		return MAX_GRANULE_BYTES;
	return os_page < MIN_GRANULE_BYTES ? MIN_GRANULE_BYTES : os_page;
}

/* Add memory after the pool's pages; they are not free yet. */
static int add_memory(struct mr_pool *pool, uint64_t addr, uint64_t n_bytes,
		      struct mr_reason *reterr_reason)
{
	const struct mri_segment_wish wish = {
		.addr = addr,
		.n_bytes = n_bytes,
		.numa_node_plus_1 = pool->numa_node_plus_1,
		.reserved_addr = pool->addr,
	};
	struct mri_page_alloc *pa = &pool->page_alloc;
	struct mr_segment_info info;
	uint64_t end_page;
	bool is_near;
	int err;

	err = mri_region_add(pool->region, &wish, &info, reterr_reason);
	if (err < 0)
		return err;
	if (addr == MRI_ADDR_ANY)
		pool->addr = info.addr;
	end_page = (info.addr + info.n_bytes - pool->addr) >> pool->page_shift;
	if (end_page > pool->n_pages)
		end_page = pool->n_pages;
	/* An unknown node counts as near. */
	is_near = pool->numa_node_plus_1 == 0 || info.numa_node < 0 ||
		  (uint32_t)info.numa_node + 1 == pool->numa_node_plus_1;
	mri_lock_take(&pa->lock);
	mri_page_alloc_append(pa, (uint32_t)end_page, info.numa_node, is_near);
	mri_lock_give(&pa->lock);
	return 0;
}

static void populate(struct mri_page_alloc *pa, uint32_t n_pages)
{
	mri_lock_take(&pa->lock);
	mri_page_alloc_populate(pa, n_pages);
	mri_lock_give(&pa->lock);
}

/*
 * Reserve the largest range of the pool. A pool of the default size makes do
 * with a smaller one.
 */
static int reserve_range(struct mr_pool *pool, uint64_t n_bytes, uint64_t align,
			 struct mr_reason *reterr_reason)
{
	uint64_t max_bytes;
	int err;

	for (;;) {
		max_bytes = mri_round_up((uint64_t)pool->n_pages
						 << pool->page_shift,
					 pool->granule_bytes);
		err = mri_region_reserve(pool->region, max_bytes, align,
					 pool->is_elastic, &pool->addr,
					 reterr_reason);
		if (err == 0 || !pool->is_elastic || max_bytes / 2 < n_bytes)
			break;
		pool->n_pages /= 2;
	}
	pool->is_reserved = err == 0;
	return err;
}

int mri_pool_segments_init(struct mr_pool *pool, uint32_t n_pages,
			   struct mr_reason *reterr_reason)
{
	const uint64_t n_bytes = (uint64_t)n_pages << pool->page_shift;
	const uint64_t step_bytes = (uint64_t)pool->segment_pages
				    << pool->page_shift;
	uint64_t addr = MRI_ADDR_ANY, align;
	int err = 0;

	pool->granule_bytes = 1;
	if (n_pages < pool->n_pages) {
		align = mri_os_page_bytes(
			mri_segment_best(n_bytes, pool->region->os_pages));
		pool->granule_bytes = granule_of(
			pool, n_bytes > step_bytes ? n_bytes : step_bytes);
		if (align < pool->granule_bytes)
			align = pool->granule_bytes;
		err = reserve_range(pool, n_bytes, align, reterr_reason);
		addr = pool->addr;
	}
	if (err == 0)
		err = add_memory(pool, addr,
				 mri_round_up(n_bytes, pool->granule_bytes),
				 reterr_reason);
	if (err == 0)
		populate(&pool->page_alloc, n_pages);
	else if (pool->is_reserved)
		mri_region_release(pool->region, pool->addr);
	return err;
}

void mri_pool_segments_take(struct mr_pool *pool,
			    const struct mri_pool_image *image)
{
	struct mri_page_alloc *pa = &pool->page_alloc;

	pool->addr = image->addr;
	pool->granule_bytes = image->granule_bytes;
	pool->is_reserved = image->is_reserved != 0;
	for (uint32_t i = 0; i < image->n_segments; i++)
		mri_page_alloc_append(pa, image->segments[i].end_page,
				      image->segments[i].numa_node,
				      image->segments[i].is_near != 0);
	populate(pa, image->n_pages);
}

int mri_pool_segments_fini(struct mr_pool *pool,
			   struct mr_reason *reterr_reason)
{
	const struct mri_page_alloc *pa = &pool->page_alloc;
	int err;

	/*
	 * The lowest first: a device with a later one registered has this one,
	 * too, so it fails here, while nothing is changed.
	 */
	for (uint32_t i = 0; i < pa->n_segments; i++) {
		err = mri_region_remove_segment(
			pool->region,
			pool->addr + ((uint64_t)pa->segments[i].first_page
				      << pool->page_shift),
			reterr_reason);
		if (err < 0)
			return err;
	}
	if (pool->is_reserved)
		mri_region_release(pool->region, pool->addr);
	return 0;
}

/* Tell all caches how many pages there are. Under grow_lock. */
static void tell_caches(struct mr_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	for (struct mr_cache *cache = pool->caches; cache != NULL;
	     cache = cache->next)
		mri_cache_set_own_pages(cache);
	pthread_mutex_unlock(&pool->lock);
}

/* Pages to grow by: enough to reach max_pages with the remaining segments. */
static uint64_t grow_step(const struct mr_pool *pool, uint32_t n_pages)
{
	const struct mri_page_alloc *pa = &pool->page_alloc;
	const uint32_t n_left = pa->max_pages - pa->n_pages;
	const uint32_t n_places = MRI_PAGE_SEGMENTS - pa->n_segments;
	uint64_t step = n_pages != 0 ? n_pages : pool->segment_pages;

	if (n_places > 0 && step < (n_left + n_places - 1) / n_places)
		step = (n_left + n_places - 1) / n_places;
	return step < n_left ? step : n_left;
}

/* Under grow_lock, which keeps what is read here stable. */
static int grow_pool(struct mr_pool *pool, uint32_t n_pages,
		     struct mr_reason *reterr_reason)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	const uint32_t n_backed = pa->segments[pa->n_segments - 1].end_page;
	const uint64_t step = grow_step(pool, n_pages);
	int err;

	err = mri_pool_check_frozen(pool, reterr_reason);
	if (err < 0)
		return err;
	if (step == 0)
		return mr_fail(reterr_reason, -ENOSPC,
			       "%s has all of its %u pages; raise "
			       "mr_pool_config.max_pages",
			       pool->name, pa->max_pages);
	/* The last segment may have been rounded up by that much. */
	if (pa->n_pages + step > n_backed) {
		if (pa->n_segments == MRI_PAGE_SEGMENTS)
			return mr_fail(reterr_reason, -ENOSPC,
				       "%s has all of its %d segments",
				       pool->name, MRI_PAGE_SEGMENTS);
		err = add_memory(
			pool,
			pool->addr + ((uint64_t)n_backed << pool->page_shift),
			mri_round_up((pa->n_pages + step - n_backed)
					     << pool->page_shift,
				     pool->granule_bytes),
			reterr_reason);
		if (err < 0)
			return err;
	}
	mri_pool_forget_kept(pool);
	populate(pa, pa->segments[pa->n_segments - 1].end_page);
	mri_lock_take(&pa->lock);
	pa->counters.n_grown++;
	mri_lock_give(&pa->lock);
	tell_caches(pool);
	return 0;
}

int mr_pool_grow(struct mr_pool *pool, uint32_t n_pages,
		 struct mr_reason *reterr_reason)
{
	int err;

	pthread_mutex_lock(&pool->grow_lock);
	err = grow_pool(pool, n_pages, reterr_reason);
	pthread_mutex_unlock(&pool->grow_lock);
	return err;
}

int mri_pool_grow_to(struct mr_pool *pool, uint64_t n_pages,
		     struct mr_reason *reterr_reason)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	const uint32_t max_before = pa->max_pages;
	uint32_t max_pages = max_before;
	int err;

	if (n_pages > pool->n_pages)
		return mr_fail(reterr_reason, -ENOSPC,
			       "%s can grow to %u pages at most", pool->name,
			       pool->n_pages);
	if (max_pages < n_pages)
		max_pages = (uint32_t)n_pages;
	__atomic_store_n(&pa->max_pages, max_pages, __ATOMIC_RELAXED);
	err = grow_pool(pool, (uint32_t)n_pages - pa->n_pages, reterr_reason);
	/* Growth is in whole granules, so it may have passed the limit. */
	if (err < 0)
		max_pages = max_before;
	else if (max_pages < pa->n_pages)
		max_pages = pa->n_pages;
	__atomic_store_n(&pa->max_pages, max_pages, __ATOMIC_RELAXED);
	if (err == 0)
		mri_depot_grow(&pool->depot,
			       mri_pool_n_magazines(pool, pa->n_pages));
	return err;
}

/* Take one, and put it back: the lists alone do not show it. Under the lock. */
static bool has_block(struct mri_page_alloc *pa, uint32_t order)
{
	struct mri_page_free_run run = { .group = UINT32_MAX };
	uint32_t first, blocks;

	if (mri_page_take(pa, order, 1, &first, &blocks) == 0)
		return false;
	mri_page_back(pa, &run, order, first + (uint32_t)__builtin_ctz(blocks));
	mri_page_back_end(pa, &run);
	return true;
}

bool mri_pool_grow_if_empty(struct mr_pool *pool, uint32_t order)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	struct mr_reason why;
	bool has_pages;

	if (mri_page_alloc_n_pages(pa) == mri_page_alloc_max_pages(pa))
		return false;
	pthread_mutex_lock(&pool->grow_lock);
	mri_lock_take(&pa->lock);
	has_pages = has_block(pa, order); /* another thread was faster */
	mri_lock_give(&pa->lock);
	if (!has_pages && pa->n_pages < pa->max_pages &&
	    mr_ctx_now_ns(pool->ctx) >= pool->grow_again_ns) {
		has_pages = grow_pool(pool, 0, &why) == 0;
		if (!has_pages) {
			pool->grow_again_ns =
				mr_ctx_now_ns(pool->ctx) + GROW_AGAIN_NS;
			mr_log(pool->ctx, MR_LOG_WARNING,
			       "%s is empty and cannot grow: %s", pool->name,
			       why.text);
		}
	}
	pthread_mutex_unlock(&pool->grow_lock);
	return has_pages;
}

bool mri_pool_is_far(const struct mr_pool *pool, uint32_t page)
{
	const struct mri_page_alloc *pa = &pool->page_alloc;

	/* A segment with a page in a magazine stays. */
	return page < mri_page_alloc_n_pages(pa) &&
	       !(__atomic_load_n(&pa->near, __ATOMIC_RELAXED) >>
			 pa->groups[page >> pa->group_shift].segment &
		 1);
}

/* What ports rely on must stay. */
static uint64_t n_at_least(struct mr_pool *pool, uint64_t n_keep)
{
	pthread_mutex_lock(&pool->lock);
	if (pool->n_ports > 0 && n_keep < pool->n_committed)
		n_keep = pool->n_committed;
	pthread_mutex_unlock(&pool->lock);
	return n_keep;
}

/* Remove the last segment. 1: done; 0: in use; or an error. */
static int shrink_by_one(struct mr_pool *pool, uint64_t n_keep,
			 struct mr_reason *reterr_reason)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	const struct mri_page_segment last = pa->segments[pa->n_segments - 1];
	const uint32_t n_pages = pa->n_pages;
	const bool is_near = pa->near >> (pa->n_segments - 1) & 1;
	bool is_removed;
	int err;

	if (pool->is_frozen || pa->n_segments == 1 || last.first_page < n_keep)
		return 0;
	mri_pool_forget_kept(pool);
	mri_lock_take(&pa->lock);
	is_removed = mri_page_alloc_remove_last(pa);
	mri_lock_give(&pa->lock);
	if (!is_removed)
		return 0;
	err = mri_region_remove_segment(
		pool->region,
		pool->addr + ((uint64_t)last.first_page << pool->page_shift),
		reterr_reason);
	mri_lock_take(&pa->lock);
	if (err < 0) {
		mri_page_alloc_append(pa, last.end_page, last.numa_node,
				      is_near);
		mri_page_alloc_populate(pa, n_pages);
	} else {
		pa->counters.n_shrunk++;
		mri_safety_forget(pool, last.first_page, n_pages);
	}
	mri_lock_give(&pa->lock);
	return err < 0 ? err : 1;
}

int mr_pool_shrink(struct mr_pool *pool, uint64_t n_keep, uint64_t *ret_n_pages,
		   struct mr_reason *reterr_reason)
{
	uint64_t n_before;
	int err;

	pthread_mutex_lock(&pool->grow_lock);
	n_before = pool->page_alloc.n_pages;
	n_keep = n_at_least(pool, n_keep);
	do {
		err = shrink_by_one(pool, n_keep, reterr_reason);
	} while (err > 0);
	tell_caches(pool);
	if (ret_n_pages != NULL)
		*ret_n_pages = n_before - pool->page_alloc.n_pages;
	pthread_mutex_unlock(&pool->grow_lock);
	return err;
}

/* Count blocks of a group's free pages, each once, at its largest order. */
static void count_blocks(uint32_t free, uint64_t *n_blocks)
{
	for (uint32_t k = 0; k < MR_PAGE_MAX_ORDER; k++) {
		const uint32_t larger = mri_page_pairs(free, k);

		n_blocks[k] += (uint32_t)__builtin_popcount(free) -
			       2 * (uint32_t)__builtin_popcount(larger);
		free = larger;
	}
	n_blocks[MR_PAGE_MAX_ORDER] += free;
}

int mr_page_stats(const struct mr_pool *pool, struct mr_page_stats *stats)
{
	struct mri_page_alloc *pa = (struct mri_page_alloc *)&pool->page_alloc;
	struct mr_page_stats s = { .max_order = pa->group_shift,
				   .max_pages = pa->max_pages,
				   .low_pages = pa->low_pages };
	const struct mri_page_counters *c = &pa->counters;
	const uint32_t n_per_group = 1u << pa->group_shift;

	mri_lock_take(&pa->lock);
	s.n_pages = pa->n_pages;
	s.n_free = pa->n_free;
	s.n_segments = pa->n_segments;
	s.alloc_calls = c->alloc_calls;
	s.alloc_pages = c->alloc_pages;
	s.alloc_failed = c->alloc_failed;
	s.alloc_low = c->alloc_low;
	s.free_calls = c->free_calls;
	s.free_pages = c->free_pages;
	s.free_double = c->free_double;
	s.n_grown = c->n_grown;
	s.n_shrunk = c->n_shrunk;
	mri_lock_give(&pa->lock);
	/* Group by group, so that nobody waits for the whole scan. */
	for (uint32_t page = 0; page < s.n_pages; page += n_per_group) {
		mri_lock_take(&pa->lock);
		if (page < pa->n_pages)
			count_blocks(pa->groups[page >> pa->group_shift].free,
				     s.n_free_blocks);
		mri_lock_give(&pa->lock);
	}
	return mri_fill_sized(stats, &s, sizeof(s));
}
