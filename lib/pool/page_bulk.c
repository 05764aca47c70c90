/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool's calls of <millrace/experimental/page.h>: blocks from its page
 * allocator, in arrays of addresses and in lists. The links of a list are in a
 * table outside the pages, where the kernel uses struct page; even so, each
 * step waits for the previous one.
 */
#include "pool/cache.h"

_Static_assert((int)MRI_PAGE_MAX_ORDER == (int)MR_PAGE_MAX_ORDER,
	       "both layers have the same limit");

/*
 * Take the lock, and return how many blocks may be taken: one if n would go
 * below the watermark, so that a caller that needs many makes progress and
 * leaves the rest to others.
 */
static uint32_t call_begin(struct mr_pool *pool, uint32_t order, uint32_t n)
{
	struct mri_page_alloc *pa = &pool->page_alloc;

	mri_lock_take(&pa->lock);
	if (pa->n_free >= ((uint64_t)n << order) + pa->low_pages ||
	    pa->low_pages == 0)
		return n;
	pa->counters.alloc_low++;
	return 1;
}

static void call_end(struct mr_pool *pool, uint32_t order, uint32_t n_done)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	const uint64_t n_pages = (uint64_t)n_done << order;

	pa->counters.alloc_calls++;
	pa->counters.alloc_pages += n_pages;
	if (order > 0)
		pa->counters.direct_high_order += n_pages;
	mri_lock_give(&pa->lock);
}

/*
 * Nothing was available. True: there is more now. False: there is not, which is
 * counted.
 */
static bool call_again(struct mr_pool *pool, uint32_t order, uint32_t n)
{
	struct mri_page_alloc *pa = &pool->page_alloc;

	const bool is_order = order <= pa->group_shift;

	if (is_order && (mri_pool_reclaim(pool, order) ||
			 mri_pool_grow_if_empty(pool, order)))
		return true;
	mri_lock_take(&pa->lock);
	pa->counters.alloc_failed += n;
	pa->counters.direct_empty += is_order ? (uint64_t)n << order : 0;
	mri_lock_give(&pa->lock);
	return false;
}

/* Put a page at the front of a list. */
static inline void link_page(struct mr_pool *pool, struct mr_page_list *list,
			     uint32_t page)
{
	pool->page_alloc.links[page] = list->first_plus_1;
	list->first_plus_1 = page + 1;
	list->n++;
}

/* The addresses of k pages: those with a bit, from the first one on. */
static inline void put_addrs(const struct mr_pool *pool, uint64_t *addrs,
			     uint32_t first, uint32_t pages, uint32_t k)
{
	const uint64_t begin = mri_page_addr(pool, first);
	const uint32_t shift = pool->page_shift;

	if (pages == (1u << k) - 1) { /* the compiler uses vectors */
		for (uint32_t i = 0; i < k; i++)
			addrs[i] = begin + ((uint64_t)i << shift);
		return;
	}
	for (; pages != 0; pages &= pages - 1)
		*addrs++ = begin + ((uint64_t)__builtin_ctz(pages) << shift);
}

/* Into a list; or, without one, into an array. */
static inline __attribute__((always_inline)) uint32_t
take_blocks(struct mr_pool *pool, uint32_t order, uint64_t *addrs, uint32_t n,
	    struct mr_page_list *list)
{
	uint32_t n_done = 0, first, blocks;

	if (order > pool->page_alloc.group_shift)
		return 0;
	n = call_begin(pool, order, n);
	while (n_done < n) {
		const uint32_t k = mri_page_take(&pool->page_alloc, order,
						 n - n_done, &first, &blocks);

		if (k == 0)
			break;
		n_done += k;
		if (order == 0 && list == NULL) {
			put_addrs(pool, addrs, first, blocks, k);
			addrs += k;
			continue;
		}
		for (; blocks != 0; blocks &= blocks - 1) {
			const uint32_t page =
				first + (uint32_t)__builtin_ctz(blocks);

			if (order > 0)
				mri_block_open_whole(pool, page, order);
			if (list != NULL) {
				link_page(pool, list, page);
				continue;
			}
			*addrs++ = mri_page_addr(pool, page);
		}
	}
	call_end(pool, order, n_done);
	return n_done;
}

/* Out of line, so that a single page does not pay for its registers. */
__attribute__((noinline)) static uint32_t
alloc_many(struct mr_pool *pool, uint32_t order, uint64_t *addrs, uint32_t n,
	   const void *site)
{
	uint32_t n_done;

	if (n == 0)
		return 0;
	do {
		n_done = take_blocks(pool, order, addrs, n, NULL);
	} while (n_done == 0 && call_again(pool, order, n));
	for (uint32_t i = 0; !mri_pool_is_simple(pool) && i < n_done; i++)
		pool->checks->out(pool, mri_page_of(pool, addrs[i]),
				  1u << order, site);
	return n_done;
}

uint32_t mr_page_alloc_bulk(struct mr_pool *pool, uint32_t order,
			    uint64_t *addrs, uint32_t n)
{
	uint32_t page;

	if (n == 1 && order == 0 && mri_pool_is_simple(pool)) {
		page = mri_page_take_one(&pool->page_alloc);
		if (page != UINT32_MAX) {
			*addrs = mri_page_addr(pool, page);
			return 1;
		}
	}
	return alloc_many(pool, order, addrs, n, __builtin_return_address(0));
}

/* Not of this pool, or not the start of a block. */
static bool is_no_block(const struct mr_pool *pool, uint32_t order,
			uint64_t addr)
{
	const uint64_t offset = addr - pool->addr;
	const uint64_t page = offset >> pool->page_shift;

	return page >= mri_pool_population(pool) ||
	       (offset & ((UINT64_C(1) << (pool->page_shift + order)) - 1)) !=
		       0;
}

static void put_block(struct mr_pool *pool, struct mri_page_free_run *run,
		      uint32_t order, uint64_t addr)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	const uint32_t page = mri_page_of(pool, addr);
	bool is_block;

	if (is_no_block(pool, order, addr)) {
		pa->counters.free_invalid++;
		return;
	}
	if (order > 0 || mri_is_block(pool, addr)) {
		if (!mri_block_close_whole(pool, page, order, &is_block)) {
			/* What is not free, but no such block, is nothing. */
			if (is_block)
				pa->counters.direct_shared++;
			else
				mri_page_refuse(pa, run, order, page);
			return;
		}
	} else if (!mri_page_put(pool, addr)) {
		pa->counters.direct_shared++;
		return;
	}
	mri_page_back(pa, run, order, page);
}

/* A page with one owner, not part of a block. */
static inline bool is_simple(const struct mr_pool *pool, uint64_t addr)
{
	const uint64_t page = (addr - pool->addr) >> pool->page_shift;

	if (!mri_pool_is_simple(pool) || is_no_block(pool, 0, addr))
		return false;
	return __atomic_load_n(&pool->owners[page], __ATOMIC_ACQUIRE) == 0;
}

/* Whether the group of an address is that of the previous one. */
static inline bool is_beside(const struct mr_pool *pool,
			     const struct mri_page_free_run *run, uint64_t addr)
{
	return (addr - pool->addr) >> MRI_GROUP_SHIFT == run->group &&
	       run->group != UINT32_MAX;
}

/*
 * Simple pages of the same group as the previous one: the common case in a
 * burst. Returns how many of the first n were.
 */
static inline uint32_t put_beside(const struct mr_pool *pool,
				  struct mri_page_free_run *run,
				  const uint64_t *addrs, uint32_t n)
{
	const uint32_t shift = pool->page_shift;
	const uint32_t group_shift = pool->page_alloc.group_shift;
	const uint32_t first = run->group << group_shift;
	const uint32_t n_pages = mri_min_u32(1u << group_shift,
					     mri_pool_population(pool) - first);
	const uint64_t begin = mri_page_addr(pool, first);
	const uint8_t *owners = pool->owners + first;
	uint32_t free = run->free, i;

	for (i = 0; i < n; i++) {
		const uint64_t offset = addrs[i] - begin;
		const uint64_t page = offset >> shift;
		const uint32_t bit = 1u << (page & 31);

		if (page >= n_pages || offset != page << shift ||
		    (free & bit) != 0 ||
		    __atomic_load_n(&owners[page], __ATOMIC_ACQUIRE) != 0)
			break;
		free |= bit;
	}
	run->free = free;
	run->n_back += i;
	return i;
}

/* True: a page in use has become the caller's. */
static bool check_in(struct mr_pool *pool, uint32_t order, uint64_t addr,
		     const void *site)
{
	struct mri_page_free_run none = { .group = UINT32_MAX };
	struct mri_page_alloc *pa = &pool->page_alloc;
	const uint32_t page = mri_page_of(pool, addr);
	bool is_shared = false, is_block;

	if (order == 0 && !mri_is_block(pool, addr)) {
		const bool is_ours =
			mri_last_put(pool, addr, NULL, site, &is_shared);

		__atomic_fetch_add(&pool->counters.recycle_released_refcnt,
				   is_shared, __ATOMIC_RELAXED);
		return is_ours;
	}
	if (mri_block_close_whole(pool, page, order, &is_block)) {
		pool->checks->in(pool, page, 1u << order, site);
		return true;
	}
	mri_lock_take(&pa->lock);
	if (is_block)
		pa->counters.direct_shared++;
	else
		mri_page_refuse(pa, &none, order, page);
	mri_lock_give(&pa->lock);
	return false;
}

/* One by one, and not under the lock: it may take others, and log. */
static void put_checked(struct mr_pool *pool, uint32_t order, uint64_t addr,
			const void *site)
{
	const uint32_t page = mri_page_of(pool, addr);

	if (is_no_block(pool, order, addr)) {
		__atomic_fetch_add(&pool->counters.free_invalid, 1,
				   __ATOMIC_RELAXED);
		pool->checks->invalid(pool, addr, site);
	} else if (check_in(pool, order, addr, site)) {
		mri_page_free_blocks(&pool->page_alloc, order, &page, 1);
		__atomic_fetch_add(&pool->counters.n_direct_free, 1u << order,
				   __ATOMIC_RELEASE);
	}
}

static void put_end(struct mr_pool *pool, struct mri_page_free_run *run)
{
	struct mri_page_alloc *pa = &pool->page_alloc;

	mri_page_back_end(pa, run);
	pa->counters.free_calls++;
	pa->counters.free_pages += run->n_total;
	mri_lock_give(&pa->lock);
}

__attribute__((noinline)) static void free_many(struct mr_pool *pool,
						uint32_t order,
						const uint64_t *addrs,
						uint32_t n, const void *site)
{
	struct mri_page_free_run run = { .group = UINT32_MAX };

	if (n == 0)
		return;
	if (!mri_pool_is_simple(pool) &&
	    order <= pool->page_alloc.group_shift) {
		for (uint32_t i = 0; i < n; i++)
			put_checked(pool, order, addrs[i], site);
		return;
	}
	mri_lock_take(&pool->page_alloc.lock);
	if (order > pool->page_alloc.group_shift)
		pool->page_alloc.counters.free_invalid += n;
	else
		for (uint32_t i = 0; i < n; i++) {
			if (order == 0 && is_beside(pool, &run, addrs[i]))
				i += put_beside(pool, &run, addrs + i, n - i);
			if (i == n)
				break;
			if (order == 0 && is_simple(pool, addrs[i]))
				mri_page_back(&pool->page_alloc, &run, 0,
					      mri_page_of(pool, addrs[i]));
			else
				put_block(pool, &run, order, addrs[i]);
		}
	put_end(pool, &run);
}

void mr_page_free_bulk(struct mr_pool *pool, uint32_t order,
		       const uint64_t *addrs, uint32_t n)
{
	if (n != 1 || order != 0 || !is_simple(pool, *addrs) ||
	    !mri_page_back_one(&pool->page_alloc, mri_page_of(pool, *addrs)))
		free_many(pool, order, addrs, n, __builtin_return_address(0));
}

/* The first n of a list leave a checked pool. */
static void pass_out(struct mr_pool *pool, const struct mr_page_list *list,
		     uint32_t n, const void *site)
{
	struct mr_page_list rest = *list;
	uint64_t addr;

	while (n-- > 0 && mr_page_list_pop(pool, &rest, &addr))
		pool->checks->out(pool, mri_page_of(pool, addr),
				  1u << list->order, site);
}

uint32_t mr_page_alloc_list(struct mr_pool *pool, uint32_t order, uint32_t n,
			    struct mr_page_list *list)
{
	uint32_t n_done;

	if (n == 0 || (list->n > 0 && list->order != order))
		return 0;
	list->order = order;
	do {
		n_done = take_blocks(pool, order, NULL, n, list);
	} while (n_done == 0 && call_again(pool, order, n));
	if (!mri_pool_is_simple(pool))
		pass_out(pool, list, n_done, __builtin_return_address(0));
	return n_done;
}

bool mr_page_list_pop(struct mr_pool *pool, struct mr_page_list *list,
		      uint64_t *ret_addr)
{
	const uint32_t page = list->first_plus_1 - 1;

	if (list->n == 0)
		return false;
	*ret_addr = mri_page_addr(pool, page);
	list->first_plus_1 = pool->page_alloc.links[page];
	list->n--;
	return true;
}

void mr_page_free_list(struct mr_pool *pool, struct mr_page_list *list)
{
	struct mri_page_free_run run = { .group = UINT32_MAX };
	uint64_t addr;

	while (!mri_pool_is_simple(pool) && mr_page_list_pop(pool, list, &addr))
		put_checked(pool, list->order, addr,
			    __builtin_return_address(0));
	if (list->n == 0)
		return;
	mri_lock_take(&pool->page_alloc.lock);
	while (mr_page_list_pop(pool, list, &addr))
		put_block(pool, &run, list->order, addr);
	put_end(pool, &run);
}
