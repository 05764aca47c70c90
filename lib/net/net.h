/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the wire that lib/net uses. */
#ifndef NET_NET_H
#define NET_NET_H

enum {
	MRI_ETHER_IPV4 = 0x0800,  /* IEEE RA: IPv4 */
	MRI_ETHER_VLAN = 0x8100,  /* IEEE 802.1Q */
	MRI_ETHER_SVLAN = 0x88a8, /* IEEE 802.1ad */
	MRI_ETHER_IPV6 = 0x86dd,  /* IEEE RA: IPv6 */
};

#endif
