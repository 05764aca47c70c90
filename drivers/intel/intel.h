/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the driver for Intel's 1 GbE controllers: 82574L (Linux: e1000e),
 * 82576, I350, I210 and I211 (Linux: igb).
 *
 *     intel.c        options, open, close
 *     intel_hw.c     reset, order of initialisation, link
 *     intel_filter.c addresses, MTU, RSS
 *     intel_irq.c    vectors, the port's fd, events
 *     intel_stats.c  the device's counters
 *     intel_queue.c  rings: memory, buffers, taking back
 *     intel_rx.c     the receive burst                          (hot)
 *     intel_tx.c     the transmit burst, completions            (hot)
 *     intel_frame.c  frames that are not one plain entry
 *     intel_regs.h   registers and descriptors
 */
#ifndef INTEL_INTEL_H
#define INTEL_INTEL_H

#include <stdbool.h>

#include <millrace/driver.h>
#include <millrace/pci.h>

#include "intel_regs.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "descriptors are little endian, and are not swapped");

enum {
	INTEL_MAX_QUEUES = 16,
	INTEL_MAX_VECTORS = 25, /* igb: bits of EICR; the 82574 has 5 */
	INTEL_RARS = 16, /* receive addresses; the first is the port's own */
	INTEL_HASH_WORDS = 128,
	INTEL_LINK_BYTES = 14 + 4, /* Ethernet header and a VLAN tag */
	INTEL_FCS_BYTES = 4,
	INTEL_MIN_BUF_BYTES = 1024,
	/* TCTL.PSP pads, but not what is shorter than that (Linux: igb). */
	INTEL_MIN_TX_BYTES = 17,
	INTEL_TX_REAP = 32, /* sent descriptors are collected so many at once */
	INTEL_DEFAULT_MTU = 1500,
};

/* What a chip has. */
struct intel_chip {
	char name[6];
	bool is_igb;   /* else 82574 */
	bool is_82576; /* of igb */
	bool is_i210;  /* of igb: I210, I211 */
	uint8_t max_queues;
	uint16_t max_mtu_bytes;
	uint32_t max_entry_bytes; /* of a data descriptor */
};

struct intel_desc {
	uint64_t words[2];
};

struct intel_port;

/*
 * Places next .. next + n_entries - 1 of the ring have each a buffer, bufs[];
 * the device has all of them but the last n_owed + 1.
 */
struct intel_rxq {
	_Alignas(64) struct mr_rxq base;
	/* Hot. */
	_Alignas(64) struct intel_desc *ring;
	uint64_t *bufs; /* by place: the first byte of its chunk */
	uint32_t next;  /* runs freely */
	uint32_t mask;
	uint32_t n_owed; /* refilled, and the device not told */
	uint32_t n_owed_max;
	uint32_t chunk_bytes;
	uint32_t headroom_bytes;
	uint32_t buf_bytes; /* what the device writes to a buffer at most */
	uint32_t vlan_mask; /* INTEL_RX_VP if tags are taken out, else 0 */
	uint64_t data_iova; /* of the data, less the chunk's address */
	struct intel_port *port;
	uint32_t tail_reg;
	bool is_dropping; /* the head of a frame was dropped, the rest follows
			   */
	uint32_t n_bufs;  /* 0: none are posted */
	uint32_t irq_bit; /* 0: no vector */
	struct mr_dma dma;
};

/* In posted[]: an entry's address, which is below 2^48, or these. */
#define INTEL_POSTED_MORE (UINT64_C(1) << 63) /* its frame goes on */
#define INTEL_POSTED_CONTEXT UINT64_MAX       /* a context: no buffer */

/* Places clean .. tail - 1 of the ring are posted and not collected. */
struct intel_txq {
	_Alignas(64) struct mr_txq base;
	/* Hot. */
	_Alignas(64) struct intel_desc *ring;
	uint64_t *posted;     /* by place */
	const uint32_t *head; /* that the device writes; NULL: it marks DD */
	uint32_t tail, clean; /* run freely */
	uint32_t mask;
	uint32_t n_special; /* places that are not all of a frame */
	uint64_t region_iova;
	uint64_t segment_begin; /* of the region: the one last sent from */
	uint64_t segment_bytes;
	uint64_t command;      /* second word of a frame of one entry, and */
	uint64_t per_byte;     /* what each of its bytes adds to it */
	struct intel_port *port;
	uint16_t *group_end; /* by place of its first one: DD comes there */
	uint32_t tail_reg;
	uint32_t max_bytes; /* of a frame; atomic: mr_port_set_mtu() */
	bool is_igb, has_vlan;
	uint32_t max_entry_bytes;
	uint64_t context[2]; /* that the device has now */
	uint32_t irq_bit;
	struct mr_dma dma; /* the ring, and the head behind it */
};

enum intel_switch { INTEL_AUTO, INTEL_ON, INTEL_OFF };

struct intel_options {
	uint32_t access; /* enum mr_pci_access */
	uint32_t n_queues;
	uint32_t n_rx_entries, n_tx_entries;
	uint32_t mtu_bytes;
	uint32_t itr_us;
	uint32_t link_wait_ms;
	uint32_t sg;      /* enum intel_switch */
	uint32_t head_wb; /* enum intel_switch */
	bool promisc, allmulti, vlan;
};

struct intel_port {
	struct mr_port base;
	struct intel_options options;
	const struct intel_chip *chip;
	struct mr_pci *pci;
	struct mr_bar bar;
	struct intel_rxq *rxqs;
	struct intel_txq *txqs;
	uint32_t n_queues; /* that have memory */
	uint32_t buf_bytes;
	uint32_t mtu_bytes;
	uint32_t rctl;
	/* Interrupts. */
	uint32_t irq_on_reg;    /* EIMS or IMS */
	uint32_t irq_cause_reg; /* EICR or ICR */
	uint32_t n_vectors;
	int vector_fds[INTEL_MAX_VECTORS];
	uint32_t link_bit; /* of the vector that tells of the link */
	int timer_fd;
	bool has_told_gone; /* mr_port_poll() has counted it */
	/* Filters that mr_port_set_mac_filter() has set. */
	uint32_t n_rars;
	uint32_t mta[INTEL_HASH_WORDS];
	uint64_t *stats;       /* the device's counters, since open; atomic */
	bool is_reading_rqdpc; /* atomic */
	/* Written by mr_port_poll(), read by anybody: atomic. */
	uint32_t is_up;
	uint32_t speed_mbps;
	uint32_t is_gone;
};

static inline bool intel_is_gone(const struct intel_port *port)
{
	return __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED) != 0;
}

static inline uint32_t intel_read(const struct intel_port *port,
				  uint32_t offset)
{
	return mr_bar_read32(&port->bar, offset);
}

static inline void intel_write(const struct intel_port *port, uint32_t offset,
			       uint32_t value)
{
	mr_bar_write32(&port->bar, offset, value);
}

/* intel_hw.c */
/* Stop, reset, read the address. -EIO, -ENODEV */
int mri_intel_reset(struct intel_port *port, struct mr_reason *reterr_reason);
/* Rings are there and filled: program all of it and let it run. */
int mri_intel_start(struct intel_port *port, struct mr_reason *reterr_reason);
/* No DMA from here on; the device is as after power on. */
void mri_intel_stop(struct intel_port *port);
/* 0; -ENODEV with a reason: STATUS reads all ones, which it never does */
int mri_intel_check(struct intel_port *port, struct mr_reason *reterr_reason);
/* What STATUS says of link and presence. How often the link changed: 0 or 1. */
int mri_intel_look(struct intel_port *port);
void mri_intel_wait_for_link(struct intel_port *port);

/* intel_filter.c */
void mri_intel_filter_start(struct intel_port *port);
void mri_intel_rss_start(struct intel_port *port);
int mri_intel_set_promisc(struct mr_port *port, uint32_t on,
			  struct mr_reason *reterr_reason);
int mri_intel_set_allmulti(struct mr_port *port, uint32_t on,
			   struct mr_reason *reterr_reason);
int mri_intel_set_mtu(struct mr_port *port, uint32_t mtu_bytes,
		      struct mr_reason *reterr_reason);
int mri_intel_set_mac(struct mr_port *port, const uint8_t mac[6],
		      struct mr_reason *reterr_reason);
int mri_intel_set_mac_filter(struct mr_port *port, const uint8_t (*macs)[6],
			     uint32_t n, struct mr_reason *reterr_reason);
/* How RCTL and RLPML limit a frame at this MTU. */
void mri_intel_limit_frames(struct intel_port *port, uint32_t mtu_bytes);

/* intel_irq.c */
/* Vectors and the port's fd. A device without vectors is polled. */
int mri_intel_irq_open(struct intel_port *port,
		       struct mr_reason *reterr_reason);
void mri_intel_irq_start(struct intel_port *port);
void mri_intel_irq_close(struct intel_port *port);
int mri_intel_poll(struct mr_port *port);
/* Forget what fired, and what waits to: what completes from here on is new. */
void mri_intel_irq_forget(struct intel_port *port, int fd, uint32_t irq_bit);
/* What is new, and what comes, makes the fd readable. */
void mri_intel_irq_arm(struct intel_port *port, uint32_t irq_bit);

/* intel_stats.c */
int mri_intel_stats_open(struct intel_port *port);
void mri_intel_stats_read(struct intel_port *port);
uint32_t mri_intel_device_stats(const struct mr_port *port,
				struct mr_named_count *ret_counts, uint32_t n);
uint32_t mri_intel_device_drops(const struct mr_port *port,
				struct mr_named_count *ret_counts, uint32_t n);

/* intel_queue.c */
int mri_intel_queues_open(struct intel_port *port,
			  struct mr_reason *reterr_reason);
/* The device does no DMA any more. */
void mri_intel_queues_close(struct intel_port *port);

/* intel_rx.c */
mr_rx_burst_fn mri_intel_rx_burst;    /* each frame is one entry */
mr_rx_burst_fn mri_intel_rx_burst_sg; /* 1 to MR_MAX_SEGS */
int mri_intel_rx_arm(struct mr_queue *queue);
void mri_intel_rxq_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats);
/* Give the descriptor at place its buffer. */
static inline void intel_rx_post(const struct intel_rxq *rxq, uint32_t place,
				 uint64_t chunk)
{
	struct intel_desc *desc = &rxq->ring[place];

	rxq->bufs[place] = chunk;
	desc->words[0] = rxq->data_iova + chunk;
	/* The device is told later, by RDT; until then it is ours. */
	desc->words[1] = 0;
}

/* intel_tx.c */
mr_tx_burst_fn mri_intel_tx_burst;
int mri_intel_tx_arm(struct mr_queue *queue);
void mri_intel_txq_stats(const struct mr_txq *txq, struct mr_tx_stats *stats);

/* What one burst posts, counted once at its end. */
struct intel_tx_burst {
	uint32_t tail;     /* of the ring, with what was posted so far */
	uint32_t n_room;   /* places left */
	uint64_t n_frames; /* taken, lost ones too */
	uint64_t n_bytes;
};

/*
 * Whether an entry, which is not longer than a segment, lies in the segment
 * last sent from.
 */
static inline bool intel_tx_is_mapped(const struct intel_txq *txq,
				      const struct mr_frame *entry)
{
	return entry->addr - txq->segment_begin <=
	       txq->segment_bytes - entry->len;
}
/* The same after a search in all segments. */
bool mri_intel_tx_find_segment(struct intel_txq *txq,
			       const struct mr_frame *entry);

/* intel_frame.c */
/*
 * Take one frame, whatever it is: of several entries, with something for the
 * device to do, too short, too long, or not to be sent at all. meta may be
 * NULL. False: no room for it now, and nothing was done.
 */
bool mri_intel_tx_frame(struct intel_txq *txq, struct mr_cache *cache,
			const struct mr_frame *frames,
			const struct mr_meta *meta,
			struct intel_tx_burst *burst);

#endif
