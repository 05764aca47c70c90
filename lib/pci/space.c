/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spaces: what the devices of one IOMMU domain share.
 *
 * A region has one IOVA for its address 0, with room for its maximum size, so
 * an IOVA is base + address for all segments, present and future. Each segment
 * is one mapping: the kernel limits their number (65535), and unmaps only whole
 * mappings.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "pci/vfio.h"

/* Allows 1 GiB entries in the IOMMU's tables for 1 GiB pages. */
static const uint64_t REGION_ALIGN = UINT64_C(1) << 30;
static const struct mr_pci_range ALL_OF_48_BITS = { 0,
						    (UINT64_C(1) << 48) - 1 };

static struct mri_space *find_space(const struct mr_pci *pci,
				    const struct mr_region *region)
{
	for (const struct mr_pci *p = pci->ctx->open_pcis; p != NULL;
	     p = p->next)
		if (p->domain == pci->domain && p->space->region == region)
			return p->space;
	return NULL;
}

/* For each device again: one that joins may have fewer. */
static int read_ranges(struct mr_pci *pci, struct mri_space *space,
		       struct mr_reason *reterr_reason)
{
	struct mr_pci_range ranges[MRI_PCI_MAX_RANGES];
	int n;

	if (pci->backend->iova_ranges == NULL) {
		mri_iova_set_ranges(&space->iova, &ALL_OF_48_BITS, 1);
		return 0;
	}
	n = pci->backend->iova_ranges(pci->device, ranges, MRI_PCI_MAX_RANGES);
	if (n < 0)
		return mr_fail(
			reterr_reason, -EIO,
			"%s: cannot read the address ranges of its IOMMU: %s",
			pci->info.bdf, mr_strerror(-n));
	mri_iova_set_ranges(&space->iova, ranges, (uint32_t)n);
	return 0;
}

static uint64_t end_of_segments(const struct mr_region *region)
{
	struct mr_segment_info info;
	uint64_t end = 0;

	for (uint32_t i = 0; mr_region_segment(region, i, &info) == 0; i++)
		end = info.addr + info.n_bytes;
	return end;
}

/*
 * Room for the whole region, or in a narrow IOMMU for as much as possible;
 * segments beyond that are refused later.
 */
static int place_region(struct mri_space *space)
{
	struct mr_region_stats stats = { .size = sizeof(stats) };
	const uint64_t least = end_of_segments(space->region);
	uint64_t n_bytes;
	int err;

	(void)mr_region_stats(space->region, &stats);
	n_bytes = stats.max_bytes;
	for (;;) {
		err = mri_iova_take(&space->iova, &space->region_span, n_bytes,
				    REGION_ALIGN, REGION_ALIGN);
		if (err == 0 || n_bytes / 2 < least ||
		    n_bytes / 2 < REGION_ALIGN)
			return err;
		n_bytes /= 2;
	}
}

/* Map an existing or new segment; under the region's lock. */
static int map_segment(void *opaque, const struct mr_segment_info *segment,
		       struct mr_reason *reterr_reason)
{
	struct mri_space *space = opaque;
	const uint64_t end = segment->addr + segment->n_bytes;
	const uint64_t n_room =
		space->region_span.last - space->region_span.first + 1;
	uint8_t *const base = mr_region_base(space->region);
	int err;

	pthread_mutex_lock(&space->lock);
	if (end > n_room)
		err = mr_fail(reterr_reason, -ENOSPC,
			      "%s: its IOMMU has room for %llu GiB of the "
			      "region, but a segment ends beyond that",
			      space->user->info.bdf,
			      (unsigned long long)(n_room >> 30));
	else
		err = space->user->backend->map_dma(
			space->user->device, base + segment->addr,
			space->region_span.first + segment->addr,
			segment->n_bytes, reterr_reason);
	pthread_mutex_unlock(&space->lock);
	return err;
}

static void unmap_segment(void *opaque, const struct mr_segment_info *segment)
{
	struct mri_space *space = opaque;

	pthread_mutex_lock(&space->lock);
	/*
	 * For the last device: if it fails, it is unmapped with the container.
	 * On a running port, after another one refused the segment: the IOMMU
	 * keeps it, and refuses the next one there until the port is closed.
	 */
	(void)space->user->backend->unmap_dma(
		space->user->device, space->region_span.first + segment->addr,
		segment->n_bytes);
	pthread_mutex_unlock(&space->lock);
}

static struct mri_space *make_space(struct mr_pci *pci,
				    struct mr_region *region)
{
	struct mri_space *space = mr_alloc(pci->ctx, 0, sizeof(*space));

	if (space == NULL)
		return NULL;
	pthread_mutex_init(&space->lock, NULL);
	space->ctx = pci->ctx;
	space->region = region;
	space->domain = pci->domain;
	space->user = pci;
	return space;
}

/*
 * None of its devices is a bus master any more, so nobody accesses what is
 * still mapped; the kernel unmaps it with the container, which is closed next.
 */
static void free_space(struct mri_space *space)
{
	mri_dma_free_stuck(space);
	pthread_mutex_destroy(&space->lock);
	mr_free(space->ctx, space);
}

/*
 * No IOMMU: the region's IOVA is where its first segment is; mapping checks
 * whether the rest follows.
 */
static int place_physical(struct mri_space *space,
			  struct mr_reason *reterr_reason)
{
	struct mr_segment_info info;
	uint64_t address;
	int err;

	if (mr_region_segment(space->region, 0, &info) < 0)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: without an IOMMU, the region must already "
			       "have memory; create the pool first",
			       space->user->info.bdf);
	if (info.os_page_bytes < MRI_HUGE_BYTES)
		err = -ENXIO;
	else
		err = mri_physical((uint8_t *)mr_region_base(space->region) +
					   info.addr,
				   info.n_bytes, &address);
	if (err < 0)
		return mri_refuse_map(space->user->vfio, info.n_bytes, err,
				      reterr_reason);
	space->region_span.first = address - info.addr;
	space->region_span.last = UINT64_MAX;
	return 0;
}

static int fill_space(struct mr_pci *pci, struct mri_space *space,
		      struct mr_reason *reterr_reason)
{
	int err = 0;

	if (space->region == NULL)
		return 0;
	if (pci->is_physical)
		err = place_physical(space, reterr_reason);
	else
		err = place_region(space);
	if (err < 0 && !pci->is_physical)
		mr_fail(reterr_reason, err,
			"%s: no address range that its IOMMU reports is as "
			"large as the region (mr_region_config.max_bytes)",
			pci->info.bdf);
	if (err < 0)
		return err;
	return mr_region_listen(space->region, map_segment, unmap_segment,
				space, reterr_reason);
}

static int pin_region(const struct mr_pci *pci, struct mr_region *region,
		      struct mr_reason *reterr_reason)
{
	const int err = mr_region_pin(region, pci->holder, UINT64_MAX);

	if (err < 0)
		return mr_fail(reterr_reason, err,
			       "%s: too many ports use the region",
			       pci->info.bdf);
	return 0;
}

static int join_space(struct mr_pci *pci, struct mr_region *region,
		      struct mr_reason *reterr_reason)
{
	struct mri_space *space = find_space(pci, region);
	int err;

	if (space != NULL) {
		err = read_ranges(pci, space, reterr_reason);
	} else {
		space = make_space(pci, region);
		if (space == NULL)
			return mr_fail(reterr_reason, -ENOMEM, "%s: no memory",
				       pci->info.bdf);
		err = read_ranges(pci, space, reterr_reason);
		if (err == 0)
			err = fill_space(pci, space, reterr_reason);
		if (err < 0)
			free_space(space);
	}
	if (err < 0)
		return err;
	space->n_users++;
	pci->space = space;
	return 0;
}

int mri_space_join(struct mr_pci *pci, struct mr_region *region,
		   struct mr_reason *reterr_reason)
{
	int err = region != NULL ? pin_region(pci, region, reterr_reason) : 0;

	if (err < 0)
		return err;
	err = join_space(pci, region, reterr_reason);
	if (err < 0 && region != NULL)
		mr_region_unpin(region, pci->holder, UINT64_MAX);
	return err;
}

/* Another device of the space, to map future segments. */
static struct mr_pci *another_user(const struct mr_pci *pci)
{
	struct mr_pci *p = pci->ctx->open_pcis;

	while (p->space != pci->space || p == pci)
		p = p->next;
	return p;
}

void mri_space_leave(struct mr_pci *pci)
{
	struct mri_space *space = pci->space;

	if (--space->n_users == 0) {
		if (space->region != NULL)
			mr_region_unlisten(space->region, space);
	} else if (space->user == pci) {
		pthread_mutex_lock(&space->lock);
		space->user = another_user(pci);
		pthread_mutex_unlock(&space->lock);
	}
	if (space->region != NULL)
		mr_region_unpin(space->region, pci->holder, UINT64_MAX);
	if (space->n_users == 0)
		free_space(space);
	pci->space = NULL;
}

uint64_t mr_pci_region_iova(const struct mr_pci *pci)
{
	return pci->space->region_span.first;
}
