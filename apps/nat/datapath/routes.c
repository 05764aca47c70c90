/* SPDX-License-Identifier: BSD-3-Clause */
/* Determine which worker a frame belongs to. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "config/addrs.h"
#include "mapping/map.h"
#include "ports/ports.h"
#include "steer.h"

enum { IPV4_BYTES = 20 };

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* An IPv4 header, as far as steering needs it. */
struct packet {
	const uint8_t *bytes; /* of layer 3 */
	uint32_t n;           /* available */
	uint32_t n_header;
	uint32_t src, dst; /* network order */
	uint8_t proto;
	bool is_fragment, is_first;
};

static bool read_packet(const uint8_t *bytes, uint32_t n, struct packet *ret)
{
	uint16_t fragment;

	if (n < IPV4_BYTES || bytes[0] >> 4 != 4)
		return false;
	fragment = get16(bytes + 6);
	*ret = (struct packet){
		.bytes = bytes,
		.n = n,
		.n_header = (bytes[0] & 15u) * 4,
		.src = get32(bytes + 12),
		.dst = get32(bytes + 16),
		.proto = bytes[9],
		.is_fragment = fragment & (MR_IPV4_MF | MR_IPV4_OFFSET),
		.is_first = (fragment & MR_IPV4_OFFSET) == 0,
	};
	return ret->n_header >= IPV4_BYTES && ret->n_header <= n;
}

/* The packet that an ICMP error is about; false: not an error. */
static bool read_embedded(const struct packet *packet, struct packet *ret)
{
	const uint8_t *icmp = packet->bytes + packet->n_header;
	const uint32_t n = packet->n - packet->n_header;

	/* RFC 792: unreachable, quench, redirect, time, parameter. */
	if (packet->proto != IPPROTO_ICMP || !packet->is_first || n < 8 ||
	    (icmp[0] != 3 && icmp[0] != 4 && icmp[0] != 5 && icmp[0] != 11 &&
	     icmp[0] != 12))
		return false;
	return read_packet(icmp + 8, n - 8, ret);
}

/*
 * The worker of an external end. at: offset of the port or id in layer 4.
 * Static mappings are in every worker's tables.
 */
static uint32_t owner_of_end(const struct nat_routes *routes,
			     const struct packet *packet, uint32_t addr,
			     uint32_t at)
{
	const uint32_t is = nat_addrs_of(routes->addrs, addr);
	const bool has_port = nat_proto_of(packet->proto) != NAT_PROTOS &&
			      packet->n >= packet->n_header + at + 2;
	const uint16_t port =
		has_port ? get16(packet->bytes + packet->n_header + at) : 0;
	const struct nat_tuple end = { addr, htons(port), packet->proto, 0 };
	uint32_t id, shard = NAT_SHARD_NONE;

	if (is & NAT_ADDR_SUBSCRIBER) /* reached untranslated */
		return nat_steer_subscriber(addr, routes->n_workers);
	if (is & NAT_ADDR_FIXED) {
		nat_maps_find_in(routes->maps, &end, 1, &id);
		if (id != MR_FLOW_NONE)
			shard = nat_maps_static_shard(routes->maps, id);
	}
	if (shard != NAT_SHARD_NONE)
		return shard;
	return has_port ? (port >> NAT_SLICE_BITS) % routes->n_workers :
			  nat_other_shard(ntohl(addr), routes->n_workers);
}

static uint32_t owner_outside(const struct nat_routes *routes,
			      const struct packet *packet,
			      enum nat_lane *ret_lane)
{
	struct packet embedded;

	if (packet->is_fragment && *ret_lane != NAT_LANE_FRAGMENT) {
		/* Common to all fragments of a datagram: RFC 791. */
		const uint32_t id =
			(uint32_t)get16(packet->bytes + 4) << 8 | packet->proto;

		*ret_lane = NAT_LANE_FRAGMENT;
		return nat_steer_subscriber(packet->src ^ packet->dst ^
						    (id * 0x9e3779b1u),
					    routes->n_workers);
	}
	*ret_lane = NAT_LANE_OUTSIDE;
	if (read_embedded(packet, &embedded))
		return owner_of_end(routes, &embedded, embedded.src,
				    embedded.proto == IPPROTO_ICMP ? 4 : 0);
	return owner_of_end(routes, packet, packet->dst,
			    packet->proto == IPPROTO_ICMP ? 4 : 2);
}

uint32_t nat_routes_owner(const struct nat_routes *routes, enum nat_side from,
			  const uint8_t *bytes, uint32_t n_bytes,
			  uint32_t receiver, enum nat_lane *ret_lane)
{
	uint32_t n_l2 = MR_ETH_BYTES;
	struct packet packet, embedded;

	if (n_bytes < MR_ETH_BYTES + MR_VLAN_BYTES)
		return receiver;
	if (get16(bytes + 12) == MR_ETHER_VLAN)
		n_l2 += MR_VLAN_BYTES;
	if (get16(bytes + n_l2 - 2) != MR_ETHER_IPV4 ||
	    !read_packet(bytes + n_l2, n_bytes - n_l2, &packet))
		return receiver;
	if (from == NAT_OUTSIDE)
		return owner_outside(routes, &packet, ret_lane);
	*ret_lane = NAT_LANE_INSIDE;
	return nat_steer_subscriber(
		read_embedded(&packet, &embedded) ? embedded.dst : packet.src,
		routes->n_workers);
}
