/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device of the kernel's vfio, as a backend.
 *
 * The kernel itself resets the function at open and close if it can, and when
 * the process dies it clears bus mastering, unmaps DMA and releases the device;
 * so a crash leaves nothing behind, and the next start finds a fresh device.
 *
 * Source: linux/drivers/vfio/pci/vfio_pci_core.c, vfio_pci_intrs.c (a positive
 * result of VFIO_DEVICE_SET_IRQS is the number of available vectors).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "pci/vfio.h"

int mri_vfio_open_node(const char *path)
{
	const int fd = mr_fd_guard(open(path, O_RDWR | O_CLOEXEC));

	return fd < 0 ? -errno : fd;
}

/* Chains only go forward. */
const void *mri_vfio_find_cap(const void *info, uint32_t offset,
			      uint32_t n_bytes, uint16_t id)
{
	struct vfio_info_cap_header cap;
	uint32_t before = 0;

	/* The longest that is wanted, without its array. */
	n_bytes -= sizeof(struct vfio_region_info_cap_sparse_mmap);
	while (offset > before && offset <= n_bytes) {
		const uint8_t *const at = (const uint8_t *)info + offset;

		memcpy(&cap, at, sizeof(cap));
		if (cap.id == id)
			return at;
		before = offset;
		offset = cap.next;
	}
	return NULL;
}

struct mri_container *mri_container_find(const struct mri_vfio *vfio)
{
	struct mri_container *c = vfio->ctx->vfio_containers;

	while (c != NULL && (c->way != vfio->way || c->region != vfio->region))
		c = c->next;
	return c;
}

struct mri_container *mri_container_add(const struct mri_vfio *vfio, int fd)
{
	struct mri_container *c = mr_alloc(vfio->ctx, 0, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->way = vfio->way;
	c->region = vfio->region;
	c->fd = fd;
	c->next = vfio->ctx->vfio_containers;
	vfio->ctx->vfio_containers = c;
	return c;
}

void mri_container_put(struct mri_vfio *vfio)
{
	struct mri_container **place = &vfio->ctx->vfio_containers;
	struct mri_container *c = vfio->container;

	vfio->container = NULL;
	if (c->n_users > 0)
		return;
	while (*place != c)
		place = &(*place)->next;
	*place = c->next;
	mr_fd_close(c->fd);
	mr_free(vfio->ctx, c);
}

/* Read the device's kind, and where its config space is in the fd. */
static int ask_device(struct mri_vfio *vfio, struct mr_reason *reterr_reason)
{
	struct vfio_device_info info = { .argsz = sizeof(info) };
	struct vfio_region_info config = {
		.argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX
	};

	if (ioctl(vfio->fd, VFIO_DEVICE_GET_INFO, &info) < 0)
		return mri_refuse_call(vfio->info, "VFIO_DEVICE_GET_INFO",
				       -errno, reterr_reason);
	if ((info.flags & VFIO_DEVICE_FLAGS_PCI) == 0 ||
	    info.num_regions <= VFIO_PCI_CONFIG_REGION_INDEX)
		return mr_fail(reterr_reason, -EIO,
			       "%s: vfio reports that this is not a PCI device",
			       vfio->info->bdf);
	if (ioctl(vfio->fd, VFIO_DEVICE_GET_REGION_INFO, &config) < 0)
		return mri_refuse_call(vfio->info,
				       "VFIO_DEVICE_GET_REGION_INFO", -errno,
				       reterr_reason);
	vfio->config_offset = config.offset;
	return 0;
}

static int vfio_open(void *device, struct mr_reason *reterr_reason)
{
	struct mri_vfio *vfio = device;
	int err = vfio->way->join(vfio, reterr_reason);

	if (err < 0)
		return err;
	vfio->backend.mode = vfio->container->mode;
	err = ask_device(vfio, reterr_reason);
	if (err < 0)
		vfio->way->leave(vfio);
	return err;
}

static void vfio_close(void *device)
{
	struct mri_vfio *vfio = device;

	mri_vfio_unmap_bars(vfio);
	vfio->way->leave(vfio);
}

static int vfio_read_config(void *device, uint32_t offset, void *ret,
			    uint32_t n_bytes)
{
	const struct mri_vfio *vfio = device;
	const off_t at = (off_t)(vfio->config_offset + offset);

	return pread(vfio->fd, ret, n_bytes, at) == (ssize_t)n_bytes ? 0 : -EIO;
}

static int vfio_write_config(void *device, uint32_t offset, const void *bytes,
			     uint32_t n_bytes)
{
	const struct mri_vfio *vfio = device;
	const off_t at = (off_t)(vfio->config_offset + offset);

	return pwrite(vfio->fd, bytes, n_bytes, at) == (ssize_t)n_bytes ? 0 :
									  -EIO;
}

static int vfio_map_dma(void *device, void *memory, uint64_t iova,
			uint64_t n_bytes, struct mr_reason *reterr_reason)
{
	struct mri_vfio *vfio = device;
	struct mri_container *c = vfio->container;
	const int err = c->way->map(c, memory, iova, n_bytes);

	if (err < 0)
		return mri_refuse_map(vfio, n_bytes, err, reterr_reason);
	__atomic_fetch_add(&c->n_mapped_bytes, n_bytes, __ATOMIC_RELAXED);
	return 0;
}

static int vfio_unmap_dma(void *device, uint64_t iova, uint64_t n_bytes)
{
	struct mri_vfio *vfio = device;
	struct mri_container *c = vfio->container;

	const int err = c->way->unmap(c, iova, n_bytes);

	if (err == 0)
		__atomic_fetch_sub(&c->n_mapped_bytes, n_bytes,
				   __ATOMIC_RELAXED);
	return err;
}

static int vfio_iova_ranges(void *device, struct mr_pci_range *ret, uint32_t n)
{
	const struct mri_vfio *vfio = device;

	return vfio->container->way->ranges(vfio->container, ret, n);
}

/* 0, -errno, or the number of available vectors. No fds: disable them. */
static int set_trigger(const struct mri_vfio *vfio, uint32_t index, uint32_t n,
		       const int *fds)
{
	uint32_t buffer[sizeof(struct vfio_irq_set) / 4 + MRI_PCI_MAX_IRQS];
	struct vfio_irq_set *set = (struct vfio_irq_set *)buffer;
	int err;

	*set = (struct vfio_irq_set){
		.argsz = (uint32_t)(sizeof(*set) + n * sizeof(fds[0])),
		.flags = VFIO_IRQ_SET_ACTION_TRIGGER |
			 (n > 0 ? VFIO_IRQ_SET_DATA_EVENTFD :
				  VFIO_IRQ_SET_DATA_NONE),
		.index = index,
		.count = n,
	};
	if (n > 0)
		memcpy(set->data, fds, n * sizeof(fds[0]));
	err = ioctl(vfio->fd, VFIO_DEVICE_SET_IRQS, set);
	return err < 0 ? -errno : err;
}

/* How many interrupts of a kind vfio has for the device. */
static uint32_t count_irqs(const struct mri_vfio *vfio, uint32_t index)
{
	struct vfio_irq_info info = { .argsz = sizeof(info), .index = index };

	if (ioctl(vfio->fd, VFIO_DEVICE_GET_IRQ_INFO, &info) < 0)
		return 0;
	return info.count;
}

static int vfio_set_irqs(void *device, uint32_t n, const int *fds)
{
	struct mri_vfio *vfio = device;
	uint32_t n_vectors;

	if (n == 0)
		return set_trigger(vfio, vfio->irq_index, 0, NULL);
	vfio->irq_index = VFIO_PCI_MSIX_IRQ_INDEX;
	n_vectors = count_irqs(vfio, VFIO_PCI_MSIX_IRQ_INDEX);
	if (n_vectors == 0) {
		vfio->irq_index = VFIO_PCI_MSI_IRQ_INDEX;
		n_vectors = count_irqs(vfio, VFIO_PCI_MSI_IRQ_INDEX);
	}
	if (n_vectors < n)
		return n_vectors > 0 ? (int)n_vectors : -ENOTSUP;
	return set_trigger(vfio, vfio->irq_index, n, fds);
}

/* ERR exists only for PCI Express, and a mediated device may lack REQ. */
static int vfio_set_events(void *device, int req_fd, int err_fd)
{
	const struct mri_vfio *vfio = device;
	int err = 0;

	if (count_irqs(vfio, VFIO_PCI_ERR_IRQ_INDEX) > 0)
		err = set_trigger(vfio, VFIO_PCI_ERR_IRQ_INDEX, 1, &err_fd);
	if (err == 0 && count_irqs(vfio, VFIO_PCI_REQ_IRQ_INDEX) > 0)
		err = set_trigger(vfio, VFIO_PCI_REQ_IRQ_INDEX, 1, &req_fd);
	return err;
}

static const struct mr_pci_backend vfio_backend = {
	.size = sizeof(struct mr_pci_backend),
	.open = vfio_open,
	.close = vfio_close,
	.read_config = vfio_read_config,
	.write_config = vfio_write_config,
	.map_bar = mri_vfio_map_bar,
	.map_dma = vfio_map_dma,
	.unmap_dma = vfio_unmap_dma,
	.set_irqs = vfio_set_irqs,
	.set_events = vfio_set_events,
	.iova_ranges = vfio_iova_ranges,
};

/* iommufd if both of its nodes can be opened, else the group. */
static const struct mri_vfio_way *choose_way(const struct mr_pci_info *info,
					     uint32_t access_kind)
{
	char path[MRI_PATH_BYTES];

	if (access_kind == MR_PCI_NOIOMMU)
		return &mri_vfio_noiommu;
	if (access_kind != MR_PCI_AUTO)
		return access_kind == MR_PCI_IOMMUFD ? &mri_vfio_iommufd :
						       &mri_vfio_group;
	snprintf(path, sizeof(path), "/dev/vfio/devices/%s", info->vfio_cdev);
	if (info->vfio_cdev[0] != '\0' && access(path, R_OK | W_OK) == 0 &&
	    access("/dev/iommu", R_OK | W_OK) == 0)
		return &mri_vfio_iommufd;
	return &mri_vfio_group;
}

int mri_vfio_create(struct mr_pci *pci, const struct mr_pci_config *config,
		    struct mri_vfio **ret_vfio, struct mr_reason *reterr_reason)
{
	struct mr_region_stats stats = { .size = sizeof(stats) };
	struct mri_vfio *vfio;

	if (mr_pci_use(pci->ctx, &pci->info) != MR_PCI_USE_VFIO)
		return mri_refuse_driver(&pci->info, reterr_reason);
	if (pci->info.iommu_group < 0)
		return mri_refuse_no_iommu(&pci->info, reterr_reason);
	vfio = mr_alloc(pci->ctx, 0, sizeof(*vfio));
	if (vfio == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for a PCI device");
	if (config->region != NULL)
		(void)mr_region_stats(config->region, &stats);
	vfio->backend = vfio_backend;
	vfio->ctx = pci->ctx;
	vfio->info = &pci->info;
	vfio->way = choose_way(&pci->info, config->access);
	vfio->region = config->region;
	vfio->n_region_bytes = stats.n_bytes;
	vfio->fd = -1;
	*ret_vfio = vfio;
	return 0;
}
