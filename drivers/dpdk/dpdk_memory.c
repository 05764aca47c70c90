/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announces the region to DPDK: each segment is external memory, registered
 * once per process however many ports use it, and mapped for each device. This
 * includes segments added later, before their pages are used.
 *
 *     segment --> map of device A       (ports on A)
 *             --> map of vfio           (ports on all devices of vfio)
 *
 * DPDK has one set of maps for all devices that it drives through vfio: mapping
 * twice stores two entries, and unmapping for one device unmaps for all. So
 * they share one map here. The last port that uses it removes it, through its
 * own device, which still exists; the segment goes with its last map.
 *
 * A segment may be added on any thread, even in a burst, under the region's
 * lock; perhaps on a thread inside one of DPDK's control functions, which fill
 * rings. So this file has its own lock, under which no other lock of ours is
 * taken, except that of DPDK's log.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include "dpdk.h"

struct map {
	const struct rte_device *device; /* NULL: vfio */
	uint64_t n_bytes;                /* mapped, from the start */
	uint32_t n_ports;
	struct map *next;
};

struct segment {
	uint8_t *memory;
	uint64_t n_bytes;
	uint64_t os_page_bytes;
	bool is_ours; /* registered by us, not by the program */
	struct map *maps;
	struct segment *next;
};

/* Guards all state here, and the views' share of it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Of all regions. */
static struct segment *segments;

static struct segment *find_segment(const uint8_t *memory)
{
	struct segment *segment = segments;

	while (segment != NULL && segment->memory != memory)
		segment = segment->next;
	return segment;
}

/* How much of a region is registered without a gap. */
static uint64_t registered_end(const uint8_t *base)
{
	const struct segment *segment;
	uint64_t end = 0;

	while ((segment = find_segment(base + end)) != NULL)
		end += segment->n_bytes;
	return end;
}

static rte_iova_t iova_of(const struct segment *segment, uint64_t offset)
{
	const uint8_t *page = segment->memory + offset;

	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		return (rte_iova_t)(uintptr_t)page;
	/* A small page may be moved: devices must not know its address. */
	return segment->os_page_bytes > 4096 ? rte_mem_virt2iova(page) :
					       RTE_BAD_IOVA;
}

static int tell_dpdk(struct segment *segment)
{
	const uint64_t n = segment->n_bytes / segment->os_page_bytes;
	rte_iova_t *iovas = calloc(n, sizeof(iovas[0]));
	int err = 0;

	if (iovas == NULL)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		iovas[i] = iova_of(segment, i * segment->os_page_bytes);
	if (rte_extmem_register(segment->memory, segment->n_bytes, iovas,
				(unsigned int)n, segment->os_page_bytes) == 0)
		segment->is_ours = true;
	else if (rte_errno != EEXIST)
		err = rte_errno != 0 ? -rte_errno : -EIO;
	free(iovas);
	return err;
}

static int add_new_segment(uint8_t *memory, const struct mr_segment_info *info,
			   struct segment **ret_segment)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	int err;

	if (segment == NULL)
		return -ENOMEM;
	segment->memory = memory;
	segment->n_bytes = info->n_bytes;
	segment->os_page_bytes = info->os_page_bytes;
	err = tell_dpdk(segment);
	if (err < 0) {
		free(segment);
		return err;
	}
	segment->next = segments;
	segments = segment;
	*ret_segment = segment;
	return 0;
}

static void remove_unused(struct segment *segment)
{
	struct segment **at = &segments;

	if (segment->maps != NULL)
		return;
	if (segment->is_ours)
		(void)rte_extmem_unregister(segment->memory, segment->n_bytes);
	while (*at != segment)
		at = &(*at)->next;
	*at = segment->next;
	free(segment);
}

/* Bytes that are contiguous for the device, too. */
static uint64_t piece_bytes(const struct segment *segment)
{
	return rte_eal_iova_mode() == RTE_IOVA_VA ? segment->n_bytes :
						    segment->os_page_bytes;
}

static int map_pieces(struct rte_device *device, const struct segment *segment,
		      struct map *map)
{
	const uint64_t step = piece_bytes(segment);

	for (; map->n_bytes < segment->n_bytes; map->n_bytes += step) {
		rte_errno = 0; /* not all calls set it */
		if (rte_dev_dma_map(device, segment->memory + map->n_bytes,
				    iova_of(segment, map->n_bytes), step) == 0)
			continue;
		if (rte_errno == ENOTSUP)
			return 0; /* no DMA, or nothing to map */
		return rte_errno != 0 ? -rte_errno : -EIO;
	}
	return 0;
}

static void unmap_pieces(struct rte_device *device,
			 const struct segment *segment, struct map *map)
{
	const uint64_t step = piece_bytes(segment);

	while (map->n_bytes > 0) {
		map->n_bytes -= step;
		(void)rte_dev_dma_unmap(device, segment->memory + map->n_bytes,
					iova_of(segment, map->n_bytes), step);
	}
}

/* See struct map. */
static const struct rte_device *mapped_device(const struct dpdk_port *port)
{
	return port->is_vfio ? NULL : port->device;
}

/* Where the port's map is linked, or would be. */
static struct map **find_map(const struct dpdk_port *port,
			     struct segment *segment)
{
	const struct rte_device *device = mapped_device(port);
	struct map **at = &segment->maps;

	while (*at != NULL && (*at)->device != device)
		at = &(*at)->next;
	return at;
}

/* The device still exists, even if the port is closed. */
static void unmap_for(const struct dpdk_port *port, struct segment *segment)
{
	struct map **at = find_map(port, segment);
	struct map *map = *at;

	if (--map->n_ports > 0)
		return;
	unmap_pieces(port->device, segment, map);
	*at = map->next;
	free(map);
}

static int map_for(const struct dpdk_port *port, struct segment *segment)
{
	struct map **at = find_map(port, segment);
	int err;

	if (*at != NULL) {
		(*at)->n_ports++;
		return 0;
	}
	*at = calloc(1, sizeof(**at));
	if (*at == NULL)
		return -ENOMEM;
	(*at)->device = mapped_device(port);
	(*at)->n_ports = 1;
	err = map_pieces(port->device, segment, *at);
	if (err < 0)
		unmap_for(port, segment);
	return err;
}

static bool needs_physical(const struct dpdk_port *port)
{
	return rte_eal_iova_mode() == RTE_IOVA_PA &&
	       strcmp(rte_bus_name(rte_dev_bus(port->device)), "vdev") != 0;
}

/* On the thread that opens the port, DPDK's own message is available. */
static int refuse_memory(const struct dpdk_port *port, int err,
			 const char *what, struct mr_reason *reason)
{
	return mr_fail(reason, err == -ENOMEM ? err : -EIO,
		       "%s: cannot %s the pool's memory: %s",
		       port->base->info->name, what,
		       port->is_growing ? rte_strerror(-err) :
					  mri_dpdk_why(-err));
}

static int add_and_map(struct dpdk_port *port, uint8_t *memory,
		       const struct mr_segment_info *info,
		       struct mr_reason *reason)
{
	struct segment *segment = find_segment(memory);
	int err = segment == NULL ? add_new_segment(memory, info, &segment) : 0;

	if (err < 0)
		return refuse_memory(port, err, "register", reason);
	err = map_for(port, segment);
	if (err < 0) {
		err = refuse_memory(port, err, "map", reason);
		remove_unused(segment);
	}
	return err;
}

static void unmap_and_remove(const struct dpdk_port *port, uint8_t *memory)
{
	struct segment *segment = find_segment(memory);

	unmap_for(port, segment);
	remove_unused(segment);
}

static int add_segment(void *opaque, const struct mr_segment_info *info,
		       struct mr_reason *reason)
{
	struct dpdk_port *port = opaque;
	uint8_t *base = port->base->base;
	int err;

	if (info->os_page_bytes == 4096 && needs_physical(port))
		return mr_fail(reason, -ENOTSUP,
			       "%s: the device needs physical addresses, but "
			       "the pool uses pages of 4 KiB (%s): reserve "
			       "huge pages, or enable the IOMMU",
			       port->base->info->name, info->why);
	pthread_mutex_lock(&lock);
	err = add_and_map(port, base + info->addr, info, reason);
	if (err == 0 && port->is_growing) {
		err = mri_dpdk_view_resize(port->view, registered_end(base));
		if (err < 0) {
			err = refuse_memory(port, err, "create headers for",
					    reason);
			unmap_and_remove(port, base + info->addr);
		}
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* Another port refused it, or this one is being closed. */
static void remove_segment(void *opaque, const struct mr_segment_info *info)
{
	struct dpdk_port *port = opaque;
	uint8_t *base = port->base->base;

	pthread_mutex_lock(&lock);
	unmap_and_remove(port, base + info->addr);
	/* Other ports may keep it for a while; the next one is different. */
	if (port->is_growing)
		(void)mri_dpdk_view_resize(
			port->view, RTE_MIN(registered_end(base), info->addr));
	pthread_mutex_unlock(&lock);
}

/* From here on, the view grows with the region. */
static int get_view(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_region_stats stats = { .size = sizeof(stats) };
	struct dpdk_view *view;
	int err;

	mri_dpdk_ask(false);
	(void)mr_region_stats(port->base->region, &stats);
	view = mri_dpdk_view_get(port, stats.max_bytes, reason);
	if (view == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	err = mri_dpdk_view_resize(view, registered_end(port->base->base));
	if (err == 0) {
		view->n_ports++;
		port->view = view;
		port->is_growing = true;
	}
	pthread_mutex_unlock(&lock);
	if (err == 0)
		return 0;
	mri_dpdk_view_put(view);
	return refuse_memory(port, err, "create headers for", reason);
}

/*
 * When DPDK gets its first vfio device, it reads its memory list under a lock
 * that it takes recursively, which deadlocks if a writer, such as segment
 * registration, is waiting. So registration waits here.
 */
int mri_dpdk_memory_probe(const char *devargs)
{
	int err;

	pthread_mutex_lock(&lock);
	err = rte_dev_probe(devargs);
	pthread_mutex_unlock(&lock);
	return err;
}

int mri_dpdk_memory_open(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_port *base = port->base;
	int err = mr_region_pin(base->region, base->info->name, UINT64_MAX);

	if (err < 0)
		return mr_fail(reason, err, "%s: too many ports on one region",
			       base->info->name);
	port->is_pinned = true;
	if (!mr_pool_is_below(base->pool,
			      mr_region_n_contiguous_bytes(base->region)))
		return mr_fail(
			reason, -EINVAL,
			"%s: its pool lies behind a gap in the region: make it "
			"the first pool, or use a separate region",
			base->info->name);
	mri_dpdk_ask(false);
	err = mr_region_listen(base->region, add_segment, remove_segment, port,
			       reason);
	if (err < 0)
		return err; /* no notifications for it */
	port->is_listening = true;
	return get_view(port, reason);
}

/*
 * Some devices leave their IOMMU group when closed (virtio); DPDK then keeps
 * the maps, to restore them with the next device. So unmap first.
 */
void mri_dpdk_memory_unmap(struct dpdk_port *port)
{
	struct mr_port *base = port->base;

	if (!port->is_listening)
		return;
	pthread_mutex_lock(&lock);
	port->is_growing = false;
	pthread_mutex_unlock(&lock);
	mr_region_unlisten(base->region, port);
	port->is_listening = false;
}

void mri_dpdk_memory_close(struct dpdk_port *port)
{
	struct mr_port *base = port->base;
	struct dpdk_view *view = port->view;

	pthread_mutex_lock(&lock);
	if (view != NULL && --view->n_ports == 0)
		(void)mri_dpdk_view_resize(view, 0);
	pthread_mutex_unlock(&lock);
	mri_dpdk_view_put(view);
	if (port->is_pinned)
		mr_region_unpin(base->region, base->info->name, UINT64_MAX);
}
