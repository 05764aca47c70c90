/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the virtio-net model share. All under the model's lock. */
#ifndef MODEL_VIRTIO_CORE_H
#define MODEL_VIRTIO_CORE_H

#include "virtio.h"

enum {
	VNET_MAX_QUEUES = 2 * VNET_MAX_PAIRS + 1,
	VNET_MAX_SEGS = 64,   /* descriptors of one buffer */
	VNET_N_WAITING = 256, /* packets that wait, each way */
	VNET_NO_VECTOR = 0xffff,

	/* Bits of device_status. */
	VNET_ACKNOWLEDGE = 1,
	VNET_DRIVER = 2,
	VNET_DRIVER_OK = 4,
	VNET_FEATURES_OK = 8,
	VNET_NEEDS_RESET = 64,
	VNET_FAILED = 128,

	/* Flags of a descriptor. */
	VNET_DESC_NEXT = 1,
	VNET_DESC_WRITE = 2,
	VNET_DESC_INDIRECT = 4,
	VNET_DESC_AVAIL = 1 << 7,
	VNET_DESC_USED = 1 << 15,
};

/* One descriptor of a buffer: where it lies, and where that is here. */
struct vnet_seg {
	uint64_t iova;
	uint8_t *bytes; /* NULL: not mapped for the device */
	uint32_t n_bytes;
	bool is_written; /* by the device */
};

/* One buffer: a chain of descriptors. */
struct vnet_element {
	uint16_t id;      /* split: first descriptor; packed: buffer id */
	uint16_t n_slots; /* descriptors that it has in the ring itself */
	uint16_t slots[VNET_MAX_SEGS]; /* split: which these are */
	uint32_t n_segs;
	uint32_t n_written; /* bytes, to be told to the driver */
	uint64_t due;       /* step at which it is told */
	struct vnet_seg segs[VNET_MAX_SEGS];
};

struct vnet_queue {
	uint16_t idx;
	/* Registers. */
	uint16_t size, vector;
	bool is_enabled, is_resetting, was_reset;
	uint64_t desc, driver, device; /* DMA addresses of its three areas */
	/* The areas, looked up anew in each step. */
	uint8_t *desc_area, *driver_area, *device_area;
	/*
	 * Where the device stands, from the start and never wrapping: split in
	 * buffers, packed in descriptors. told_pos: as of the last interrupt.
	 */
	uint64_t avail_pos, used_pos, told_pos;
	bool is_kicked, is_starved; /* a packet waits for its buffers */
	bool is_confused; /* it named wrong ids: the driver is not to blame */
	/*
	 * Buffers taken from the ring: [n_told, n_done) are used, and the
	 * driver is not told yet; [n_done, n_taken) wait for a packet.
	 * Indexes run free; the place is modulo VNET_MAX_RING.
	 */
	uint64_t n_told, n_done, n_taken;
	struct vnet_element *elements;
	bool *is_out; /* split: by descriptor, packed: by id; it is ours */
};

struct vnet_rss {
	uint32_t types;
	uint16_t mask, unclassified, table[VNET_MAX_TABLE];
	uint8_t key[VNET_KEY_BYTES];
};

/* Packets that wait; indexes run free. */
struct vnet_backlog {
	uint32_t head, tail;
	struct vnet_packet {
		uint8_t *bytes;
		uint32_t n_bytes;
		struct vnet_offload offload;
	} packets[VNET_N_WAITING];
};

struct vnet {
	struct model model; /* first: it is cast to struct vnet */
	struct vnet_config config;
	struct vnet_faults faults;
	struct vnet_stats stats;
	uint64_t now; /* steps */

	/* Registers of the common configuration. */
	uint32_t feature_select[2]; /* of the device's, of the driver's */
	uint64_t driver_features, features;
	uint16_t config_vector, queue_select;
	uint8_t status, isr, generation;
	uint32_t n_reset_reads; /* left, until the status reads 0 */
	bool link_is_up, wants_announcement;
	bool has_unread_change; /* that the generation does not tell of yet */

	/* What the control queue has set. */
	uint8_t mac[6], macs[VNET_MAX_MACS][6];
	uint32_t n_unicast, n_multicast;
	bool promisc, allmulti;
	uint16_t n_active_pairs;
	bool has_rss;
	struct vnet_rss rss;
	struct vnet_coal {
		uint32_t max_packets, max_usecs;
	} coal[2 * VNET_MAX_PAIRS];

	/* What DEVICE_STATS tells, since the reset. */
	struct vnet_counts {
		uint64_t n_doorbells, n_packets, n_bytes, n_irqs, n_drops;
		uint64_t n_summed; /* that asked for a sum, or were valid */
	} counts[VNET_MAX_QUEUES];

	struct vnet_queue queues[VNET_MAX_QUEUES];
	struct vnet_backlog in, out;
	uint8_t packet[VNET_MAX_PACKET_BYTES]; /* that is worked on */
};

static inline bool vnet_has(const struct vnet *v, enum vnet_feature feature)
{
	return v->features >> feature & 1;
}

/* Without bus mastering, the first thing that a driver ends, it stands still */
static inline bool vnet_is_running(const struct vnet *v)
{
	return (v->status & VNET_DRIVER_OK) != 0 &&
	       (v->status & VNET_NEEDS_RESET) == 0 &&
	       (v->model.config[4] & 4) != 0;
}

/* Little endian, at any address: the model runs on little-endian hosts. */
static inline uint16_t vnet_get16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t vnet_get32(const uint8_t *bytes)
{
	return vnet_get16(bytes) | (uint32_t)vnet_get16(bytes + 2) << 16;
}

static inline uint64_t vnet_get64(const uint8_t *bytes)
{
	return vnet_get32(bytes) | (uint64_t)vnet_get32(bytes + 4) << 32;
}

static inline void vnet_put16(uint8_t *bytes, uint16_t value)
{
	bytes[0] = (uint8_t)value;
	bytes[1] = (uint8_t)(value >> 8);
}

static inline void vnet_put64(uint8_t *bytes, uint64_t value)
{
	for (uint32_t i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static inline void vnet_put32(uint8_t *bytes, uint32_t value)
{
	vnet_put16(bytes, (uint16_t)value);
	vnet_put16(bytes + 2, (uint16_t)(value >> 16));
}

/* virtio.c */
bool vnet_fault(struct vnet *v, uint32_t one_in); /* now? counts it */
void vnet_reset(struct model *model);
void vnet_step(struct model *model);
bool vnet_backlog_put(struct vnet_backlog *backlog, const uint8_t *bytes,
		      uint32_t n_bytes, const struct vnet_offload *offload);
struct vnet_packet *vnet_backlog_first(struct vnet_backlog *backlog);
void vnet_backlog_drop(struct vnet_backlog *backlog);

/* virtio_pci.c */
void vnet_add_caps(struct vnet *v);
uint64_t vnet_read(struct model *model, uint32_t bar, uint64_t offset,
		   uint32_t n_bytes);
void vnet_write(struct model *model, uint32_t bar, uint64_t offset,
		uint32_t n_bytes, uint64_t value);
void vnet_irq(struct vnet *v, uint16_t vector, uint8_t isr_bit);
void vnet_config_changed(struct vnet *v);
uint16_t vnet_notify_off(const struct vnet *v, uint16_t idx);
uint16_t vnet_notify_data(const struct vnet *v, uint16_t idx);
/* DEVICE_NEEDS_RESET: it stops, and says so. */
void vnet_break(struct vnet *v);

/* virtio_common.c: the registers of the common configuration */
uint64_t vnet_read_common(struct vnet *v, uint64_t offset, uint32_t n_bytes);
void vnet_write_common(struct vnet *v, uint64_t offset, uint32_t n_bytes,
		       uint64_t value);
bool vnet_features_are_whole(uint64_t features);

/* virtio_ring.c: rings, whichever layout they have */
bool vnet_queue_enable(struct vnet *v, struct vnet_queue *q);
void vnet_queue_disable(struct vnet_queue *q);
bool vnet_queue_map(struct vnet *v, struct vnet_queue *q);
void vnet_fetch(struct vnet *v, struct vnet_queue *q);
struct vnet_element *vnet_element(struct vnet_queue *q, uint64_t i);
bool vnet_add_seg(struct vnet *v, struct vnet_queue *q, struct vnet_element *e,
		  const uint8_t *desc);
uint32_t vnet_gather(const struct vnet_element *e, uint8_t *bytes,
		     uint32_t room);
uint32_t vnet_scatter(const struct vnet_element *e, uint32_t from,
		      const uint8_t *bytes, uint32_t n_bytes);
uint32_t vnet_capacity(const struct vnet_element *e);
void vnet_use(struct vnet *v, struct vnet_queue *q, uint32_t n_written);
void vnet_tell(struct vnet *v, struct vnet_queue *q);
/* Ask for doorbells, or for none. False: there is more in the ring already. */
bool vnet_want_kicks(struct vnet *v, struct vnet_queue *q, bool is_on);
/* The driver broke a rule that leaves nothing to go on with. */
bool vnet_give_up(struct vnet *v, const struct vnet_queue *q, const char *why);

/* What the driver is told of one buffer, faults and all. */
struct vnet_used {
	uint16_t id;
	uint16_t n_steps; /* in the ring: more than one's own in a batch */
	uint32_t n_written;
	bool has_written; /* the buffer was for the device to write */
	bool is_full;     /* to its end, as a batch says of all but its last */
};

/* One layout of rings: virtio_split.c, virtio_packed.c. */
struct vnet_layout {
	bool (*enable)(struct vnet *v, struct vnet_queue *q);
	/* The driver's next buffer. 0: there is none, -1: it broke a rule. */
	int (*take)(struct vnet *v, struct vnet_queue *q,
		    struct vnet_element *e);
	bool (*has_more)(const struct vnet_queue *q);
	void (*put_used)(struct vnet *v, struct vnet_queue *q,
			 const struct vnet_used *used, uint32_t n);
	bool (*wants_irq)(struct vnet *v, const struct vnet_queue *q);
	void (*want_kicks)(const struct vnet *v, struct vnet_queue *q,
			   bool is_on);
	void (*doorbell)(struct vnet *v, struct vnet_queue *q, uint16_t next);
};

extern const struct vnet_layout vnet_split, vnet_packed;

static inline const struct vnet_layout *vnet_layout(const struct vnet *v)
{
	return vnet_has(v, VNET_RING_PACKED) ? &vnet_packed : &vnet_split;
}

/* virtio_tx.c, virtio_rx.c, virtio_ctrl.c: what a queue of that kind does */
uint32_t vnet_n_pairs(const struct vnet *v); /* that the driver can use */
void vnet_step_tx(struct vnet *v, struct vnet_queue *q);
void vnet_step_rx(struct vnet *v);
void vnet_step_ctrl(struct vnet *v, struct vnet_queue *q);
static inline uint32_t vnet_header_bytes(const struct vnet *v)
{
	return vnet_has(v, VNET_HASH_REPORT) ? 20 : 12;
}
struct vnet_queue *vnet_ctrl_queue(struct vnet *v);

#endif
