/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_PORT_DEVICE_H
#define MILLRACE_PORT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/port.h>

MR_BEGIN_DECLS

/**
 * @file
 * Drivers, and the device of a port: its offloads, settings and counters.
 *
 * A setting lasts until the port is closed, which restores what it changed. If
 * other programs use the device too (xdp:), they share its settings.
 */

struct mr_driver;

/**
 * Append a driver to the list of @p ctx.
 *
 * @param driver  copied; what it points to must outlive the context; see
 *                <millrace/driver.h>
 *
 * @return 0, or
 *   -ENOEXEC @p driver was compiled for another MR_DRIVER_VERSION, or
 *            its size is not one that this version knows
 *   -EINVAL  it has no name, open or close, or its port struct is smaller than
 *            struct mr_port
 *   -EEXIST  the list has a driver of this name
 *   -ENOSPC  the list is full (32)
 *   -ENOMEM  no memory
 *
 * Owner:  the caller, of @p driver.
 * Thread: one; not while ports of the context are being opened.
 */
MR_API int mr_ctx_add_driver(struct mr_ctx *ctx,
			     const struct mr_driver *driver,
			     struct mr_reason *reterr_reason);

/** What a device does for the frames of a port: mr_port_info.offloads. */
enum mr_offload {
	/**
	 * Computes checksums of MR_FRAME_CSUM_PARTIAL; otherwise the driver
	 * does. mr_tx_burst_meta() replaces the GSO and VLAN offloads below.
	 */
	MR_OFFLOAD_CSUM_TX = 1u << 0,
	/** Verifies checksums: MR_FRAME_CSUM_VALID. */
	MR_OFFLOAD_CSUM_RX = 1u << 1,
	/** Segments frames of MR_GSO_TCPV4. */
	MR_OFFLOAD_TSO4 = 1u << 2,
	/** Segments frames of MR_GSO_TCPV6. */
	MR_OFFLOAD_TSO6 = 1u << 3,
	/** Segments frames of MR_GSO_UDP. */
	MR_OFFLOAD_USO = 1u << 4,
	/** Reports a hash: MR_META_RSS_HASH. On NICs, it is the one that
	 * selected the queue. */
	MR_OFFLOAD_RSS_HASH = 1u << 5,
	/** Inserts the tag of MR_META_VLAN. */
	MR_OFFLOAD_VLAN_TX = 1u << 6,
	/** Moves a tag from the frame to MR_META_VLAN. */
	MR_OFFLOAD_VLAN_RX = 1u << 7,
	/** Reports when a frame arrived: MR_META_RX_TIME. */
	MR_OFFLOAD_TIME_RX = 1u << 8,
	/** Delays a frame until its MR_META_LAUNCH_TIME, if the time is in
	 * mr_port_info.launch_clock. */
	MR_OFFLOAD_LAUNCH_TIME = 1u << 9,
	/** Merges received segments: MR_META_GSO. */
	MR_OFFLOAD_LRO = 1u << 10,
	/** When a frame left is known, from the device or the kernel:
	 * mr_txq_times(). */
	MR_OFFLOAD_TIME_TX = 1u << 11,
};

/** A named counter, of frames unless the name says otherwise. */
struct mr_named_count {
	const char *name; /**< valid as long as the port */
	uint64_t value;
};

/** Smallest MTU that mr_port_set_mtu() takes (RFC 791, section 3.2). */
enum { MR_MTU_MIN_BYTES = 68 };

/**
 * Receive all frames, or only broadcasts and frames to the port's own address
 * and to those of mr_port_set_mac_filter(). Independent of
 * mr_port_set_allmulti().
 *
 * @param port  an open port
 * @param on    true: receive all frames
 *
 * @return 0, or with nothing changed
 *   -ENOTSUP the device cannot do this
 *   -EPERM   a capability is missing; the reason names it
 *   -ENODEV  the device is gone
 *   -EIO     the device did not answer, or a system call failed
 *
 * Owner:  unchanged.
 * Thread: any, one at a time per port, including mr_port_poll() and
 *         mr_port_info(). Queues may be in use meanwhile.
 * Cost:   system calls or commands to the device; each wait has a deadline.
 */
MR_API int mr_port_set_promisc(struct mr_port *port, bool on,
			       struct mr_reason *reterr_reason);

/**
 * Receive all multicast frames, or only those to addresses of
 * mr_port_set_mac_filter(). Else as mr_port_set_promisc().
 *
 * @return as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_allmulti(struct mr_port *port, bool on,
				struct mr_reason *reterr_reason);

/**
 * Set the longest layer-3 packet that the port sends and receives.
 *
 * @param port       an open port
 * @param mtu_bytes  MR_MTU_MIN_BYTES to 65535, without the Ethernet header
 *
 * @return 0, or with nothing changed
 *   -EINVAL  more than the device supports, or than the port's buffers can hold
 *            in its mode; the reason has the limit
 *   and as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_mtu(struct mr_port *port, uint32_t mtu_bytes,
			   struct mr_reason *reterr_reason);

/**
 * Set the unicast address of the port.
 *
 * @param port  an open port
 * @param mac   6 bytes as on the wire
 *
 * @return 0, or with nothing changed
 *   -EINVAL  NULL, all zero, or a group address
 *   -EBUSY   the device changes it only while it is down
 *   and as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_mac(struct mr_port *port, const uint8_t mac[6],
			   struct mr_reason *reterr_reason);

/**
 * Receive frames to these addresses as well as the port's own. The list
 * replaces the previous one.
 *
 * @param port  an open port
 * @param macs  @p n addresses, unicast and multicast; copied
 * @param n     0: only the port's own
 *
 * @return 0, or with the previous list
 *   -EINVAL  no list, or an address that is all zero
 *   -ENOSPC  more than the device can hold; the reason has the limit
 *   -ENOMEM  no memory for a copy of the list
 *   and as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_mac_filter(struct mr_port *port,
				  const uint8_t (*macs)[6], uint32_t n,
				  struct mr_reason *reterr_reason);

/**
 * Replace the filter of a port that shares its device with the kernel: from now
 * on, @p port receives the frames that match @p expression, and the kernel the
 * others. Each frame passes exactly one of the two filters, and none is lost.
 * Counters are not reset. The filter replaces all options of the spec that
 * select frames.
 *
 * @param port        opened with a filter: xdp:eth0,filter=... or a key that is
 *                    short for one
 * @param expression  as for the option 'filter': pcap-filter(7); copied
 *
 * @return 0, or with the previous filter
 *   -EINVAL  no expression, or it does not compile; the reason says where
 *   -EBUSY   it may match frames that keep this machine reachable, and the port
 *            was opened without 'force'; or the port has rules
 *   -ENOTSUP the driver has no filters, the port was opened without one, or
 *            the filter matches no frame, is too long or loops
 *   -EPERM   a capability is missing; the reason names it
 *   -ENODEV  the device is gone, or the port's program was detached
 *   -ENOMEM, -EIO  the kernel does not load or attach the program; the reason
 *            has the verifier's message
 *
 * Owner:  unchanged.
 * Thread: as mr_port_set_promisc().
 * Cost:   compiles and loads a program: a few milliseconds. Queues are not
 *         stopped.
 * Source: bpf(2), BPF_LINK_UPDATE.
 */
MR_API int mr_port_set_filter(struct mr_port *port, const char *expression,
			      struct mr_reason *reterr_reason);

/**
 * Frames that the device lost before they reached a queue, since open.
 *
 * @param[out] ret_counts  room for @p n
 *
 * @return how many counters there are; the first min(n, that) are set
 *
 * Owner: unchanged. Thread: any. Cost: may be a system call.
 */
MR_API uint32_t mr_port_device_drops(const struct mr_port *port,
				     struct mr_named_count *ret_counts,
				     uint32_t n);

/**
 * Print a port's counters by name: those of all queues, with drops and events,
 * and the device drops. One per line:
 *
 *     port xdp:eth0
 *     device_drops rx_missed 0
 *     queue 0 rx received 1200
 *     queue 0 rx drops ring_full 12
 *
 * It does not print the device's own counters: see mr_port_device_stats().
 *
 * @param[out] ret_text  room for @p n_bytes; may be NULL if that is 0. Text
 *                       that does not fit is cut off; a 0 ends it in any case
 *
 * @return length of the whole text, like snprintf(): if it is @p n_bytes or
 *         more, the text was cut off. Counters may be longer in the next call
 *
 * Owner:  unchanged.
 * Thread: any, also while others use the queues.
 * Cost:   that of mr_rxq_stats(), mr_txq_stats() and mr_port_device_drops().
 */
MR_API size_t mr_port_stats_text(const struct mr_port *port, char *ret_text,
				 size_t n_bytes);

/**
 * Like mr_port_stats_text(), but print one JSON object, without a newline:
 *
 *     {"port": "xdp:eth0", "device_drops": {"rx_missed": 0}, "queues": [
 *      {"rx": {"received": 1200, ..., "drops": {...}, "events": {...}},
 *       "tx": {"accepted": 1100, ..., "drops": {...}, "events": {...}}}]}
 *
 * @return as mr_port_stats_text()
 *
 * Owner, Thread, Cost: as mr_port_stats_text().
 */
MR_API size_t mr_port_stats_json(const struct mr_port *port, char *ret_text,
				 size_t n_bytes);

/**
 * The device's own counters, with the names of its datasheet or kernel driver.
 * They are not part of the invariants of <millrace/port.h>, and include the
 * frames of other users of the device.
 *
 * @param[out] ret_counts  room for @p n
 *
 * @return how many counters there are, 0 if the device has none; the first
 *         min(n, that) are set
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API uint32_t mr_port_device_stats(const struct mr_port *port,
				     struct mr_named_count *ret_counts,
				     uint32_t n);

/**
 * Take the times at which frames left. A frame asks for its time with
 * MR_META_TX_TIME in mr_tx_burst_meta(), and mr_meta.mark identifies it. If it
 * is segmented, each segment has a time.
 *
 * @param[out] ret_metas  room for @p n; in each, valid is MR_META_TX_TIME |
 *                        MR_META_MARK: tx_ns, tx_clock and the frame's mark.
 *                        The clock is the device's (MR_CLOCK_DEVICE), or
 *                        CLOCK_TAI if the kernel takes the time at completion
 *
 * @return how many, 0..n, in the order of their completion; 0 from a port
 *         without MR_OFFLOAD_TIME_TX
 *
 * Lost:   times that the device did not report, and times that do not fit: the
 *         queue keeps as many as its ring has entries. MR_TX_EVENT_TIME_LOST
 *         counts both.
 * Owner:  unchanged.
 * Thread: the one that uses @p txq.
 * Cost:   a copy. mr_tx_burst() collects the times; while one is expected, it
 *         reads packet memory of frames that complete.
 */
MR_API uint32_t mr_txq_times(struct mr_txq *txq, struct mr_meta *ret_metas,
			     uint32_t n);

/**
 * Prepare @p port for mr_port_to_kernel(). One call is enough; closing the port
 * undoes it.
 *
 * @return 0, or
 *   -ENOTSUP  the driver, or the way its program is attached, does not allow
 *             it
 *   -EPERM    CAP_NET_ADMIN or CAP_BPF is missing
 *   -errno    the kernel refused a part of it, which the reason names
 *
 * Thread: as mr_port_open(). Cost: creates a tap and loads a program.
 */
MR_API int mr_port_open_kernel(struct mr_port *port,
			       struct mr_reason *reterr_reason);

/**
 * Hand frames to the kernel's network stack as if they had arrived on the
 * port's interface, for a program that shares the interface with the kernel. A
 * filter decides in advance which frames stay with the kernel; this call is for
 * frames that the program must look at first. Partial checksums stay partial.
 *
 * @param frames  @p n entries, whole frames, received from this port
 *
 * @return how many frames the kernel took; the others are lost. Without
 *         mr_port_open_kernel(), all are lost. xdp: ports count them in
 *         mr_port_device_stats(): "to_kernel", "to_kernel_lost".
 *
 * Owner:  the pool, of all frames.
 * Thread: any; one that uses @p cache.
 * Cost:   a system call and a copy per frame.
 */
MR_API uint32_t mr_port_to_kernel(struct mr_port *port, struct mr_cache *cache,
				  const struct mr_frame *frames, uint32_t n);

MR_END_DECLS

#endif
