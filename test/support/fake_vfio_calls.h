/* SPDX-License-Identifier: BSD-3-Clause */
/* The ioctls of fake_vfio.h: a table, each row of which can be made to fail. */
#ifndef SUPPORT_FAKE_VFIO_CALLS_H
#define SUPPORT_FAKE_VFIO_CALLS_H

#include "support/fake_vfio.h"

int __wrap_ioctl(int fd, unsigned long call, ...);

static int answer_version(int fd, void *arg)
{
	(void)arg;
	fake_find(fd, FAKE_CONTAINER);
	return VFIO_API_VERSION;
}

static int answer_extension(int fd, void *arg)
{
	fake_find(fd, FAKE_CONTAINER);
	for (int i = 0; i < 3; i++)
		if (fake.types[i] != 0 && fake.types[i] == (int)(intptr_t)arg)
			return 1;
	return 0;
}

static int answer_set_iommu(int fd, void *arg)
{
	struct fake_fd *c = fake_find(fd, FAKE_CONTAINER);
	bool has_group = false;

	for (int i = 0; i < FAKE_FDS; i++)
		has_group |= fake.fds[i].kind == FAKE_GROUP &&
			     fake.fds[i].parent == fd;
	assert_true(has_group);
	assert_int_equal(c->type, 0);
	assert_int_equal(answer_extension(fd, arg), 1);
	c->type = (int)(intptr_t)arg;
	return 0;
}

static int answer_iommu_info(int fd, void *arg)
{
	const struct vfio_iommu_type1_info_cap_iova_range cap = {
		.header = { .id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE,
			    .version = 1 },
		.nr_iovas = fake.n_ranges
	};
	/* 12 bytes: kernels before 6.6 do not align what follows. */
	const struct vfio_iommu_type1_info_dma_avail other = {
		.header = { .id = VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL,
			    .version = 1,
			    .next = fake.chain_loops ? 32 : 44 }
	};
	struct vfio_iommu_type1_info *info = arg;
	uint8_t *bytes = arg;

	assert_int_not_equal(fake_find(fd, FAKE_CONTAINER)->type, 0);
	assert_true(info->argsz >= 64 + sizeof(fake.ranges));
	if (fake.says_no_ranges)
		return 0;
	info->flags = VFIO_IOMMU_INFO_CAPS;
	info->cap_offset = 32; /* another first: the chain is walked */
	memcpy(bytes + 32, &other, sizeof(other));
	memcpy(bytes + 44, &cap, sizeof(cap));
	memcpy(bytes + 60, fake.ranges, fake.n_ranges * sizeof(fake.ranges[0]));
	return 0;
}

static int fake_map_memory(int fd, uint64_t vaddr, uint64_t iova, uint64_t size)
{
	struct fake_map *place = NULL;
	uint64_t n_locked = size;
	bool is_inside = false;

	assert_int_equal((vaddr | iova | size) % 4096, 0);
	assert_true(size > 0);
	for (uint32_t i = 0; i < fake.n_ranges; i++)
		is_inside |= iova >= fake.ranges[i].start &&
			     iova + size - 1 <= fake.ranges[i].end;
	if (!is_inside)
		return fake_error(EINVAL);
	for (int i = 0; i < FAKE_MAPS; i++) {
		struct fake_map *m = &fake.maps[i];

		if (m->size == 0)
			place = m;
		n_locked += m->size;
		if (m->size != 0 && m->fd == fd && iova < m->iova + m->size &&
		    m->iova < iova + size)
			return fake_error(EEXIST);
	}
	if (n_locked > fake.locked_limit)
		return fake_error(ENOMEM);
	assert_non_null(place);
	*place = (struct fake_map){ fd, vaddr, iova, size };
	return 0;
}

static int fake_unmap_memory(int fd, uint64_t iova, uint64_t size)
{
	for (int i = 0; i < FAKE_MAPS; i++)
		if (fake.maps[i].fd == fd && fake.maps[i].iova == iova &&
		    fake.maps[i].size == size) {
			fake.maps[i].size = 0;
			return 0;
		}
	fail_msg("what is unmapped was not mapped in one piece");
	return -1;
}

static int answer_map(int fd, void *arg)
{
	const struct vfio_iommu_type1_dma_map *map = arg;
	const int type = fake_find(fd, FAKE_CONTAINER)->type;

	assert_true(type == VFIO_TYPE1_IOMMU || type == VFIO_TYPE1v2_IOMMU);
	assert_int_equal(map->argsz, sizeof(*map));
	assert_int_equal(map->flags,
			 VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE);
	return fake_map_memory(fd, map->vaddr, map->iova, map->size);
}

static int answer_unmap(int fd, void *arg)
{
	const struct vfio_iommu_type1_dma_unmap *unmap = arg;

	assert_int_equal(unmap->argsz, sizeof(*unmap));
	assert_int_equal(unmap->flags, 0);
	return fake_unmap_memory(fd, unmap->iova, unmap->size);
}

static int answer_status(int fd, void *arg)
{
	struct vfio_group_status *status = arg;

	fake_find(fd, FAKE_GROUP);
	assert_int_equal(status->argsz, sizeof(*status));
	status->flags = fake.is_not_viable ? 0 : VFIO_GROUP_FLAGS_VIABLE;
	return 0;
}

static int answer_set_container(int fd, void *arg)
{
	struct fake_fd *group = fake_find(fd, FAKE_GROUP);

	assert_int_equal(group->parent, -1);
	group->parent = fake_find(*(int *)arg, FAKE_CONTAINER)->fd;
	return 0;
}

static int answer_unset_container(int fd, void *arg)
{
	(void)arg;
	for (int i = 0; i < FAKE_FDS; i++)
		if (fake.fds[i].kind == FAKE_DEVICE && fake.fds[i].parent == fd)
			fail_msg("a group with an open device stays");
	fake_find(fd, FAKE_GROUP)->parent = -1;
	return 0;
}

static int answer_device_fd(int fd, void *arg)
{
	const struct fake_fd *group = fake_find(fd, FAKE_GROUP);

	assert_int_not_equal(fake_find(group->parent, FAKE_CONTAINER)->type, 0);
	for (uint32_t i = 0; i < FAKE_DEVICES; i++)
		if (strcmp(fake.devices[i].bdf, arg) == 0 &&
		    fake.devices[i].group == group->number) {
			const int device = fake_new_device(i);

			fake_find(device, FAKE_DEVICE)->parent = fd;
			fake_find(device, FAKE_DEVICE)->is_attached = true;
			return device;
		}
	return fake_error(ENODEV);
}

/* The device of an fd that may be used. */
static inline struct fake_device *fake_device_of(int fd)
{
	const struct fake_fd *f = fake_find(fd, FAKE_DEVICE);

	assert_true(f->is_attached);
	return &fake.devices[f->number];
}

static int answer_device_info(int fd, void *arg)
{
	struct vfio_device_info *info = arg;

	assert_int_equal(info->argsz, sizeof(*info));
	info->flags = fake_device_of(fd)->flags;
	info->num_regions = 9;
	info->num_irqs = 5;
	return 0;
}

/* The chain of a BAR: its sparse areas, then whether the table is in it. */
static inline void fake_region_caps(const struct fake_bar *bar,
				    struct vfio_region_info *info)
{
	uint8_t *bytes = (uint8_t *)info;
	struct vfio_region_info_cap_sparse_mmap sparse = {
		.header = { VFIO_REGION_INFO_CAP_SPARSE_MMAP, 1, 0 },
		.nr_areas = bar->n_areas
	};
	const struct vfio_info_cap_header mappable = {
		VFIO_REGION_INFO_CAP_MSIX_MAPPABLE, 1, 0
	};

	if (bar->n_areas == 0 && !bar->is_msix_mappable)
		return;
	info->flags |= VFIO_REGION_INFO_FLAG_CAPS;
	info->cap_offset = bar->is_msix_mappable ? 32 : 40;
	if (bar->is_msix_mappable) {
		memcpy(bytes + 32, &mappable, sizeof(mappable));
		if (bar->n_areas > 0)
			((struct vfio_info_cap_header *)(bytes + 32))->next =
				40;
	}
	if (bar->n_areas > 0) {
		memcpy(bytes + 40, &sparse, sizeof(sparse));
		memcpy(bytes + 40 + sizeof(sparse), bar->areas,
		       sizeof(bar->areas));
	}
}

static int answer_region_info(int fd, void *arg)
{
	struct vfio_region_info *info = arg;
	const struct fake_device *d = fake_device_of(fd);

	assert_true(info->argsz >= sizeof(*info));
	info->offset = (uint64_t)info->index << 40;
	if (info->index == VFIO_PCI_CONFIG_REGION_INDEX) {
		info->size = sizeof(d->config);
		return 0;
	}
	assert_true(info->index < 6);
	info->size = d->bars[info->index].size;
	if (d->bars[info->index].can_mmap)
		info->flags |= VFIO_REGION_INFO_FLAG_MMAP;
	if (info->argsz > 256)
		fake_region_caps(&d->bars[info->index], info);
	return 0;
}

static int answer_irq_info(int fd, void *arg)
{
	struct vfio_irq_info *info = arg;

	assert_true(info->index < 5);
	if (info->index == VFIO_PCI_ERR_IRQ_INDEX &&
	    fake_device_of(fd)->n_vectors[VFIO_PCI_ERR_IRQ_INDEX] == 0)
		return fake_error(EINVAL); /* no PCI Express */
	info->count = fake_device_of(fd)->n_vectors[info->index];
	return 0;
}

static int answer_set_irqs(int fd, void *arg)
{
	const struct vfio_irq_set *set = arg;
	struct fake_device *d = fake_device_of(fd);

	assert_true(set->index < 5);
	if (set->flags ==
	    (VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER)) {
		assert_int_equal(set->count, 0);
		d->n_armed[set->index] = 0;
		return 0;
	}
	assert_int_equal(set->flags, VFIO_IRQ_SET_DATA_EVENTFD |
					     VFIO_IRQ_SET_ACTION_TRIGGER);
	assert_int_equal(set->argsz, sizeof(*set) + 4 * set->count);
	assert_int_equal(set->start, 0);
	assert_true(set->count <= FAKE_IRQS);
	if (set->count > d->n_vectors[set->index])
		return fake_error(EINVAL);
	if (set->index <= VFIO_PCI_MSIX_IRQ_INDEX &&
	    set->count > d->n_free_vectors)
		return (int)d->n_free_vectors;
	memcpy(d->fds[set->index], set->data, 4 * set->count);
	d->n_armed[set->index] = d->fds[set->index][0] >= 0 ? set->count : 0;
	return 0;
}

static int answer_bind(int fd, void *arg)
{
	struct vfio_bind_iommufd *bind = arg;
	struct fake_fd *device = fake_find(fd, FAKE_DEVICE);

	assert_int_equal(bind->argsz, sizeof(*bind));
	assert_int_equal(device->parent, -1);
	device->parent = fake_find(bind->iommufd, FAKE_IOMMUFD)->fd;
	return 0;
}

static int answer_attach(int fd, void *arg)
{
	const struct vfio_attach_iommufd *pt = arg;
	struct fake_fd *device = fake_find(fd, FAKE_DEVICE);

	assert_int_equal(pt->argsz, sizeof(*pt));
	assert_int_not_equal(device->parent, -1);
	assert_int_equal(pt->pt_id,
			 fake_find(device->parent, FAKE_IOMMUFD)->number);
	device->is_attached = true;
	return 0;
}

static int answer_ioas(int fd, void *arg)
{
	struct iommu_ioas_alloc *alloc = arg;

	assert_int_equal(alloc->size, sizeof(*alloc));
	alloc->out_ioas_id = fake_find(fd, FAKE_IOMMUFD)->number = 77;
	return 0;
}

static int answer_ioas_ranges(int fd, void *arg)
{
	struct iommu_ioas_iova_ranges *r = arg;
	const uint32_t n_room = r->n_ranges;

	assert_int_equal(r->size, sizeof(*r));
	assert_int_equal(r->ioas_id, fake_find(fd, FAKE_IOMMUFD)->number);
	r->n_ranges = fake.n_ranges;
	r->out_alignment = 4096;
	memcpy((void *)(uintptr_t)r->ranges, fake.ranges,
	       (n_room < fake.n_ranges ? n_room : fake.n_ranges) *
		       sizeof(fake.ranges[0]));
	return n_room < fake.n_ranges ? fake_error(EMSGSIZE) : 0;
}

static int answer_ioas_map(int fd, void *arg)
{
	const struct iommu_ioas_map *map = arg;

	assert_int_equal(map->size, sizeof(*map));
	assert_int_equal(map->ioas_id, fake_find(fd, FAKE_IOMMUFD)->number);
	assert_int_equal(map->flags,
			 IOMMU_MAP_FIXED | IOMMU_MAP_READ | IOMMU_MAP_WRITE);
	return fake_map_memory(fd, map->vaddr, map->iova, map->length);
}

static int answer_ioas_unmap(int fd, void *arg)
{
	const struct iommu_ioas_unmap *unmap = arg;

	assert_int_equal(unmap->size, sizeof(*unmap));
	return fake_unmap_memory(fd, unmap->iova, unmap->length);
}

/* For each call: its function, and which one, from 1, fails instead. */
static struct fake_call {
	unsigned long call;
	const char *name;
	int (*answer)(int fd, void *arg);
	uint32_t n_calls;
	uint32_t fail_at;
	int fail_errno;
} fake_calls[] = {
	{ VFIO_GET_API_VERSION, "GET_API_VERSION", answer_version, 0, 0, 0 },
	{ VFIO_CHECK_EXTENSION, "CHECK_EXTENSION", answer_extension, 0, 0, 0 },
	{ VFIO_SET_IOMMU, "SET_IOMMU", answer_set_iommu, 0, 0, 0 },
	{ VFIO_IOMMU_GET_INFO, "GET_INFO", answer_iommu_info, 0, 0, 0 },
	{ VFIO_IOMMU_MAP_DMA, "MAP_DMA", answer_map, 0, 0, 0 },
	{ VFIO_IOMMU_UNMAP_DMA, "UNMAP_DMA", answer_unmap, 0, 0, 0 },
	{ VFIO_GROUP_GET_STATUS, "GET_STATUS", answer_status, 0, 0, 0 },
	{ VFIO_GROUP_SET_CONTAINER, "SET_CONTAINER", answer_set_container, 0, 0,
	  0 },
	{ VFIO_GROUP_UNSET_CONTAINER, "UNSET_CONTAINER", answer_unset_container,
	  0, 0, 0 },
	{ VFIO_GROUP_GET_DEVICE_FD, "GET_DEVICE_FD", answer_device_fd, 0, 0,
	  0 },
	{ VFIO_DEVICE_GET_INFO, "DEVICE_GET_INFO", answer_device_info, 0, 0,
	  0 },
	{ VFIO_DEVICE_GET_REGION_INFO, "GET_REGION_INFO", answer_region_info, 0,
	  0, 0 },
	{ VFIO_DEVICE_GET_IRQ_INFO, "GET_IRQ_INFO", answer_irq_info, 0, 0, 0 },
	{ VFIO_DEVICE_SET_IRQS, "SET_IRQS", answer_set_irqs, 0, 0, 0 },
	{ VFIO_DEVICE_BIND_IOMMUFD, "BIND_IOMMUFD", answer_bind, 0, 0, 0 },
	{ VFIO_DEVICE_ATTACH_IOMMUFD_PT, "ATTACH", answer_attach, 0, 0, 0 },
	{ IOMMU_IOAS_ALLOC, "IOAS_ALLOC", answer_ioas, 0, 0, 0 },
	{ IOMMU_IOAS_IOVA_RANGES, "IOVA_RANGES", answer_ioas_ranges, 0, 0, 0 },
	{ IOMMU_IOAS_MAP, "IOAS_MAP", answer_ioas_map, 0, 0, 0 },
	{ IOMMU_IOAS_UNMAP, "IOAS_UNMAP", answer_ioas_unmap, 0, 0, 0 },
};

enum { FAKE_CALLS = sizeof(fake_calls) / sizeof(fake_calls[0]) };

int __wrap_ioctl(int fd, unsigned long call, ...)
{
	va_list args;
	void *arg;

	va_start(args, call);
	arg = va_arg(args, void *);
	va_end(args);
	for (int i = 0; i < FAKE_CALLS; i++) {
		struct fake_call *c = &fake_calls[i];

		if (c->call != call)
			continue;
		if (++c->n_calls == c->fail_at)
			return fake_error(c->fail_errno);
		return c->answer(fd, arg);
	}
	fail_msg("an ioctl that nobody knows: %lx", call);
	return -1;
}

#endif
