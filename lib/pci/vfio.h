/* SPDX-License-Identifier: BSD-3-Clause */
/* A device of the kernel's vfio: common to the three ways to access it. */
#ifndef PCI_VFIO_H
#define PCI_VFIO_H

#include <stdbool.h>
#include <stdint.h>

#include "pci/pci.h"
#include "pci/vfio_uapi.h"

struct mri_vfio;
struct mri_container;

/* A way to access a device: group, iommufd, or a group without an IOMMU. */
struct mri_vfio_way {
	/* Open the device as vfio->fd, with a container for its region. On
	 * failure everything is undone. */
	int (*join)(struct mri_vfio *vfio, struct mr_reason *reterr_reason);
	void (*leave)(struct mri_vfio *vfio);
	int (*map)(const struct mri_container *c, const void *memory,
		   uint64_t iova, uint64_t n_bytes);
	int (*unmap)(const struct mri_container *c, uint64_t iova,
		     uint64_t n_bytes);
	int (*ranges)(const struct mri_container *c, struct mr_pci_range *ret,
		      uint32_t n);
	const char *locked; /* the line of /proc/self/status that counts it */
};

extern const struct mri_vfio_way mri_vfio_group;
extern const struct mri_vfio_way mri_vfio_iommufd;
extern const struct mri_vfio_way mri_vfio_noiommu;

/* An open IOMMU group, which can be opened only once in the whole system. */
struct mri_group {
	struct mri_group *next;
	int32_t number;
	int fd;
	uint32_t n_users;
};

/*
 * What maps DMA: a vfio container, or an iommufd IOAS. The ports of a region
 * share one, so that the region is locked and mapped once.
 */
struct mri_container {
	struct mri_container *next; /* of the context */
	const struct mri_vfio_way *way;
	const struct mr_region *region;
	const char *mode;
	int fd;
	uint32_t ioas_id;         /* of iommufd */
	struct mri_group *groups; /* of the other ways */
	uint32_t n_users;
	uint64_t n_mapped_bytes; /* atomic */
};

struct mri_vfio {
	struct mr_pci_backend backend; /* a copy, for its mode */
	struct mr_ctx *ctx;
	const struct mr_pci_info *info;
	const struct mri_vfio_way *way;
	const struct mr_region *region;
	uint64_t n_region_bytes; /* in segments, at open */
	struct mri_container *container;
	struct mri_group *group;
	int fd;
	uint64_t config_offset;
	uint32_t irq_index;
	struct {
		void *map;
		uint64_t n_bytes;
	} bars[MRI_PCI_BARS];
};

/*
 * Create the backend of a device bound to vfio. -ENODEV, -ENOTSUP: it is not
 * bound, or there is no IOMMU.
 */
int mri_vfio_create(struct mr_pci *pci, const struct mr_pci_config *config,
		    struct mri_vfio **ret_vfio,
		    struct mr_reason *reterr_reason);

/* The container of its way for the region, or a new one. */
struct mri_container *mri_container_find(const struct mri_vfio *vfio);
struct mri_container *mri_container_add(const struct mri_vfio *vfio, int fd);
/* Closes it with its last user. */
void mri_container_put(struct mri_vfio *vfio);

/* An fd that is closed in forked children; -errno. */
int mri_vfio_open_node(const char *path);

/* The capability of this id in the chain from offset (0: none) that the kernel
 * appended to info, together n_bytes; or NULL. Kernels before 6.6 do not align
 * it. */
const void *mri_vfio_find_cap(const void *info, uint32_t offset,
			      uint32_t n_bytes, uint16_t id);

/* lib/pci/vfio_bar.c */
int mri_vfio_map_bar(void *device, uint32_t idx, struct mr_bar *ret_bar,
		     struct mr_reason *reterr_reason);
void mri_vfio_unmap_bars(struct mri_vfio *vfio);

/*
 * lib/pci/vfio_refuse.c: a message for each failure. They return the result of
 * mr_pci_open().
 */
int mri_refuse_driver(const struct mr_pci_info *info,
		      struct mr_reason *reterr_reason);
int mri_refuse_no_iommu(const struct mr_pci_info *info,
			struct mr_reason *reterr_reason);
int mri_refuse_node(const struct mr_pci_info *info, const char *path, int err,
		    struct mr_reason *reterr_reason);
int mri_refuse_group(const struct mr_ctx *ctx, const struct mr_pci_info *info,
		     struct mr_reason *reterr_reason);
int mri_refuse_call(const struct mr_pci_info *info, const char *call, int err,
		    struct mr_reason *reterr_reason);
int mri_refuse_map(const struct mri_vfio *vfio, uint64_t n_bytes, int err,
		   struct mr_reason *reterr_reason);

/*
 * lib/pci/vfio_noiommu.c: the physical address of memory on huge pages. -EPERM:
 * the kernel hides it; -ENXIO: it is not contiguous.
 */
int mri_physical(const void *memory, uint64_t n_bytes, uint64_t *ret_address);

#endif
