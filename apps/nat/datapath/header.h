/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of headers, and how they change. */
#ifndef NAT_HEADER_H
#define NAT_HEADER_H

#include <arpa/inet.h>
#include <netinet/in.h>

#include <millrace/experimental/flow_way.h>

#include "state.h"

/* For one of our datagrams, network order. */
static inline uint16_t nat_take_id(struct nat_path *path)
{
	const uint16_t id = path->next_id;

	path->next_id = (uint16_t)(id + path->id_step);
	return htons(id);
}

/* Offset of the checksum in a layer-4 header that covers addresses; 0: none. */
static inline uint32_t nat_csum_offset(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_DCCP:
		return 6;
	case IPPROTO_TCP:
		return 16;
	default:
		return 0;
	}
}

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

/* The place of the id that one of this worker's ids replaced. */
static inline struct mr_flow_old_id *nat_old_id_at(const struct nat_path *path,
						   uint16_t id)
{
	return &path->old_ids[ntohs(id) >> __builtin_ctz(path->id_step)];
}

/* Choose a new id for a packet whose source becomes our address, and keep its
 * old one: RFC 6864 5.3.1. Call it before the addresses change. */
static inline uint16_t nat_new_id(struct nat_path *path,
				  const struct mr_ipv4 *ip)
{
	enum { AHEAD = 32 }; /* two cache lines: the table is used in order */
	const uint16_t id = nat_take_id(path);
	const uint16_t ahead =
		(uint16_t)(path->next_id + AHEAD * path->id_step);

	__builtin_prefetch(nat_old_id_at(path, htons(ahead)), 1);
	*nat_old_id_at(path, id) = (struct mr_flow_old_id){
		.id = ip->id,
		.mark = mr_flow_id_mark(ip->src, ip->dst, ip->proto)
	};
	return id;
}

/* Replace the id of a packet. Returns the checksum delta. */
static inline uint32_t nat_replace_id(struct nat_path *path, struct mr_ipv4 *ip)
{
	const uint16_t before = ip->id;

	ip->id = nat_new_id(path, ip);
	return mr_csum_delta16(before, ip->id);
}

static inline bool nat_has_ports(uint8_t proto)
{
	return proto == IPPROTO_UDP || proto == IPPROTO_TCP;
}

/* For a segment of n_bytes, header included; not a SYN. */
static inline struct nat_segment nat_segment_of(const struct mr_tcp *tcp,
						uint32_t n_bytes)
{
	return (struct nat_segment){ .seq = ntohl(tcp->seq),
				     .ack = ntohl(tcp->ack),
				     .n_bytes = n_bytes -
						(tcp->offset >> 4) * 4u +
						(tcp->flags & MR_TCP_FIN),
				     .window = ntohs(tcp->window),
				     .flags = tcp->flags };
}

#endif
