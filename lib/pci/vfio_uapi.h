/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What <linux/vfio.h> of Linux 6.1 lacks: iommufd, and binding a device to it.
 * Whether a kernel has it is found out at run time.
 *
 * Source: linux/include/uapi/linux/vfio.h, iommufd.h;
 * Documentation/userspace-api/iommufd.rst.
 */
#ifndef PCI_VFIO_UAPI_H
#define PCI_VFIO_UAPI_H

#include <stdint.h>
#include <sys/ioctl.h>

#include <linux/vfio.h>

/* On a device, since 6.6. */
#ifndef VFIO_DEVICE_BIND_IOMMUFD
#define VFIO_DEVICE_BIND_IOMMUFD _IO(VFIO_TYPE, VFIO_BASE + 18)
#define VFIO_DEVICE_ATTACH_IOMMUFD_PT _IO(VFIO_TYPE, VFIO_BASE + 19)
#endif

/* On /dev/iommu, since 6.2. */
#define IOMMU_IOAS_ALLOC _IO(';', 0x81)
#define IOMMU_IOAS_IOVA_RANGES _IO(';', 0x84)
#define IOMMU_IOAS_MAP _IO(';', 0x85)
#define IOMMU_IOAS_UNMAP _IO(';', 0x86)

enum {
	IOMMU_MAP_FIXED = 1 << 0,
	IOMMU_MAP_WRITE = 1 << 1,
	IOMMU_MAP_READ = 1 << 2,
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
