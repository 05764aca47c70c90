/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio with groups and containers: for kernels before 6.6, and Debian's.
 *
 * A group can be opened only once in the whole system, and belongs to one
 * container, so ports of a group share both. Without an IOMMU the calls are the
 * same, with other node names, and nothing is mapped.
 *
 * Source: linux/Documentation/driver-api/vfio.rst; drivers/vfio/group.c,
 * container.c, vfio_iommu_type1.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pci/vfio.h"

static const char CONTAINER[] = "/dev/vfio/vfio";

/* Kernels before 5.4 do not report it: 39 bits, without x86's MSI range. */
static const struct mr_pci_range careful[] = {
	{ 0, 0xfedfffff },
	{ 0xfef00000, (UINT64_C(1) << 39) - 1 },
};

static bool is_without_iommu(const struct mri_vfio *vfio)
{
	return vfio->way == &mri_vfio_noiommu;
}

/* The group, if a port of this context has it open. */
static struct mri_group *find_group(const struct mri_vfio *vfio,
				    struct mri_container **ret_container)
{
	struct mri_container *c = vfio->ctx->vfio_containers;
	struct mri_group *group;

	for (; c != NULL; c = c->next)
		for (group = c->groups; group != NULL; group = group->next)
			if (group->number == vfio->info->iommu_group) {
				*ret_container = c;
				return group;
			}
	return NULL;
}

static int open_group(const struct mri_vfio *vfio, int *ret_fd,
		      struct mr_reason *reterr_reason)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/dev/vfio/%s%d",
		 is_without_iommu(vfio) ? "noiommu-" : "",
		 vfio->info->iommu_group);
	fd = mri_vfio_open_node(path);
	if (fd < 0)
		return mri_refuse_node(vfio->info, path, fd, reterr_reason);
	if (ioctl(fd, VFIO_GROUP_GET_STATUS, &status) < 0)
		err = mri_refuse_call(vfio->info, "VFIO_GROUP_GET_STATUS",
				      -errno, reterr_reason);
	else if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0)
		err = mri_refuse_group(vfio->ctx, vfio->info, reterr_reason);
	else
		err = 0;
	if (err < 0)
		mr_fd_close(fd);
	else
		*ret_fd = fd;
	return err;
}

/* The best IOMMU type that the container supports; 0: none. */
static int choose_type(const struct mri_vfio *vfio, int fd)
{
	if (is_without_iommu(vfio))
		return ioctl(fd, VFIO_CHECK_EXTENSION, VFIO_NOIOMMU_IOMMU) > 0 ?
			       VFIO_NOIOMMU_IOMMU :
			       0;
	if (ioctl(fd, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) > 0)
		return VFIO_TYPE1v2_IOMMU;
	return ioctl(fd, VFIO_CHECK_EXTENSION, VFIO_TYPE1_IOMMU) > 0 ?
		       VFIO_TYPE1_IOMMU :
		       0;
}

static int refuse_type(const struct mri_vfio *vfio,
		       struct mr_reason *reterr_reason)
{
	if (is_without_iommu(vfio))
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: to work without an IOMMU, the kernel needs "
			       "CONFIG_VFIO_NOIOMMU and the vfio parameter "
			       "enable_unsafe_noiommu_mode=1",
			       vfio->info->bdf);
	return mr_fail(reterr_reason, -ENOTSUP,
		       "%s: vfio does not support type 1 IOMMUs; modprobe "
		       "vfio_iommu_type1",
		       vfio->info->bdf);
}

static int set_iommu(const struct mri_vfio *vfio, struct mri_container *c,
		     struct mr_reason *reterr_reason)
{
	const int type = choose_type(vfio, c->fd);

	if (type == 0)
		return refuse_type(vfio, reterr_reason);
	if (ioctl(c->fd, VFIO_SET_IOMMU, type) < 0) {
		if (errno == EPERM)
			return mr_fail(
				reterr_reason, -EPERM,
				"%s: the IOMMU does not remap interrupts, so "
				"the device could raise any; enable remapping "
				"(intremap=on, firmware), or accept the risk "
				"(vfio_iommu_type1: allow_unsafe_interrupts=1)",
				vfio->info->bdf);
		return mri_refuse_call(vfio->info, "VFIO_SET_IOMMU", -errno,
				       reterr_reason);
	}
	c->mode = type == VFIO_TYPE1v2_IOMMU ? "type1v2" :
		  type == VFIO_TYPE1_IOMMU   ? "type1" :
					       "noiommu";
	if (type == VFIO_NOIOMMU_IOMMU)
		mr_log(vfio->ctx, MR_LOG_WARNING,
		       "%s: without an IOMMU, a fault in the device or its "
		       "driver may overwrite any memory of the machine",
		       vfio->info->bdf);
	return 0;
}

static int open_container(struct mri_vfio *vfio,
			  struct mr_reason *reterr_reason)
{
	const int fd = mri_vfio_open_node(CONTAINER);

	if (fd < 0)
		return mri_refuse_node(vfio->info, CONTAINER, fd,
				       reterr_reason);
	if (ioctl(fd, VFIO_GET_API_VERSION) != VFIO_API_VERSION) {
		mr_fd_close(fd);
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: the kernel's vfio API is not version 0",
			       vfio->info->bdf);
	}
	vfio->container = mri_container_add(vfio, fd);
	if (vfio->container != NULL)
		return 0;
	mr_fd_close(fd);
	return mr_fail(reterr_reason, -ENOMEM, "%s: no memory",
		       vfio->info->bdf);
}

/* Open a group, in the region's container or a new one. */
static int add_group(struct mri_vfio *vfio, int fd,
		     struct mr_reason *reterr_reason)
{
	struct mri_group *group = mr_alloc(vfio->ctx, 0, sizeof(*group));
	int err = 0;

	if (group == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "%s: no memory",
			       vfio->info->bdf);
	vfio->container = mri_container_find(vfio);
	if (vfio->container == NULL)
		err = open_container(vfio, reterr_reason);
	if (err < 0)
		goto free_group;
	if (ioctl(fd, VFIO_GROUP_SET_CONTAINER, &vfio->container->fd) < 0) {
		err = mri_refuse_call(vfio->info, "VFIO_GROUP_SET_CONTAINER",
				      -errno, reterr_reason);
		goto put_container;
	}
	if (vfio->container->mode == NULL)
		err = set_iommu(vfio, vfio->container, reterr_reason);
	if (err < 0) {
		(void)ioctl(fd, VFIO_GROUP_UNSET_CONTAINER);
		goto put_container;
	}
	group->fd = fd;
	group->number = vfio->info->iommu_group;
	group->next = vfio->container->groups;
	vfio->container->groups = group;
	vfio->group = group;
	return 0;

put_container:
	mri_container_put(vfio);
free_group:
	mr_free(vfio->ctx, group);
	return err;
}

static void put_group(struct mri_vfio *vfio)
{
	struct mri_group **place = &vfio->container->groups;
	struct mri_group *group = vfio->group;

	vfio->group = NULL;
	if (group->n_users > 0)
		return;
	while (*place != group)
		place = &(*place)->next;
	*place = group->next;
	(void)ioctl(group->fd, VFIO_GROUP_UNSET_CONTAINER);
	mr_fd_close(group->fd);
	mr_free(vfio->ctx, group);
}

static int have_group(struct mri_vfio *vfio, struct mr_reason *reterr_reason)
{
	struct mri_container *c = NULL;
	int err, fd = -1;

	vfio->group = find_group(vfio, &c);
	if (vfio->group != NULL && c->region != vfio->region)
		return mr_fail(
			reterr_reason, -EBUSY,
			"%s: another port of its IOMMU group %d uses another "
			"region; the ports of a group must share one",
			vfio->info->bdf, vfio->info->iommu_group);
	if (vfio->group != NULL) {
		vfio->container = c;
		return 0;
	}
	err = open_group(vfio, &fd, reterr_reason);
	if (err < 0)
		return err;
	err = add_group(vfio, fd, reterr_reason);
	if (err < 0)
		mr_fd_close(fd);
	return err;
}

static int group_join(struct mri_vfio *vfio, struct mr_reason *reterr_reason)
{
	int err = have_group(vfio, reterr_reason);

	if (err < 0)
		return err;
	vfio->fd = mr_fd_guard(ioctl(vfio->group->fd, VFIO_GROUP_GET_DEVICE_FD,
				     vfio->info->bdf));
	if (vfio->fd < 0) {
		err = mri_refuse_call(vfio->info, "VFIO_GROUP_GET_DEVICE_FD",
				      -errno, reterr_reason);
		vfio->fd = -1;
		put_group(vfio);
		mri_container_put(vfio);
		return err;
	}
	vfio->group->n_users++;
	vfio->container->n_users++;
	return 0;
}

/* The device first: a group with an open device cannot leave its container. */
static void group_leave(struct mri_vfio *vfio)
{
	mr_fd_close(vfio->fd);
	vfio->fd = -1;
	vfio->group->n_users--;
	vfio->container->n_users--;
	put_group(vfio);
	mri_container_put(vfio);
}

static int group_map(const struct mri_container *c, const void *memory,
		     uint64_t iova, uint64_t n_bytes)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)memory,
		.iova = iova,
		.size = n_bytes
	};

	return ioctl(c->fd, VFIO_IOMMU_MAP_DMA, &map) < 0 ? -errno : 0;
}

static int group_unmap(const struct mri_container *c, uint64_t iova,
		       uint64_t n_bytes)
{
	struct vfio_iommu_type1_dma_unmap unmap = { .argsz = sizeof(unmap),
						    .iova = iova,
						    .size = n_bytes };

	return ioctl(c->fd, VFIO_IOMMU_UNMAP_DMA, &unmap) < 0 ? -errno : 0;
}

static int group_ranges(const struct mri_container *c, struct mr_pci_range *ret,
			uint32_t n)
{
	uint64_t buffer[256] = { 0 }; /* 2 KiB: the chain has about 200 bytes */
	const uint8_t *const end = (const uint8_t *)buffer + sizeof(buffer);
	struct vfio_iommu_type1_info *info = (void *)buffer;
	struct vfio_iommu_type1_info_cap_iova_range cap = { 0 };
	const uint8_t *at;
	size_t n_room;

	_Static_assert(sizeof(struct vfio_iova_range) == sizeof(*ret),
		       "a range is read as it is");
	info->argsz = sizeof(buffer);
	if (ioctl(c->fd, VFIO_IOMMU_GET_INFO, info) < 0)
		return -errno;
	at = mri_vfio_find_cap(info, info->cap_offset, sizeof(buffer),
			       VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE);
	if (at != NULL)
		memcpy(&cap, at, sizeof(cap));
	if (cap.nr_iovas == 0 || n == 0) {
		memcpy(ret, careful, sizeof(careful));
		return 2;
	}
	n_room = (size_t)(end - at - sizeof(cap)) / sizeof(ret[0]);
	n = mri_min_u32(n, mri_min_u32(cap.nr_iovas, (uint32_t)n_room));
	memcpy(ret, at + sizeof(cap), n * sizeof(ret[0]));
	return (int)n;
}

const struct mri_vfio_way mri_vfio_group = {
	.join = group_join,
	.leave = group_leave,
	.map = group_map,
	.unmap = group_unmap,
	.ranges = group_ranges,
	.locked = "VmLck:",
};

/* Nothing to map: the space knows the memory's address. */
static int noiommu_map(const struct mri_container *c, const void *memory,
		       uint64_t iova, uint64_t n_bytes)
{
	uint64_t address;
	const int err = mri_physical(memory, n_bytes, &address);

	(void)c;
	return err < 0 ? err : address == iova ? 0 : -ENXIO;
}

static int noiommu_unmap(const struct mri_container *c, uint64_t iova,
			 uint64_t n_bytes)
{
	(void)c;
	(void)iova;
	(void)n_bytes;
	return 0;
}

static int noiommu_ranges(const struct mri_container *c,
			  struct mr_pci_range *ret, uint32_t n)
{
	(void)c;
	(void)n;
	ret[0] = (struct mr_pci_range){ 0, UINT64_MAX };
	return 1;
}

const struct mri_vfio_way mri_vfio_noiommu = {
	.join = group_join,
	.leave = group_leave,
	.map = noiommu_map,
	.unmap = noiommu_unmap,
	.ranges = noiommu_ranges,
	.locked = NULL,
};
