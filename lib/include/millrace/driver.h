/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_DRIVER_H
#define MILLRACE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/driver_base.h>
#include <millrace/driver_frame.h>
#include <millrace/driver_mem.h>
#include <millrace/driver_spec.h>
#include <millrace/error.h>
#include <millrace/frame.h>
#include <millrace/pool.h>
#include <millrace/port.h>
#include <millrace/port_device.h>
#include <millrace/port_events.h>
#include <millrace/region.h>

MR_BEGIN_DECLS

/**
 * @file
 * For driver authors. drivers/README.md shows how to write one.
 */

/**
 * Version of the layout of struct mr_driver, struct mr_port and the structs in
 * them. The library refuses drivers of another version. Adding a member
 * to the end of struct mr_driver does not change the version: a driver built
 * without it has a smaller size, and the member counts as NULL.
 */
enum { MR_DRIVER_VERSION = 1 };

/* Declared in experimental headers, which only their users include. */
struct mr_hand_over_ops;
struct mr_rss_config;
struct mr_rules;
struct mr_rules_ops;
struct mr_steer_rule;

/** A PCI device that a driver supports; vendor_id 0 ends a list. */
struct mr_pci_id {
	uint16_t vendor_id;
	uint16_t device_id;
};

/** Head of a driver's own port struct. lib/port fills it before open(). */
struct mr_port {
	const struct mr_driver *driver;
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_region *region;
	void *base;           /**< mr_region_base() */
	uint32_t page_bytes;  /**< of the pool */
	uint32_t headroom_bytes;
	uint32_t tailroom_bytes;
	uint32_t n_workers;
	uint32_t n_committed_pages;
	struct mr_rxq **rxqs;     /**< info.n_rxqs of them */
	struct mr_txq **txqs;     /**< info.n_txqs of them */
	void *queue_memory;       /**< from mr_port_make_queues(), or NULL */
	void *offload;            /**< private to lib/port */
	struct mr_rules *rules;   /**< the set that it belongs to, or NULL */
	uint32_t rules_idx;       /**< its index in that set */
	/**
	 * Belongs to the library, which sets name; the driver fills in the
	 * rest. Later it may change mac, mtu_bytes, n_channels and netdev in
	 * poll(), and lib/port reports that to the program.
	 */
	struct mr_port_info *info;
	int fd; /**< for mr_port_fd(); initially -1 */
	uint32_t n_queues_made; /**< of each kind, by mr_port_make_queues() */
	void *events; /**< private to lib/port */
	uint32_t is_away; /**< 1: another process has the device; see
			   *   <millrace/experimental/driver_hand_over.h> */
	uint32_t reserved;
	uint64_t reserved_words[4];
};

/**
 * @return bytes of a page between the pool's headroom and tailroom
 *
 * Thread: any. Cost: negligible.
 */
static inline uint32_t mr_port_room_bytes(const struct mr_port *port)
{
	return port->page_bytes - port->headroom_bytes - port->tailroom_bytes;
}

/**
 * A driver: one const table, without constructors. A context lists the built-in
 * drivers; mr_ctx_add_driver() appends another. The bursts are not here: open()
 * sets them in the queues that it makes.
 */
struct mr_driver {
	const char *name;        /**< the part of a spec before ':' */
	uint32_t version;        /**< MR_DRIVER_VERSION; this and size are
				  *   checked by mr_ctx_add_driver() */
	uint32_t size;           /**< sizeof(struct mr_driver) */
	const char *const *keys; /**< options it knows, NULL-terminated */
	size_t port_bytes; /**< of its port struct, which begins with mr_port */
	/** Devices of "vfio:BDF" that it supports; NULL: none. */
	const struct mr_pci_id *pci_ids;

	/**
	 * Maximum number of pages that a port of @p spec holds. Opens nothing.
	 * NULL: it holds none between bursts.
	 * @return 0, or -EINVAL or -ENODEV as mr_port_open()
	 */
	int (*need)(struct mr_ctx *ctx, const struct mr_spec *spec,
		    uint32_t page_bytes, uint32_t *ret_n_pages,
		    struct mr_reason *reterr_reason);

	/**
	 * Contract of mr_port_open(). @p port is zero except for its head, the
	 * spec is parsed and has only known keys, and the pages are committed.
	 * On failure, undo everything; lib/port frees @p port.
	 */
	int (*open)(struct mr_port *port, const struct mr_spec *spec,
		    struct mr_reason *reterr_reason);

	/** Contract of mr_port_close(); lib/port then frees @p port. */
	void (*close)(struct mr_port *port);

	/** Contract of mr_port_poll(). NULL: never anything to do. */
	uint32_t (*poll)(struct mr_port *port);

	/** Contract of mr_port_link(). NULL: the device has no link state. */
	int (*link)(const struct mr_port *port, struct mr_link *ret_link);

	/** Contract of mr_port_device_drops(). NULL: none. */
	uint32_t (*device_drops)(const struct mr_port *port,
				 struct mr_named_count *ret_counts, uint32_t n);

	/**
	 * Contracts of mr_port_set_promisc() and so on. NULL: -ENOTSUP.
	 * lib/port has checked the arguments, and updates port->info on
	 * success; close() restores settings that would outlive the port.
	 */
	int (*set_promisc)(struct mr_port *port, bool on,
			   struct mr_reason *reterr_reason);
	int (*set_allmulti)(struct mr_port *port, bool on,
			    struct mr_reason *reterr_reason);
	int (*set_mtu)(struct mr_port *port, uint32_t mtu_bytes,
		       struct mr_reason *reterr_reason);
	int (*set_mac)(struct mr_port *port, const uint8_t mac[6],
		       struct mr_reason *reterr_reason);
	int (*set_mac_filter)(struct mr_port *port, const uint8_t (*macs)[6],
			      uint32_t n, struct mr_reason *reterr_reason);

	/** Contract of mr_port_device_stats(). NULL: none. */
	uint32_t (*device_stats)(const struct mr_port *port,
				 struct mr_named_count *ret_counts, uint32_t n);

	/**
	 * Contracts of mr_port_open_kernel() and, for one frame of @p n
	 * entries, of mr_port_to_kernel(). to_kernel() returns whether the
	 * kernel took the frame, which the caller still owns. NULL: the kernel
	 * cannot receive the device's frames.
	 */
	int (*open_kernel)(struct mr_port *port,
			   struct mr_reason *reterr_reason);
	bool (*to_kernel)(struct mr_port *port, const struct mr_frame *frames,
			  uint32_t n);

	/** Complete a copy of the queue's counters. NULL: nothing to add. */
	void (*rxq_stats)(const struct mr_rxq *rxq, struct mr_rx_stats *stats);
	void (*txq_stats)(const struct mr_txq *txq, struct mr_tx_stats *stats);

	const struct mr_rules_ops *rules; /**< NULL: none */

	/** Contract of mr_txq_times(). NULL: none. */
	uint32_t (*txq_times)(struct mr_txq *txq, struct mr_meta *ret_metas,
			      uint32_t n);

	/** Contract of mr_port_set_filter(). NULL: -ENOTSUP. */
	int (*set_filter)(struct mr_port *port, const char *expression,
			  struct mr_reason *reterr_reason);

	/**
	 * Contracts of <millrace/experimental/port_queues.h>, whose arguments
	 * lib/port has checked as far as it can. NULL: -ENOTSUP.
	 */
	int (*set_rss)(struct mr_port *port, const struct mr_rss_config *config,
		       struct mr_reason *reterr_reason);
	int (*steer)(struct mr_port *port, const struct mr_steer_rule *rule,
		     uint32_t *ret_id, struct mr_reason *reterr_reason);
	int (*unsteer)(struct mr_port *port, uint32_t id,
		       struct mr_reason *reterr_reason);

	/** Contract of mr_port_add_queues(): add @p n queues, or none. The
	 * library has committed as many pages per queue as the others have. */
	int (*add_queues)(struct mr_port *port, uint32_t n,
			  struct mr_reason *reterr_reason);

	/** NULL: a port cannot be handed over to another process. */
	const struct mr_hand_over_ops *hand_over;
};

/**
 * Find the reason why a frame cannot be sent.
 *
 * @param n  entries of the frame
 *
 * @return -1: there is none; or
 *   MR_TX_DROP_TOO_LONG  more than MR_MAX_SEGS entries, or than max_bytes
 *   MR_TX_DROP_INVALID   less than min_bytes, or an entry is empty or outside
 *                        the region
 *
 * Owner: unchanged. Thread: the owner's. Cost: mr_region_is_backed() per entry.
 */
static inline int mr_tx_find_fault(const struct mr_region *region,
				   const struct mr_frame *frames, uint32_t n,
				   uint64_t min_bytes, uint64_t max_bytes)
{
	const uint64_t n_bytes = mr_frame_n_bytes(frames, n);

	if (n > MR_MAX_SEGS || n_bytes > max_bytes)
		return MR_TX_DROP_TOO_LONG;
	for (uint32_t i = 0; i < n; i++)
		if (frames[i].len == 0 ||
		    !mr_region_is_backed(region, frames[i].addr, frames[i].len))
			return MR_TX_DROP_INVALID;
	return n_bytes < min_bytes ? MR_TX_DROP_INVALID : -1;
}

/**
 * Allocate a frame of @p n_bytes for the caller to fill: each entry is a page,
 * with the pool's headroom and tailroom.
 *
 * @param      n_bytes        1 to MR_MAX_SEGS * mr_port_room_bytes()
 * @param      n_reach_bytes  bytes of the region that the device can reach
 * @param[out] ret_frames     all but the last have MR_FRAME_MORE
 *
 * @return entries; 0: too few pages, or some are out of reach
 *
 * Owner: the caller. Thread: the one that uses @p cache.
 * Cost:  as mr_frag_alloc_bulk().
 */
MR_API uint32_t mr_port_alloc_frame(const struct mr_port *port,
				    struct mr_cache *cache, uint64_t n_bytes,
				    uint64_t n_reach_bytes,
				    struct mr_frame *ret_frames);

/**
 * Copy a frame, with its flags, to entries from mr_port_alloc_frame().
 *
 * @return as mr_port_alloc_frame()
 *
 * Owner: the caller, of both frames. Thread, Cost: the same, plus the copy.
 */
MR_API uint32_t mr_port_copy_frame(const struct mr_port *port,
				   struct mr_cache *cache,
				   const struct mr_frame *frames, uint32_t n,
				   uint64_t n_reach_bytes,
				   struct mr_frame *ret_frames);

/**
 * Accept the whole frames among @p n entries and drop them all, counted as
 * accepted and as @p drop.
 *
 * @return entries taken
 *
 * Owner: the pool. Thread: the user of the queue and of @p cache.
 */
MR_API uint32_t mr_txq_lose(struct mr_txq *txq, struct mr_cache *cache,
			    const struct mr_frame *frames, uint32_t n,
			    enum mr_tx_drop drop) __attribute__((cold));

/**
 * Make the queues of a port: two arrays of the driver's own structs, and the
 * tables mr_port.rxqs and mr_port.txqs that point to them. The arrays are
 * cache-line aligned; declare the structs _Alignas(64), so that the queues of
 * two workers share no line. A struct is zero except for its port, its idx and
 * its fd, which is -1. Sets info.n_rxqs and info.n_txqs, which the driver may
 * lower to keep the other queues for add_queues().
 *
 * @param n          queues of each kind
 * @param rxq_bytes  of a struct that begins with struct mr_rxq
 * @param txq_bytes  of a struct that begins with struct mr_txq
 *
 * @return 0, or -ENOMEM
 *
 * Owner:  the library; it frees them after close() or a failed open().
 * Thread: in open().
 */
MR_API int mr_port_make_queues(struct mr_port *port, uint32_t n,
			       size_t rxq_bytes, size_t txq_bytes,
			       struct mr_reason *reterr_reason);

/**
 * A pointer that the driver keeps in the context, initially NULL, for state
 * that its ports share. The driver frees it with its last port.
 *
 * @return the pointer's place in @p ctx; NULL if @p driver is not in its list
 *
 * Owner: the driver, of what it points to. Thread: as mr_port_open().
 */
MR_API void **mr_ctx_driver_slot(struct mr_ctx *ctx,
				 const struct mr_driver *driver);

MR_END_DECLS

#endif
