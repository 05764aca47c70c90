/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our own copy of the kernel's vfio and iommufd interfaces: the headers of the
 * build machine may be older than the kernel at run time (Debian 12's have no
 * iommufd), so a kernel's capabilities are probed at run time.
 *
 * Source: linux/include/uapi/linux/vfio.h, iommufd.h; Documentation/driver-api/
 * vfio.rst, Documentation/userspace-api/iommufd.rst.
 */
#ifndef PCI_VFIO_UAPI_H
#define PCI_VFIO_UAPI_H

#include <stdint.h>
#include <sys/ioctl.h>

/* Both number their calls in the space of ';', without a size. */
#define VFIO_CALL(n) _IO(';', 100 + (n))
#define IOMMU_CALL(n) _IO(';', 0x80 + (n))

/* On /dev/vfio/vfio, the container. */
#define VFIO_GET_API_VERSION VFIO_CALL(0)
#define VFIO_CHECK_EXTENSION VFIO_CALL(1)
#define VFIO_SET_IOMMU VFIO_CALL(2)
#define VFIO_IOMMU_GET_INFO VFIO_CALL(12)
#define VFIO_IOMMU_MAP_DMA VFIO_CALL(13)
#define VFIO_IOMMU_UNMAP_DMA VFIO_CALL(14)
/* On /dev/vfio/N, a group. */
#define VFIO_GROUP_GET_STATUS VFIO_CALL(3)
#define VFIO_GROUP_SET_CONTAINER VFIO_CALL(4)
#define VFIO_GROUP_UNSET_CONTAINER VFIO_CALL(5)
#define VFIO_GROUP_GET_DEVICE_FD VFIO_CALL(6)
/* On a device. */
#define VFIO_DEVICE_GET_INFO VFIO_CALL(7)
#define VFIO_DEVICE_GET_REGION_INFO VFIO_CALL(8)
#define VFIO_DEVICE_GET_IRQ_INFO VFIO_CALL(9)
#define VFIO_DEVICE_SET_IRQS VFIO_CALL(10)
#define VFIO_DEVICE_BIND_IOMMUFD VFIO_CALL(18)      /* 6.6 */
#define VFIO_DEVICE_ATTACH_IOMMUFD_PT VFIO_CALL(19) /* 6.6 */
/* On /dev/iommu, since 6.2. */
#define IOMMU_IOAS_ALLOC IOMMU_CALL(1)
#define IOMMU_IOAS_IOVA_RANGES IOMMU_CALL(4)
#define IOMMU_IOAS_MAP IOMMU_CALL(5)
#define IOMMU_IOAS_UNMAP IOMMU_CALL(6)

enum {
	VFIO_API = 0,

	/* VFIO_CHECK_EXTENSION, VFIO_SET_IOMMU */
	VFIO_TYPE1 = 1,
	VFIO_TYPE1V2 = 3,
	VFIO_NOIOMMU = 8,

	VFIO_GROUP_VIABLE = 1 << 0,

	VFIO_DEVICE_IS_PCI = 1 << 1,

	VFIO_REGION_CAN_MMAP = 1 << 2,
	VFIO_REGION_HAS_CAPS = 1 << 3,
	VFIO_REGION_CAP_SPARSE = 1,
	VFIO_REGION_CAP_MSIX_MAPPABLE = 3,
	/* Of a PCI device: 0 to 5 are its BARs. */
	VFIO_REGION_CONFIG = 7,

	VFIO_IRQ_MSI = 1,
	VFIO_IRQ_MSIX = 2,
	VFIO_IRQ_ERR = 3,
	VFIO_IRQ_REQ = 4,
	VFIO_IRQ_SET_NONE = 1 << 0,
	VFIO_IRQ_SET_EVENTFD = 1 << 2,
	VFIO_IRQ_SET_TRIGGER = 1 << 5,

	VFIO_IOMMU_HAS_CAPS = 1 << 1,
	VFIO_IOMMU_CAP_IOVA_RANGES = 1,

	VFIO_DMA_READ = 1 << 0,
	VFIO_DMA_WRITE = 1 << 1,

	IOMMU_MAP_FIXED = 1 << 0,
	IOMMU_MAP_WRITE = 1 << 1,
	IOMMU_MAP_READ = 1 << 2,
};

/* A chain after an info struct; offsets are from the struct's start. */
struct vfio_cap {
	uint16_t id;
	uint16_t version;
	uint32_t next; /* 0: the last */
};

struct vfio_group_status {
	uint32_t argsz;
	uint32_t flags;
};

struct vfio_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t n_regions;
	uint32_t n_irqs;
};

struct vfio_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset; /* in the device's fd */
};

struct vfio_area {
	uint64_t offset;
	uint64_t size;
};

struct vfio_cap_sparse {
	struct vfio_cap head;
	uint32_t n_areas;
	uint32_t reserved;
	struct vfio_area areas[];
};

struct vfio_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};

struct vfio_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
	int32_t fds[];
};

struct vfio_iommu_info {
	uint32_t argsz;
	uint32_t flags;
	uint64_t page_sizes;
	uint32_t cap_offset;
	uint32_t reserved;
};

/* vfio_iova_range, iommu_iova_range: inclusive. */
struct vfio_range {
	uint64_t start;
	uint64_t last;
};

struct vfio_cap_ranges {
	struct vfio_cap head;
	uint32_t n_ranges;
	uint32_t reserved;
	struct vfio_range ranges[];
};

struct vfio_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t vaddr;
	uint64_t iova;
	uint64_t size;
};

struct vfio_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova;
	uint64_t size; /* on return: what was unmapped */
};

struct vfio_bind_iommufd {
	uint32_t argsz;
	uint32_t flags;
	int32_t iommufd;
	uint32_t out_devid;
};

struct vfio_attach_iommufd {
	uint32_t argsz;
	uint32_t flags;
	uint32_t pt_id;
};

struct iommu_ioas_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t out_ioas_id;
};

struct iommu_ioas_iova_ranges {
	uint32_t size;
	uint32_t ioas_id;
	uint32_t n_ranges; /* room; on return: the number of ranges */
	uint32_t reserved;
	uint64_t ranges;
	uint64_t out_alignment;
};

struct iommu_ioas_map {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas_id;
	uint32_t reserved;
	uint64_t vaddr;
	uint64_t length;
	uint64_t iova;
};

struct iommu_ioas_unmap {
	uint32_t size;
	uint32_t ioas_id;
	uint64_t iova;
	uint64_t length;
};

#endif
