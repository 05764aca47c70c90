/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_NETDEV_H
#define MILLRACE_EXPERIMENTAL_NETDEV_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * What this host uses its network interfaces for.
 */

/** What a host uses a network interface for. */
enum mr_netdev_use {
	MR_NETDEV_UNUSED = 0,
	MR_NETDEV_HAS_ADDRESS = 1, /**< has an address, but no connection */
	MR_NETDEV_IN_USE = 2,      /**< a port on it would cut a connection */
};

/**
 * What this host uses a network interface for. An interface is in use if it is
 * loopback, a member of a bridge, bond or team, carries a default route, or has
 * a global address that an established TCP connection uses; VLANs and the like
 * on the interface count as the interface. xdp: refuses such an interface, and
 * mr-devices does not bind its device, unless forced.
 *
 * @param      ifindex  in the caller's network namespace
 * @param[out] ret_why  a predicate that follows the interface's name, such as
 *                      "carries the default route ..."; set unless unused; or
 *                      NULL
 *
 * @return enum mr_netdev_use; MR_NETDEV_IN_USE if the kernel does not answer
 *
 * Thread: any.
 * Cost:   dumps of the kernel's routes, addresses, and TCP connections for each
 *         address of the interface. Needs no capability.
 */
MR_API enum mr_netdev_use mr_netdev_use(uint32_t ifindex,
					struct mr_reason *ret_why);

/**
 * An address of this host, or a TCP connection that uses it. IPv4 addresses are
 * IPv4-mapped IPv6 addresses; ports are in host byte order.
 */
struct mr_netdev_session {
	uint32_t ifindex; /**< interface that has the address */
	uint32_t is_ipv4;
	uint8_t local[16];
	uint8_t peer[16];
	uint16_t local_port;
	uint16_t peer_port; /**< 0: an address, without a peer */
	uint32_t reserved[4];
};

typedef void mr_netdev_session_fn(void *opaque,
				  const struct mr_netdev_session *session);

/**
 * Report why an interface is in use: its addresses, and their established TCP
 * connections. With a default route, also the connections of other addresses.
 *
 * @param ifindex  in the caller's network namespace
 * @param take     called once for each address and connection
 *
 * @return 0, or
 *   -EBUSY   it is loopback, or a member of a bridge, bond or team; the reason
 *            is a predicate, as for mr_netdev_use()
 *   errors of mr_netlink_ask()
 *
 * Thread: any.
 * Cost:   as mr_netdev_use().
 */
MR_API int mr_netdev_sessions(uint32_t ifindex, mr_netdev_session_fn *take,
			      void *opaque, struct mr_reason *reterr_reason);

MR_END_DECLS

#endif
