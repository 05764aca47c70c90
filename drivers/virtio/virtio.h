/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the virtio-net driver; README.md says what each file is about. */
#ifndef VIRTIO_VIRTIO_H
#define VIRTIO_VIRTIO_H

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>
#include <millrace/experimental/port_queues.h>

#include "virtio_ring.h"

enum {
	/* A chain: a header and a frame. */
	VIRTIO_MAX_CHAIN = 1 + MR_MAX_SEGS,
	VIRTIO_HEADER_SLOT_BYTES = 32, /* of a header outside its frame */
	VIRTIO_N_BARS = 6,
	VIRTIO_DEFAULT_ENTRIES = 512,
	VIRTIO_N_COUNTS = 48,          /* of the device's own */
	VIRTIO_MAX_RESULT_BYTES = 256, /* of a command */
	VIRTIO_TICK_NS = 1000 * 1000,  /* of timeouts in mr_port_poll() */
	VIRTIO_TABLE_ENTRIES = 128,    /* used of the RSS table, at most */
	VIRTIO_KEY_BYTES = 40, /* 5.1.4.1: the least that devices support */
};

/* State of a queue. Its user sets BROKEN; mr_port_poll() recovers it. */
enum virtio_state {
	VIRTIO_RUNS,
	VIRTIO_BROKEN,  /* after invalid entries; its user stays away */
	VIRTIO_GONE,    /* the device is gone */
	VIRTIO_NO_LINK, /* tx: takes nothing */
	VIRTIO_LINKED,  /* tx: the link is back; ring the doorbell */
};

/*
 * The user's last access to the ring in a burst: from here on it belongs to
 * mr_port_poll(), which may have just set GONE; that stays.
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

/* Whether the ring no longer belongs to its user. */
static inline bool virtio_is_over(uint32_t state)
{
	return state == VIRTIO_BROKEN || state == VIRTIO_GONE;
}

struct virtio_port;

struct virtio_rxq {
	_Alignas(64) struct mr_rxq base;
	/* Hot. */
	struct virtio_vq vq;
	uint64_t *bufs; /* by id: the posted buffer */
	uint64_t iova;  /* where the device writes a buffer at 0 */
	uint32_t page_bytes;
	uint32_t post_bytes;  /* of a buffer, for the device: header and data */
	uint32_t post_offset; /* in the buffer */
	uint32_t header_bytes;
	uint32_t n_skip;      /* buffers left of a frame that is too long */
	uint32_t state;       /* atomic, enum virtio_state */
	uint32_t has_batches; /* atomic, 0 or 1: frames may fill buffers */
	bool is_armed;
	bool is_broken; /* found in this burst, and not yet in state */
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
	/* By place: descriptors of the frame that begins there, 0 inside one, 1
	 * for none; VIRTIO_CHAIN_DONE: used, not yet freed. */
	uint8_t *chains;
	uint64_t iova;     /* of region address 0 */
	uint8_t *memory;   /* the region */
	uint32_t head;     /* running number of the next free descriptor */
	uint32_t tail;     /* the oldest that is not freed */
	uint32_t n_frames; /* between them */
	uint32_t n_odd;    /* of those: with several descriptors, or used */
	uint32_t n_lazy;   /* when a burst looks for used ones */
	uint32_t header_bytes;
	uint32_t max_bytes;       /* atomic: of an unsegmented frame */
	uint32_t max_plain_bytes; /* atomic: and in a page, with a header */
	uint32_t state;           /* atomic, enum virtio_state */
	bool is_in_order;
	bool is_armed;
	bool is_broken; /* found in this burst, and not yet in state */
	/* Cold. */
	uint64_t header_iova;  /* slot 0 */
	struct mr_dma headers; /* a slot per place, and one that stays zero */
	struct virtio_port *port;
};

enum { VIRTIO_CHAIN_DONE = 0x80 };

/* The register block of a capability. */
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
	uint32_t n_asked;     /* of an unanswered command; 0: none */
	uint64_t until_ns;    /* deadline of a caller that waits */
	uint64_t until_tick;  /* deadline in ticks of mr_port_poll() */
	bool is_stuck;        /* a command timed out */
	bool owes_ack;        /* of an announcement */
};

/* How the device hashes frames and distributes them. */
struct virtio_rss {
	uint32_t types; /* VIRTIO_HASH_* */
	uint16_t table[VIRTIO_TABLE_ENTRIES];
	uint8_t key[VIRTIO_KEY_BYTES];
};

enum virtio_switch { VIRTIO_AUTO, VIRTIO_ON, VIRTIO_OFF };
enum virtio_csum { VIRTIO_CSUM_TX, VIRTIO_CSUM_ON, VIRTIO_CSUM_OFF };

struct virtio_options {
	uint32_t n_queues;
	uint32_t n_rx_entries, n_tx_entries; /* 0: not given */
	uint32_t packed, in_order, sg, rss;  /* enum virtio_switch */
	uint32_t csum;                       /* enum virtio_csum */
	uint32_t tso, hash;                  /* 0 or 1 */
	uint32_t mtu_bytes;                  /* 0: the device's, or 1500 */
	uint32_t access;                     /* enum mr_pci_access */
	uint32_t rx_usecs, rx_frames, tx_usecs, tx_frames; /* 0: unchanged */
	bool promisc;
	bool is_server; /* virtio-user: listens for its back end, */
	char tap[16];   /* or the kernel is it, with this tap */
	uint8_t mac[6]; /* of a port without a device */
};

/* The device's configuration, as far as its features provide it. */
struct virtio_facts {
	uint32_t max_pairs;
	uint32_t max_mtu_bytes;                                /* 0: unknown */
	uint32_t max_table_entries, max_key_bytes, hash_types; /* of RSS */
	uint32_t status;     /* VIRTIO_NET_STATUS_* */
	uint32_t speed_mbps; /* 0: unknown */
	uint8_t mac[6];
	bool has_mac;
};

struct virtio_transport;
struct virtio_user;

struct virtio_port {
	struct mr_port base;
	const struct virtio_transport *transport;
	struct virtio_options options;
	struct mr_pci *pci;       /* of mri_virtio_pci */
	struct virtio_user *user; /* of mri_virtio_user */
	struct mr_parcel *parcel; /* that it is opened from; or NULL */
	struct mr_bar bars[VIRTIO_N_BARS];
	uint32_t mapped_bars; /* bits */
	struct virtio_block common, notify, device;
	uint32_t notify_multiplier;
	bool is_behind_iommu;
	uint64_t offered, features;
	struct virtio_facts facts; /* as of open */
	uint32_t header_bytes;
	struct virtio_ctrl ctrl;
	struct virtio_rss rss; /* as the device has it */
	struct virtio_rxq *rxqs;
	struct virtio_txq *txqs;
	int *irq_fds; /* n_irqs of them; 0: configuration changes */
	uint32_t n_irqs;
	uint64_t stats_types;             /* bits: the device's counters */
	uint64_t counts[VIRTIO_N_COUNTS]; /* as last reported */
	uint32_t generation;
	uint32_t n_resets; /* queue resets in progress */
	int timer_fd;      /* part of base.fd */
	bool is_ticking;
	uint64_t n_ticks; /* of timer_fd, since open */
	/* Written by mr_port_poll(), read by any thread: atomic. */
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

/* Each combination is an instance of the rx burst. */
struct virtio_rx_kind {
	bool is_packed;
	bool is_in_order;
	bool has_headers; /* reads them: checksums, hashes */
	bool is_merged;   /* frames may have several buffers; has headers */
};
/* virtio_rx.c */
mr_rx_burst_fn *mri_virtio_rx_burst_of(struct virtio_rx_kind kind);
/* Post the buffers of bufs[] in a fresh ring. */
void mri_virtio_rx_fill(struct virtio_rxq *rxq);

/* virtio_tx.c */
struct virtio_tx_kind {
	bool is_packed;
	uint32_t header_bytes;
};
mr_tx_burst_fn *mri_virtio_tx_burst_of(struct virtio_tx_kind kind);
/* Free everything posted to the pool; the device has stopped. */
void mri_virtio_tx_take_back(struct virtio_txq *txq);

/* virtio_frame.c */
/* A piece of a frame as the device sees it, and the buffer to free. */
struct virtio_piece {
	uint64_t iova;
	uint32_t n_bytes;
	uint64_t buf; /* MR_ADDR_NONE: a header */
};
/* Whether a header may be written before an entry: we own the whole entry. */
bool mri_virtio_has_room(const struct virtio_txq *txq,
			 const struct mr_cache *cache,
			 const struct mr_frame *entry);
/*
 * Prepare a frame of n entries off the fast path for place `place`. Consumes
 * it. Returns the number of pieces at out, at most VIRTIO_MAX_CHAIN; 0: dropped
 * and counted.
 */
uint32_t mri_virtio_prepare(struct virtio_txq *txq, struct mr_cache *cache,
			    const struct mr_frame *frames, uint32_t n,
			    const struct mr_meta *meta, uint32_t place,
			    struct virtio_piece *out);

/* virtio_user_hand_over.c: virtio-user to another process */
extern const struct mr_hand_over_ops mri_virtio_user_hand_over;

/* virtio_features.c */
/*
 * Choose which offered features to accept. -ENOTSUP with a reason: the device
 * lacks a feature that the options or the design require.
 */
int mri_virtio_choose(uint64_t offered, const struct virtio_options *options,
		      bool is_behind_iommu, bool needs_sg, const char *name,
		      uint64_t *ret_features, struct mr_reason *reterr_reason);

/*
 * The way to a device. The functions run on one thread at a time, since
 * selecting a queue or half of the features changes a shared register.
 */
struct virtio_transport {
	/* What accepts no ACCESS_PLATFORM, and enables queues one by one. */
	bool is_user;
	/* Find the device. close() follows, also after an error. */
	int (*open)(struct virtio_port *port, const char *device,
		    struct mr_reason *reason);
	void (*close)(struct virtio_port *port);
	/* Reset, and read the offered features. -ENODEV, -EIO. */
	int (*begin)(struct virtio_port *port, struct mr_reason *reason);
	int (*accept)(struct virtio_port *port, uint64_t features,
		      struct mr_reason *reason);
	/* The queues are configured: let the device use memory and run. */
	int (*start)(struct virtio_port *port, struct mr_reason *reason);
	/* From here on it uses no memory. It may be gone, or not yet found. */
	void (*stop)(struct virtio_port *port);
	/* Whether it runs. -ENODEV: it is gone; -EIO: it needs a reset. */
	int (*check)(const struct virtio_port *port);
	uint32_t (*generation)(const struct virtio_port *port);
	/* Returns their generation. */
	uint32_t (*read_facts)(const struct virtio_port *port,
			       struct virtio_facts *ret_facts);
	/* Whether the device has a link now. */
	bool (*has_link)(const struct virtio_port *port);
	/* The maximum size of queue `number`; 0: it does not exist. */
	uint32_t (*max_entries)(const struct virtio_port *port,
				uint32_t number);
	/* Interrupts as eventfds: how many of n; 0: the device has none. */
	int (*set_irqs)(struct virtio_port *port, uint32_t n, int *ret_fds,
			struct mr_reason *reason);
	/* Configure a queue in the device, and enable it. */
	int (*start_queue)(const struct virtio_port *port, struct virtio_vq *vq,
			   struct mr_reason *reason);
	/* Begin or continue the reset of a queue; 0: it has ended. -EAGAIN: not
	 * yet. -ENODEV, -ENOTSUP. */
	int (*reset_queue)(struct virtio_port *port, struct virtio_vq *vq);
	int (*alloc_dma)(struct virtio_port *port, uint64_t n_bytes,
			 struct mr_dma *ret_dma, struct mr_reason *reason);
	void (*free_dma)(struct virtio_port *port, struct mr_dma *dma);
	/* Where the device sees address 0 of the region. */
	uint64_t (*region_iova)(const struct virtio_port *port);
	/* Readable when events() has something; -1: none. */
	int (*event_fd)(const struct virtio_port *port);
	uint32_t (*events)(struct virtio_port *port); /* MR_PCI_EVENT_* */
	/* Fill mode and NUMA node. */
	void (*describe)(const struct virtio_port *port,
			 struct mr_port_info *info);
};

extern const struct virtio_transport mri_virtio_pci, mri_virtio_user;

/* virtio.c */
/* Open a port. One that is away is only prepared: its device runs. */
int mri_virtio_open(struct mr_port *base, const struct mr_spec *spec,
		    const struct virtio_transport *transport,
		    struct mr_reason *reason);

/* virtio_queue.c */
/* Set which lengths the queues accept and send, for this MTU. */
void mri_virtio_queues_set_mtu(struct virtio_port *port, uint32_t mtu_bytes);
/* Allocate a virtqueue of n_entries; vq->dma.memory NULL: it has no memory. */
int mri_virtio_vq_alloc(struct virtio_port *port, struct virtio_vq *vq,
			uint32_t number, uint32_t n_entries,
			struct mr_reason *reason);
int mri_virtio_queues_alloc(struct virtio_port *port, struct mr_reason *reason);
/* Make all of them fresh, for a device that was reset before it used any. */
void mri_virtio_queues_clear(struct virtio_port *port);
/* Announce the queues to the device; once it runs, post buffers. */
int mri_virtio_queues_start(struct virtio_port *port, struct mr_reason *reason);
void mri_virtio_queues_fill(struct virtio_port *port);
/* Free everything they hold; the device has stopped. */
void mri_virtio_queues_free(struct virtio_port *port);
/*
 * The last step of a burst that broke the queue: hand it to mr_port_poll() and
 * make the port's fd readable.
 */
void mri_virtio_rxq_hand_over(struct virtio_rxq *rxq);
void mri_virtio_txq_hand_over(struct virtio_txq *txq);
/*
 * Restart broken queues if the device can reset them. Does not wait: the next
 * call continues. Returns how many run again or were given up.
 */
uint32_t mri_virtio_queues_mend(struct virtio_port *port);
/* Whether mri_virtio_queues_break() works here. */
bool mri_virtio_can_break(void);
/*
 * Break all queues, whatever their users do. Their rings may be reset as soon
 * as vq->is_busy is 0.
 */
void mri_virtio_queues_break(struct virtio_port *port);
/* The device is gone: its queues do nothing from now on. */
void mri_virtio_queues_lose(struct virtio_port *port);
/*
 * The link went down or came back. Send nothing without one: QEMU 10 then
 * empties its transmit rings, and miscounts packed ones, which puts the device
 * in error ("Virtqueue size exceeded").
 */
void mri_virtio_queues_link(struct virtio_port *port, bool is_up);

/* virtio_ctrl.c */
int mri_virtio_ctrl_open(struct virtio_port *port, struct mr_reason *reason);
void mri_virtio_ctrl_close(struct virtio_port *port);
/* Apply the options, once the device runs. */
int mri_virtio_ctrl_setup(struct virtio_port *port, struct mr_reason *reason);
/* Whether the device's RSS supports the requested number of queues. */
bool mri_virtio_has_rss_enough(const struct virtio_port *port);
/*
 * Send a command and wait for its result: n_ret_bytes at ret, at most
 * VIRTIO_MAX_RESULT_BYTES, padded with zeros. 0, -ENODEV, -EIO.
 */
int mri_virtio_ctrl_ask(struct virtio_port *port, uint32_t command,
			const void *data, uint32_t n_bytes, void *ret,
			uint32_t n_ret_bytes);
/* On each mr_port_poll(): send a pending acknowledgement. Does not wait. */
void mri_virtio_ctrl_service(struct virtio_port *port);
/* Whether to call it again. */
bool mri_virtio_ctrl_waits(const struct virtio_ctrl *ctrl);
int mri_virtio_set_promisc(struct mr_port *base, bool on,
			   struct mr_reason *reason);
int mri_virtio_set_allmulti(struct mr_port *base, bool on,
			    struct mr_reason *reason);
int mri_virtio_set_mac(struct mr_port *base, const uint8_t mac[6],
		       struct mr_reason *reason);
int mri_virtio_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			      uint32_t n, struct mr_reason *reason);
int mri_virtio_set_rss(struct mr_port *base, const struct mr_rss_config *config,
		       struct mr_reason *reason);

/* virtio_stats.c */
/*
 * Find which counters exist. -EIO, -ENODEV: the device does not respond, and
 * would not respond to later commands.
 */
int mri_virtio_stats_setup(struct virtio_port *port);
uint32_t mri_virtio_device_stats(const struct mr_port *base,
				 struct mr_named_count *ret_counts, uint32_t n);

/* virtio_event.c */
int mri_virtio_events_open(struct virtio_port *port, struct mr_reason *reason);
void mri_virtio_events_close(struct virtio_port *port);
/* Make the port's fd readable when this one is; -1: there is none. */
int mri_virtio_watch(const struct virtio_port *port, int fd);
/* Run the timer only while waiting for something. */
void mri_virtio_tick(struct virtio_port *port);
uint32_t mri_virtio_poll(struct mr_port *base);
void mri_virtio_read_link(struct virtio_port *port);
int mri_virtio_rx_arm(struct mr_queue *queue);
int mri_virtio_tx_arm(struct mr_queue *queue);

#endif
