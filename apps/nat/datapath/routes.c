/* SPDX-License-Identifier: BSD-3-Clause */
/* Which worker a frame belongs to. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "config/classes.h"
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
	uint32_t inside_addr;
	uint16_t last;
};

/* What an address is. */
enum {
	CLASS_SUBSCRIBER = 1 << 0, /* reached as it is */
	CLASS_FORWARDS = 1 << 1,   /* some of its ports are fixed */
	CLASS_ONE_TO_ONE = 1 << 2, /* all of it is */
};

struct nat_routes {
	uint32_t n_workers;
	struct nat_classes classes;
	uint32_t n_fixed;
	uint64_t keep_ns;
	uint64_t *keys; /* in order: where each of fixed begins */
	struct fixed *fixed;
};

/* proto: enum nat_proto; NAT_PROTOS: any protocol and port. */
static uint64_t key_of(uint32_t outside_addr, uint8_t proto, uint16_t port)
{
	return (uint64_t)outside_addr << 32 | (uint32_t)proto << 16 | port;
}

/* A key and its value, together until they have been sorted. */
struct entry {
	uint64_t key;
	struct fixed fixed;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *e = a, *f = b;

	return e->key < f->key ? -1 : e->key > f->key;
}

static uint32_t list(const struct nat_config *config, struct entry *entries)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < config->n_forwards; i++) {
		const struct nat_forward *f = &config->forwards[i];

		for (uint8_t p = 0; p < NAT_PROTOS; p++)
			if (f->proto_mask & 1u << p)
				entries[n++] = (struct entry){
					key_of(f->outside_addr, p,
					       f->outside_first),
					{ f->inside_addr, f->outside_last }
				};
	}
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		entries[n++] = (struct entry){
			key_of(config->one_to_ones[i].outside_addr, NAT_PROTOS,
			       0),
			{ config->one_to_ones[i].inside_addr, UINT16_MAX }
		};
	qsort(entries, n, sizeof(*entries), compare_entries);
	return n;
}

static int make_fixed(struct nat_routes *routes,
		      const struct nat_config *config)
{
	const size_t n_most = (size_t)config->n_forwards * NAT_PROTOS +
			      config->n_one_to_ones + 1;
	struct entry *entries = calloc(n_most, sizeof(*entries));

	routes->keys = calloc(n_most, sizeof(*routes->keys));
	routes->fixed = calloc(n_most, sizeof(*routes->fixed));
	if (entries == NULL || routes->keys == NULL || routes->fixed == NULL) {
		free(entries);
		return -ENOMEM;
	}
	routes->n_fixed = list(config, entries);
	for (uint32_t i = 0; i < routes->n_fixed; i++) {
		routes->keys[i] = entries[i].key;
		routes->fixed[i] = entries[i].fixed;
	}
	free(entries);
	return 0;
}

static int make_classes(struct nat_routes *routes,
			const struct nat_config *config)
{
	struct nat_classes *classes = &routes->classes;
	int err = nat_classes_init(classes);

	for (uint32_t i = 0; err == 0 && i < config->n_forwards; i++)
		err = nat_classes_add(classes, config->forwards[i].outside_addr,
				      config->forwards[i].outside_addr,
				      CLASS_FORWARDS);
	for (uint32_t i = 0; err == 0 && i < config->n_one_to_ones; i++)
		err = nat_classes_add(
			classes, config->one_to_ones[i].outside_addr,
			config->one_to_ones[i].outside_addr, CLASS_ONE_TO_ONE);
	for (uint32_t i = 0; err == 0 && i < config->n_subscribers; i++) {
		const struct nat_prefix *prefix = &config->subscribers[i];

		err = nat_classes_add(classes, prefix->addr,
				      prefix->addr | ~prefix->mask,
				      CLASS_SUBSCRIBER);
	}
	return err;
}

int nat_routes_create(const struct nat_config *config, uint32_t n_workers,
		      struct nat_routes **ret_routes)
{
	struct nat_routes *routes = calloc(1, sizeof(*routes));

	if (routes == NULL)
		return -ENOMEM;
	routes->n_workers = n_workers;
	routes->keep_ns = config->timeouts.fragment_s * UINT64_C(1000000000);
	if (make_fixed(routes, config) < 0 ||
	    make_classes(routes, config) < 0) {
		nat_routes_destroy(routes);
		return -ENOMEM;
	}
	*ret_routes = routes;
	return 0;
}

uint64_t nat_routes_keep_ns(const struct nat_routes *routes)
{
	return routes->keep_ns;
}

void nat_routes_destroy(struct nat_routes *routes)
{
	if (routes == NULL)
		return;
	nat_classes_end(&routes->classes);
	free(routes->keys);
	free(routes->fixed);
	free(routes);
}

/* The last one at or before this address, protocol and port, if it has it. */
static const struct fixed *find_fixed(const struct nat_routes *routes,
				      uint32_t addr, uint8_t proto,
				      uint16_t port)
{
	const uint64_t key = key_of(addr, proto, port);
	const uint64_t *at = routes->keys;
	const struct fixed *f;

	for (uint32_t n = routes->n_fixed; n > 1;) {
		const uint32_t half = n / 2;

		at += at[half] <= key ? half : 0;
		n -= half;
	}
	f = &routes->fixed[at - routes->keys];
	return *at <= key && *at >> 16 == key >> 16 && port <= f->last ? f :
									 NULL;
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
	const uint32_t is = nat_classes_of(&routes->classes, host_addr);
	const uint8_t proto = packet->proto == IPPROTO_UDP  ? NAT_UDP :
			      packet->proto == IPPROTO_TCP  ? NAT_TCP :
			      packet->proto == IPPROTO_ICMP ? NAT_ICMP :
							      NAT_PROTOS;
	const struct fixed *fixed = NULL;
	uint16_t port;

	if (is & CLASS_ONE_TO_ONE)
		fixed = find_fixed(routes, host_addr, NAT_PROTOS, 0);
	if (fixed == NULL && is & CLASS_SUBSCRIBER)
		return nat_steer_subscriber(addr, routes->n_workers);
	if (fixed == NULL &&
	    (proto == NAT_PROTOS || packet->n < packet->n_header + at + 2))
		return nat_other_shard(host_addr, routes->n_workers);
	if (fixed == NULL) {
		port = get16(packet->bytes + packet->n_header + at);
		if (is & CLASS_FORWARDS)
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
