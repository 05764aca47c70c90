/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the dpdk module; meson.build says what each file is about.
 *
 * A buffer of our pool and the header (struct rte_mbuf) of its place belong
 * together while DPDK has the buffer. While the application has it, by address,
 * the header has no meaning.
 */
#ifndef DPDK_DPDK_H
#define DPDK_DPDK_H

#include <stdbool.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>
#include <millrace/experimental/port_queues.h>

#include "dpdk_module.h"
#include "dpdk_options.h"

enum {
	DPDK_MIN_FRAME_BYTES = 14, /* an Ethernet header */
	DPDK_LINK_BYTES = 14 + 4,  /* and a VLAN tag, besides the MTU */
	/* The fast paths of devices take frames by 4, 8 or 32. */
	DPDK_MIN_ASKED = 32,
	DPDK_MAX_TXQS = 4096, /* open at a time, in the process */
	/*
	 * For mbuf.port, which is the source of a received frame and has no
	 * meaning in a sent one: there, we store the number of the tx queue
	 * that posted it. The last header of a frame completes it; those before
	 * have one more bit, since headers may return one by one, in any order.
	 */
	DPDK_FIRST_TAG = 0x4000,
	DPDK_INNER = DPDK_MAX_TXQS,
	DPDK_NO_TAG = RTE_MBUF_PORT_INVALID,
	/* Buffers that one call into DPDK frees at once. */
	DPDK_CALL_ROOM = 2 * MR_BURST_MAX,
};

struct dpdk_port;

/* Reserved address space for a mempool's objects, usable at the front. */
struct dpdk_headers {
	uint8_t *memory; /* NULL: none */
	size_t n_reserved_bytes;
	size_t n_bytes; /* that are usable */
};

/*
 * Headers for the buffers of a region: one per page, in order, so that header
 * and address can be computed from each other; initialized for registered
 * memory. They are the objects of a mempool, whose free objects are the free
 * pages of the pool. All ports of a pool share one view.
 */
struct dpdk_view {
	struct rte_mempool *mempool;
	struct mr_pool *pool;
	uint8_t *base;               /* of the region */
	uint64_t n_registered_bytes; /* atomic: it grows */
	uint64_t n_written_bytes;    /* of the region, with headers */
	uint8_t *first;              /* header of page 0 */
	uint32_t header_stride;      /* bytes from one header to the next */
	uint64_t n_header_bytes;     /* of all of them */
	uint32_t page_shift;
	uint32_t shift_bytes; /* from the page to mbuf.buf_addr: the pool's
			       * headroom beyond DPDK's */
	uint32_t n_users;     /* ports and tallies */
	uint32_t n_ports;
	struct dpdk_headers headers;
	struct dpdk_view *next;
};

/* Headers that can be lent to any entry; of one tx queue. */
struct dpdk_extras {
	struct rte_mempool *mempool;
	const struct dpdk_view *view;
	struct dpdk_headers headers;
	struct rte_mbuf **stack; /* available ones */
	uint32_t n;              /* of them */
	uint32_t n_all;
	/* Freed on other threads: numbers plus 1, linked by next[]. */
	uint32_t foreign; /* atomic */
	uint32_t *next;
};

/*
 * What a tx queue has posted. A device may keep a header after the port is
 * closed, so this stays until the last one returns.
 */
struct dpdk_tally {
	uint16_t tag;
	struct dpdk_view *view;
	struct dpdk_extras extras;
	/* Completed on other threads, atomic: frames, and inner headers ... */
	uint64_t n_elsewhere, n_inner_elsewhere;
	/* ... and how many to expect, once the port is closed. */
	uint64_t n_awaited, n_inner_awaited;
	struct dpdk_tally *next;
};

struct dpdk_rxq {
	_Alignas(64) struct mr_rxq base;
	struct dpdk_port *port;
	const struct dpdk_view *view;
	uint8_t *region;
	uint16_t port_id;
	bool has_sg;
	bool has_eventfd;
	bool is_armed;      /* its interrupt is on */
	uint32_t max_segs;  /* of a frame of this MTU */
	uint64_t keep_vlan; /* RTE_MBUF_F_RX_VLAN_STRIPPED, unless requested */
	/* Received but not delivered, since the burst was short, or only asked
	 * whether there are frames. */
	uint32_t n_stashed, stash_at;
	struct rte_mbuf **stash; /* MR_BURST_MAX */
};

struct dpdk_txq {
	_Alignas(64) struct mr_txq base;
	struct dpdk_port *port;
	const struct dpdk_view *view;
	uint16_t port_id;
	uint16_t tag;
	bool has_cleanup;
	bool was_refused;           /* part of the last burst */
	struct rte_mbuf *held;      /* a copy that did not fit in the device */
	uint64_t offloads;          /* RTE_ETH_TX_OFFLOAD_* */
	uint64_t plain_flags;       /* mbuf.ol_flags on the fast path */
	uint64_t n_inner;           /* that no burst of ours got back */
	struct dpdk_extras *extras; /* the tally's */
	struct dpdk_tally *tally;
};

struct dpdk_port {
	struct mr_port *base;
	struct dpdk_options options;
	struct dpdk_view *view;
	struct dpdk_rxq *rxqs;
	struct dpdk_txq *txqs;
	uint32_t n_queues;
	bool is_pinned, is_listening; /* the region */
	bool is_growing;              /* its view, with the region */
	uint16_t port_id;             /* DPDK's; RTE_MAX_ETHPORTS: none */
	bool did_probe, is_configured, is_started, has_callbacks, did_set_mac;
	uint32_t rx_room_bytes; /* as far as the device uses it */
	uint64_t owner_id;
	struct rte_device *device;
	bool is_vfio; /* DPDK drives the device through vfio */
	struct rte_eth_dev_info info;
	struct rte_ether_addr first_mac;
	struct rte_eth_stats first_stats;
	struct rte_eth_xstat_name *stat_names;
	uint32_t n_stats;
	struct dpdk_rss *first_rss; /* before it was set; NULL: it was not */
	struct dpdk_steering *steerings;
	uint32_t next_steering_id;
	struct rte_ether_addr *filter; /* of addresses added */
	uint32_t n_filter;
	uint32_t netdev_mtu_bytes; /* of the kernel's interface; 0: none */
	uint32_t set_mtu_bytes;    /* as set by DPDK; 0: not set */
	uint32_t mtu_bytes;        /* atomic, like those below */
	uint32_t is_up, is_gone, speed_mbps;
	struct dpdk_port *next; /* list of all open ports */
};

/*
 * One call into DPDK by a burst. DPDK allocates from and frees to the cache of
 * the burst, which a mempool's functions find here, since DPDK passes them
 * nothing of ours. Each thread has its own.
 *
 * Most devices free headers one by one, with a call each, which does as little
 * as possible; the end of the burst does the rest for all of them.
 */
struct dpdk_call {
	const struct rte_mempool *mempool; /* the view's */
	const struct dpdk_view *view;
	struct dpdk_extras *extras; /* of the tx queue in use, or NULL */
	struct mr_cache *cache;
	uint64_t n_done;  /* frames of the queue with this tag, completed */
	uint64_t n_inner; /* and inner headers */
	uint32_t tag;
	uint32_t n_freed;
	bool was_empty;                         /* the pool had too few pages */
	struct rte_mbuf *freed[DPDK_CALL_ROOM]; /* headers of the view */
};

/* Static TLS: finding this word takes no call. */
extern __thread struct dpdk_call *mri_dpdk_call
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline void dpdk_call_begin(struct dpdk_call *call,
				   const struct dpdk_view *view,
				   struct mr_cache *cache, uint32_t tag,
				   struct dpdk_extras *extras)
{
	call->mempool = view->mempool;
	call->view = view;
	call->extras = extras;
	call->cache = cache;
	call->n_done = 0;
	call->n_inner = 0;
	call->tag = tag;
	call->n_freed = 0;
	call->was_empty = false;
	mri_dpdk_call = call;
}

/* dpdk_view.c: move what was freed so far to the cache. */
void mri_dpdk_call_flush(struct dpdk_call *call);

static inline void dpdk_call_end(struct dpdk_call *call)
{
	mri_dpdk_call = NULL;
	mri_dpdk_call_flush(call);
}

/* The header of the page that contains addr. */
static inline struct rte_mbuf *dpdk_header(const struct dpdk_view *view,
					   uint64_t addr)
{
	return (struct rte_mbuf *)(void *)(view->first +
					   (addr >> view->page_shift) *
						   view->header_stride);
}

static inline bool dpdk_is_tag(uint16_t tag)
{
	return (uint16_t)(tag - DPDK_FIRST_TAG) < 2 * DPDK_MAX_TXQS;
}

/* Bytes from one object of a mempool to the next. */
static inline size_t dpdk_stride(const struct rte_mempool *mempool)
{
	return mempool->header_size + mempool->elt_size + mempool->trailer_size;
}

/* How much of the region is registered; pages beyond are not in use yet. */
static inline uint64_t dpdk_n_registered(const struct dpdk_view *view)
{
	return __atomic_load_n(&view->n_registered_bytes, __ATOMIC_ACQUIRE);
}

/* The address of a header's buffer; any address in a buffer denotes it. */
static inline uint64_t dpdk_addr(const struct dpdk_view *view,
				 const struct rte_mbuf *mbuf)
{
	return (uint64_t)((const uint8_t *)mbuf->buf_addr - view->base);
}

/*
 * dpdk_tally.c: a frame of the tx queue with this tag, if any, or an inner
 * header, completed outside the queue's bursts. Call it last: after the last
 * frame, another thread may free the headers, the view and the extras.
 */
void mri_dpdk_completed(uint16_t tag);

/* Remove the tx queue's tag from a header that leaves DPDK. */
static inline uint16_t dpdk_take_tag(struct rte_mbuf *mbuf)
{
	const uint16_t tag = mbuf->port;

	mbuf->port = DPDK_NO_TAG;
	return tag;
}

/* A header with this tag returned within one of our bursts. */
static inline void dpdk_count_done(struct dpdk_call *call, uint16_t tag)
{
	if (likely(tag == call->tag))
		call->n_done++;
	else if (tag == (call->tag | DPDK_INNER))
		call->n_inner++;
	else
		mri_dpdk_completed(tag);
}

/* dpdk_eal.c */
int mri_dpdk_eal_start(struct mr_ctx *ctx, const char *options,
		       struct mr_reason *reason);
/* Whether we started it, not the program. */
bool mri_dpdk_eal_is_ours(void);
/*
 * Between these two calls, this thread may call DPDK's control functions, no
 * other thread may, and DPDK's log goes to the context.
 */
void mri_dpdk_enter(struct mr_ctx *ctx);
void mri_dpdk_leave(void);
/* Announces one call into DPDK; deaf: its errors are expected. */
void mri_dpdk_ask(bool is_deaf);
/* The first error that DPDK logged since then, else its last line; else, or on
 * threads that have not entered, the text for err. */
const char *mri_dpdk_why(int err);
/* Ports whose contexts get what DPDK logs on its own threads. */
void mri_dpdk_add_port(struct dpdk_port *port);
void mri_dpdk_remove_port(struct dpdk_port *port);
/* One of them that is on the device, or NULL. */
struct dpdk_port *mri_dpdk_port_on(const struct rte_device *device);

/* dpdk_memory.c */
/* rte_dev_probe(), during which new segments wait. */
int mri_dpdk_memory_probe(const char *devargs);
/* Create the port's view, which grows with the region. */
int mri_dpdk_memory_open(struct dpdk_port *port, struct mr_reason *reason);
/* Unmap the region from the device. Keeps the view. */
void mri_dpdk_memory_unmap(struct dpdk_port *port);
void mri_dpdk_memory_close(struct dpdk_port *port);

/* dpdk_view.c */
/* The view of the port's pool, for a region of that size. */
struct dpdk_view *mri_dpdk_view_get(struct dpdk_port *port,
				    uint64_t n_region_bytes,
				    struct mr_reason *reason);
/* Provide headers for that much of the region; 0: no port has it. Shrinking
 * always succeeds; growing may fail with -ENOMEM. */
int mri_dpdk_view_resize(struct dpdk_view *view, uint64_t n_bytes);
void mri_dpdk_view_put(struct dpdk_view *view);
/* The view whose header an mbuf is; NULL: none. */
const struct dpdk_view *mri_dpdk_view_of(const struct rte_mbuf *mbuf);
/*
 * A mempool of n headers, using the ops of that name, with address space for
 * n_reserved of them.
 */
struct rte_mempool *mri_dpdk_mempool(const char *ops, void *data, uint32_t n,
				     uint64_t n_reserved, uint16_t room_bytes,
				     struct dpdk_headers *ret_headers);
void mri_dpdk_mempool_free(struct rte_mempool *mempool,
			   struct dpdk_headers *headers);
/* Free a buffer of the view: to the cache of the burst in progress, if it is of
 * this region, else to the pool. */
void mri_dpdk_give_back(const struct dpdk_view *view, uint64_t addr);
/* Of struct rte_mempool_ops, for mempools of headers. */
int mri_dpdk_ops_alloc(struct rte_mempool *mempool);
void mri_dpdk_ops_free(struct rte_mempool *mempool);
int mri_dpdk_populate(struct rte_mempool *mempool, unsigned int max_objs,
		      void *vaddr, rte_iova_t iova, size_t len,
		      rte_mempool_populate_obj_cb_t *obj_cb, void *obj_cb_arg);
void mri_dpdk_init_header(struct rte_mempool *mempool, struct rte_mbuf *mbuf);

/* dpdk_extra.c */
int mri_dpdk_extras_open(struct dpdk_extras *extras,
			 const struct dpdk_view *view, uint32_t n);
void mri_dpdk_extras_close(struct dpdk_extras *extras);
/* NULL: all are in use. Only on the queue's thread. */
struct rte_mbuf *mri_dpdk_extra_get(struct dpdk_extras *extras);
/* Return a header whose buffer is no longer attached. On any thread. */
void mri_dpdk_extra_put(struct rte_mbuf *mbuf);
/* The extras that an mbuf is from; NULL: none. */
struct dpdk_extras *mri_dpdk_extras_of(const struct rte_mbuf *mbuf);

/* dpdk_tally.c */
/* NULL: no memory, or too many queues. */
struct dpdk_tally *mri_dpdk_tally_open(struct dpdk_view *view,
				       uint32_t n_extras);
/* It is freed when these numbers have completed elsewhere. */
void mri_dpdk_tally_close(struct dpdk_tally *tally, uint64_t n_frames,
			  uint64_t n_inner);
/* Free those of closed queues that have completed. */
void mri_dpdk_tally_sweep(void);

/* dpdk_rx.c */
mr_rx_burst_fn mri_dpdk_rx_burst;
int mri_dpdk_rx_arm(struct mr_queue *queue);
void mri_dpdk_rx_free_stash(struct dpdk_rxq *rxq);

/* dpdk_tx.c */
mr_tx_burst_fn mri_dpdk_tx_burst;
int mri_dpdk_tx_arm(struct mr_queue *queue);
/* Frames that have not completed in a burst of the queue, and those of them
 * that have not completed at all. */
uint64_t mri_dpdk_tx_awaited(const struct dpdk_txq *txq);
uint64_t mri_dpdk_tx_pending(const struct dpdk_txq *txq);

/* dpdk_shape.c */
/* What became of a frame; if it is lost, an enum mr_tx_drop. */
enum {
	DPDK_POSTABLE = -3, /* *ret_mbuf is the frame */
	DPDK_COPIED,        /* *ret_mbuf is a copy of the frame */
	DPDK_LATER,         /* no header available now */
};
/*
 * What was changed in a frame: counted if it is sent or lost, undone if the
 * device does not take it.
 */
struct dpdk_note {
	uint32_t at;      /* in the batch */
	uint32_t n_inner; /* headers */
	uint32_t events;  /* 1 << MR_TX_EVENT_* */
	uint16_t l4_at;   /* where its checksums are, 0: unchanged ... */
	uint16_t ip_at;
	uint16_t l4_sum; /* ... and what they were */
	uint16_t ip_sum;
};

int mri_dpdk_shape(struct dpdk_txq *txq, struct mr_cache *cache,
		   const struct mr_frame *frames, uint32_t n,
		   const struct mr_meta *meta, struct rte_mbuf **ret_mbuf,
		   struct dpdk_note *ret_note);
/* Restore the frame's bytes: it stays the caller's. Then unshape it. */
void mri_dpdk_unwrite(struct rte_mbuf *mbuf, const struct dpdk_note *note);
/* DPDK did not take the frame: return its headers, leave its buffers. */
void mri_dpdk_unshape(struct dpdk_txq *txq, struct rte_mbuf *mbuf);

/* dpdk_device.c */
int mri_dpdk_device_find(struct dpdk_port *port, const char *devargs,
			 struct mr_reason *reason);
int mri_dpdk_device_start(struct dpdk_port *port, struct mr_reason *reason);
void mri_dpdk_device_stop(struct dpdk_port *port);
void mri_dpdk_device_give_back(struct dpdk_port *port);

/* dpdk_check.c */
/* -EINVAL or -ENOTSUP with what the device does not support. */
int mri_dpdk_check(const struct dpdk_port *port, struct mr_reason *reason);
/* The flow types, of those we want, that it distributes over the queues. */
static inline uint64_t dpdk_rss_kinds(const struct dpdk_port *port)
{
	return port->info.flow_type_rss_offloads &
	       (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
}

/* dpdk_netdev.c */
/* -EBUSY: this machine uses the interface. Call before queues are set up. */
int mri_dpdk_netdev_open(struct dpdk_port *port, struct mr_reason *reason);
/* Restore the MTU, after closing the device. */
void mri_dpdk_netdev_close(const struct dpdk_port *port);

/* dpdk_control.c */
int mri_dpdk_control_open(struct dpdk_port *port, struct mr_reason *reason);
void mri_dpdk_control_close(struct dpdk_port *port);
/* Not between mri_dpdk_enter() and _leave(): it may take long. */
uint32_t mri_dpdk_poll(struct mr_port *base);
int mri_dpdk_link(const struct mr_port *base, struct mr_link *ret_link);
uint32_t mri_dpdk_device_drops(const struct mr_port *base,
			       struct mr_named_count *ret_counts, uint32_t n);
uint32_t mri_dpdk_device_stats(const struct mr_port *base,
			       struct mr_named_count *ret_counts, uint32_t n);
int mri_dpdk_set_promisc(struct mr_port *base, bool on,
			 struct mr_reason *reason);
int mri_dpdk_set_allmulti(struct mr_port *base, bool on,
			  struct mr_reason *reason);
int mri_dpdk_set_mtu(struct mr_port *base, uint32_t mtu_bytes,
		     struct mr_reason *reason);
int mri_dpdk_set_mac(struct mr_port *base, const uint8_t mac[6],
		     struct mr_reason *reason);
int mri_dpdk_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			    uint32_t n, struct mr_reason *reason);

/* dpdk_queues.c */
int mri_dpdk_set_rss(struct mr_port *base, const struct mr_rss_config *config,
		     struct mr_reason *reason);
int mri_dpdk_steer(struct mr_port *base, const struct mr_steer_rule *rule,
		   uint32_t *ret_id, struct mr_reason *reason);
int mri_dpdk_unsteer(struct mr_port *base, uint32_t id,
		     struct mr_reason *reason);
/* Undo them. */
void mri_dpdk_queues_close(struct dpdk_port *port);

/* dpdk_rules.c */
extern const struct mr_rules_ops mri_dpdk_rules_ops;
void mri_dpdk_rules_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats);

static inline struct dpdk_port *dpdk_port_of(const struct mr_port *base)
{
	return ((const struct mri_dpdk_room *)(const void *)base)->port;
}

#endif
