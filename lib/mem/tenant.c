/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which tenant owns which addresses of a region.
 *
 * Tenants join and leave while bursts look them up. The tenant that owns an
 * address stays, because something in its range is in use. For any other slot,
 * a reader may see a mix of the old and the new tenant; then end was 0 between
 * its first and its last load of end. A tenant that is cut loses only unused
 * addresses. Ordering: the release store of each word pairs with the
 * acquire load in mri_region_tenant(), so a reader that sees the new begin or
 * owner also sees that end was 0, or a later value.
 */
#include <errno.h>

#include "mem/mem.h"

int mri_region_join(struct mr_region *region, uint64_t begin, uint64_t n_bytes,
		    void *owner)
{
	int place = -ENOMEM;

	pthread_mutex_lock(&region->lock);
	for (int i = 0; i < MRI_MAX_TENANTS && place < 0; i++) {
		struct mri_tenant *tenant = &region->tenants[i];

		if (tenant->end != 0)
			continue;
		__atomic_store_n(&tenant->begin, begin, __ATOMIC_RELEASE);
		__atomic_store_n(&tenant->owner, owner, __ATOMIC_RELEASE);
		__atomic_store_n(&tenant->end, begin + n_bytes,
				 __ATOMIC_RELEASE);
		place = i;
	}
	pthread_mutex_unlock(&region->lock);
	return place;
}

uint64_t mri_region_leave(struct mr_region *region, int place)
{
	uint64_t n_bytes;

	if (place < 0) /* it left, and found no free slot on return */
		return 0;
	pthread_mutex_lock(&region->lock);
	n_bytes = region->tenants[place].end - region->tenants[place].begin;
	__atomic_store_n(&region->tenants[place].end, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&region->lock);
	return n_bytes;
}

/* End the tenant that begins at begin. */
static void cut_tenant(struct mr_region *region, uint64_t begin, uint64_t end)
{
	for (int i = 0; i < MRI_MAX_TENANTS; i++) {
		struct mri_tenant *tenant = &region->tenants[i];

		if (tenant->begin == begin && tenant->end > end)
			__atomic_store_n(&tenant->end, end, __ATOMIC_RELEASE);
	}
}

void mri_region_cut(struct mr_region *region, uint64_t addr)
{
	for (int i = 0; i < MRI_MAX_TENANTS; i++) {
		struct mri_reservation *r = &region->reserved[i];

		if (!r->is_soft || addr < r->begin || addr >= r->end)
			continue;
		cut_tenant(region, r->begin, addr);
		r->end = addr;
	}
}

uint32_t mri_region_n_tenants(struct mr_region *region)
{
	uint32_t n = 0;

	pthread_mutex_lock(&region->lock);
	for (int i = 0; i < MRI_MAX_TENANTS; i++)
		n += region->tenants[i].end != 0;
	pthread_mutex_unlock(&region->lock);
	return n;
}

void *mri_region_tenant(const struct mr_region *region, uint64_t addr)
{
	for (int i = 0; i < MRI_MAX_TENANTS; i++) {
		const struct mri_tenant *tenant = &region->tenants[i];
		const uint64_t end =
			__atomic_load_n(&tenant->end, __ATOMIC_ACQUIRE);
		const uint64_t begin =
			__atomic_load_n(&tenant->begin, __ATOMIC_ACQUIRE);
		void *owner = __atomic_load_n(&tenant->owner, __ATOMIC_ACQUIRE);

		if (addr < begin || addr >= end)
			continue;
		if (__atomic_load_n(&tenant->end, __ATOMIC_RELAXED) == end)
			return owner;
		i--; /* it was cut or replaced: try again */
	}
	return NULL;
}
