/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks as lists. The links lie in a table beside the pages, where the kernel
 * has them in struct page, and still each step waits for the one before it.
 */
#include "pool/page_alloc.h"
#include "pool/pool.h"
#include "pool/safety.h"

static uint32_t take_list(struct mr_pool *pool, uint32_t order, uint32_t n,
			  struct mr_page_list *list)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	uint32_t n_done = 0, first, blocks;

	if (order > pa->group_shift)
		return 0;
	n = mri_page_call_begin(pool, order, n);
	while (n_done < n) {
		const uint32_t k =
			mri_page_take(pa, order, n - n_done, &first, &blocks);

		if (k == 0)
			break;
		n_done += k;
		for (; blocks != 0; blocks &= blocks - 1) {
			const uint32_t page =
				first + (uint32_t)__builtin_ctz(blocks);

			if (order > 0)
				mri_block_open_whole(pool, page, order);
			pa->links[page] = list->first_plus_1;
			list->first_plus_1 = page + 1;
		}
	}
	mri_page_call_end(pool, order, n_done);
	list->n += n_done;
	return n_done;
}

/* The first n of a list leave a pool that is checked. */
static void pass_out(struct mr_pool *pool, const struct mr_page_list *list,
		     uint32_t n, const void *site)
{
	struct mr_page_list rest = *list;
	uint64_t addr;

	while (n-- > 0 && mr_page_list_pop(pool, &rest, &addr))
		mri_checked_block_out(pool, mri_page_of(pool, addr),
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
		n_done = take_list(pool, order, n, list);
	} while (n_done == 0 && mri_page_call_again(pool, order, n));
	if (pool->safety != NULL)
		pass_out(pool, list, n_done, __builtin_return_address(0));
	return n_done;
}

bool mr_page_list_pop(struct mr_pool *pool, struct mr_page_list *list,
		      uint64_t *ret_addr)
{
	const uint32_t page = list->first_plus_1 - 1;

	if (list->n == 0)
		return false;
	*ret_addr = pool->addr + ((uint64_t)page << pool->page_shift);
	list->first_plus_1 = pool->page_alloc.links[page];
	list->n--;
	return true;
}

void mr_page_free_list(struct mr_pool *pool, struct mr_page_list *list)
{
	struct mri_page_free_run run = { .group = UINT32_MAX };
	uint64_t addr;

	while (pool->safety != NULL && mr_page_list_pop(pool, list, &addr))
		mri_page_put_checked(pool, list->order, addr,
				     __builtin_return_address(0));
	if (list->n == 0)
		return;
	mri_lock_take(&pool->page_alloc.lock);
	while (mr_page_list_pop(pool, list, &addr))
		mri_page_put_block(pool, &run, list->order, addr);
	mri_page_put_end(pool, &run);
}
