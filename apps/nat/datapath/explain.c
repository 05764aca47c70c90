/* SPDX-License-Identifier: BSD-3-Clause */
/* What a capture reports about a packet: its mapping. */
#include <stdio.h>

#include "config/values.h"
#include "header.h"
#include "icmp.h"
#include "support/capture.h"

/* The end of a packet on a side: what a mapping of that side has. */
static bool find_end(const uint8_t *bytes, uint32_t n, bool is_source,
		     struct nat_tuple *ret)
{
	struct mr_net_view view;
	struct mr_ipv4 ip;
	uint16_t ports[2] = { 0 };
	struct mr_icmp icmp;

	if (mr_net_parse(bytes, n, n, &view) < 0 ||
	    view.ether_type != MR_ETHER_IPV4 || view.l4_bytes == 0 ||
	    view.l3_bytes + sizeof(ip) > n || view.l4_bytes + 8u > n)
		return false;
	memcpy(&ip, bytes + view.l3_bytes, sizeof(ip));
	if (nat_has_ports(ip.proto))
		memcpy(ports, bytes + view.l4_bytes, sizeof(ports));
	if (ip.proto == IPPROTO_ICMP) {
		memcpy(&icmp, bytes + view.l4_bytes, sizeof(icmp));
		if (nat_icmp_is_query(icmp.type) ||
		    nat_icmp_is_reply(icmp.type))
			ports[0] = ports[1] = icmp.id;
	}
	*ret = (struct nat_tuple){ .addr = is_source ? ip.src : ip.dst,
				   .port = ports[!is_source],
				   .proto = ip.proto };
	return true;
}

static const char *proto_name(uint8_t proto, char *ret, size_t n)
{
	const char *name = nat_proto_name(proto);

	if (name != NULL)
		return name;
	snprintf(ret, n, "protocol %u", proto);
	return ret;
}

static void put_end(uint32_t addr, uint16_t port, char *ret, size_t n)
{
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &addr, text, sizeof(text));
	snprintf(ret, n, "%s:%u", text, ntohs(port));
}

void nat_path_explain(void *opaque, uint32_t port, bool is_tx,
		      const uint8_t *bytes, uint32_t n, char *ret)
{
	enum { END_BYTES = INET_ADDRSTRLEN + 6 };
	const struct nat_path *path = opaque;
	char inside[END_BYTES], outside[END_BYTES], key[END_BYTES], name[16];
	/* A packet received from inside, or sent outside, has its mapping's end
	 * as its source. */
	const bool is_source = (port == NAT_INSIDE) != is_tx;
	const struct nat_map *map;
	struct nat_tuple end;
	uint32_t id;

	if (!find_end(bytes, n, is_source, &end))
		return;
	if (port == NAT_INSIDE)
		nat_maps_find_out(path->maps, &end, 1, &id);
	else
		nat_maps_find_in(path->maps, &end, 1, &id);
	put_end(end.addr, end.port, key, sizeof(key));
	if (id == MR_FLOW_NONE) {
		snprintf(ret, CAPTURE_MAX_TEXT,
			 "no mapping%s: table %s, key %s %s",
			 path->has_peers ? " in this worker" : "",
			 port == NAT_INSIDE ? "inside" : "outside",
			 proto_name(end.proto, name, sizeof(name)), key);
		return;
	}
	map = nat_maps_at(path->maps, id);
	put_end(map->inside.addr, nat_map_port(map, map->inside.port, end.port),
		inside, sizeof(inside));
	put_end(map->outside_addr,
		nat_map_port(map, map->outside_port, end.port), outside,
		sizeof(outside));
	snprintf(ret, CAPTURE_MAX_TEXT,
		 "mapping %u: %s %s = %s%s; table %s, key %s", id,
		 proto_name(end.proto, name, sizeof(name)), inside, outside,
		 map->flags & NAT_MAP_STATIC ? ", static" : "",
		 port == NAT_INSIDE ? "inside" : "outside", key);
}
