/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page allocator: a pool's pages that are in no magazine.
 *
 * Cold by design: a cache comes here when the depot is empty, then takes a
 * magazine at a time, so one lock round pays for 64 pages.
 */
#include <errno.h>
#include <string.h>

#include "pool/pool.h"

int mri_page_alloc_init(struct mri_page_alloc *pa, const struct mr_ctx *ctx,
			uint32_t n_pages)
{
	pa->free = mr_alloc(ctx, 0, n_pages * sizeof(pa->free[0]));
	if (pa->free == NULL)
		return -ENOMEM;
	/* Upside down, so that a fresh pool hands pages out in order. */
	for (uint32_t i = 0; i < n_pages; i++)
		pa->free[i] = n_pages - 1 - i;
	pa->n_free = n_pages;
	pthread_mutex_init(&pa->lock, NULL);
	return 0;
}

void mri_page_alloc_fini(struct mri_page_alloc *pa, const struct mr_ctx *ctx)
{
	pthread_mutex_destroy(&pa->lock);
	mr_free(ctx, pa->free);
}

uint32_t mri_page_alloc_bulk(struct mri_page_alloc *pa, uint32_t *pages,
			     uint32_t n)
{
	pthread_mutex_lock(&pa->lock);
	n = mri_min_u32(n, pa->n_free);
	pa->n_free -= n;
	memcpy(pages, pa->free + pa->n_free, n * sizeof(pages[0]));
	pthread_mutex_unlock(&pa->lock);
	return n;
}

void mri_page_free_bulk(struct mri_page_alloc *pa, const uint32_t *pages,
			uint32_t n)
{
	pthread_mutex_lock(&pa->lock);
	memcpy(pa->free + pa->n_free, pages, n * sizeof(pages[0]));
	pa->n_free += n;
	pthread_mutex_unlock(&pa->lock);
}
