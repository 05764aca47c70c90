/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BARs of vfio: mapped whole, or in the areas that the kernel allows.
 *
 * The kernel owns the page of the MSI-X table. Since 4.16 it reports that the
 * page can be mapped with the rest; before, or if it reports areas (sparse),
 * the unmapped rest is memory that reads as all ones, like a bus without a
 * device.
 *
 * Source: linux/include/uapi/linux/vfio.h (VFIO_REGION_INFO_CAP_*); PCI Local
 * Bus 3.0, 6.8.2 (MSI-X).
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "pci/vfio.h"

enum {
	MAX_AREAS = 16,
	INFO_BYTES = 1024, /* room for a chain of more than MAX_AREAS */
	MSIX_BAR_MASK = 7, /* the BAR of the table */
	MSIX_ENTRY_BYTES = 16,
	BAR_0 = 0x10,
	BAR_IS_IO = 1,
};

/* What can be mapped of a BAR, in whole OS pages. */
struct areas {
	uint32_t n;
	struct vfio_region_sparse_mmap_area areas[MAX_AREAS];
};

/* The kernel's areas that lie in the BAR. */
static void take_sparse(const struct vfio_region_info *info,
			const struct vfio_region_info_cap_sparse_mmap *cap,
			struct areas *ret)
{
	const size_t n_room = ((const uint8_t *)info + INFO_BYTES -
			       (const uint8_t *)cap->areas) /
			      sizeof(cap->areas[0]);
	const uint32_t n = mri_min_u32(
		cap->nr_areas, mri_min_u32((uint32_t)n_room, MAX_AREAS));

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t offset = cap->areas[i].offset;
		const uint64_t size = cap->areas[i].size;

		if (size != 0 && offset < info->size &&
		    size <= info->size - offset)
			ret->areas[ret->n++] = cap->areas[i];
	}
}

/* Find the MSI-X table in this BAR; false: it is elsewhere. */
static bool find_table(struct mri_vfio *vfio, uint32_t idx,
		       struct vfio_region_sparse_mmap_area *ret_table)
{
	const struct mr_pci_backend *const b = &vfio->backend;
	uint16_t control;
	uint32_t table, at;

	if (mri_find_cap(b, vfio, MRI_PCI_CAP_MSIX, 0, &at) < 0 ||
	    b->read_config(vfio, at + MRI_MSIX_CONTROL, &control, 2) < 0 ||
	    b->read_config(vfio, at + MRI_MSIX_TABLE, &table, 4) < 0)
		return false;
	ret_table->offset = table & ~(uint32_t)MSIX_BAR_MASK;
	ret_table->size = ((control & MRI_MSIX_SIZE_MASK) + 1u) *
			  (uint64_t)MSIX_ENTRY_BYTES;
	return (table & MSIX_BAR_MASK) == idx;
}

/*
 * All but the OS pages of the table. If the device claims that the table is
 * past the end of its BAR, the whole BAR is mapped.
 */
static void take_around(const struct vfio_region_info *info,
			const struct vfio_region_sparse_mmap_area *table,
			uint64_t os_page, struct areas *ret)
{
	const uint64_t page = table->offset & ~(os_page - 1);
	const uint64_t begin = page < info->size ? page : info->size;
	const uint64_t end = mri_round_up(table->offset + table->size, os_page);

	if (begin > 0)
		ret->areas[ret->n++] =
			(struct vfio_region_sparse_mmap_area){ 0, begin };
	if (end < info->size)
		ret->areas[ret->n++] = (struct vfio_region_sparse_mmap_area){
			end, info->size - end
		};
}

/* Those of a region are aligned by their sizes. */
static const void *find_cap(const struct vfio_region_info *info, uint16_t id)
{
	const void *cap =
		mri_vfio_find_cap(info, info->cap_offset, INFO_BYTES, id);

	return (uintptr_t)cap % 8 == 0 ? cap : NULL;
}

static void choose_areas(struct mri_vfio *vfio,
			 const struct vfio_region_info *info, uint64_t os_page,
			 struct areas *ret)
{
	const struct vfio_region_info_cap_sparse_mmap *const sparse =
		find_cap(info, VFIO_REGION_INFO_CAP_SPARSE_MMAP);
	struct vfio_region_sparse_mmap_area table;

	if (sparse != NULL)
		take_sparse(info, sparse, ret);
	else if (find_cap(info, VFIO_REGION_INFO_CAP_MSIX_MAPPABLE) == NULL &&
		 find_table(vfio, info->index, &table))
		take_around(info, &table, os_page, ret);
	else
		ret->areas[ret->n++] =
			(struct vfio_region_sparse_mmap_area){ 0, info->size };
}

/* Map the BAR's areas into a range that otherwise reads as all ones. */
static int map_areas(struct mri_vfio *vfio, const struct vfio_region_info *info,
		     const struct areas *areas, uint64_t os_page)
{
	const uint64_t n_bytes = mri_round_up(info->size, os_page);
	uint8_t *const map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t hole = 0;
	int err = 0;

	if (map == MAP_FAILED)
		return -ENOMEM;
	for (uint32_t i = 0; i < areas->n && err == 0; i++) {
		const struct vfio_region_sparse_mmap_area *a = &areas->areas[i];

		if (a->offset > hole)
			memset(map + hole, 0xff, a->offset - hole);
		/* They come in any order: fill with ones after all of them. */
		if (hole < mri_round_up(a->offset + a->size, os_page))
			hole = mri_round_up(a->offset + a->size, os_page);
		if (mmap(map + a->offset, a->size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, vfio->fd,
			 (off_t)(info->offset + a->offset)) == MAP_FAILED)
			err = -errno;
	}
	if (err == 0 && hole < n_bytes)
		memset(map + hole, 0xff, n_bytes - hole);
	if (err == 0 && madvise(map, n_bytes, MADV_DONTFORK) < 0)
		err = -errno;
	if (err < 0) {
		munmap(map, n_bytes);
		return err;
	}
	vfio->bars[info->index].map = map;
	vfio->bars[info->index].n_bytes = n_bytes;
	return 0;
}

static int refuse_bar(struct mri_vfio *vfio, uint32_t idx,
		      struct mr_reason *reterr_reason)
{
	uint32_t bar = 0;

	(void)vfio->backend.read_config(vfio, BAR_0 + 4 * idx, &bar, 4);
	return mr_fail(
		reterr_reason, -ENOTSUP,
		bar & BAR_IS_IO ?
			"%s: BAR %u has I/O ports, which cannot be mapped" :
			"%s: the kernel does not allow BAR %u to be mapped: it "
			"shares an OS page with another device, or the "
			"firmware assigned no address",
		vfio->info->bdf, idx);
}

int mri_vfio_map_bar(void *device, uint32_t idx, struct mr_bar *ret_bar,
		     struct mr_reason *reterr_reason)
{
	const uint64_t os_page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t buffer[INFO_BYTES / 8] = { 0 };
	struct vfio_region_info *info = (struct vfio_region_info *)buffer;
	struct mri_vfio *vfio = device;
	struct areas areas = { 0 };
	int err;

	info->argsz = sizeof(buffer);
	info->index = idx;
	if (ioctl(vfio->fd, VFIO_DEVICE_GET_REGION_INFO, info) < 0)
		return mri_refuse_call(vfio->info,
				       "VFIO_DEVICE_GET_REGION_INFO", -errno,
				       reterr_reason);
	info->index = idx;
	ret_bar->n_bytes = info->size;
	if (info->size == 0)
		return 0; /* the caller reports that it is empty */
	if ((info->flags & VFIO_REGION_INFO_FLAG_MMAP) == 0)
		return refuse_bar(vfio, idx, reterr_reason);
	choose_areas(vfio, info, os_page, &areas);
	err = map_areas(vfio, info, &areas, os_page);
	if (err < 0)
		return mr_fail(reterr_reason,
			       err == -ENOMEM ? -ENOMEM : -ENOTSUP,
			       "%s: cannot map BAR %u of %llu KiB: %s",
			       vfio->info->bdf, idx,
			       (unsigned long long)(info->size >> 10),
			       mr_strerror(-err));
	ret_bar->base = vfio->bars[idx].map;
	return 0;
}

void mri_vfio_unmap_bars(struct mri_vfio *vfio)
{
	for (uint32_t i = 0; i < MRI_PCI_BARS; i++) {
		if (vfio->bars[i].map != NULL)
			munmap(vfio->bars[i].map, vfio->bars[i].n_bytes);
		vfio->bars[i].map = NULL;
	}
}
