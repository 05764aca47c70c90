/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_DRIVER_H
#define MILLRACE_DRIVER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/driver_frame.h>
#include <millrace/driver_spec.h>
#include <millrace/error.h>
#include <millrace/frame.h>
#include <millrace/pool.h>
#include <millrace/port.h>
#include <millrace/port_device.h>
#include <millrace/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * For authors of drivers. drivers/README.md shows how to write one.
 */

/** A PCI device that a driver drives; vendor_id 0 ends a list of them. */
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
	uint32_t chunk_bytes; /**< of an rx buffer */
	uint32_t headroom_bytes;
	uint32_t tailroom_bytes;
	uint32_t n_workers;
	uint32_t n_committed_pages;
	struct mr_rxq **rxqs;     /**< info.n_rxqs of them */
	struct mr_txq **txqs;     /**< info.n_txqs of them */
	void *queue_memory;       /**< of mr_port_make_queues(), or NULL */
	void *offload;            /**< what lib/port does for the device */
	int fd;                   /**< for mr_port_fd(); -1 from the start */
	struct mr_port_info info; /**< name is set; the driver fills the rest */
};

/**
 * What a driver is: this table, one const object per driver, no constructors;
 * a context lists the built-in ones, mr_ctx_add_driver() appends another.
 * Bursts are not here: open() puts them into the queues it makes.
 */
struct mr_driver {
	const char *name;        /**< the part of a spec before ':' */
	const char *const *keys; /**< options it knows, NULL at the end */
	size_t port_bytes; /**< of its port struct, that begins with mr_port */
	/** What it drives of the devices of "vfio:BDF"; NULL: none of them. */
	const struct mr_pci_id *pci_ids;

	/**
	 * Most pages that a port of @p spec holds. Opens nothing.
	 * @return 0, or as mr_port_need_pages()
	 */
	int (*need)(struct mr_ctx *ctx, const struct mr_spec *spec,
		    uint32_t page_bytes, uint32_t *ret_n_pages,
		    struct mr_reason *reterr_reason);

	/**
	 * Contract of mr_port_open(). @p port is zeroed but for its head; the
	 * spec is parsed, has only known keys, and the pages are committed.
	 * On failure everything is undone but @p port itself.
	 */
	int (*open)(struct mr_port *port, const struct mr_spec *spec,
		    struct mr_reason *reterr_reason);

	/** Contract of mr_port_close(); @p port itself is freed behind it. */
	void (*close)(struct mr_port *port);

	/** Contract of mr_port_poll(). NULL: nothing to do, ever. */
	int (*poll)(struct mr_port *port);

	/** Contract of mr_port_link(). NULL: no notion of a link. */
	int (*link)(const struct mr_port *port, struct mr_link *ret_link);

	/** Contract of mr_port_device_drops(). NULL: none. */
	uint32_t (*device_drops)(const struct mr_port *port,
				 struct mr_named_count *ret_counts, uint32_t n);

	/**
	 * Contracts of mr_port_set_promisc() and so on. NULL: -ENOTSUP. The
	 * arguments were looked at, and port->info follows success; close()
	 * puts back what the device would keep.
	 */
	int (*set_promisc)(struct mr_port *port, uint32_t on,
			   struct mr_reason *reterr_reason);
	int (*set_allmulti)(struct mr_port *port, uint32_t on,
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

	/** Complete a copy of the queue's counters. NULL: it is complete. */
	void (*rxq_stats)(const struct mr_rxq *rxq, struct mr_rx_stats *stats);
	void (*txq_stats)(const struct mr_txq *txq, struct mr_tx_stats *stats);
};

/**
 * Add to a counter that one thread writes and any thread may read.
 *
 * Thread: the writer. Cost: a load and a store.
 */
static inline void mr_counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter,
			 __atomic_load_n(counter, __ATOMIC_RELAXED) + n,
			 __ATOMIC_RELAXED);
}

/** Read such a counter. @return its value. Thread: any. */
static inline uint64_t mr_counter_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/**
 * Take the whole frames of @p n entries and lose them all: they count as
 * accepted, and as @p drop.
 *
 * @return entries taken
 *
 * Owner: the pool. Thread: the one that uses the queue and @p cache.
 */
MR_API uint32_t mr_txq_lose(struct mr_txq *txq, struct mr_cache *cache,
			    const struct mr_frame *frames, uint32_t n,
			    enum mr_tx_drop drop) __attribute__((cold));

/**
 * Write a reason, if the caller wants one.
 *
 * @return @p error, so that "return mr_fail(reason, -EINVAL, ...)" is one line
 *
 * Thread: any.
 */
MR_API int mr_fail(struct mr_reason *reason, int error, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));

/**
 * The text of an errno value, with the remedy where it is always the same.
 *
 * @param error  positive, as errno
 *
 * @return a string that is not freed
 *
 * Thread: any.
 */
MR_API const char *mr_strerror(int error);

/** Send one line to the context's log hook. Thread: any. */
MR_API void mr_log(const struct mr_ctx *ctx, enum mr_log_level level,
		   const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Memory from the context's allocator, zeroed.
 *
 * @param align_bytes  a power of two; 0: 64, one cache line
 *
 * @return NULL if there is none
 *
 * Owner: the caller; mr_free() gives it back. Thread: as the hook.
 */
MR_API void *mr_alloc(const struct mr_ctx *ctx, size_t align_bytes,
		      size_t n_bytes);

/**
 * Give memory of mr_alloc() back. NULL is allowed.
 *
 * Owner: the allocator. Thread: as the hook.
 */
MR_API void mr_free(const struct mr_ctx *ctx, void *memory);

/**
 * Close @p fd in children that the process forks from now on: one that keeps a
 * queue busy while it is open, in whatever process.
 *
 * @return false if the table is full (1024); then a child keeps it
 *
 * Owner:  the caller, of the fd; mr_fd_close() closes it.
 * Thread: any. Cost: a search of the table.
 */
MR_API bool mr_fd_guard(int fd);

/** Close an fd, guarded or not; -1 is allowed. Thread: any. */
MR_API void mr_fd_close(int fd);

/**
 * Give a port its queues: two arrays of the driver's own structs, and the
 * tables mr_port.rxqs and mr_port.txqs of them. An array begins a cache line;
 * begin the structs with _Alignas(64), or the queues of two workers share one.
 * A struct is zeroed but for its port, its idx and its fd, which is -1. Sets
 * info.n_rxqs and info.n_txqs.
 *
 * @param n          of each
 * @param rxq_bytes  of a struct that begins with struct mr_rxq
 * @param txq_bytes  of one that begins with struct mr_txq
 *
 * @return 0, or -ENOMEM
 *
 * Owner:  the library; they go behind close(), or behind an open() that fails.
 * Thread: in open().
 */
MR_API int mr_port_make_queues(struct mr_port *port, uint32_t n,
			       size_t rxq_bytes, size_t txq_bytes,
			       struct mr_reason *reterr_reason);

struct nlmsghdr;
struct rtattr;

/** Given each message of an answer but its end. */
typedef void mr_netlink_fn(void *opaque, const struct nlmsghdr *message);

/**
 * Ask the kernel by a netlink socket of its own. @p take may be NULL.
 *
 * @return 0, what the kernel says, -EAGAIN after 2 s without an answer, or
 *         -EIO or -EMSGSIZE for one that is malformed or too long
 *
 * Thread: any.
 */
MR_API int mr_netlink_ask(int protocol, const struct nlmsghdr *request,
			  mr_netlink_fn *take, void *opaque);

/**
 * Find an attribute of a message whose family's header has @p n_header bytes,
 * and in it the one of type @p inner; 0: the outer one itself.
 *
 * @return NULL if there is none. Owner: of the message. Thread: any.
 */
MR_API const struct rtattr *mr_netlink_attribute(const struct nlmsghdr *message,
						 size_t n_header, uint16_t type,
						 uint16_t inner);

/**
 * A pointer that the driver keeps in the context, NULL to begin with: what two
 * ports of a driver have in common. The driver frees it with its last port.
 *
 * @return the place of @p driver in @p ctx; NULL if it is not in its list
 *
 * Owner: the driver, of what it points to. Thread: as mr_port_open().
 */
MR_API void **mr_ctx_driver_slot(struct mr_ctx *ctx,
				 const struct mr_driver *driver);

/**
 * Buffers straight from and to the pool, for opening and closing a port: no
 * cache is involved. As mr_frag_alloc_bulk() and mr_frag_free_bulk().
 *
 * @return buffers allocated
 *
 * Owner: as mr_frag_alloc_bulk(). Thread: any. Cost: may take a lock.
 */
MR_API uint32_t mr_pool_frag_alloc_bulk(struct mr_pool *pool, uint64_t *addrs,
					uint32_t n, uint32_t n_bytes);

/**
 * @return about how many buffers of chunk_bytes mr_pool_frag_alloc_bulk() would
 *         find at once; not counted are those in caches, beyond one magazine in
 *         the depot, and of segments to come
 *
 * Thread: any; others may take them. Cost: two loads.
 */
MR_API uint64_t mr_pool_n_direct(const struct mr_pool *pool);

/** The other direction. Owner: the pool. Thread: any. Cost: may lock. */
MR_API void mr_pool_frag_free_bulk(struct mr_pool *pool, const uint64_t *addrs,
				   uint32_t n);

/**
 * Pin the segments of a region that begin in [0, n_bytes): they cannot be
 * given back while a device has them registered.
 *
 * @param holder   the port's name, for messages
 * @param n_bytes  0: only ask whether it can be
 *
 * @return 0, or
 *   -ENOSPC   too many holders (64)
 *   -ENOTSUP  it has a pool of MR_SAFETY_GUARD, whose free pages cannot be
 *             registered
 *
 * Thread: as mr_port_open().
 */
MR_API int mr_region_pin(struct mr_region *region, const char *holder,
			 uint64_t n_bytes);

/**
 * Undo mr_region_pin() with the same arguments.
 *
 * Owner: unchanged. Thread: as mr_port_open().
 */
MR_API void mr_region_unpin(struct mr_region *region, const char *holder,
			    uint64_t n_bytes);

/**
 * Told of a segment before pages of it are given out, on the thread that adds
 * it. It may call nothing that takes the region.
 *
 * @return 0, or -errno with a reason: the segment is not added
 */
typedef int mr_segment_add_fn(void *opaque,
			      const struct mr_segment_info *segment,
			      struct mr_reason *reterr_reason);

/** The other direction, for a segment that mr_segment_add_fn took. */
typedef void mr_segment_remove_fn(void *opaque,
				  const struct mr_segment_info *segment);

/**
 * Be told of the region's segments: first of those that are there, then of
 * each that comes. Pin the region first, so that none goes.
 *
 * @return 0, what @p add returned, after @p remove of those it took, or
 *   -ENOSPC  too many listeners (64)
 *
 * Owner: the caller, of @p opaque, until mr_region_unlisten().
 * Thread: as mr_port_open().
 */
MR_API int mr_region_listen(struct mr_region *region, mr_segment_add_fn *add,
			    mr_segment_remove_fn *remove, void *opaque,
			    struct mr_reason *reterr_reason);

/**
 * Undo mr_region_listen(): @p remove is called for each segment.
 *
 * Owner: the caller, of @p opaque. Thread: as mr_port_close().
 */
MR_API void mr_region_unlisten(struct mr_region *region, void *opaque);

/**
 * Whether all pages of @p pool lie in [0, n_bytes) of its region.
 *
 * @return false: a device that registers that much cannot be given all of them
 *
 * Thread: any. Cost: none to speak of.
 */
MR_API bool mr_pool_is_below(const struct mr_pool *pool, uint64_t n_bytes);

/**
 * Whether bytes can be read: they lie in one segment.
 *
 * @return false for what lies behind the last segment, in a gap, or across two
 *
 * Thread: any, in bursts too. Cost: a look at each segment; no lock.
 */
MR_API bool mr_region_is_backed(const struct mr_region *region, uint64_t addr,
				uint64_t n_bytes);

/**
 * As mr_region_is_backed(), and where that segment lies, so that a burst need
 * not search again. Every segment found this way is already mapped for each
 * driver that listens.
 *
 * @param[out] ret_begin  address of its first byte; set if true
 * @param[out] ret_end    address behind its last byte; set if true
 *
 * Thread, Cost: as mr_region_is_backed().
 */
MR_API bool mr_region_find(const struct mr_region *region, uint64_t addr,
			   uint64_t n_bytes, uint64_t *ret_begin,
			   uint64_t *ret_end);

/**
 * How far the region is backed by segments without a gap.
 *
 * @return bytes from address 0
 *
 * Thread: as mr_port_open().
 */
MR_API uint64_t mr_region_n_contiguous_bytes(const struct mr_region *region);

#ifdef __cplusplus
}
#endif

#endif
