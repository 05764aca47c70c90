/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio with device nodes and iommufd: kernels from 6.6 on, if configured.
 *
 * Source: linux/Documentation/userspace-api/iommufd.rst; drivers/vfio/
 * device_cdev.c; drivers/iommu/iommufd/ioas.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pci/vfio.h"

static const char IOMMUFD[] = "/dev/iommu";

static int open_ioas(struct mri_vfio *vfio, struct mr_reason *reterr_reason)
{
	struct iommu_ioas_alloc alloc = { .size = sizeof(alloc) };
	const int fd = mri_vfio_open_node(IOMMUFD);
	int err;

	if (fd < 0)
		return mri_refuse_node(vfio->info, IOMMUFD, fd, reterr_reason);
	if (ioctl(fd, IOMMU_IOAS_ALLOC, &alloc) < 0) {
		err = mri_refuse_call(vfio->info, "IOMMU_IOAS_ALLOC", -errno,
				      reterr_reason);
		goto close_fd;
	}
	vfio->container = mri_container_add(vfio, fd);
	if (vfio->container == NULL) {
		err = mr_fail(reterr_reason, -ENOMEM, "%s: no memory",
			      vfio->info->bdf);
		goto close_fd;
	}
	vfio->container->mode = "iommufd";
	vfio->container->ioas_id = alloc.out_ioas_id;
	return 0;

close_fd:
	mr_fd_close(fd);
	return err;
}

static int open_cdev(struct mri_vfio *vfio, struct mr_reason *reterr_reason)
{
	char path[64];

	if (vfio->info->vfio_cdev[0] == '\0')
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: this kernel has no vfio device nodes (6.6 "
			       "and CONFIG_VFIO_DEVICE_CDEV); use iommu=group",
			       vfio->info->bdf);
	snprintf(path, sizeof(path), "/dev/vfio/devices/%s",
		 vfio->info->vfio_cdev);
	vfio->fd = mri_vfio_open_node(path);
	if (vfio->fd >= 0)
		return 0;
	return mri_refuse_node(vfio->info, path, vfio->fd, reterr_reason);
}

/* Bind first: before that, the kernel allows nothing else. */
static int attach_device(const struct mri_vfio *vfio,
			 struct mr_reason *reterr_reason)
{
	struct vfio_bind_iommufd bind = { .argsz = sizeof(bind),
					  .iommufd = vfio->container->fd };
	struct vfio_attach_iommufd pt = { .argsz = sizeof(pt),
					  .pt_id = vfio->container->ioas_id };

	if (ioctl(vfio->fd, VFIO_DEVICE_BIND_IOMMUFD, &bind) < 0) {
		/* Its DMA is owned by a driver of its group. */
		if (errno == EPERM)
			return mri_refuse_group(vfio->ctx, vfio->info,
						reterr_reason);
		return mri_refuse_call(vfio->info, "VFIO_DEVICE_BIND_IOMMUFD",
				       -errno, reterr_reason);
	}
	if (ioctl(vfio->fd, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &pt) < 0)
		return mri_refuse_call(vfio->info,
				       "VFIO_DEVICE_ATTACH_IOMMUFD_PT", -errno,
				       reterr_reason);
	return 0;
}

static int iommufd_join(struct mri_vfio *vfio, struct mr_reason *reterr_reason)
{
	int err = open_cdev(vfio, reterr_reason);

	if (err < 0) {
		vfio->fd = -1;
		return err;
	}
	vfio->container = mri_container_find(vfio);
	if (vfio->container == NULL)
		err = open_ioas(vfio, reterr_reason);
	if (err == 0) {
		err = attach_device(vfio, reterr_reason);
		if (err == 0) {
			vfio->container->n_users++;
			return 0;
		}
	}
	/* Closing it detaches and unbinds. */
	mr_fd_close(vfio->fd);
	vfio->fd = -1;
	if (vfio->container != NULL)
		mri_container_put(vfio);
	return err;
}

static void iommufd_leave(struct mri_vfio *vfio)
{
	mr_fd_close(vfio->fd);
	vfio->fd = -1;
	vfio->container->n_users--;
	mri_container_put(vfio);
}

static int iommufd_map(const struct mri_container *c, const void *memory,
		       uint64_t iova, uint64_t n_bytes)
{
	struct iommu_ioas_map map = {
		.size = sizeof(map),
		.flags = IOMMU_MAP_FIXED | IOMMU_MAP_READ | IOMMU_MAP_WRITE,
		.ioas_id = c->ioas_id,
		.vaddr = (uintptr_t)memory,
		.length = n_bytes,
		.iova = iova,
	};

	return ioctl(c->fd, IOMMU_IOAS_MAP, &map) < 0 ? -errno : 0;
}

static int iommufd_unmap(const struct mri_container *c, uint64_t iova,
			 uint64_t n_bytes)
{
	struct iommu_ioas_unmap unmap = { .size = sizeof(unmap),
					  .ioas_id = c->ioas_id,
					  .iova = iova,
					  .length = n_bytes };

	return ioctl(c->fd, IOMMU_IOAS_UNMAP, &unmap) < 0 ? -errno : 0;
}

/* If there are more ranges than room, the first are enough. */
static int iommufd_ranges(const struct mri_container *c,
			  struct mr_pci_range *ret, uint32_t n)
{
	struct iommu_ioas_iova_ranges ranges = { .size = sizeof(ranges),
						 .ioas_id = c->ioas_id,
						 .n_ranges = n,
						 .ranges = (uintptr_t)ret };

	_Static_assert(sizeof(struct vfio_iova_range) == sizeof(*ret),
		       "a range is read as it is");
	if (ioctl(c->fd, IOMMU_IOAS_IOVA_RANGES, &ranges) < 0 &&
	    errno != EMSGSIZE)
		return -errno;
	return (int)mri_min_u32(n, ranges.n_ranges);
}

const struct mri_vfio_way mri_vfio_iommufd = {
	.join = iommufd_join,
	.leave = iommufd_leave,
	.map = iommufd_map,
	.unmap = iommufd_unmap,
	.ranges = iommufd_ranges,
	.locked = "VmPin:",
};
