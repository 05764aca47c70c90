/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI devices that are open, and what devices of one IOMMU domain share. */
#ifndef PCI_PCI_H
#define PCI_PCI_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <millrace/driver.h>
#include <millrace/pci.h>

enum {
	MRI_PATH_BYTES = 512,
	MRI_PCI_BARS = 6,
	MRI_PCI_HOLDER_BYTES = 64,
	MRI_PCI_MAX_RANGES = 32,
	MRI_PCI_MAX_IRQS = 2048, /* of MSI-X */
	/* The pages that the kernel does not move: who has no IOMMU needs it */
	MRI_HUGE_LOG2 = 21,
	MRI_HUGE_BYTES = 1 << MRI_HUGE_LOG2,
	/* Config space: PCI Local Bus 3.0, 6.1 and 6.7; MSI-X 6.8.2 */
	MRI_PCI_CAP_MSI = 0x05,
	MRI_PCI_CAP_MSIX = 0x11,
	MRI_MSIX_CONTROL = 2,
	MRI_MSIX_SIZE_MASK = 0x7ff, /* of the control word: vectors less one */
	MRI_MSIX_TABLE = 4,
};

/* IOVAs in use, the region's or those of ring memory. */
struct mri_iova_span {
	uint64_t first;
	uint64_t last;
	struct mri_iova_span *next;
};

/* What an IOMMU domain has to give. */
struct mri_iova {
	uint32_t n_ranges;
	struct mr_pci_range ranges[MRI_PCI_MAX_RANGES];
	struct mri_iova_span *spans; /* in no order: they are few */
};

/*
 * What is usable, as a kernel or a device told; ranges that make no sense are
 * left out, and what is in use stays so.
 */
void mri_iova_set_ranges(struct mri_iova *iova,
			 const struct mr_pci_range *ranges, uint32_t n);

/*
 * The lowest n_bytes at or above from that are usable and free, aligned to a
 * power of two. -ENOSPC: there are none. The span stays the caller's memory.
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
 * The addresses that the devices of one IOMMU domain share: a region is mapped
 * there once, whatever number of ports uses it.
 */
struct mri_space {
	struct mr_ctx *ctx;
	struct mr_region *region; /* NULL: for ring memory alone */
	void *domain;
	uint32_t n_users;
	struct mri_iova iova;
	struct mri_iova_span region_span;
	struct mri_dma *stuck; /* could not be unmapped */
	/* A segment may come while its user goes: then another maps it. */
	pthread_mutex_t lock;
	struct mr_pci *user;
};

struct mr_pci {
	struct mr_ctx *ctx;
	struct mr_pci *next; /* that is open in ctx */
	struct mr_pci_info info;
	char holder[MRI_PCI_HOLDER_BYTES];
	const struct mr_pci_backend *backend;
	void *device; /* the backend's */
	void *domain; /* devices with the same one share their mappings */
	struct mri_vfio *vfio; /* the kernel's; NULL: a device in software */
	bool is_physical;      /* no IOMMU: memory's addresses are IOVAs */
	struct mri_space *space;
	struct mri_dma *dmas;
	struct mr_bar bars[MRI_PCI_BARS]; /* n_bytes 0: not mapped */
	uint32_t n_irqs;
	int *irq_fds;
	int req_fd;
	int err_fd;
	int event_fd; /* an epoll of the two; -1: no events */
};

/* The space of pci's domain and this region. */
int mri_space_join(struct mr_pci *pci, struct mr_region *region,
		   struct mr_reason *reterr_reason);
void mri_space_leave(struct mr_pci *pci);

/* As mr_pci_find_cap(), without a device of ours. */
int mri_find_cap(const struct mr_pci_backend *backend, void *device, uint8_t id,
		 uint32_t after, uint32_t *ret_offset);

/* Memory decoding on, bus mastering and INTx off. -EIO: it does not answer. */
int mri_pci_quiesce(struct mr_pci *pci);

/* Events: an fd of each kind, if the device has them. */
void mri_pci_open_events(struct mr_pci *pci);
void mri_pci_close_events(struct mr_pci *pci);
/* Behind a reset: give the device its eventfds again. */
int mri_pci_rearm(struct mr_pci *pci);

void mri_dma_free_all(struct mr_pci *pci);
/* No device of the space is a bus master any more. */
void mri_dma_free_stuck(struct mri_space *space);

/* The software device of this name, or NULL. */
const struct mri_soft_device *mri_soft_find(const struct mr_ctx *ctx,
					    const char *name);

/*
 * What sysfs says of a function; bdf may lack the domain. -ENODEV: it is not
 * there, or is no address of a PCI function.
 */
int mri_sysfs_info(const struct mr_ctx *ctx, const char *bdf,
		   struct mr_pci_info *info, struct mr_reason *reterr_reason);

#endif
