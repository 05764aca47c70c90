/* SPDX-License-Identifier: BSD-3-Clause */
/* Which worker a frame belongs to. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "steer.h"

enum {
	ETHER_IPV4 = 0x0800,
	ETHER_VLAN = 0x8100,
	IPV4_BYTES = 20,
	IPV4_MF = 0x2000,
	IPV4_OFFSET = 0x1fff,
};

/* A part of an external address that is one inside address's; host order. */
struct fixed {
	uint32_t outside_addr, inside_addr;
	uint16_t first, last;
	uint8_t proto; /* enum nat_proto; NAT_PROTOS: any protocol and port */
};

struct nat_routes {
	uint32_t n_workers;
	uint32_t n_fixed;
	struct nat_prefix *subscribers; /* who is reached as they are */
	uint32_t n_subscribers;
	uint64_t keep_ns;
	struct fixed fixed[]; /* in order of address and first port */
};

static int compare_fixed(const void *a, const void *b)
{
	const struct fixed *f = a, *g = b;

	if (f->outside_addr != g->outside_addr)
		return f->outside_addr < g->outside_addr ? -1 : 1;
	if (f->proto != g->proto)
		return f->proto < g->proto ? -1 : 1;
	return f->first < g->first ? -1 : f->first > g->first;
}

static uint32_t add_forwards(const struct nat_config *config,
			     struct fixed *fixed)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < config->n_forwards; i++) {
		const struct nat_forward *f = &config->forwards[i];

		for (uint8_t p = 0; p < NAT_PROTOS; p++)
			if (f->proto_mask & 1u << p)
				fixed[n++] = (struct fixed){
					.outside_addr = f->outside_addr,
					.inside_addr = f->inside_addr,
					.first = f->outside_first,
					.last = f->outside_last,
					.proto = p,
				};
	}
	return n;
}

int nat_routes_create(const struct nat_config *config, uint32_t n_workers,
		      struct nat_routes **ret_routes)
{
	const size_t n_most =
		(size_t)config->n_forwards * NAT_PROTOS + config->n_one_to_ones;
	struct nat_routes *routes =
		calloc(1, sizeof(*routes) + n_most * sizeof(struct fixed));

	if (routes == NULL)
		return -ENOMEM;
	routes->n_workers = n_workers;
	routes->keep_ns = config->timeouts.fragment_s * UINT64_C(1000000000);
	routes->n_fixed = add_forwards(config, routes->fixed);
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		routes->fixed[routes->n_fixed++] = (struct fixed){
			.outside_addr = config->one_to_ones[i].outside_addr,
			.inside_addr = config->one_to_ones[i].inside_addr,
			.last = 65535,
			.proto = NAT_PROTOS,
		};
	qsort(routes->fixed, routes->n_fixed, sizeof(routes->fixed[0]),
	      compare_fixed);
	routes->subscribers = calloc(config->n_subscribers + 1,
				     sizeof(routes->subscribers[0]));
	if (routes->subscribers == NULL) {
		free(routes);
		return -ENOMEM;
	}
	memcpy(routes->subscribers, config->subscribers,
	       config->n_subscribers * sizeof(routes->subscribers[0]));
	routes->n_subscribers = config->n_subscribers;
	*ret_routes = routes;
	return 0;
}

uint64_t nat_routes_keep_ns(const struct nat_routes *routes)
{
	return routes->keep_ns;
}

void nat_routes_destroy(struct nat_routes *routes)
{
	if (routes != NULL)
		free(routes->subscribers);
	free(routes);
}

/* The last one at or before this address, protocol and port, if it has it. */
static const struct fixed *find_fixed(const struct nat_routes *routes,
				      uint32_t addr, uint8_t proto,
				      uint16_t port)
{
	const struct fixed key = { .outside_addr = addr,
				   .first = port,
				   .proto = proto };
	uint32_t low = 0, high = routes->n_fixed;
	const struct fixed *f;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (compare_fixed(&routes->fixed[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	f = &routes->fixed[low - 1];
	return f->outside_addr == addr && f->proto == proto && port <= f->last ?
		       f :
		       NULL;
}

static bool is_subscriber(const struct nat_routes *routes, uint32_t addr)
{
	for (uint32_t i = 0; i < routes->n_subscribers; i++)
		if (nat_prefix_has(&routes->subscribers[i], addr))
			return true;
	return false;
}

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

/* An IPv4 header, as far as steering looks at it. */
struct packet {
	const uint8_t *bytes; /* of layer 3 */
	uint32_t n;           /* that are there */
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
		.is_fragment = fragment & (IPV4_MF | IPV4_OFFSET),
		.is_first = (fragment & IPV4_OFFSET) == 0,
	};
	return ret->n_header >= IPV4_BYTES && ret->n_header <= n;
}

/* The packet that an ICMP error is about; false: it is none. */
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
 * The worker of an external end. at: where the port or id is, from the
 * beginning of layer 4.
 */
static uint32_t owner_of_end(const struct nat_routes *routes,
			     const struct packet *packet, uint32_t addr,
			     uint32_t at)
{
	const uint32_t host_addr = ntohl(addr);
	const struct fixed *fixed =
		find_fixed(routes, host_addr, NAT_PROTOS, 0);
	const uint8_t proto = packet->proto == IPPROTO_UDP  ? NAT_UDP :
			      packet->proto == IPPROTO_TCP  ? NAT_TCP :
			      packet->proto == IPPROTO_ICMP ? NAT_ICMP :
							      NAT_PROTOS;
	uint16_t port;

	if (fixed == NULL && is_subscriber(routes, host_addr))
		return nat_steer_subscriber(addr, routes->n_workers);
	if (fixed == NULL &&
	    (proto == NAT_PROTOS || packet->n < packet->n_header + at + 2))
		return nat_other_shard(host_addr, routes->n_workers);
	if (fixed == NULL) {
		port = get16(packet->bytes + packet->n_header + at);
		fixed = find_fixed(routes, host_addr, proto, port);
		if (fixed == NULL)
			return (port >> NAT_SLICE_BITS) % routes->n_workers;
	}
	return nat_steer_subscriber(htonl(fixed->inside_addr),
				    routes->n_workers);
}

static uint32_t owner_outside(const struct nat_routes *routes,
			      const struct packet *packet,
			      enum nat_lane *ret_lane)
{
	struct packet embedded;

	if (packet->is_fragment && *ret_lane != NAT_LANE_FRAGMENT) {
		/* Addresses, protocol and id are what pieces have in common:
		 * RFC 791. */
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
	if (get16(bytes + 12) == ETHER_VLAN)
		n_l2 += MR_VLAN_BYTES;
	if (get16(bytes + n_l2 - 2) != ETHER_IPV4 ||
	    !read_packet(bytes + n_l2, n_bytes - n_l2, &packet))
		return receiver;
	if (from == NAT_OUTSIDE)
		return owner_outside(routes, &packet, ret_lane);
	*ret_lane = NAT_LANE_INSIDE;
	return nat_steer_subscriber(
		read_embedded(&packet, &embedded) ? embedded.dst : packet.src,
		routes->n_workers);
}
