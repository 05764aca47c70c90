/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MR_SAFETY_GUARD: an invalid access faults at once.
 *
 *     slot: | page             | guard            |   twice a page
 *             out: accessible    never accessible
 *             free: not
 *
 * Each page in use costs the kernel two mappings, of which a process may have
 * about 65,000 (vm.max_map_count), so such pools are small.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "mem/mem.h"
#include "pool/debug/safety.h"

enum { MAX_PAGES = 16384, OS_PAGE_BYTES = 4096 };

int mri_guard_check(const struct mr_pool_config *c,
		    struct mr_reason *reterr_reason)
{
	if (c->safety != MR_SAFETY_GUARD)
		return 0;
	if (c->page_bytes < OS_PAGE_BYTES || c->chunk_bytes != c->page_bytes)
		return mr_fail(reterr_reason, -EINVAL,
			       "pages of %u and chunks of %u bytes cannot be "
			       "guarded: they must be equal and at least %d",
			       c->page_bytes, c->chunk_bytes, OS_PAGE_BYTES);
	if (c->max_pages > MAX_PAGES)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u pages cannot be guarded, since each needs "
			       "its own mappings: at most %d",
			       c->max_pages, MAX_PAGES);
	if (c->region != NULL && c->region->os_pages != MR_OS_PAGES_4K)
		return mr_fail(reterr_reason, -EINVAL,
			       "guards need OS pages of 4 KiB: set "
			       "mr_region_config.os_pages to MR_OS_PAGES_4K");
	return 0;
}

int mri_guard_join(struct mr_pool *pool, struct mr_reason *reterr_reason)
{
	struct mr_region *region = pool->region;
	int err = 0;

	if (!mri_is_guarded(pool))
		return 0;
	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_PINS && err == 0; i++)
		if (region->pins[i].n_bytes != 0)
			err = mr_fail(reterr_reason, -EBUSY,
				      "%s registered the region, so it cannot "
				      "contain a guarded pool",
				      region->pins[i].holder);
	region->n_guarded += err == 0;
	pthread_mutex_unlock(&region->lock);
	return err;
}

void mri_guard_leave(struct mr_pool *pool)
{
	if (!mri_is_guarded(pool))
		return;
	pthread_mutex_lock(&pool->region->lock);
	pool->region->n_guarded--;
	pthread_mutex_unlock(&pool->region->lock);
}

int mri_guard_segment(struct mr_pool *pool, uint64_t addr, uint64_t n_bytes)
{
	if (mri_is_guarded(pool) &&
	    mprotect(pool->region->base + addr, n_bytes, PROT_NONE) < 0)
		return -errno;
	return 0;
}

void mri_guard_page(struct mr_pool *pool, uint32_t page, bool is_out)
{
	if (mprotect(pool->region->base + mri_page_addr(pool, page),
		     pool->page_bytes,
		     is_out ? PROT_READ | PROT_WRITE : PROT_NONE) < 0)
		mr_log(pool->ctx, MR_LOG_ERROR,
		       "%s: cannot make page %u %s: %s (vm.max_map_count?)",
		       pool->name, page,
		       is_out ? "accessible: its user will fault" :
				"inaccessible: use after free goes undetected",
		       mr_strerror(errno));
}
