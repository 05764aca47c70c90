/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_PORT_DEVICE_H
#define MILLRACE_PORT_DEVICE_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/port.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * The device under a port: what it takes over, what it is told, what it counts.
 *
 * A setting holds until the port is closed, which puts back what it changed. A
 * device that other programs use as well (xdp:) sees what they set, too.
 */

/** What a device does for the frames of a port: mr_port_info.offloads. */
enum mr_offload {
	/** Finishes sums of MR_FRAME_CSUM_PARTIAL. Without it the driver does,
	 * and without those below mr_tx_burst_meta() cuts and tags. */
	MR_OFFLOAD_CSUM_TX = 1u << 0,
	/** Checks sums: MR_FRAME_CSUM_VALID. */
	MR_OFFLOAD_CSUM_RX = 1u << 1,
	/** Cuts frames of MR_GSO_TCPV4. */
	MR_OFFLOAD_TSO4 = 1u << 2,
	/** Cuts frames of MR_GSO_TCPV6. */
	MR_OFFLOAD_TSO6 = 1u << 3,
	/** Cuts frames of MR_GSO_UDP. */
	MR_OFFLOAD_USO = 1u << 4,
	/** Tells the hash by which it chose the queue: MR_META_RSS_HASH. */
	MR_OFFLOAD_RSS_HASH = 1u << 5,
	/** Inserts the tag of MR_META_VLAN. */
	MR_OFFLOAD_VLAN_TX = 1u << 6,
	/** Takes a tag out of the frame into MR_META_VLAN. */
	MR_OFFLOAD_VLAN_RX = 1u << 7,
	/** Tells when a frame came: MR_META_TIME. */
	MR_OFFLOAD_TIME_RX = 1u << 8,
	/** Holds a frame back until its MR_META_TIME. */
	MR_OFFLOAD_LAUNCH_TIME = 1u << 9,
};

/** A named counter: of frames, where the name does not say otherwise. */
struct mr_named_count {
	const char *name; /**< lives as long as the port */
	uint64_t value;
};

/** What a host uses a network interface for. */
enum mr_netdev_use {
	MR_NETDEV_UNUSED = 0,
	MR_NETDEV_HAS_ADDRESS = 1, /**< an address, and no connection */
	MR_NETDEV_IN_USE = 2,      /**< a port on it would cut something off */
};

/**
 * What this host uses a network interface for. An interface is in use if it is
 * loopback, a member of a bridge, bond or team, carries a default route, or has
 * a global address that an established TCP connection uses; VLANs and the like
 * on the interface count as the interface. Unless told to force it, xdp:
 * refuses such an interface and mr-devices does not bind its device.
 *
 * @param      ifindex  in the caller's network namespace
 * @param[out] ret_why  a predicate to follow the interface's name, such as
 * "carries the default route ..."; set unless unused; or NULL
 *
 * @return enum mr_netdev_use; MR_NETDEV_IN_USE if the kernel does not tell
 *
 * Thread: any.
 * Cost:   dumps of the kernel's routes, addresses, and TCP connections for each
 *         address of the interface. Needs no capability.
 */
MR_API enum mr_netdev_use mr_netdev_use(uint32_t ifindex,
					struct mr_reason *ret_why);

/** Smallest MTU that mr_port_set_mtu() takes (RFC 791, section 3.2). */
enum { MR_MTU_MIN_BYTES = 68 };

/**
 * Receive frames to any address, groups included, or only those to the port's
 * own, to everybody, and to addresses of mr_port_set_mac_filter(). What
 * mr_port_set_allmulti() said holds beside it.
 *
 * @param      port           an open port
 * @param      on             1 or 0
 * @param[out] reterr_reason  set on failure; or NULL
 *
 * @return 0, or with nothing changed
 *   -ENOTSUP the device cannot
 *   -EPERM   a capability is missing; the reason names it
 *   -ENODEV  the device is gone
 *   -EIO     the device did not answer, or a system call failed
 *
 * Owner:  unchanged.
 * Thread: any; of one port one at a time, mr_port_poll() and mr_port_info()
 *         included. Beside the users of the queues.
 * Cost:   system calls or commands to the device; each wait has a deadline.
 */
MR_API int mr_port_set_promisc(struct mr_port *port, uint32_t on,
			       struct mr_reason *reterr_reason);

/**
 * Receive frames to any multicast address, or only those to addresses of
 * mr_port_set_mac_filter(). Else as mr_port_set_promisc().
 *
 * @return as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_allmulti(struct mr_port *port, uint32_t on,
				struct mr_reason *reterr_reason);

/**
 * Set the longest layer-3 packet that the port sends and receives.
 *
 * @param      port           an open port
 * @param      mtu_bytes      MR_MTU_MIN_BYTES to 65535, without the Ethernet
 *                            header; mr_port_info() tells it from then on
 * @param[out] reterr_reason  set on failure; or NULL
 *
 * @return 0, or with nothing changed
 *   -EINVAL  more than the device takes, or than the port's buffers take in the
 *            mode it was opened in; the reason has the limit
 *   and as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_mtu(struct mr_port *port, uint32_t mtu_bytes,
			   struct mr_reason *reterr_reason);

/**
 * Set the unicast address of the port.
 *
 * @param      port           an open port
 * @param      mac            6 bytes as on the wire; mr_port_info() tells it
 *                            from then on
 * @param[out] reterr_reason  set on failure; or NULL
 *
 * @return 0, or with nothing changed
 *   -EINVAL  NULL, all zero, or the address of a group
 *   -EBUSY   the device changes it only while it is down
 *   and as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_mac(struct mr_port *port, const uint8_t mac[6],
			   struct mr_reason *reterr_reason);

/**
 * Receive frames to these addresses besides the port's own. The list takes the
 * place of the one before.
 *
 * @param      port           an open port
 * @param      macs           @p n addresses, unicast and multicast; copied
 * @param      n              0: only the port's own
 * @param[out] reterr_reason  set on failure; or NULL
 *
 * @return 0, or with the list of before
 *   -EINVAL  no list, or an address that is all zero
 *   -ENOSPC  more than the device holds; the reason has the limit
 *   and as mr_port_set_promisc()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API int mr_port_set_mac_filter(struct mr_port *port,
				  const uint8_t (*macs)[6], uint32_t n,
				  struct mr_reason *reterr_reason);

/**
 * Frames that the device lost before they reached a queue, since open.
 *
 * @param[out] ret_counts  room for @p n
 * @param      n           elements of it
 *
 * @return how many counters there are; the first min(n, that) are set
 *
 * Owner: unchanged. Thread: any. Cost: may be a system call.
 */
MR_API uint32_t mr_port_device_drops(const struct mr_port *port,
				     struct mr_named_count *ret_counts,
				     uint32_t n);

/**
 * The device's own counters, under the names its datasheet or kernel driver
 * gives them. They are not part of the laws of <millrace/port.h>: where others
 * use the device, too, their frames are in it.
 *
 * @param[out] ret_counts  room for @p n
 * @param      n           elements of it
 *
 * @return how many counters there are, 0 if the device has none; the first
 *         min(n, that) are set. The names live as long as the port
 *
 * Owner: unchanged. Thread, Cost: as mr_port_set_promisc().
 */
MR_API uint32_t mr_port_device_stats(const struct mr_port *port,
				     struct mr_named_count *ret_counts,
				     uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
