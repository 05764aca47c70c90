/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers: where they are; device status, features and queues.
 *
 * Source: virtio 1.2, 3.1 "Device Initialization", 4.1.4, 5.1.4.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "virtio.h"

enum {
	RESET_TICKS = 1000 * 1000 * 1000 / VIRTIO_TICK_NS, /* of a queue */
	RESET_TIMEOUT_NS = 1000 * 1000 * 1000, /* QEMU: at once; hardware: ms */
	POLL_NS = 50 * 1000,
	MAX_TRIES = 16, /* to read a configuration that changes */
};

static uint32_t read8(const struct virtio_block *block, uint64_t offset)
{
	return mr_bar_read8(block->bar, block->offset + offset);
}

static uint32_t read16(const struct virtio_block *block, uint64_t offset)
{
	return mr_bar_read16(block->bar, block->offset + offset);
}

static uint32_t read32(const struct virtio_block *block, uint64_t offset)
{
	return mr_bar_read32(block->bar, block->offset + offset);
}

static void write16(const struct virtio_block *block, uint64_t offset,
		    uint32_t value)
{
	mr_bar_write16(block->bar, block->offset + offset, (uint16_t)value);
}

static void write32(const struct virtio_block *block, uint64_t offset,
		    uint32_t value)
{
	mr_bar_write32(block->bar, block->offset + offset, value);
}

/* 4.1.3.1: two 32-bit writes. */
static void write64(const struct virtio_block *block, uint64_t offset,
		    uint64_t value)
{
	mr_bar_write64(block->bar, block->offset + offset, value);
}

/* ---- capabilities ---- */

/* Map the BAR of a capability's register block. */
static int map_block(struct virtio_port *port, const struct virtio_cap *cap,
		     struct virtio_block *block, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	struct mr_bar *bar;
	int err;

	if (cap->bar >= VIRTIO_N_BARS)
		return mr_fail(
			reason, -EIO,
			"%s: a capability is in BAR %u, which does not exist",
			name, cap->bar);
	bar = &port->bars[cap->bar];
	if (!(port->mapped_bars & 1u << cap->bar)) {
		err = mr_pci_map_bar(port->pci, cap->bar, bar, reason);
		if (err < 0)
			return err;
		port->mapped_bars |= 1u << cap->bar;
	}
	if ((uint64_t)cap->offset + cap->length > bar->n_bytes ||
	    cap->offset % 4 != 0)
		return mr_fail(reason, -EIO,
			       "%s: a capability is not inside BAR %u", name,
			       cap->bar);
	*block = (struct virtio_block){ bar, cap->offset, cap->length };
	return 0;
}

/* The block for this type; NULL: ignore it. */
static struct virtio_block *block_of(struct virtio_port *port, uint32_t type)
{
	switch (type) {
	case VIRTIO_CAP_COMMON:
		return &port->common;
	case VIRTIO_CAP_NOTIFY:
		return &port->notify;
	case VIRTIO_CAP_DEVICE:
		return &port->device;
	default:
		return NULL;
	}
}

static int find_registers(struct virtio_port *port, struct mr_reason *reason)
{
	uint32_t offset = 0;
	int err = 0;

	while (mr_pci_find_cap(port->pci, VIRTIO_CAP_ID, offset, &offset) ==
	       0) {
		struct virtio_cap cap = { 0 };
		struct virtio_block *block;

		if (mr_pci_read_config(port->pci, offset, &cap,
				       VIRTIO_CAP_BYTES) < 0)
			break;
		block = block_of(port, cap.type);
		/*
		 * The device lists its preferred one first. One that we cannot
		 * use, such as in an I/O BAR, is no reason to give up.
		 */
		if (block == NULL || block->bar != NULL ||
		    cap.n_bytes < VIRTIO_CAP_BYTES)
			continue;
		if (cap.type == VIRTIO_CAP_NOTIFY &&
		    cap.n_bytes >= VIRTIO_CAP_NOTIFY_BYTES &&
		    mr_pci_read_config(port->pci, offset + VIRTIO_CAP_BYTES,
				       &port->notify_multiplier, 4) < 0)
			break;
		if (map_block(port, &cap, block, reason) < 0)
			err = -ENOTSUP;
	}
	if (err < 0 && (port->common.bar == NULL || port->notify.bar == NULL ||
			port->device.bar == NULL))
		return err; /* the last reason */
	if (port->common.bar == NULL || port->notify.bar == NULL ||
	    port->device.bar == NULL ||
	    port->common.n_bytes < VIRTIO_COMMON_BYTES ||
	    port->device.n_bytes < VIRTIO_NET_STATUS)
		return mr_fail(reason, -ENOTSUP,
			       "%s: has no virtio 1.x registers: a legacy "
			       "device; QEMU: disable-modern=off",
			       port->base.info->name);
	return 0;
}

/* ---- status and features ---- */

static uint32_t read_status(const struct virtio_port *port)
{
	return read8(&port->common, VIRTIO_STATUS);
}

static void add_status(struct virtio_port *port, uint32_t bits)
{
	const uint64_t offset = port->common.offset + VIRTIO_STATUS;

	mr_bar_write8(port->common.bar, offset,
		      (uint8_t)(read_status(port) | bits));
}

static int reset_device(struct virtio_port *port)
{
	const struct timespec nap = { .tv_nsec = POLL_NS };
	const uint64_t until_ns =
		mr_ctx_now_ns(port->base.ctx) + RESET_TIMEOUT_NS;

	if (port->common.bar == NULL)
		return 0;
	mr_bar_write8(port->common.bar, port->common.offset + VIRTIO_STATUS, 0);
	/* Limits the naps in case the clock stands still. */
	for (uint32_t n = 0; n <= RESET_TIMEOUT_NS / POLL_NS; n++) {
		const uint64_t now_ns = mr_ctx_now_ns(port->base.ctx);
		const uint32_t status = read_status(port);

		if (status == 0)
			return 0;
		if (status == VIRTIO_STATUS_GONE)
			return -ENODEV;
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	return -ETIMEDOUT;
}

static uint64_t read_features(const struct virtio_port *port)
{
	const struct virtio_block *common = &port->common;
	uint64_t features;

	write32(common, VIRTIO_DEVICE_FEATURE_SELECT, 0);
	features = read32(common, VIRTIO_DEVICE_FEATURE);
	write32(common, VIRTIO_DEVICE_FEATURE_SELECT, 1);
	return features | (uint64_t)read32(common, VIRTIO_DEVICE_FEATURE) << 32;
}

static int begin(struct virtio_port *port, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	int err = reset_device(port);

	if (err < 0)
		return mr_fail(
			reason, err == -ENODEV ? -ENODEV : -EIO,
			err == -ENODEV ?
				"%s: its registers read as all ones: the "
				"device is gone, or powered down" :
				"%s: its reset does not complete",
			name);
	add_status(port, VIRTIO_STATUS_ACKNOWLEDGE);
	add_status(port, VIRTIO_STATUS_DRIVER);
	port->offered = read_features(port);
	/* Their registers follow those that every device has. */
	if (port->common.n_bytes < VIRTIO_COMMON_ALL_BYTES)
		port->offered &= ~(virtio_bit(VIRTIO_F_RING_RESET) |
				   virtio_bit(VIRTIO_F_NOTIF_CONFIG_DATA));
	return 0;
}

static int accept_features(struct virtio_port *port, uint64_t features,
			   struct mr_reason *reason)
{
	const struct virtio_block *common = &port->common;

	write32(common, VIRTIO_DRIVER_FEATURE_SELECT, 0);
	write32(common, VIRTIO_DRIVER_FEATURE, (uint32_t)features);
	write32(common, VIRTIO_DRIVER_FEATURE_SELECT, 1);
	write32(common, VIRTIO_DRIVER_FEATURE, (uint32_t)(features >> 32));
	add_status(port, VIRTIO_STATUS_FEATURES_OK);
	if (!(read_status(port) & VIRTIO_STATUS_FEATURES_OK))
		return mr_fail(reason, -EIO,
			       "%s: the device offers features 0x%llx but "
			       "refuses 0x%llx of them",
			       port->base.info->name,
			       (unsigned long long)port->offered,
			       (unsigned long long)features);
	port->features = features;
	return 0;
}

/* ---- the device's configuration ---- */

static uint32_t read_generation(const struct virtio_port *port)
{
	return read8(&port->common, VIRTIO_CONFIG_GENERATION);
}

/* A field of 1, 2 or 4 bytes; 0 if the device does not have it. */
static uint32_t field(const struct virtio_port *port, uint32_t offset,
		      uint32_t n_bytes)
{
	const struct virtio_block *device = &port->device;

	if (offset + n_bytes > device->n_bytes)
		return 0;
	return n_bytes == 1 ? read8(device, offset) :
	       n_bytes == 2 ? read16(device, offset) :
			      read32(device, offset);
}

static void read_facts_once(const struct virtio_port *port,
			    struct virtio_facts *facts)
{
	const uint64_t offered = port->offered;

	*facts = (struct virtio_facts){ .max_pairs = 1 };
	if (offered & virtio_bit(VIRTIO_F_MAC)) {
		facts->has_mac = true;
		for (uint32_t i = 0; i < sizeof(facts->mac); i++)
			facts->mac[i] =
				(uint8_t)field(port, VIRTIO_NET_MAC + i, 1);
	}
	if (offered & (virtio_bit(VIRTIO_F_MQ) | virtio_bit(VIRTIO_F_RSS)))
		facts->max_pairs = field(port, VIRTIO_NET_MAX_PAIRS, 2);
	if (offered & virtio_bit(VIRTIO_F_MTU))
		facts->max_mtu_bytes = field(port, VIRTIO_NET_MTU, 2);
	if (offered &
	    (virtio_bit(VIRTIO_F_RSS) | virtio_bit(VIRTIO_F_HASH_REPORT))) {
		facts->max_key_bytes = field(port, VIRTIO_NET_RSS_MAX_KEY, 1);
		facts->max_table_entries =
			field(port, VIRTIO_NET_RSS_MAX_TABLE, 2);
		facts->hash_types = field(port, VIRTIO_NET_HASH_TYPES, 4);
	}
	facts->status = VIRTIO_NET_STATUS_LINK_UP;
	if (offered & virtio_bit(VIRTIO_F_STATUS))
		facts->status = field(port, VIRTIO_NET_STATUS, 2);
	if (offered & virtio_bit(VIRTIO_F_SPEED_DUPLEX))
		facts->speed_mbps = field(port, VIRTIO_NET_SPEED, 4);
	if (facts->speed_mbps == UINT32_MAX)
		facts->speed_mbps = 0;
}

static uint32_t read_facts(const struct virtio_port *port,
			   struct virtio_facts *ret_facts)
{
	uint32_t before, n_tries = 0;

	/* 2.5.1: fields of the same generation are consistent. */
	do {
		before = read_generation(port);
		read_facts_once(port, ret_facts);
	} while (read_generation(port) != before && ++n_tries < MAX_TRIES);
	return before;
}

static bool has_link(const struct virtio_port *port)
{
	return !(port->offered & virtio_bit(VIRTIO_F_STATUS)) ||
	       field(port, VIRTIO_NET_STATUS, 2) & VIRTIO_NET_STATUS_LINK_UP;
}

/* ---- queues ---- */

static void select_queue(const struct virtio_port *port, uint32_t number)
{
	write16(&port->common, VIRTIO_QUEUE_SELECT, number);
}

static uint32_t read_max_entries(const struct virtio_port *port,
				 uint32_t number)
{
	uint32_t n;

	if (number >= read16(&port->common, VIRTIO_NUM_QUEUES))
		return 0;
	select_queue(port, number);
	n = read16(&port->common, VIRTIO_QUEUE_SIZE);
	return n > VIRTIO_MAX_QUEUE_SIZE ? 0 : n;
}

/* Find the queue's doorbell and what to write there. */
static int find_doorbell(const struct virtio_port *port, struct virtio_vq *vq,
			 struct mr_reason *reason)
{
	const uint64_t offset =
		(uint64_t)read16(&port->common, VIRTIO_QUEUE_NOTIFY_OFF) *
		port->notify_multiplier;
	const uint32_t n_bytes =
		virtio_has(port, VIRTIO_F_NOTIFICATION_DATA) ? 4 : 2;

	vq->has_notification_data = n_bytes == 4;
	if (offset + n_bytes > port->notify.n_bytes || offset % n_bytes != 0)
		return mr_fail(reason, -EIO,
			       "%s: the doorbell of queue %u is not inside its "
			       "registers",
			       port->base.info->name, vq->number);
	vq->notify_bar = port->notify.bar;
	vq->notify_offset = port->notify.offset + offset;
	vq->notify_word = (uint16_t)vq->number;
	if (virtio_has(port, VIRTIO_F_NOTIF_CONFIG_DATA))
		vq->notify_word = (uint16_t)read16(
			&port->common, VIRTIO_QUEUE_NOTIF_CONFIG_DATA);
	return 0;
}

static int start_queue(const struct virtio_port *port, struct virtio_vq *vq,
		       struct mr_reason *reason)
{
	const struct virtio_block *common = &port->common;
	int err;

	select_queue(port, vq->number);
	write16(common, VIRTIO_QUEUE_SIZE, vq->n_entries);
	write64(common, VIRTIO_QUEUE_DESC, vq->desc_iova);
	write64(common, VIRTIO_QUEUE_DRIVER, vq->driver_iova);
	write64(common, VIRTIO_QUEUE_DEVICE, vq->device_iova);
	write16(common, VIRTIO_QUEUE_VECTOR, vq->vector);
	if (read16(common, VIRTIO_QUEUE_VECTOR) != vq->vector)
		return mr_fail(
			reason, -EIO,
			"%s: the device has no resources for interrupt %u",
			port->base.info->name, vq->vector);
	err = find_doorbell(port, vq, reason);
	if (err == 0)
		write16(common, VIRTIO_QUEUE_ENABLE, 1);
	return err;
}

static int look_at_reset(const struct virtio_port *port, uint32_t number)
{
	uint32_t value;

	select_queue(port, number);
	value = read16(&port->common, VIRTIO_QUEUE_RESET);
	if (value == UINT16_MAX)
		return -ENODEV;
	return value == 0 ? 0 : -EAGAIN;
}

static int reset_queue(struct virtio_port *port, struct virtio_vq *vq)
{
	int err;

	if (!virtio_has(port, VIRTIO_F_RING_RESET))
		return -ENOTSUP;
	if (vq->reset_until_tick == 0) {
		select_queue(port, vq->number);
		write16(&port->common, VIRTIO_QUEUE_RESET, 1);
		vq->reset_until_tick = port->n_ticks + RESET_TICKS;
		port->n_resets++;
	}
	err = look_at_reset(port, vq->number);
	if (err == -EAGAIN && port->n_ticks >= vq->reset_until_tick)
		return -ETIMEDOUT;
	if (err < 0)
		return err;
	vq->reset_until_tick = 0;
	port->n_resets--;
	return 0;
}

/* ---- the function ---- */

static int open_function(struct virtio_port *port, const char *bdf,
			 struct mr_reason *reason)
{
	const struct mr_pci_config config = {
		.size = sizeof(config),
		.access = port->options.access,
		.region = port->base.region,
		.holder = port->base.info->name,
	};
	const int err =
		mr_pci_open(port->base.ctx, bdf, &config, &port->pci, reason);

	if (err < 0)
		return err;
	port->is_behind_iommu = strcmp(mr_pci_mode(port->pci), "noiommu") != 0;
	return find_registers(port, reason);
}

static void close_function(struct virtio_port *port)
{
	mr_pci_close(port->pci);
}

static int set_irqs(struct virtio_port *port, uint32_t n, int *ret_fds,
		    struct mr_reason *reason)
{
	const int n_got = mr_pci_set_irqs(port->pci, n, ret_fds, reason);

	return n_got == -ENOTSUP ? 0 : n_got;
}

/* The first interrupt is for changes of the configuration. */
static bool has_config_vector(const struct virtio_port *port)
{
	write16(&port->common, VIRTIO_CONFIG_VECTOR, 0);
	return read16(&port->common, VIRTIO_CONFIG_VECTOR) == 0;
}

static int start(struct virtio_port *port, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;

	if (port->n_irqs > 0 && !has_config_vector(port))
		return mr_fail(
			reason, -EIO,
			"%s: the device has no resources for an interrupt",
			name);
	if (mr_pci_set_bus_master(port->pci, true) < 0)
		return mr_fail(reason, -EIO, "%s: cannot enable bus mastering",
			       name);
	add_status(port, VIRTIO_STATUS_DRIVER_OK);
	if (read_status(port) & VIRTIO_STATUS_NEEDS_RESET)
		return mr_fail(reason, -EIO, "%s: the device fails on start",
			       name);
	return 0;
}

static void stop(struct virtio_port *port)
{
	(void)reset_device(port);
	/* A device that does not even reset is cut off. */
	if (port->pci != NULL)
		(void)mr_pci_set_bus_master(port->pci, false);
}

static int check(const struct virtio_port *port)
{
	const uint32_t status = read_status(port);

	if (status == VIRTIO_STATUS_GONE)
		return -ENODEV;
	return status & VIRTIO_STATUS_NEEDS_RESET ? -EIO : 0;
}

static int alloc_dma(struct virtio_port *port, uint64_t n_bytes,
		     struct mr_dma *ret_dma, struct mr_reason *reason)
{
	return mr_pci_dma_alloc(port->pci, n_bytes, ret_dma, reason);
}

static void free_dma(struct virtio_port *port, struct mr_dma *dma)
{
	mr_pci_dma_free(port->pci, dma);
}

static uint64_t read_region_iova(const struct virtio_port *port)
{
	return mr_pci_region_iova(port->pci);
}

static int event_fd(const struct virtio_port *port)
{
	return mr_pci_event_fd(port->pci);
}

static uint32_t take_events(struct virtio_port *port)
{
	return mr_pci_events(port->pci);
}

static void describe(const struct virtio_port *port, struct mr_port_info *info)
{
	info->numa_node = mr_pci_device(port->pci)->numa_node;
	snprintf(info->mode, sizeof(info->mode), "%s", mr_pci_mode(port->pci));
}

const struct virtio_transport mri_virtio_pci = {
	.open = open_function,
	.close = close_function,
	.begin = begin,
	.accept = accept_features,
	.start = start,
	.stop = stop,
	.check = check,
	.generation = read_generation,
	.read_facts = read_facts,
	.has_link = has_link,
	.max_entries = read_max_entries,
	.set_irqs = set_irqs,
	.start_queue = start_queue,
	.reset_queue = reset_queue,
	.alloc_dma = alloc_dma,
	.free_dma = free_dma,
	.region_iova = read_region_iova,
	.event_fd = event_fd,
	.events = take_events,
	.describe = describe,
};
