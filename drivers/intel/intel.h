/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the driver for Intel's 1 GbE controllers: 82574L (Linux: e1000e),
 * 82576, I350, I210 and I211 (Linux: igb).
 * README.md says what each file is about.
 */
#ifndef INTEL_INTEL_H
#define INTEL_INTEL_H

#include <stdbool.h>

#include <millrace/driver.h>
#include <millrace/experimental/pci.h>
#include <millrace/experimental/port_queues.h>

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
	/* TCTL.PSP pads only frames of at least this length (Linux: igb). */
	INTEL_MIN_TX_BYTES = 17,
	INTEL_TX_REAP = 32, /* sent descriptors are collected in such groups */
	INTEL_DEFAULT_MTU = 1500,
};

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
 * Places next .. next + n_entries - 1 of the ring each have a buffer, bufs[];
 * the device owns all but the last n_owed + 1.
 */
struct intel_rxq {
	_Alignas(64) struct mr_rxq base;
	/* Hot. */
	_Alignas(64) struct intel_desc *ring;
	uint64_t *bufs; /* by place: the first byte of its page */
	uint32_t next;  /* runs freely */
	uint32_t mask;
	uint32_t n_owed; /* refilled, but not announced */
	uint32_t n_owed_max;
	uint32_t page_bytes;
	uint32_t headroom_bytes;
	uint32_t buf_bytes; /* the most that the device writes to a buffer */
	uint32_t vlan_mask; /* INTEL_RX_VP if tags are stripped, else 0 */
	uint64_t data_iova; /* of the data, less the page's address */
	struct intel_port *port;
	uint32_t tail_reg;
	bool is_dropping; /* dropped the head of a frame; the rest follows */
	uint32_t n_bufs;  /* 0: none are posted */
	uint32_t irq_bit; /* 0: no vector */
	struct mr_dma dma;
};

/* posted[]: the address of an entry, which is below 2^48, or one of these. */
#define INTEL_POSTED_MORE (UINT64_C(1) << 63) /* the frame continues */
#define INTEL_POSTED_CONTEXT UINT64_MAX       /* a context: no buffer */

/* Places clean .. tail - 1 of the ring are posted and not collected. */
struct intel_txq {
	_Alignas(64) struct mr_txq base;
	/* Hot. */
	_Alignas(64) struct intel_desc *ring;
	uint64_t *posted;     /* by place */
	const uint32_t *head; /* written by the device; NULL: it sets DD */
	uint32_t tail, clean; /* run freely */
	uint32_t mask;
	uint32_t n_special; /* places that are not a whole frame */
	uint64_t region_iova;
	uint64_t segment_begin; /* of the region: last sent from */
	uint64_t segment_bytes;
	uint64_t command;  /* second word of a one-entry frame */
	uint64_t per_byte; /* added to it per byte */
	struct intel_port *port;
	uint16_t *group_end; /* by first place of a group: where DD appears */
	uint32_t tail_reg;
	uint32_t max_bytes; /* of a frame; atomic: see mr_port_set_mtu() */
	bool is_igb, has_vlan;
	uint32_t max_entry_bytes;
	uint64_t context[2]; /* as the device last saw it */
	uint32_t irq_bit;
	struct mr_dma dma; /* the ring, then the head */
};

enum intel_switch { INTEL_AUTO, INTEL_ON, INTEL_OFF };

struct intel_options {
	uint32_t access; /* enum mr_pci_access */
	uint32_t n_queues;
	uint32_t n_rx_entries, n_tx_entries;
	uint32_t mtu_bytes;
	uint32_t itr_us;
	uint32_t sg;      /* enum intel_switch */
	uint32_t head_wb; /* enum intel_switch */
	uint32_t rss;     /* enum intel_rss_word */
	bool promisc, allmulti, vlan;
};

enum intel_rss_word { INTEL_RSS_AUTO, INTEL_RSS_SYMMETRIC, INTEL_RSS_KEEP };

enum { INTEL_RSS_KEY_BYTES = 40, INTEL_RETA_ENTRIES = 128 };

/* As in the registers. */
struct intel_rss {
	uint8_t key[INTEL_RSS_KEY_BYTES];
	uint8_t table[INTEL_RETA_ENTRIES];
	uint32_t mrqc;
};

struct intel_port {
	struct mr_port base;
	struct intel_options options;
	const struct intel_chip *chip;
	struct mr_pci *pci;
	struct mr_bar bar;
	struct intel_rxq *rxqs;
	struct intel_txq *txqs;
	uint32_t n_queues; /* with memory */
	uint32_t buf_bytes;
	uint32_t mtu_bytes;
	uint32_t rctl;
	uint32_t irq_on_reg;    /* EIMS or IMS */
	uint32_t irq_cause_reg; /* EICR or ICR */
	uint32_t n_vectors;
	int vector_fds[INTEL_MAX_VECTORS];
	uint32_t link_bit; /* of the vector for link changes */
	int timer_fd;
	bool has_told_gone; /* counted by mr_port_poll() */
	struct intel_rss rss;
	/* Set by mr_port_set_mac_filter(). */
	uint32_t n_rars;
	uint32_t mta[INTEL_HASH_WORDS];
	uint64_t *stats;       /* the device's counters, since open; atomic */
	bool is_reading_rqdpc; /* atomic */
	/* Written by mr_port_poll(), read by any thread: atomic. */
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

/* intel_options.c: -EINVAL */
int mri_intel_read_options(const struct mr_spec *spec, struct intel_options *o,
			   struct mr_reason *reason);

/* intel_hw.c */
/* Stop, reset, read the MAC address. -EIO, -ENODEV */
int mri_intel_reset(struct intel_port *port, struct mr_reason *reterr_reason);
/* Program the device, whose rings are filled, and start it. */
int mri_intel_start(struct intel_port *port, struct mr_reason *reterr_reason);
/* Ends all DMA; leaves the device as after power-on. */
void mri_intel_stop(struct intel_port *port);
/* 0; -ENODEV with a reason if STATUS reads all ones, which it never does */
int mri_intel_check(struct intel_port *port, struct mr_reason *reterr_reason);
/* Read link and presence from STATUS. Returns 1 if the link changed, else 0. */
int mri_intel_look(struct intel_port *port);

/* intel_filter.c */
void mri_intel_filter_start(struct intel_port *port);
void mri_intel_rss_start(struct intel_port *port);
int mri_intel_set_promisc(struct mr_port *port, bool on,
			  struct mr_reason *reterr_reason);
int mri_intel_set_allmulti(struct mr_port *port, bool on,
			   struct mr_reason *reterr_reason);
int mri_intel_set_mtu(struct mr_port *port, uint32_t mtu_bytes,
		      struct mr_reason *reterr_reason);
int mri_intel_set_mac(struct mr_port *port, const uint8_t mac[6],
		      struct mr_reason *reterr_reason);
int mri_intel_set_mac_filter(struct mr_port *port, const uint8_t (*macs)[6],
			     uint32_t n, struct mr_reason *reterr_reason);
int mri_intel_set_rss(struct mr_port *port, const struct mr_rss_config *config,
		      struct mr_reason *reterr_reason);

/* intel_irq.c */
/* Set up vectors and the port's fd. A device without vectors is polled. */
int mri_intel_irq_open(struct intel_port *port,
		       struct mr_reason *reterr_reason);
void mri_intel_irq_start(struct intel_port *port);
void mri_intel_irq_close(struct intel_port *port);
uint32_t mri_intel_poll(struct mr_port *port);
/* Forget past and pending interrupts: only later completions fire. */
void mri_intel_irq_forget(struct intel_port *port, int fd, uint32_t irq_bit);
/* Make the fd readable for new and later completions. */
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
/* Requires that the device does no DMA. */
void mri_intel_queues_close(struct intel_port *port);

/* intel_rx.c */
mr_rx_burst_fn mri_intel_rx_burst;    /* one entry per frame */
mr_rx_burst_fn mri_intel_rx_burst_sg; /* 1 to MR_MAX_SEGS */
int mri_intel_rx_arm(struct mr_queue *queue);
void mri_intel_rxq_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats);
/* Give the descriptor at place its buffer. */
static inline void intel_rx_post(const struct intel_rxq *rxq, uint32_t place,
				 uint64_t page)
{
	struct intel_desc *desc = &rxq->ring[place];

	rxq->bufs[place] = page;
	desc->words[0] = rxq->data_iova + page;
	/* It is ours until RDT tells the device. */
	desc->words[1] = 0;
}

/* intel_tx.c */
mr_tx_burst_fn mri_intel_tx_burst;
int mri_intel_tx_arm(struct mr_queue *queue);
void mri_intel_txq_stats(const struct mr_txq *txq, struct mr_tx_stats *stats);

/* Posted by one burst; counted once, at its end. */
struct intel_tx_burst {
	uint32_t tail;     /* of the ring, including what was posted so far */
	uint32_t n_room;   /* places left */
	uint64_t n_frames; /* taken, including lost ones */
	uint64_t n_bytes;
};

/*
 * Whether an entry, no longer than a segment, lies in the segment last sent
 * from.
 */
static inline bool intel_tx_is_mapped(const struct intel_txq *txq,
				      const struct mr_frame *entry)
{
	return entry->addr - txq->segment_begin <=
	       txq->segment_bytes - entry->len;
}
/* The same, searching all segments. */
bool mri_intel_tx_find_segment(struct intel_txq *txq,
			       const struct mr_frame *entry);

/* intel_frame.c */
/*
 * Send any single frame: with several entries, offloads, too short, too long,
 * or not to be sent. meta may be NULL. False: no room now; nothing was done.
 */
bool mri_intel_tx_frame(struct intel_txq *txq, struct mr_cache *cache,
			const struct mr_frame *frames,
			const struct mr_meta *meta,
			struct intel_tx_burst *burst);

#endif
