/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region, as DPDK is told of it: each segment is external memory,
 * registered once per process however many ports use it, and mapped for each
 * device; those that are there when a port is opened, and those that come
 * later, before pages of them are given out.
 *
 * A segment comes on any thread, in a burst as well, under the region's lock;
 * maybe on one that is in one of DPDK's control functions, which fill rings. So
 * what is here has a lock of its own, and nothing under it takes another one of
 * ours.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include "dpdk.h"

/* A device that a segment is mapped for. */
struct user {
	struct rte_device *device;
	struct user *next;
};

struct segment {
	uint8_t *memory;
	uint64_t n_bytes;
	uint64_t os_page_bytes;
	uint32_t n_ports;
	bool is_ours; /* else the program had registered it */
	struct user *users;
	struct segment *next;
};

/* Guards all here, and what of it views have. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Of all regions. */
static struct segment *segments;

static struct segment *find(const uint8_t *memory)
{
	struct segment *segment = segments;

	while (segment != NULL && segment->memory != memory)
		segment = segment->next;
	return segment;
}

/* How far a region is registered without a gap. */
static uint64_t registered_end(const uint8_t *base)
{
	const struct segment *segment;
	uint64_t end = 0;

	while ((segment = find(base + end)) != NULL)
		end += segment->n_bytes;
	return end;
}

static rte_iova_t iova_of(const struct segment *segment, uint64_t offset)
{
	const uint8_t *page = segment->memory + offset;

	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		return (rte_iova_t)(uintptr_t)page;
	/* A small page may be moved: no device may know where it is. */
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

/* One more port uses the segment. */
static int take(uint8_t *memory, const struct mr_segment_info *info)
{
	struct segment *segment = find(memory);
	int err;

	if (segment != NULL) {
		segment->n_ports++;
		return 0;
	}
	segment = calloc(1, sizeof(*segment));
	if (segment == NULL)
		return -ENOMEM;
	*segment = (struct segment){ .memory = memory,
				     .n_bytes = info->n_bytes,
				     .os_page_bytes = info->os_page_bytes,
				     .n_ports = 1 };
	err = tell_dpdk(segment);
	if (err < 0) {
		free(segment);
		return err;
	}
	segment->next = segments;
	segments = segment;
	return 0;
}

/* In pieces that are in one piece for the device, too. */
static uint64_t piece_bytes(const struct segment *segment)
{
	return rte_eal_iova_mode() == RTE_IOVA_VA ? segment->n_bytes :
						    segment->os_page_bytes;
}

static int map_pieces(struct rte_device *device, const struct segment *segment)
{
	const uint64_t step = piece_bytes(segment);

	for (uint64_t at = 0; at < segment->n_bytes; at += step)
		if (rte_dev_dma_map(device, segment->memory + at,
				    iova_of(segment, at), step) < 0 &&
		    rte_errno != ENOTSUP) /* it has no DMA, or none to map */
			return rte_errno != 0 ? -rte_errno : -EIO;
	return 0;
}

static int map(struct rte_device *device, struct segment *segment)
{
	struct user *user = segment->users;

	while (user != NULL && user->device != device)
		user = user->next;
	if (user != NULL)
		return 0; /* for another port on it */
	user = calloc(1, sizeof(*user));
	if (user == NULL)
		return -ENOMEM;
	*user = (struct user){ device, segment->users };
	segment->users = user;
	return map_pieces(device, segment);
}

/* Whether it has an Ethernet port still: a program may have removed it. */
static bool is_there(const struct rte_device *device)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	RTE_ETH_FOREACH_DEV(id)
	if (rte_eth_dev_info_get(id, &info) == 0 && info.device == device)
		return true;
	return false;
}

static void unmap(struct rte_device *device, const struct segment *segment)
{
	const uint64_t step = piece_bytes(segment);

	for (uint64_t at = 0; at < segment->n_bytes; at += step)
		(void)rte_dev_dma_unmap(device, segment->memory + at,
					iova_of(segment, at), step);
}

/*
 * The last port of all unmaps, for each device: some have their maps in common,
 * and nothing says which. Its own device is there, though the port is closed.
 */
static void drop(struct segment *segment, struct rte_device *own)
{
	struct segment **at = &segments;

	if (--segment->n_ports > 0)
		return;
	for (struct user *user = segment->users, *next; user != NULL;
	     user = next) {
		next = user->next;
		if (user->device == own || is_there(user->device))
			unmap(user->device, segment);
		free(user);
	}
	if (segment->is_ours)
		(void)rte_extmem_unregister(segment->memory, segment->n_bytes);
	while (*at != segment)
		at = &(*at)->next;
	*at = segment->next;
	free(segment);
}

static bool needs_physical(const struct dpdk_port *port)
{
	return rte_eal_iova_mode() == RTE_IOVA_PA &&
	       strcmp(rte_bus_name(rte_dev_bus(port->device)), "vdev") != 0;
}

/* DPDK's own words are there while the port is opened. */
static int refuse(const struct dpdk_port *port, int err, const char *what,
		  struct mr_reason *reason)
{
	return mr_fail(reason, err == -ENOMEM ? err : -EIO,
		       "%s: cannot %s the pool's memory: %s",
		       port->base->info.name, what,
		       port->is_growing ? rte_strerror(-err) :
					  mri_dpdk_why(-err));
}

static int take_and_map(struct dpdk_port *port, uint8_t *memory,
			const struct mr_segment_info *info,
			struct mr_reason *reason)
{
	struct segment *segment;
	int err = take(memory, info);

	if (err < 0)
		return refuse(port, err, "register", reason);
	segment = find(memory);
	err = map(port->device, segment);
	if (err == 0)
		return 0;
	err = refuse(port, err, "map", reason);
	drop(segment, port->device);
	return err;
}

static int add_segment(void *opaque, const struct mr_segment_info *info,
		       struct mr_reason *reason)
{
	struct dpdk_port *port = opaque;
	uint8_t *base = port->base->base;
	int err;

	if (info->os_page_bytes == 4096 && needs_physical(port))
		return mr_fail(reason, -ENOTSUP,
			       "%s: the device needs physical addresses, and "
			       "the pool lies in pages of 4 KiB (%s): reserve "
			       "huge pages, or turn the IOMMU on",
			       port->base->info.name, info->why);
	pthread_mutex_lock(&lock);
	err = take_and_map(port, base + info->addr, info, reason);
	if (err == 0 && port->is_growing)
		mri_dpdk_view_resize(port->view, registered_end(base));
	pthread_mutex_unlock(&lock);
	return err;
}

/* Another port could not take it, or this one is being closed. */
static void remove_segment(void *opaque, const struct mr_segment_info *info)
{
	struct dpdk_port *port = opaque;
	uint8_t *base = port->base->base;

	pthread_mutex_lock(&lock);
	drop(find(base + info->addr), port->device);
	if (port->is_growing)
		mri_dpdk_view_resize(port->view, registered_end(base));
	pthread_mutex_unlock(&lock);
}

/* From now on the view grows with the region. */
static int get_view(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_region_stats stats = { .size = sizeof(stats) };
	struct dpdk_view *view;

	(void)mr_region_stats(port->base->region, &stats);
	view = mri_dpdk_view_get(port, stats.max_bytes, reason);
	if (view == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	view->n_ports++;
	mri_dpdk_view_resize(view, registered_end(port->base->base));
	port->view = view;
	port->is_growing = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

int mri_dpdk_memory_open(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_port *base = port->base;
	int err = mr_region_pin(base->region, base->info.name, UINT64_MAX);

	if (err == -ENOTSUP)
		return mr_fail(reason, -ENOTSUP,
			       "%s: its pool is guarded (MR_SAFETY_GUARD), and "
			       "no device can register such memory: choose a "
			       "lower safety level",
			       base->info.name);
	if (err < 0)
		return mr_fail(reason, err, "%s: too many ports on one region",
			       base->info.name);
	port->is_pinned = true;
	if (!mr_pool_is_below(base->pool,
			      mr_region_n_contiguous_bytes(base->region)))
		return mr_fail(reason, -EINVAL,
			       "%s: its pool lies behind a gap of its region: "
			       "make that pool the first of the region, or "
			       "give it a region",
			       base->info.name);
	err = mr_region_listen(base->region, add_segment, remove_segment, port,
			       reason);
	if (err < 0)
		return err; /* it is told of nothing */
	port->is_listening = true;
	return get_view(port, reason);
}

/*
 * Some devices leave their IOMMU group when they are closed (virtio), and DPDK
 * keeps what is mapped then, to map it again with the next device. So this is
 * done before.
 */
void mri_dpdk_memory_unmap(struct dpdk_port *port)
{
	struct mr_port *base = port->base;

	if (!port->is_listening)
		return;
	pthread_mutex_lock(&lock);
	port->is_growing = false;
	pthread_mutex_unlock(&lock);
	mri_dpdk_ask(true); /* to unmap twice is no error here */
	mr_region_unlisten(base->region, port);
	mri_dpdk_ask(false);
	port->is_listening = false;
}

void mri_dpdk_memory_close(struct dpdk_port *port)
{
	struct mr_port *base = port->base;
	struct dpdk_view *view = port->view;

	pthread_mutex_lock(&lock);
	if (view != NULL && --view->n_ports == 0)
		mri_dpdk_view_resize(view, 0);
	pthread_mutex_unlock(&lock);
	mri_dpdk_view_put(view);
	if (port->is_pinned)
		mr_region_unpin(base->region, base->info.name, UINT64_MAX);
}
