/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Models of the 82574L (e1000e) and the 82576 with its relatives (igb): one
 * core, a table per chip. Sources: the datasheets in drivers/intel/README.md.
 *
 * They support only extended (82574L) and advanced (82576) descriptors; others
 * are violations. So are, for example, rings before a reset, a register within
 * 1 ms of one, a tail before QUEUE_ENABLE read 1, a tail outside the ring, a
 * completely filled ring, a descriptor that changes while the device owns it, a
 * buffer that is posted twice or not mapped, a frame without its length,
 * offloads without a context.
 *
 * They support all faults of struct model_faults. bad_count omits EOP; bad_id
 * completes a descriptor other than the next; wrong_completion writes heads and
 * DD bits of what was not sent.
 */
#ifndef MODEL_INTEL_H
#define MODEL_INTEL_H

#include "device.h"
#include "support/packet.h"

enum {
	INTEL_BAR_BYTES = 0x20000,
	INTEL_MAX_QUEUES = 16,
	INTEL_MAX_RING = 4096,
	INTEL_MAX_VECTORS = 25,
	INTEL_FRAME_BYTES = 1 << 17,
	INTEL_OWNED_SLOTS = 1 << 16,
};

/* Differences between the chips. */
struct intel_chip {
	const char *name;
	uint16_t device_id;
	uint32_t n_queues;
	uint32_t rss_mode; /* in MRQC */
	uint32_t n_vectors;
	uint32_t max_frame_bytes; /* without FCS */
	uint32_t causes_other;    /* the ICR bits that also set "other" */
	bool is_82574;
	bool has_head_writeback;
	bool has_i210_ivar; /* two queues per register */
};

extern const struct intel_chip chip_82574l, chip_82576, chip_i210, chip_i350;

/* 16 bytes, as two bus words. */
struct intel_desc {
	uint64_t low, high;
};

struct intel_ring {
	uint32_t q;
	bool is_tx;
	uint32_t base; /* of its registers, in bytes */
	uint32_t head, tail, n;
	bool was_seen_enabled; /* the driver read QUEUE_ENABLE as 1 */
	uint32_t n_polls;      /* of QUEUE_ENABLE, since it was set */
	bool has_wanted;       /* the current frame was counted in RNBC */
	uint32_t n_segments;   /* of the frame at its head, already sent */
	uint32_t n_late;       /* remaining steps of delay */
	uint32_t drops;        /* RQDPC */
	/* Two contexts of an 82576; the 82574L has the first. */
	struct intel_desc context[2];
	bool has_context[2];
	/* Posted descriptors, as posted: from head to tail. Last: a reset
	 * leaves them alone. */
	struct intel_desc given[INTEL_MAX_RING];
};

struct intel {
	struct model m;
	const struct intel_chip *chip;
	uint8_t mac[6];  /* in the NVM */
	bool is_auto_rd; /* EECD reports when the NVM was read; never in QEMU */
	uint64_t link_delay_ns; /* of auto-negotiation */
	uint32_t enable_polls;  /* how often QUEUE_ENABLE still reads 0 */

	uint32_t regs[INTEL_BAR_BYTES / 4];
	struct intel_ring rx[INTEL_MAX_QUEUES], tx[INTEL_MAX_QUEUES];
	bool was_reset; /* since open */
	uint64_t reset_ns, link_ns;
	bool is_link_up;
	uint16_t phy[32];
	uint32_t mta_written[4]; /* bits: which of the 128 */
	uint64_t gorc, gotc;
	bool has_read_low[2];
	uint64_t next_irq_ns[INTEL_MAX_VECTORS];
	uint32_t held_irqs; /* vectors that wait for their interval */

	/* How many posted buffers hash to each slot. */
	uint8_t owned[INTEL_OWNED_SLOTS];
	uint8_t frame[INTEL_FRAME_BYTES], segment[WIRE_MAX_BYTES + 64];

	/* For tests. */
	uint64_t n_sums, n_bad_sums; /* inserted; and wrong on the wire */
	uint64_t n_segmented;        /* frames that left in segments */
};

/* NULL: no memory. The wire may be NULL. */
struct intel *intel_create(const struct intel_chip *chip, const uint8_t mac[6]);
void intel_destroy(struct intel *nic);

/* ---- between the parts ---- */
static inline uint32_t *intel_reg(struct intel *nic, uint32_t offset)
{
	return &nic->regs[offset / 4];
}

uint32_t intel_ring_base(bool is_tx, uint32_t q);
void intel_ring_write(struct intel *nic, struct intel_ring *ring,
		      uint32_t offset, uint32_t value);
uint32_t intel_ring_read(struct intel *nic, struct intel_ring *ring,
			 uint32_t offset);
/* Whether the ring works: it and its direction are enabled. */
bool intel_ring_is_on(struct intel *nic, const struct intel_ring *ring);
struct intel_desc *intel_desc_at(struct intel *nic, struct intel_ring *ring,
				 uint32_t i);
/* Whether the descriptor at @p i is unchanged; a violation if not. */
bool intel_desc_is_kept(struct intel *nic, struct intel_ring *ring, uint32_t i,
			const struct intel_desc *now);
uint32_t intel_rx_buffer_bytes(struct intel *nic, const struct intel_ring *r);
/* A receive buffer returns. */
void intel_disown(struct intel *nic, uint64_t iova);
/* Whether late_completions delays the ring's work in this step. */
bool intel_is_late(struct intel *nic, struct intel_ring *ring);

bool intel_irq_write(struct intel *nic, uint32_t offset, uint32_t value);
uint32_t intel_irq_read(struct intel *nic, uint32_t offset);
bool intel_irq_has(const struct intel *nic, uint32_t offset);
void intel_irq_queue(struct intel *nic, const struct intel_ring *ring);
void intel_irq_other(struct intel *nic, uint32_t causes);
void intel_irq_step(struct intel *nic);

bool intel_stat_read(struct intel *nic, uint32_t offset, uint32_t *ret);
void intel_count_rx(struct intel *nic, const uint8_t *bytes, uint32_t n_bytes);
void intel_count_tx(struct intel *nic, uint32_t n_bytes);

bool intel_accepts(struct intel *nic, const uint8_t *bytes, uint32_t n_bytes);
uint32_t intel_rss(struct intel *nic, const uint8_t *bytes,
		   const struct packet *p, uint32_t *ret_type,
		   uint32_t *ret_hash);
void intel_rx_step(struct intel *nic);
void intel_tx_step(struct intel *nic);

/* The offloads of a frame, for both kinds of descriptors. */
struct intel_job {
	uint32_t n_bytes, paylen; /* available, and declared */
	bool has_paylen;
	bool has_ip_sum, has_l4_sum, is_tso, is_tcp, is_ipv4, has_vlan;
	uint32_t l3, l3_end, ip_sum; /* where sums begin, end and are put */
	uint32_t l4, l4_end, l4_sum;
	uint32_t header_bytes, mss;
	uint16_t vlan_tci;
};

void intel_context(struct intel *nic, struct intel_ring *ring,
		   const struct intel_desc *desc);
bool intel_is_context(const struct intel *nic, const struct intel_desc *desc);
bool intel_is_data(const struct intel *nic, const struct intel_desc *desc);
uint32_t intel_data_bytes(const struct intel *nic,
			  const struct intel_desc *desc);
/* Fill a job from the first data descriptor of a frame. */
void intel_job(struct intel *nic, struct intel_ring *ring,
	       const struct intel_desc *desc, struct intel_job *job);
/* Send nic->frame. False: the wire is full; it continues later. */
bool intel_send(struct intel *nic, struct intel_ring *ring,
		const struct intel_job *job);

#endif
