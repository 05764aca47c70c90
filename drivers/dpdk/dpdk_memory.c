/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region, as DPDK is told of it: each segment is external memory,
 * registered once per process however many ports use it, and mapped for each
 * device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include "dpdk.h"

struct segment {
	uint8_t *memory;
	uint64_t n_bytes;
	uint64_t os_page_bytes;
	uint32_t n_ports;
	bool is_ours; /* else the program had registered it */
	struct segment *next;
};

/* Of all regions, under the lock of mri_dpdk_enter(). */
static struct segment *segments;

static struct segment *find(const uint8_t *memory)
{
	struct segment *segment = segments;

	while (segment != NULL && segment->memory != memory)
		segment = segment->next;
	return segment;
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

static int map(struct rte_device *device, const struct segment *segment)
{
	const uint64_t step = piece_bytes(segment);

	for (uint64_t at = 0; at < segment->n_bytes; at += step)
		if (rte_dev_dma_map(device, segment->memory + at,
				    iova_of(segment, at), step) < 0 &&
		    rte_errno != ENOTSUP) /* it has no DMA, or none to map */
			return rte_errno != 0 ? -rte_errno : -EIO;
	return 0;
}

/* The last port unmaps: devices may have their maps in common. */
static void drop(struct rte_device *device, const uint8_t *memory)
{
	struct segment **at = &segments, *segment = find(memory);
	uint64_t step;

	if (segment == NULL || --segment->n_ports > 0)
		return;
	step = piece_bytes(segment);
	for (uint64_t i = 0; i < segment->n_bytes; i += step)
		(void)rte_dev_dma_unmap(device, segment->memory + i,
					iova_of(segment, i), step);
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

static int refuse(const struct dpdk_port *port, int err, const char *what,
		  struct mr_reason *reason)
{
	return mr_fail(reason, err == -ENOMEM ? err : -EIO,
		       "%s: cannot %s the pool's memory: %s",
		       port->base->info.name, what, mri_dpdk_why(-err));
}

static int register_all(struct dpdk_port *port, struct mr_reason *reason)
{
	const struct mr_port *base = port->base;
	struct mr_segment_info info;
	int err;

	for (uint32_t i = 0; mr_region_segment(base->region, i, &info) == 0 &&
			     info.addr < port->n_registered_bytes;
	     i++) {
		uint8_t *memory = (uint8_t *)base->base + info.addr;

		if (info.os_page_bytes == 4096 && needs_physical(port))
			return mr_fail(reason, -ENOTSUP,
				       "%s: the device needs physical "
				       "addresses, and the pool lies in pages "
				       "of 4 KiB (%s): reserve huge pages, or "
				       "turn the IOMMU on",
				       base->info.name, info.why);
		err = take(memory, &info);
		if (err < 0)
			return refuse(port, err, "register", reason);
		port->n_segments++;
		err = map(port->device, find(memory));
		if (err < 0)
			return refuse(port, err, "map", reason);
	}
	return 0;
}

int mri_dpdk_memory_open(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_port *base = port->base;
	uint64_t n_bytes;
	int err;

	if (mr_region_pin(base->region, base->info.name, 0) == -ENOTSUP)
		return mr_fail(reason, -ENOTSUP,
			       "%s: its pool is guarded (MR_SAFETY_GUARD), and "
			       "no device can register such memory: choose a "
			       "lower safety level",
			       base->info.name);
	n_bytes = mr_region_n_contiguous_bytes(base->region);
	if (!mr_pool_is_below(base->pool, n_bytes))
		return mr_fail(reason, -EINVAL,
			       "%s: its pool lies behind a gap of its region: "
			       "make that pool the first of the region, or "
			       "give it a region",
			       base->info.name);
	err = mr_region_pin(base->region, base->info.name, n_bytes);
	if (err < 0)
		return mr_fail(reason, err, "%s: too many ports on one region",
			       base->info.name);
	port->n_registered_bytes = n_bytes;
	err = register_all(port, reason);
	if (err < 0)
		return err;
	port->view = mri_dpdk_view_get(port, n_bytes, reason);
	return port->view == NULL ? -ENOMEM : 0;
}

void mri_dpdk_memory_close(struct dpdk_port *port)
{
	struct mr_port *base = port->base;
	struct mr_segment_info info;

	mri_dpdk_view_put(port->view);
	for (uint32_t i = 0; i < port->n_segments; i++)
		if (mr_region_segment(base->region, i, &info) == 0)
			drop(port->device, (uint8_t *)base->base + info.addr);
	if (port->n_registered_bytes > 0)
		mr_region_unpin(base->region, base->info.name,
				port->n_registered_bytes);
}
