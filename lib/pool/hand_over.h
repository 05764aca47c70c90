/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool in the process that takes over. It has the same pages. All are free
 * except those that ports claim because a device has them.
 */
#ifndef POOL_HAND_OVER_H
#define POOL_HAND_OVER_H

#include "base/parcel.h"
#include "pool/pool.h"

/* What the configuration of a pool does not say. */
struct mri_pool_image {
	uint64_t addr, granule_bytes;
	uint32_t page_bytes, headroom_bytes, tailroom_bytes, magazine_pages;
	uint32_t n_places;  /* of its tables */
	uint32_t max_pages; /* it may grow to */
	uint32_t n_pages;   /* it has */
	uint32_t n_first;   /* it had at first */
	uint32_t segment_pages, low_pages, numa_node_plus_1;
	uint32_t is_elastic, is_reserved, has_default_magazines;
	uint32_t n_segments, reserved;
	struct {
		uint32_t end_page, is_near;
		int32_t numa_node;
		uint32_t reserved;
	} segments[MRI_PAGE_SEGMENTS];
};

/* Add the pool and its region. -ENOTSUP: the region has other pools. */
int mri_pool_put(const struct mr_pool *pool, struct mr_parcel *parcel,
		 struct mr_reason *reterr_reason);
/*
 * Create the pool from a parcel, with is_away set. config has the sizes that the
 * program wants now. -EINVAL: they differ; -EPROTO, -ENOMEM.
 */
int mri_pool_take(struct mr_ctx *ctx, const struct mr_pool_config *config,
		  struct mr_parcel *parcel, struct mr_pool **ret_pool,
		  struct mr_reason *reterr_reason);
/* Whether no page is allocated. */
static inline bool mri_pool_is_untouched(const struct mr_pool *pool)
{
	return mri_page_alloc_n_free(&pool->page_alloc) ==
	       mri_pool_population(pool);
}

/* While a pool is frozen, no segment is added or removed, and no port is
 * opened. */
void mri_pool_freeze(struct mr_pool *pool, bool is_frozen);
/* -EBUSY: it is frozen. */
int mri_pool_check_frozen(const struct mr_pool *pool,
			  struct mr_reason *reterr_reason);

/*
 * Take back what mr_dataplane_keep() left for the next process, before it
 * changes: close the copies of fds, which hold devices and memory. Any thread.
 */
void mri_pool_forget_kept(struct mr_pool *pool);

/* pool.c: a pool of a region with an image, which it owns, also on failure. */
int mri_pool_create(struct mr_ctx *ctx, const struct mr_pool_config *config,
		    const struct mri_pool_image *image,
		    struct mr_region *region, struct mr_pool **ret_pool,
		    struct mr_reason *reterr_reason);
/* segments.c: the segments of an image, all pages free. */
void mri_pool_segments_take(struct mr_pool *pool,
			    const struct mri_pool_image *image);
/* block.c: pages that are the caller's become a block with one reference. */
void mri_block_claim(struct mr_pool *pool, uint32_t page, uint32_t order);

#endif
