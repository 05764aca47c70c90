/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums and link headers, for the fast and the slow path. */
#ifndef NAT_REWRITE_H
#define NAT_REWRITE_H

#include <arpa/inet.h>
#include <string.h>

#include "core.h"

/* What TTL - 1 adds to a sum over it. */
#define NAT_TTL_DELTA mr_csum_delta16(htons(1 << 8), 0)

/*
 * A layer-4 checksum after addresses and ports changed. A partial one is the
 * sum of the pseudo-header, not complemented, and does not cover ports. In UDP,
 * 0 means no checksum.
 */
static inline uint16_t nat_fix_l4(uint16_t csum, uint32_t addr_delta,
				  uint32_t port_delta, bool is_partial,
				  uint8_t proto)
{
	if (is_partial)
		return mr_csum_fold32(csum + addr_delta);
	if (proto == IPPROTO_TCP || proto == IPPROTO_DCCP)
		return mr_csum_fix(csum, addr_delta + port_delta);
	if (csum == 0 && proto != IPPROTO_ICMP)
		return 0;
	return mr_csum_fix_nonzero(csum, addr_delta + port_delta);
}

/* Our address, so our id: RFC 6864 5.3.1. Returns the checksum delta. */
static inline uint32_t nat_new_id(struct nat_path *path, struct mr_ipv4 *ip)
{
	const uint16_t before = ip->id;

	ip->id = nat_take_id(path);
	return mr_csum_delta16(before, ip->id);
}

/* The Ethernet header of a frame that begins at bytes, with the link's tag. */
static inline void nat_write_link(uint8_t *bytes, const struct nat_link *link,
				  uint16_t ether_type, uint64_t mac)
{
	const uint64_t head = mac | link->mac << NAT_MAC_BITS;
	const uint32_t tail = (uint32_t)(link->mac >> 16);
	const uint16_t type = htons(ether_type);

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + 8, &tail, sizeof(tail));
	if (link->vlan != 0) {
		const struct mr_vlan tag = { .tci = link->vlan, .type = type };
		const uint16_t tpid = htons(MR_ETHER_VLAN);

		memcpy(bytes + 12, &tpid, sizeof(tpid));
		memcpy(bytes + 14, &tag, sizeof(tag));
	} else {
		memcpy(bytes + 12, &type, sizeof(type));
	}
}

#endif
