/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring memory: each has its own mapping, so that no device reaches past it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "pci/vfio.h"

/* Below is left to users for whom address 0 means "none". */
static const uint64_t LOWEST_IOVA = UINT64_C(1) << 20;

static int map_memory(uint64_t n_bytes, int flags, void **ret_memory)
{
	void *memory =
		mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | flags, -1, 0);
	int err;

	if (memory == MAP_FAILED)
		return -errno;
	/* After a fork, copy-on-write would separate us from the device. */
	if (madvise(memory, n_bytes, MADV_DONTFORK) < 0) {
		err = -errno;
		munmap(memory, n_bytes);
		return err;
	}
	*ret_memory = memory;
	return 0;
}

/* Without an IOMMU, the IOVA is the physical address. */
static int take_iova(struct mr_pci *pci, struct mri_dma *dma, uint64_t n_bytes,
		     struct mr_reason *reterr_reason)
{
	const uint64_t os_page = (uint64_t)sysconf(_SC_PAGESIZE);
	int err;

	if (pci->is_physical) {
		err = mri_physical(dma->dma.memory, n_bytes, &dma->span.first);
		if (err < 0)
			mri_refuse_map(pci->vfio, n_bytes, err, reterr_reason);
		return err;
	}
	err = mri_iova_take(&pci->space->iova, &dma->span, n_bytes, os_page,
			    LOWEST_IOVA);
	if (err < 0)
		mr_fail(reterr_reason, err,
			"%s: no %llu KiB left in the address ranges that its "
			"IOMMU reports",
			pci->info.bdf, (unsigned long long)(n_bytes >> 10));
	return err;
}

/* Take an IOVA for dma->memory, and map it. */
static int give_to_device(struct mr_pci *pci, struct mri_dma *dma,
			  uint64_t n_bytes, struct mr_reason *reterr_reason)
{
	int err = take_iova(pci, dma, n_bytes, reterr_reason);

	if (err < 0)
		return err;
	err = pci->backend->map_dma(pci->device, dma->dma.memory,
				    dma->span.first, n_bytes, reterr_reason);
	if (err < 0)
		mri_iova_give(&pci->space->iova, &dma->span);
	dma->dma.iova = dma->span.first;
	dma->dma.n_bytes = n_bytes;
	return err;
}

int mr_pci_dma_alloc(struct mr_pci *pci, uint64_t n_bytes,
		     struct mr_dma *ret_dma, struct mr_reason *reterr_reason)
{
	/* Without an IOMMU: huge pages, which the kernel does not move. */
	const uint64_t unit = pci->is_physical ?
				      MRI_HUGE_BYTES :
				      (uint64_t)sysconf(_SC_PAGESIZE);
	const int flags =
		pci->is_physical ? MAP_HUGETLB | MRI_HUGE_LOG2 << 26 : 0;
	struct mri_dma *dma = mr_alloc(pci->ctx, 0, sizeof(*dma));
	int err = -ENOMEM;

	n_bytes = mri_round_up(n_bytes != 0 ? n_bytes : 1, unit);
	if (dma != NULL)
		err = map_memory(n_bytes, flags, &dma->dma.memory);
	if (err < 0) {
		mr_free(pci->ctx, dma);
		return mr_fail(
			reterr_reason, -ENOMEM,
			"%s: no memory for a ring of %llu KiB%s: %s",
			pci->info.bdf, (unsigned long long)(n_bytes >> 10),
			flags != 0 ? " on huge pages" : "", mr_strerror(-err));
	}
	err = give_to_device(pci, dma, n_bytes, reterr_reason);
	if (err < 0) {
		munmap(dma->dma.memory, n_bytes);
		mr_free(pci->ctx, dma);
		return err;
	}
	dma->next = pci->dmas;
	pci->dmas = dma;
	*ret_dma = dma->dma;
	return 0;
}

/*
 * If the kernel cannot unmap it, devices of the space can still access it, and
 * the kernel refuses another mapping there: keep the memory and its IOVA until
 * the last of these devices closes (mri_dma_free_stuck()).
 */
static void free_one(struct mr_pci *pci, struct mri_dma *dma)
{
	if (pci->backend->unmap_dma(pci->device, dma->dma.iova,
				    dma->dma.n_bytes) < 0) {
		dma->next = pci->space->stuck;
		pci->space->stuck = dma;
		return;
	}
	mri_iova_give(&pci->space->iova, &dma->span);
	munmap(dma->dma.memory, dma->dma.n_bytes);
	mr_free(pci->ctx, dma);
}

void mri_dma_free_stuck(struct mri_space *space)
{
	struct mri_dma *dma;

	while ((dma = space->stuck) != NULL) {
		space->stuck = dma->next;
		munmap(dma->dma.memory, dma->dma.n_bytes);
		mr_free(space->ctx, dma);
	}
}

void mr_pci_dma_free(struct mr_pci *pci, struct mr_dma *dma)
{
	struct mri_dma **place, *found;

	/* Also for a device that never opened completely. */
	if (dma->memory == NULL)
		return;
	place = &pci->dmas;
	while (*place != NULL && (*place)->dma.memory != dma->memory)
		place = &(*place)->next;
	found = *place;
	if (found == NULL)
		return;
	*place = found->next;
	free_one(pci, found);
	*dma = (struct mr_dma){ 0 };
}

void mri_dma_free_all(struct mr_pci *pci)
{
	struct mri_dma *dma;

	while ((dma = pci->dmas) != NULL) {
		pci->dmas = dma->next;
		free_one(pci, dma);
	}
}
