/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the virtio-net driver.
 *
 *     virtio.c           options, open, close, what the port says of itself
 *     virtio_features.c  which features are accepted, and why not
 *     virtio_pci.c       registers: capabilities, status, queues
 *     virtio_queue.c     memory of the queues; starting and taking back
 *     virtio_ctrl.c      the control queue and its commands
 *     virtio_stats.c     what the device counts
 *     virtio_event.c     link, announcements, a device in trouble; interrupts
 *     virtio_receive.h   the rx bursts; virtio_split_rx.c and
 *                        virtio_packed_rx.c are instances             (hot)
 *     virtio_tx.c        the tx bursts                                (hot)
 *     virtio_frame.c     frames that are not one plain entry
 *     virtio_ring.h      one virtqueue                                (hot)
 *     virtio_spec.h      the words of the specification
 */
#ifndef VIRTIO_VIRTIO_H
#define VIRTIO_VIRTIO_H

#include <millrace/driver.h>

#include "virtio_ring.h"

enum {
	VIRTIO_MIN_FRAME_BYTES = 14, /* an Ethernet header */
	/* What a frame has beside the packet: that, and a VLAN tag. */
	VIRTIO_LINK_BYTES = 14 + 4,
	/* Segments of one TCP frame: an IPv4 packet of 64 KiB. */
	VIRTIO_MAX_GSO_BYTES = 65535 + VIRTIO_LINK_BYTES,
	/* A chain: a header and a frame. */
	VIRTIO_MAX_CHAIN = 1 + MR_MAX_SEGS,
	VIRTIO_HEADER_SLOT_BYTES = 32, /* of a header outside its frame */
	VIRTIO_N_BARS = 6,
	VIRTIO_DEFAULT_ENTRIES = 512,
	VIRTIO_N_COUNTS = 48,          /* of the device's own */
	VIRTIO_MAX_RESULT_BYTES = 256, /* of a command */
	VIRTIO_TICK_NS = 1000 * 1000,  /* of what mr_port_poll() awaits */
};

/* What a queue is in. Handed over: its user breaks it, mr_port_poll() recovers.
 */
enum virtio_state {
	VIRTIO_RUNS,
	VIRTIO_BROKEN,  /* the device wrote nonsense; its user keeps off */
	VIRTIO_GONE,    /* so is the device */
	VIRTIO_NO_LINK, /* tx: nothing is taken */
	VIRTIO_LINKED,  /* tx: the link is back, the bell is to be rung */
};

/*
 * By its user, as the last thing that he does with its ring in the burst: from
 * here on it is mr_port_poll()'s. One that is gone, as that may just have said,
 * stays so.
 */
static inline void virtio_break(uint32_t *state)
{
	uint32_t before = __atomic_load_n(state, __ATOMIC_RELAXED);

	while (before != VIRTIO_GONE &&
	       !__atomic_compare_exchange_n(state, &before, VIRTIO_BROKEN,
					    false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* Its ring is not its user's any more. */
static inline bool virtio_is_over(uint32_t state)
{
	return state == VIRTIO_BROKEN || state == VIRTIO_GONE;
}

struct virtio_port;

struct virtio_rxq {
	_Alignas(64) struct mr_rxq base;
	/* Hot. */
	struct virtio_vq vq;
	uint64_t *bufs; /* by id: the buffer that is posted */
	uint64_t iova;  /* of a buffer at 0, where the device writes */
	uint32_t chunk_bytes;
	uint32_t post_bytes;  /* of a buffer, for the device: header, data */
	uint32_t post_offset; /* in the buffer */
	uint32_t header_bytes;
	uint32_t n_skip;      /* buffers of a frame too long, still to come */
	uint32_t state;       /* atomic, enum virtio_state */
	uint32_t has_batches; /* atomic, 0 or 1: a buffer may be filled up */
	bool is_armed;
	bool is_broken; /* found so in this burst, and not said yet */
	bool has_hash;
	const uint8_t *memory; /* the region */
	/* Cold. */
	struct virtio_port *port;
	uint32_t n_bufs; /* at bufs[], from open to close */
};

struct virtio_txq {
	_Alignas(64) struct mr_txq base;
	/* Hot. */
	struct virtio_vq vq;
	uint64_t *bufs; /* by place: to free, or MR_ADDR_NONE */
	/* By place: descriptors of the frame that begins there, 0 inside one,
	 * 1 where none is; VIRTIO_CHAIN_DONE: used, and not given back yet. */
	uint8_t *chains;
	uint64_t iova;     /* of region address 0 */
	uint8_t *memory;   /* the region */
	uint32_t head;     /* running numbers of descriptors: the next free */
	uint32_t tail;     /* the oldest that is not given back */
	uint32_t n_frames; /* between them */
	uint32_t n_odd;    /* of those: of several descriptors; and used ones */
	uint32_t n_lazy;   /* descriptors out before a burst looks for used */
	uint32_t header_bytes;
	uint32_t max_bytes;       /* atomic: of a frame without segmentation */
	uint32_t max_plain_bytes; /* atomic: and within a page, with a header */
	uint32_t state;           /* atomic, enum virtio_state */
	bool is_in_order;
	bool is_armed;
	bool is_broken; /* found so in this burst, and not said yet */
	/* Cold. */
	uint64_t header_iova;  /* slot 0 */
	struct mr_dma headers; /* a slot per place, and one that stays zero */
	struct virtio_port *port;
};

enum { VIRTIO_CHAIN_DONE = 0x80 };

/* A register block of one capability. */
struct virtio_block {
	const struct mr_bar *bar; /* NULL: the device has none */
	uint64_t offset;
	uint32_t n_bytes;
};

/* The control queue, one command at a time. */
struct virtio_ctrl {
	struct virtio_vq vq;
	struct mr_dma memory; /* header, answer, result, data */
	uint32_t n_put;       /* running number of descriptors */
	uint32_t n_asked;     /* of a command not yet answered; 0: none */
	uint64_t until_ns;    /* it is to be answered, for who waits */
	uint64_t until_tick;  /* the same for mr_port_poll() */
	bool is_stuck;        /* a command was not answered in time */
	bool owes_ack;        /* of an announcement */
};

enum virtio_switch { VIRTIO_AUTO, VIRTIO_ON, VIRTIO_OFF };
enum virtio_csum { VIRTIO_CSUM_TX, VIRTIO_CSUM_ON, VIRTIO_CSUM_OFF };

struct virtio_options {
	uint32_t n_queues;
	uint32_t n_rx_entries, n_tx_entries; /* 0: not said */
	uint32_t packed, in_order, sg, rss;  /* enum virtio_switch */
	uint32_t csum;                       /* enum virtio_csum */
	uint32_t tso, hash;                  /* 0 or 1 */
	uint32_t mtu_bytes;                  /* 0: the device's, or 1500 */
	uint32_t access;                     /* enum mr_pci_access */
	uint32_t rx_usecs, rx_frames, tx_usecs, tx_frames; /* 0: as it is */
	bool promisc;
};

/* What the device says of itself: its configuration, as far as offered. */
struct virtio_facts {
	uint32_t max_pairs;
	uint32_t max_mtu_bytes;                                /* 0: not said */
	uint32_t max_table_entries, max_key_bytes, hash_types; /* of RSS */
	uint32_t status;     /* VIRTIO_NET_STATUS_* */
	uint32_t speed_mbps; /* 0: not said */
	uint8_t mac[6];
	bool has_mac;
};

struct virtio_port {
	struct mr_port base;
	struct virtio_options options;
	struct mr_pci *pci;
	struct mr_bar bars[VIRTIO_N_BARS];
	uint32_t mapped_bars; /* bits */
	struct virtio_block common, notify, device;
	uint32_t notify_multiplier;
	uint64_t offered, features;
	struct virtio_facts facts; /* as it was at open */
	uint32_t header_bytes;
	struct virtio_ctrl ctrl;
	struct virtio_rxq *rxqs;
	struct virtio_txq *txqs;
	int *irq_fds; /* n_irqs of them; 0: the configuration changed */
	uint32_t n_irqs;
	uint64_t stats_types;             /* bits: what the device counts */
	uint64_t counts[VIRTIO_N_COUNTS]; /* as it said last */
	uint32_t generation;
	uint32_t n_resets; /* of queues that are under way */
	int timer_fd;      /* behind base.fd */
	bool is_ticking;
	uint64_t n_ticks; /* of it, since the port was opened */
	/* Written by mr_port_poll(), read by anybody: atomic. */
	uint32_t is_up;
	uint32_t is_gone;
	uint32_t speed_mbps;
};

static inline struct virtio_rxq *virtio_rxq_of(struct mr_rxq *base)
{
	return (struct virtio_rxq *)base;
}

static inline struct virtio_txq *virtio_txq_of(struct mr_txq *base)
{
	return (struct virtio_txq *)base;
}

static inline bool virtio_has(const struct virtio_port *port, uint32_t feature)
{
	return port->features & virtio_bit(feature);
}

/* What a burst is an instance of. */
struct virtio_rx_kind {
	bool is_packed;
	bool is_in_order;
	bool has_headers; /* they are read: checksums, hashes */
	bool is_merged;   /* a frame may have several buffers; has headers */
};
/* virtio_split_rx.c, virtio_packed_rx.c */
mr_rx_burst_fn *mri_virtio_split_rx_burst_of(struct virtio_rx_kind kind);
mr_rx_burst_fn *mri_virtio_packed_rx_burst_of(struct virtio_rx_kind kind);
/* Post the buffers at bufs[]; the ring is fresh. */
void mri_virtio_split_rx_fill(struct virtio_rxq *rxq);
void mri_virtio_packed_rx_fill(struct virtio_rxq *rxq);

/* virtio_tx.c */
struct virtio_tx_kind {
	bool is_packed;
	uint32_t header_bytes;
};
mr_tx_burst_fn *mri_virtio_tx_burst_of(struct virtio_tx_kind kind);
/* Everything that is out to the pool; the device has stopped. */
void mri_virtio_tx_take_back(struct virtio_txq *txq);

/* virtio_frame.c */
/* A piece of a frame as the device sees it, and the buffer to free then. */
struct virtio_piece {
	uint64_t iova;
	uint32_t n_bytes;
	uint64_t buf; /* MR_ADDR_NONE: a header */
};
/* Whether the header may be written in front of an entry, all of it ours. */
bool mri_virtio_has_room(const struct virtio_txq *txq,
			 const struct mr_cache *cache,
			 const struct mr_frame *entry);
/*
 * A frame of n entries that is not plain, to be sent from place `place`.
 * Consumes it: the pieces at out, VIRTIO_MAX_CHAIN at most; 0 if it was
 * dropped, and counted.
 */
uint32_t mri_virtio_prepare(struct virtio_txq *txq, struct mr_cache *cache,
			    const struct mr_frame *frames, uint32_t n,
			    const struct mr_meta *meta, uint32_t place,
			    struct virtio_piece *out);

/* virtio_features.c */
/*
 * Of the offered features those to accept. -ENOTSUP with a reason: the device
 * lacks what the options, or the design, ask for.
 */
int mri_virtio_choose(uint64_t offered, const struct virtio_options *options,
		      bool is_behind_iommu, bool needs_sg, const char *name,
		      uint64_t *ret_features, struct mr_reason *reterr_reason);
/* Those that need another one which is not there. */
uint64_t mri_virtio_incomplete(uint64_t features);

/* virtio_pci.c */
int mri_virtio_pci_find(struct virtio_port *port, struct mr_reason *reason);
int mri_virtio_pci_reset(struct virtio_port *port);
/* Reset, and what is offered. -ENODEV, -EIO. */
int mri_virtio_pci_begin(struct virtio_port *port, struct mr_reason *reason);
int mri_virtio_pci_accept(struct virtio_port *port, uint64_t features,
			  struct mr_reason *reason);
uint32_t mri_virtio_pci_status(const struct virtio_port *port);
void mri_virtio_pci_add_status(struct virtio_port *port, uint32_t bits);
uint32_t mri_virtio_pci_generation(const struct virtio_port *port);
/* Returns the generation that they are of. */
uint32_t mri_virtio_pci_read_facts(const struct virtio_port *port,
				   struct virtio_facts *ret_facts);
/* Whether the device says now that it has a link: one register. */
bool mri_virtio_pci_has_link(const struct virtio_port *port);
/* The largest size of queue `number`; 0: there is none. */
uint32_t mri_virtio_pci_max_entries(const struct virtio_port *port,
				    uint32_t number);
int mri_virtio_pci_set_config_vector(const struct virtio_port *port,
				     uint32_t vector);
/* Tell the device of a queue, and enable it. */
int mri_virtio_pci_start_queue(const struct virtio_port *port,
			       struct virtio_vq *vq, struct mr_reason *reason);
void mri_virtio_pci_reset_queue(const struct virtio_port *port,
				uint32_t number);
/* Whether that has ended: 0, -EAGAIN, or -ENODEV. */
int mri_virtio_pci_look_at_reset(const struct virtio_port *port,
				 uint32_t number);

/* virtio_queue.c */
/* What the queues hold for possible, and send, with this MTU. */
void mri_virtio_queues_set_mtu(struct virtio_port *port, uint32_t mtu_bytes);
/* A virtqueue of n_entries and its memory; vq->dma.memory NULL: it has none. */
int mri_virtio_vq_alloc(struct virtio_port *port, struct virtio_vq *vq,
			uint32_t number, uint32_t n_entries,
			struct mr_reason *reason);
/* As the device finds a fresh one. */
void mri_virtio_vq_clear(struct virtio_vq *vq);
int mri_virtio_queues_alloc(struct virtio_port *port, struct mr_reason *reason);
/* As a device finds fresh ones, that was reset before it used any. */
void mri_virtio_queues_clear(struct virtio_port *port);
/* Tell the device of them; and once it runs, give it buffers. */
int mri_virtio_queues_start(struct virtio_port *port, struct mr_reason *reason);
void mri_virtio_queues_fill(struct virtio_port *port);
/* The device has stopped: everything that they hold goes back. */
void mri_virtio_queues_free(struct virtio_port *port);
/*
 * The last thing of a burst that broke the queue: it is mr_port_poll()'s now,
 * and the port's fd tells.
 */
void mri_virtio_rxq_hand_over(struct virtio_rxq *rxq);
void mri_virtio_txq_hand_over(struct virtio_txq *txq);
/*
 * Broken queues run again, if the device can reset them. Waits for none: the
 * next call goes on. Returns how many run, or are given up.
 */
uint32_t mri_virtio_queues_mend(struct virtio_port *port);
/* The device is no more: its queues do nothing from now on. */
void mri_virtio_queues_lose(struct virtio_port *port);
/*
 * The link went down or came back. Without one nothing is sent: QEMU 10 empties
 * its transmit rings then, and counts wrong where they are packed, so that the
 * device is in error ("Virtqueue size exceeded").
 */
void mri_virtio_queues_link(struct virtio_port *port, bool is_up);

/* virtio_ctrl.c */
int mri_virtio_ctrl_open(struct virtio_port *port, struct mr_reason *reason);
void mri_virtio_ctrl_close(struct virtio_port *port);
/* What the options ask for, once the device runs. */
int mri_virtio_ctrl_setup(struct virtio_port *port, struct mr_reason *reason);
/* Whether the device's RSS does for the queues that the options ask for. */
bool mri_virtio_has_rss_enough(const struct virtio_port *port);
int mri_virtio_ctrl_send(struct virtio_port *port, uint32_t command,
			 const void *data, uint32_t n_bytes);
/*
 * The same, and what the device has to say then: n_ret_bytes at ret, at most
 * VIRTIO_MAX_RESULT_BYTES; zeros behind what it wrote. 0, -ENODEV, -EIO.
 */
int mri_virtio_ctrl_ask(struct virtio_port *port, uint32_t command,
			const void *data, uint32_t n_bytes, void *ret,
			uint32_t n_ret_bytes);
/* On each mr_port_poll(): acknowledge what is owed. Does not wait. */
void mri_virtio_ctrl_service(struct virtio_port *port);
/* Whether that is to be looked at again. */
bool mri_virtio_ctrl_waits(const struct virtio_ctrl *ctrl);
int mri_virtio_set_promisc(struct mr_port *base, uint32_t on,
			   struct mr_reason *reason);
int mri_virtio_set_allmulti(struct mr_port *base, uint32_t on,
			    struct mr_reason *reason);
int mri_virtio_set_mac(struct mr_port *base, const uint8_t mac[6],
		       struct mr_reason *reason);
int mri_virtio_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			      uint32_t n, struct mr_reason *reason);

/* virtio_stats.c */
/*
 * Which counters there are. -EIO, -ENODEV: the device does not answer, and
 * would not answer any later command.
 */
int mri_virtio_stats_setup(struct virtio_port *port);
uint32_t mri_virtio_device_stats(const struct mr_port *base,
				 struct mr_named_count *ret_counts, uint32_t n);

/* virtio_event.c */
int mri_virtio_events_open(struct virtio_port *port, struct mr_reason *reason);
void mri_virtio_events_close(struct virtio_port *port);
int mri_virtio_poll(struct mr_port *base);
void mri_virtio_read_link(struct virtio_port *port);
int mri_virtio_rx_arm(struct mr_queue *queue);
int mri_virtio_tx_arm(struct mr_queue *queue);

#endif
