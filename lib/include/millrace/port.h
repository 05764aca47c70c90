/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_PORT_H
#define MILLRACE_PORT_H

#include <assert.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/frame.h>
#include <millrace/pool.h>

MR_BEGIN_DECLS

/**
 * @file
 * Ports and queues: where frames enter and leave the program.
 *
 *     device --> rx queue --> mr_rx_burst() --> application
 *     device <-- tx queue <-- mr_tx_burst() <-- application
 *                   |
 *                   +--> sent buffers --> the cache passed to mr_tx_burst()
 *
 * A port is opened from a spec, "driver:device[,key=value...]", and owns its
 * queues. A queue has one user thread at a time; two threads may use two queues
 * of one port without locks. A queue owns no cache: each burst call is passed
 * the caller's, so a queue can be handed to another thread.
 *
 * Calls that open and configure return 0 or a negative errno value. Bursts
 * cannot fail: they return how many entries moved, and count what was lost or
 * delayed. The invariants per queue are
 *
 *     received = delivered + offloaded + passed_to_kernel + sum of rx drops
 *     accepted = completed + pending + sum of tx drops
 *
 * Events (a ring ran empty, a wake-up) are counted separately and never summed.
 * Frames lost before they reached a queue are the port's device drops.
 */

struct mr_cache;
struct mr_ctx;
struct mr_pool;
struct mr_port;
struct mr_rxq;
struct mr_txq;

/** Longest burst any driver accepts, in entries. */
enum { MR_BURST_MAX = 256 };

/** How to open a port. Zero is the default of each member but size. */
struct mr_port_config {
	uint32_t size;        /**< sizeof(struct mr_port_config) */
	uint32_t n_workers;   /**< threads that will use it; 0: one */
	struct mr_pool *pool; /**< for rx buffers; tx accepts frames of its
			       *   region */
};

/** Why frames were lost on an rx queue. Names: mr_rx_drop_name(). */
enum mr_rx_drop {
	MR_RX_DROP_NO_BUFFER,  /**< no room for it; xdp: rx_dropped */
	MR_RX_DROP_RING_FULL,  /**< burst calls too slow; xdp: rx_ring_full */
	MR_RX_DROP_TOO_LONG,   /**< more than MR_MAX_SEGS entries */
	MR_RX_DROP_INVALID,    /**< invalid descriptor from the device */
	MR_RX_DROP_RULE,       /**< dropped by a rule (mr_rules) */
};

/** What happened on an rx queue without loss. Names: mr_rx_event_name(). */
enum mr_rx_event {
	MR_RX_EVENT_POOL_EMPTY,      /**< burst cut short for lack of pages */
	MR_RX_EVENT_FILL_RING_EMPTY, /**< the device found no buffer */
	MR_RX_EVENT_WAKEUP,          /**< system calls to wake the device */
	MR_RX_EVENT_STARVED_KICK,    /**< of those, from the watchdog */
	MR_RX_EVENT_CSUM_PARTIAL,    /**< frames that had a partial checksum */
	MR_RX_EVENT_UNREGISTERED, /**< buffers of unregistered segments */
	MR_RX_EVENT_FOREIGN_COPIED, /**< frames copied: not received into the
				     *   region */
	/* Frames that a rule matched and that were received all the same: */
	MR_RX_EVENT_OFFLOAD_NO_TARGET, /**< its port cannot send now */
	MR_RX_EVENT_OFFLOAD_TOO_LONG, /**< longer than its port takes */
	MR_RX_EVENT_OFFLOAD_CSUM_PARTIAL, /**< perhaps with a partial sum */
	MR_RX_EVENT_OFFLOAD_NO_HOP, /**< no next hop, or it is to be asked */
	MR_RX_EVENT_OFFLOAD_SEGMENT, /**< of TCP, and not plain or in window */
};

/** Why frames were lost on a tx queue. Names: mr_tx_drop_name(). */
enum mr_tx_drop {
	MR_TX_DROP_INVALID,    /**< an entry outside the region, or empty */
	MR_TX_DROP_TOO_LONG,   /**< longer than the port takes */
	MR_TX_DROP_DEVICE,     /**< the device took it and lost it */
	MR_TX_DROP_NO_BUFFER,  /**< it had to be copied, but no page was free */
	MR_TX_DROP_PORT_GONE,  /**< the device was deleted */
};

/** What happened on a tx queue without loss. Names: mr_tx_event_name(). */
enum mr_tx_event {
	MR_TX_EVENT_WAKEUP,         /**< system calls to make the device send */
	MR_TX_EVENT_RING_FULL,      /**< bursts cut short by a full ring */
	MR_TX_EVENT_FOREIGN_COPIED, /**< copied: segment not registered */
	MR_TX_EVENT_EDGE_COPIED,    /**< frames copied: across the edge of an
				     *   AF_XDP chunk */
	MR_TX_EVENT_EDGE_SPLIT,     /**< entries split at such an edge */
	MR_TX_EVENT_CSUM_DEVICE,    /**< partial checksums left to the device */
	MR_TX_EVENT_CSUM_SOFTWARE,  /**< partial checksums computed here */
	MR_TX_EVENT_AGAIN,          /**< the device asked to retry later */
	MR_TX_EVENT_GSO_SOFTWARE,   /**< frames segmented here */
	MR_TX_EVENT_VLAN_SOFTWARE,  /**< VLAN tags inserted here */
	MR_TX_EVENT_GSO_ADDED, /**< accepted, but not from the program */
	MR_TX_EVENT_TIME_LOST,      /**< frames without the time asked for */
	MR_TX_EVENT_UNKNOWN_COMPLETION, /**< of an entry that was not sent */
};

/** Size of the arrays below; unused slots have no name and stay 0. */
enum { MR_STATS_SLOTS = 16 };

/** Counters of one rx queue, in frames; bytes: delivered frames without FCS. */
struct mr_rx_stats {
	uint32_t size; /**< sizeof(struct mr_rx_stats), set by the caller */
	uint32_t reserved;
	uint64_t received;              /**< the sum, by the invariant above */
	uint64_t delivered;             /**< returned to the application */
	uint64_t offloaded;             /**< sent from other ports by rules */
	uint64_t passed_to_kernel;      /**< not selected by the port's filter */
	uint64_t bytes;
	uint64_t drops[MR_STATS_SLOTS];  /**< frames by enum mr_rx_drop */
	uint64_t events[MR_STATS_SLOTS]; /**< by enum mr_rx_event */
};

/** Counters of one tx queue, in frames; bytes are of accepted frames. */
struct mr_tx_stats {
	uint32_t size; /**< sizeof(struct mr_tx_stats), set by the caller */
	uint32_t reserved;
	uint64_t accepted;              /**< completed + pending + all drops */
	uint64_t completed;             /**< sent; their buffers are free */
	uint64_t pending;               /**< in the queue now */
	uint64_t bytes;
	uint64_t drops[MR_STATS_SLOTS];  /**< frames by enum mr_tx_drop */
	uint64_t events[MR_STATS_SLOTS]; /**< by enum mr_tx_event */
};

/** @return the name of drop @p i, as in JSON; NULL at the end. Thread: any. */
MR_API const char *mr_rx_drop_name(uint32_t i);
/** @return the name of event @p i, as in JSON; NULL at the end. Thread: any. */
MR_API const char *mr_rx_event_name(uint32_t i);
/** @return the name of drop @p i, as in JSON; NULL at the end. Thread: any. */
MR_API const char *mr_tx_drop_name(uint32_t i);
/** @return the name of event @p i, as in JSON; NULL at the end. Thread: any. */
MR_API const char *mr_tx_event_name(uint32_t i);

typedef uint32_t mr_rx_burst_fn(struct mr_rxq *rxq, struct mr_cache *cache,
				struct mr_frame *frames, struct mr_meta *meta,
				uint32_t n);
typedef uint32_t mr_tx_burst_fn(struct mr_txq *txq, struct mr_cache *cache,
				const struct mr_frame *frames,
				const struct mr_meta *meta, uint32_t n);

/** Common to rx and tx queues. Members are for drivers only. */
struct mr_queue {
	struct mr_port *port;
	int (*arm)(struct mr_queue *queue); /**< NULL: there is always work */
	int fd;       /**< CLOEXEC; valid only while armed; -1: none */
	uint32_t idx; /**< 0.. within its port */
};

/** Rx queue. Members except @c queue are for mr_rx_burst() and drivers. */
struct mr_rxq {
	struct mr_queue queue;
	mr_rx_burst_fn *burst;
	uint32_t n_min; /**< shortest burst: MR_MAX_SEGS with SG, else 1 */
	uint32_t reserved;
	struct mr_rx_stats stats; /**< written by its user thread */
};

/** Tx queue. Members except @c queue are for mr_tx_burst() and drivers. */
struct mr_txq {
	struct mr_queue queue;
	mr_tx_burst_fn *burst;
	void *offload;            /**< private to lib/port */
	struct mr_tx_stats stats; /**< written by its user thread */
};

/** Properties of a port. */
struct mr_port_info {
	uint32_t size;        /**< sizeof(struct mr_port_info) */
	uint32_t n_rxqs;
	uint32_t n_txqs;
	uint32_t mtu_bytes;   /**< longest layer-3 packet; 0: no limit */
	int32_t numa_node;    /**< -1: unknown */
	uint32_t has_sg;      /**< 1: frames of up to MR_MAX_SEGS entries */
	uint32_t offloads;    /**< enum mr_offload: by the device */
	uint32_t launch_clock; /**< for MR_OFFLOAD_LAUNCH_TIME; see mr_meta */
	uint64_t locked_bytes; /**< memory that opening locked */
	uint64_t kernel_bytes; /**< kernel memory it took, approximately */
	uint8_t mac[6];       /**< 0: none */
	uint8_t has_mac;
	uint8_t reserved_bytes;
	char name[64];        /**< "driver:device", as in JSON; the whole spec
			       *   if there is no device */
	char mode[16];        /**< "zc", "copy", "memory", ... */
	char why[256];        /**< why no better mode is used, or what this mode
			       *   loses; "" if it is the best */
	char netdev[16];      /**< the network interface's name now; "": none */
	uint32_t n_channels;  /**< rx queues that the device has now, from the
			       *   port's first one on; 0: unknown */
	uint32_t reserved;
};

/**
 * Open the device named by @p spec and start all its queues.
 *
 * @param      ctx       log hook, allocator, clock and list of drivers
 * @param      spec      e.g. "xdp:eth0,queues=4"; grammar in docs/port-specs.md
 * @param      config    pool and use of the port; the pool must outlive the
 *                       port
 * @param[out] ret_port  set on success, unchanged on failure
 *
 * @return 0, or
 *   -EINVAL  the spec does not parse, a value is out of range, or no pool
 *   -ENODEV  no such driver in @p ctx, or no such device
 *   -EBUSY   the device, or a queue of it, is already in use
 *   -EPERM   a capability is missing; the reason names it
 *   -ENOMEM  no memory, or the pool cannot hold all rings, caches and a burst
 *            per worker; the reason has the number of pages needed. A pool with
 *            the default n_pages grows, and logs that it did
 *   -ENOTSUP the device cannot do what the spec asks for
 *   -EIO     a system call failed in another way; the reason has it
 *
 * Owner:  the caller, of the port; on failure nothing is left open and every
 *         buffer is back in the pool. An open port pins the segments that it
 *         registered.
 * Thread: any; of one context one at a time.
 * Cost:   blocks in system calls; each wait has a deadline. Does not wait for
 *         the link: mr_ports_wait_link().
 */
MR_API int mr_port_open(struct mr_ctx *ctx, const char *spec,
			const struct mr_port_config *config,
			struct mr_port **ret_port,
			struct mr_reason *reterr_reason);

/**
 * Whether an option can be added to a spec: its driver knows the option, and
 * the spec does not have it. For programs with one option for all ports. Opens
 * nothing.
 *
 * @return 1 or 0, or as mr_port_open(): -EINVAL, -ENODEV
 *
 * Thread: any.
 */
MR_API int mr_port_takes_option(struct mr_ctx *ctx, const char *spec,
				const char *key,
				struct mr_reason *reterr_reason);

/**
 * Close @p port. Exactly the references that its queues hold return to the
 * pool; those of other owners stay. NULL is allowed.
 *
 * Owner:  nobody, of the port and its queues.
 * Thread: one, with nobody else using the port; of one context one at a time,
 *         mr_port_open() included.
 * Cost:   system calls; each wait has a deadline.
 */
MR_API void mr_port_close(struct mr_port *port);

/**
 * Describe @p port. Members that may change (mac, mtu_bytes, n_rxqs, n_txqs,
 * netdev, n_channels) are consistent, as of the last mr_port_poll() or setting.
 *
 * @return 0, or -EINVAL if info->size, which the caller sets, is 0
 *
 * Owner: unchanged. Thread: any.
 */
MR_API int mr_port_info(const struct mr_port *port, struct mr_port_info *info);

/**
 * Rx queue @p i of @p port.
 *
 * @return NULL if it has no such queue
 *
 * Owner: the port, of the queue; it ends with the port. Thread: any.
 */
MR_API struct mr_rxq *mr_port_rxq(struct mr_port *port, uint32_t i);

/**
 * Tx queue @p i of @p port.
 *
 * @return NULL if it has no such queue
 *
 * Owner: the port, of the queue; it ends with the port. Thread: any.
 */
MR_API struct mr_txq *mr_port_txq(struct mr_port *port, uint32_t i);

/**
 * Handle everything except bursts: timers, changes and removal of the device,
 * which it reports (<millrace/port_events.h>). Call it when mr_port_fd() is
 * readable, or periodically.
 *
 * @return how many events were handled
 *
 * Owner:  unchanged.
 * Thread: any, one at a time; concurrently with the users of the queues.
 * Cost:   some system calls, or register reads; never blocks.
 */
MR_API uint32_t mr_port_poll(struct mr_port *port);

/**
 * The fd that is readable when mr_port_poll() has something to do.
 *
 * @return an fd of the port, CLOEXEC; -1 if it never has
 *
 * Owner: the port. Thread: any.
 */
MR_API int mr_port_fd(const struct mr_port *port);

/**
 * Copy the counters of a queue, including the kernel's.
 *
 * @return 0, or -EINVAL if stats->size, which the caller sets, is 0
 *
 * Owner:  unchanged.
 * Thread: any. The invariants above hold exactly while the queue is at rest.
 * Cost:   may be a system call.
 */
MR_API int mr_rxq_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats);

/** As mr_rxq_stats(), for a tx queue. */
MR_API int mr_txq_stats(const struct mr_txq *txq, struct mr_tx_stats *stats);

/**
 * mr_rx_burst() with metadata: @p meta is NULL, or has room for @p n elements.
 * meta[i] is set if frames[i] begins a frame.
 *
 * @return entries received, 0..n; the last one ends a frame
 *
 * Owner, Thread, Cost: as mr_rx_burst().
 */
static inline uint32_t mr_rx_burst_meta(struct mr_rxq *rxq,
					struct mr_cache *cache,
					struct mr_frame *frames,
					struct mr_meta *meta, uint32_t n)
{
	uint32_t n_got;

	assert(n == 0 || n >= rxq->n_min);
	assert(n <= MR_BURST_MAX);
	n_got = rxq->burst(rxq, cache, frames, meta, n);
	/* An idle poll: time to return what other pools wait for. */
	if (n_got == 0 && cache != NULL)
		mr_cache_idle(cache);
	return n_got;
}

/**
 * Take received frames from @p rxq. Never blocks.
 *
 * @param      rxq     rx queue of an open port; the caller is its only user
 * @param      cache   the calling thread's cache of the port's pool; provides
 *                     fresh buffers for the device
 * @param[out] frames  room for @p n entries; [0, return) are set, the rest is
 *                     unspecified
 * @param      n       entries, 0..MR_BURST_MAX; need not be a multiple of 8.
 *                     Less than MR_MAX_SEGS (but not 0) only on a port opened
 *                     without SG. A frame that does not fit stays in the ring
 *
 * @return entries received, 0..n; the last one ends a frame
 *
 * Owner:  the caller, until mr_tx_burst() takes the entries or
 *         mr_frame_free_bulk() frees them.
 * Order:  arrival order within a queue, none across queues.
 * Lost:   a frame of more than MR_MAX_SEGS entries: MR_RX_DROP_TOO_LONG.
 * Thread: the one that uses @p rxq and @p cache.
 * Cost:   no lock; at most one system call, only if the driver must be woken;
 *         no read of packet memory (except with csum=auto and meta of xdp:).
 * Source: the contract of DPDK's rte_eth_rx_burst(), plus ownership.
 */
static inline uint32_t mr_rx_burst(struct mr_rxq *rxq, struct mr_cache *cache,
				   struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst_meta(rxq, cache, frames, NULL, n);
}

/**
 * mr_tx_burst() with metadata: @p meta is NULL, or has @p n elements; those of
 * the first entry of each frame are read.
 *
 * For MR_META_GSO and MR_META_VLAN the library does what the device cannot
 * (mr_port_info.offloads). A frame segmented here counts as its segments, all
 * but one in MR_TX_EVENT_GSO_ADDED; what finds no room in the queue goes first
 * in the next bursts, and is one frame pending. mr_pool_size_for() excludes its
 * MR_MAX_SEGS pages; without a page it is lost: MR_TX_DROP_NO_BUFFER.
 *
 * A frame with MR_META_LAUNCH_TIME is lost, as MR_TX_DROP_INVALID, if the
 * device has no launch times (MR_OFFLOAD_LAUNCH_TIME) or not in this clock: it
 * could leave too early.
 *
 * @return entries taken, 0..n; the last one ends a frame
 *
 * Owner, Lost, Thread: as mr_tx_burst().
 * Cost:   as mr_tx_burst(), and a copy of each frame that is segmented, or
 *         tagged while shared or without headroom.
 */
static inline uint32_t mr_tx_burst_meta(struct mr_txq *txq,
					struct mr_cache *cache,
					const struct mr_frame *frames,
					const struct mr_meta *meta, uint32_t n)
{
	assert(n <= MR_BURST_MAX);
	return txq->burst(txq, cache, frames, meta, n);
}

/**
 * Offer frames to @p txq. Never blocks, never waits for room.
 *
 * @param txq     tx queue of an open port; the caller is its only user
 * @param cache   the calling thread's cache of the port's pool; receives the
 *                buffers of frames that the device has sent
 * @param frames  @p n entries, whole frames, all in the port's region
 * @param n       entries, 0..MR_BURST_MAX. 0 collects completions and wakes the
 *                device
 *
 * @return entries taken, 0..n; the last one ends a frame
 *
 * Owner:  the queue, of the entries taken; **the rest stay the caller's**.
 *         After completion the buffers go to @p cache of the call that collects
 *         them.
 * Lost:   a frame refused after it was taken (an entry outside the region, a
 *         device error) is a named drop in struct mr_tx_stats. The device never
 *         sees an invalid entry.
 * Thread: the one that uses @p txq and @p cache.
 * Cost:   no lock; one system call or doorbell per burst, and a bounded number
 *         more if the kernel left entries in the ring.
 */
static inline uint32_t mr_tx_burst(struct mr_txq *txq, struct mr_cache *cache,
				   const struct mr_frame *frames, uint32_t n)
{
	return mr_tx_burst_meta(txq, cache, frames, NULL, n);
}

/**
 * Request a wake-up before sleeping on the queue's fd.
 *
 * @return 1: there is work, do not sleep, the queue is not armed; 0: armed, the
 *         fd becomes readable when there is work
 *
 * An rx queue has work when a frame can be received; a tx queue while it holds
 * frames that mr_tx_burst() with n = 0 could collect.
 *
 * Owner:  unchanged.
 * Thread: the user of @p queue. The fd is valid only while armed.
 */
static inline int mr_queue_arm(struct mr_queue *queue)
{
	return queue->arm == NULL ? 1 : queue->arm(queue);
}

/**
 * @return the fd of @p queue, CLOEXEC, owned by the port and valid only while
 *         armed; -1: none, mr_queue_arm() returns 1. Thread: any.
 */
static inline int mr_queue_fd(const struct mr_queue *queue)
{
	return queue->fd;
}

MR_END_DECLS

#endif
