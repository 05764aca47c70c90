/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IOVAs: which of those that the IOMMU reports are in use.
 *
 * Small ones are preferred: an IOMMU may have 39 bits (QEMU's did, older
 * Intel), far fewer than a pointer. Reserved ranges, such as that of MSI on
 * x86 (0xfee00000), are the gaps between the ranges reported.
 */
#include <errno.h>

#include "base/base.h"
#include "pci/pci.h"

void mri_iova_set_ranges(struct mri_iova *iova,
			 const struct mr_pci_range *ranges, uint32_t n)
{
	iova->n_ranges = 0;
	for (uint32_t i = 0; i < n && i < MRI_PCI_MAX_RANGES; i++)
		if (ranges[i].first <= ranges[i].last)
			iova->ranges[iova->n_ranges++] = ranges[i];
}

/* A span that overlaps [first, last], or NULL. */
static const struct mri_iova_span *meets(const struct mri_iova *iova,
					 uint64_t first, uint64_t last)
{
	const struct mri_iova_span *span = iova->spans;

	while (span != NULL && (span->last < first || span->first > last))
		span = span->next;
	return span;
}

/* The lowest place in a range, or false. Sums that wrap are past the end. */
static bool find_in(const struct mri_iova *iova,
		    const struct mr_pci_range *range, uint64_t n_bytes,
		    uint64_t align, uint64_t from, uint64_t *ret_first)
{
	uint64_t first = from > range->first ? from : range->first;
	const struct mri_iova_span *taken;

	for (;;) {
		const uint64_t aligned = mri_round_up(first, align);

		if (aligned < first || aligned > range->last ||
		    n_bytes - 1 > range->last - aligned)
			return false;
		taken = meets(iova, aligned, aligned + n_bytes - 1);
		if (taken == NULL) {
			*ret_first = aligned;
			return true;
		}
		first = taken->last + 1;
		if (first == 0)
			return false;
	}
}

int mri_iova_take(struct mri_iova *iova, struct mri_iova_span *span,
		  uint64_t n_bytes, uint64_t align, uint64_t from)
{
	for (uint32_t i = 0; i < iova->n_ranges; i++) {
		if (!find_in(iova, &iova->ranges[i], n_bytes, align, from,
			     &span->first))
			continue;
		span->last = span->first + n_bytes - 1;
		span->next = iova->spans;
		iova->spans = span;
		return 0;
	}
	return -ENOSPC;
}

void mri_iova_give(struct mri_iova *iova, struct mri_iova_span *span)
{
	struct mri_iova_span **place = &iova->spans;

	while (*place != NULL && *place != span)
		place = &(*place)->next;
	if (*place != NULL)
		*place = span->next;
}
