/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand over a pool. Caches and the depot are not handed over: all pages that no
 * device has are free in the new process, so no page is lost.
 *
 * A posted reference is one word: the address, and in the lowest byte 0 for a
 * page, or 1 + the order of a block.
 */
#include <errno.h>
#include <sys/socket.h>

#include <millrace/experimental/driver_hand_over.h>

#include "pool/debug/safety.h"
#include "pool/hand_over.h"

enum {
	POOL_LAYOUT = 1,   /* of struct mri_pool_image */
	POSTED_LAYOUT = 1, /* of posted references */
};

int mri_pool_put(const struct mr_pool *pool, struct mr_parcel *parcel,
		 struct mr_reason *reterr_reason)
{
	const struct mri_page_alloc *pa = &pool->page_alloc;
	struct mri_pool_image image = {
		.addr = pool->addr,
		.granule_bytes = pool->granule_bytes,
		.page_bytes = pool->page_bytes,
		.headroom_bytes = pool->headroom_bytes,
		.tailroom_bytes = pool->tailroom_bytes,
		.magazine_pages = mri_magazine_pages(pool),
		.n_places = pool->n_pages,
		.max_pages = mri_page_alloc_max_pages(pa),
		.n_pages = mri_pool_population(pool),
		.n_first = pool->trim.n_first,
		.segment_pages = pool->segment_pages,
		.low_pages = pa->low_pages,
		.numa_node_plus_1 = pool->numa_node_plus_1,
		.is_elastic = pool->is_elastic,
		.is_reserved = pool->is_reserved,
		.has_default_magazines = pool->has_default_magazines,
		.n_segments = pa->n_segments,
	};

	if (!pool->owns_region || mri_region_n_tenants(pool->region) != 1)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "the region of %s has other pools, which cannot "
			       "be handed over",
			       pool->name);
	for (uint32_t i = 0; i < pa->n_segments; i++) {
		image.segments[i].end_page = pa->segments[i].end_page;
		image.segments[i].is_near = pa->near >> i & 1;
		image.segments[i].numa_node = pa->segments[i].numa_node;
	}
	mri_region_put(pool->region, parcel);
	mr_parcel_put(parcel, "pool", POOL_LAYOUT, &image, sizeof(image));
	return 0;
}

/* Whether the image is one that mri_pool_put() can have made. */
static bool is_image(const struct mri_pool_image *image)
{
	uint32_t end = 0;

	if (!mri_is_power_of_two(image->page_bytes) || image->n_segments == 0 ||
	    image->n_segments > MRI_PAGE_SEGMENTS ||
	    image->addr % image->page_bytes != 0 || image->n_pages == 0 ||
	    image->n_pages > image->n_places ||
	    image->max_pages > image->n_places ||
	    image->n_places > MRI_POOL_MAX_PAGES ||
	    image->n_first > image->n_places)
		return false;
	for (uint32_t i = 0; i < image->n_segments; i++) {
		if (image->segments[i].end_page <= end ||
		    image->segments[i].end_page > image->n_places)
			return false;
		end = image->segments[i].end_page;
	}
	return image->n_pages <= end;
}

static int refuse_size(const char *what, uint32_t wanted, uint32_t found,
		       struct mr_reason *reterr_reason)
{
	return mr_fail(reterr_reason, -EINVAL,
		       "%s is %u, and that of the running data plane %u: this "
		       "needs a restart",
		       what, wanted, found);
}

static int check_sizes(const struct mr_pool_config *c,
		       const struct mri_pool_image *image,
		       struct mr_reason *reterr_reason)
{
	if (c->page_bytes != 0 && c->page_bytes != image->page_bytes)
		return refuse_size("page_bytes", c->page_bytes,
				   image->page_bytes, reterr_reason);
	if (c->headroom_bytes != 0 &&
	    c->headroom_bytes != image->headroom_bytes)
		return refuse_size("headroom_bytes", c->headroom_bytes,
				   image->headroom_bytes, reterr_reason);
	if (c->tailroom_bytes != image->tailroom_bytes)
		return refuse_size("tailroom_bytes", c->tailroom_bytes,
				   image->tailroom_bytes, reterr_reason);
	return 0;
}

int mri_pool_take(struct mr_ctx *ctx, const struct mr_pool_config *wanted,
		  struct mr_parcel *parcel, struct mr_pool **ret_pool,
		  struct mr_reason *reterr_reason)
{
	struct mri_pool_image image;
	struct mr_pool_config config = *wanted;
	struct mr_region *region;
	uint64_t begin, end;
	int err = mr_parcel_get(parcel, "pool", POOL_LAYOUT, &image,
				sizeof(image), reterr_reason);

	if (err == 0 && !is_image(&image))
		err = mr_fail(reterr_reason, -EPROTO,
			      "the pool of the state is invalid");
	if (err == 0)
		err = check_sizes(&config, &image, reterr_reason);
	if (err == 0)
		err = mri_region_take(ctx, config.name, parcel, &region,
				      reterr_reason);
	if (err < 0)
		return err;
	/* Check that each page lies in a segment. The pool does not check. */
	for (uint64_t page = 0; page < image.n_pages; page++)
		if (!mr_region_find(region,
				    image.addr + page * image.page_bytes,
				    image.page_bytes, &begin, &end)) {
			(void)mr_region_destroy(region, NULL);
			return mr_fail(reterr_reason, -EPROTO,
				       "a page of the state has no memory");
		}
	config.page_bytes = image.page_bytes;
	config.headroom_bytes = image.headroom_bytes;
	config.magazine_pages = image.magazine_pages;
	config.n_pages = image.n_first;
	config.max_pages = image.max_pages;
	config.is_elastic = image.is_elastic != 0;
	config.segment_pages = image.segment_pages;
	config.low_pages = image.low_pages;
	config.numa_node_plus_1 = image.numa_node_plus_1;
	err = mri_pool_create(ctx, &config, &image, region, ret_pool,
			      reterr_reason);
	if (err == 0)
		(*ret_pool)->is_away = true;
	return err;
}

void mri_pool_freeze(struct mr_pool *pool, bool is_frozen)
{
	pthread_mutex_lock(&pool->grow_lock);
	pool->is_frozen = is_frozen;
	pthread_mutex_unlock(&pool->grow_lock);
}

int mri_pool_check_frozen(const struct mr_pool *pool,
			  struct mr_reason *reterr_reason)
{
	return !pool->is_frozen ?
		       0 :
		       mr_fail(reterr_reason, -EBUSY,
			       "%s is being handed over to another process",
			       pool->name);
}

void mri_pool_forget_kept(struct mr_pool *pool)
{
	char byte;

	if (pool == NULL || pool->keep_fds[1] <= 0) /* a port of mr-brokerd */
		return;
	__atomic_store_n(&pool->is_kept, false, __ATOMIC_SEQ_CST);
	/* Without room for fds, the kernel closes them. */
	while (recv(pool->keep_fds[1], &byte, 1, MSG_DONTWAIT) > 0)
		;
}

/* ---- posted references ---- */

void mr_pool_put_posted(const struct mr_pool *pool, struct mr_parcel *parcel,
			const char *name, const uint64_t *addrs, uint32_t n)
{
	uint64_t *posted = mr_alloc(pool->ctx, 0, (n + 1) * sizeof(posted[0]));

	for (uint32_t i = 0; posted != NULL && i < n; i++) {
		const uint32_t kind =
			mri_is_block(pool, addrs[i]) ?
				1u + mri_block_of(pool, addrs[i])->order :
				0;

		posted[i] = addrs[i] << 8 | kind;
	}
	/* Without memory there is no entry, and sending fails. */
	mr_parcel_put(parcel, posted != NULL ? name : "", POSTED_LAYOUT, posted,
		      posted != NULL ? n * sizeof(posted[0]) : 0);
	mr_free(pool->ctx, posted);
}

/* Another reference to a page that was claimed. */
static bool claim_again(struct mr_pool *pool, uint32_t page)
{
	uint8_t *owners = &pool->owners[page];

	if (*owners >= MRI_OWNER_MAX)
		return false;
	mri_pool_use_owners(pool);
	__atomic_store_n(owners, (uint8_t)(*owners + 1), __ATOMIC_RELAXED);
	return true;
}

static bool claim_page(struct mr_pool *pool, uint32_t page)
{
	if (!mri_page_claim(&pool->page_alloc, page, 0))
		return claim_again(pool, page);
	pool->checks->out(pool, page, 1, NULL);
	return true;
}

static bool claim_block(struct mr_pool *pool, uint64_t addr, uint32_t order)
{
	struct mri_block *block;
	uint32_t page;

	if (order > pool->blocks.max_order)
		return false;
	page = mri_page_of(pool, addr) & ~((1u << order) - 1);
	if (mri_page_claim(&pool->page_alloc, page, order)) {
		mri_block_claim(pool, page, order);
		pool->checks->out(pool, page, 1u << order, NULL);
		return true;
	}
	if (!mri_is_block(pool, addr))
		return false;
	block = mri_block_of(pool, addr);
	return block->page == page && block->order == order &&
	       mri_block_ref(block);
}

bool mr_pool_claim(struct mr_pool *pool, uint64_t addr)
{
	return mri_pool_has(pool, addr) &&
	       claim_page(pool, mri_page_of(pool, addr));
}

int mr_pool_claim_posted(struct mr_pool *pool, const struct mr_parcel *parcel,
			 const char *name, uint64_t *ret_addrs, uint32_t n,
			 struct mr_reason *reterr_reason)
{
	const uint64_t *posted;
	const void *bytes;
	size_t n_bytes;
	int err = mr_parcel_find(parcel, name, POSTED_LAYOUT, &bytes, &n_bytes,
				 reterr_reason);

	if (err < 0)
		return err;
	if (ret_addrs != NULL && n_bytes != n * sizeof(posted[0]))
		return mr_fail(reterr_reason, -EPROTO,
			       "the state has %zu references instead of %u",
			       n_bytes / sizeof(posted[0]), n);
	posted = bytes;
	for (size_t i = 0; i < n_bytes / sizeof(posted[0]); i++) {
		const uint64_t addr = posted[i] >> 8;
		const uint32_t kind = posted[i] & 0xff;

		if (!mri_pool_has(pool, addr) ||
		    !(kind == 0 ? claim_page(pool, mri_page_of(pool, addr)) :
				  claim_block(pool, addr, kind - 1)))
			return mr_fail(reterr_reason, -EPROTO,
				       "the state has a reference to 0x%llx "
				       "that does not fit the others",
				       (unsigned long long)addr);
		if (ret_addrs != NULL)
			ret_addrs[i] = addr;
	}
	return 0;
}
