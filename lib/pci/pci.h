/* SPDX-License-Identifier: BSD-3-Clause */
/* Open PCI devices, and what devices of an IOMMU domain share. */
#ifndef PCI_PCI_H
#define PCI_PCI_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <millrace/driver_mem.h>
#include <millrace/experimental/pci.h>

enum {
	MRI_PATH_BYTES = 512,
	MRI_PCI_BARS = 6,
	MRI_PCI_HOLDER_BYTES = 64,
	MRI_PCI_MAX_RANGES = 32,
	MRI_PCI_MAX_IRQS = 2048, /* of MSI-X */
	/* Pages that the kernel does not move, needed without an IOMMU */
	MRI_HUGE_LOG2 = 21,
	MRI_HUGE_BYTES = 1 << MRI_HUGE_LOG2,
	/* Config space: PCI Local Bus 3.0, 6.1 and 6.7; MSI-X 6.8.2 */
	MRI_PCI_CAP_MSI = 0x05,
	MRI_PCI_CAP_MSIX = 0x11,
	MRI_MSIX_CONTROL = 2,
	MRI_MSIX_SIZE_MASK = 0x7ff, /* of the control word: vectors minus one */
	MRI_MSIX_TABLE = 4,
};

/* IOVAs in use, by the region or ring memory. */
struct mri_iova_span {
	uint64_t first;
	uint64_t last;
	struct mri_iova_span *next;
};

/* The IOVAs of an IOMMU domain. */
struct mri_iova {
	uint32_t n_ranges;
	struct mr_pci_range ranges[MRI_PCI_MAX_RANGES];
	struct mri_iova_span *spans; /* in no order: they are few */
};

/*
 * Set the usable ranges, as reported by a kernel or device; invalid ones are
 * ignored, and spans in use stay.
 */
void mri_iova_set_ranges(struct mri_iova *iova,
			 const struct mr_pci_range *ranges, uint32_t n);

/*
 * Take the lowest n_bytes at or above from that are usable and free, aligned to
 * a power of two. -ENOSPC: none. The span stays the caller's memory.
 */
int mri_iova_take(struct mri_iova *iova, struct mri_iova_span *span,
		  uint64_t n_bytes, uint64_t align, uint64_t from);
void mri_iova_give(struct mri_iova *iova, struct mri_iova_span *span);

/* Ring memory. */
struct mri_dma {
	struct mri_iova_span span;
	struct mr_dma dma;
	struct mri_dma *next;
};

/*
 * The addresses shared by the devices of an IOMMU domain: a region is mapped
 * there once, for all ports that use it.
 */
struct mri_space {
	struct mr_ctx *ctx;
	struct mr_region *region; /* NULL: only ring memory */
	void *domain;
	uint32_t n_users;
	struct mri_iova iova;
	struct mri_iova_span region_span;
	struct mri_dma *stuck; /* could not be unmapped */
	/* If a segment comes while its user leaves, another user maps it. */
	pthread_mutex_t lock;
	struct mr_pci *user;
};

struct mr_pci {
	struct mr_ctx *ctx;
	struct mr_pci *next; /* next open device of ctx */
	struct mr_pci_info info;
	char holder[MRI_PCI_HOLDER_BYTES];
	const struct mr_pci_backend *backend;
	void *device;          /* the backend's */
	void *domain;          /* devices with the same one share mappings */
	struct mri_vfio *vfio; /* NULL: a software device */
	bool is_physical;      /* no IOMMU: IOVAs are physical addresses */
	struct mri_space *space;
	struct mri_dma *dmas;
	struct mr_bar bars[MRI_PCI_BARS]; /* n_bytes 0: not mapped */
	uint32_t n_irqs;
	int *irq_fds;
	int req_fd;
	int err_fd;
	int event_fd; /* an epoll of the two; -1: no events */
};

/* Join the space of pci's domain and this region. */
int mri_space_join(struct mr_pci *pci, struct mr_region *region,
		   struct mr_reason *reterr_reason);
void mri_space_leave(struct mr_pci *pci);

/* Like mr_pci_find_cap(), without an open device. */
int mri_find_cap(const struct mr_pci_backend *backend, void *device, uint8_t id,
		 uint32_t after, uint32_t *ret_offset);

/* Enable memory decoding, disable bus mastering and INTx. -EIO: no answer. */
int mri_pci_quiesce(struct mr_pci *pci);

/* Open an fd per kind of event that the device has. */
void mri_pci_open_events(struct mr_pci *pci);
void mri_pci_close_events(struct mr_pci *pci);

void mri_dma_free_all(struct mr_pci *pci);
/* Call when no device of the space is a bus master any more. */
void mri_dma_free_stuck(struct mri_space *space);

/* The software device of this name, or NULL. */
const struct mri_soft_device *mri_soft_find(const struct mr_ctx *ctx,
					    const char *name);

/*
 * Read a function's information from sysfs; bdf may lack the domain. -ENODEV:
 * no such function, or not a PCI address.
 */
int mri_sysfs_info(const struct mr_ctx *ctx, const char *bdf,
		   struct mr_pci_info *info, struct mr_reason *reterr_reason);

#endif
