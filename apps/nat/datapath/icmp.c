/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors in transit, with the packets embedded in them. Sources: RFC 792,
 * RFC 4884, RFC 5508.
 */
#include "icmp.h"

#include "frame.h"
#include "header.h"

enum {
	MIN_EMBEDDED = 28, /* an IP header, and 8 bytes: RFC 792 */
	MAX_CHANGED = 80,  /* bytes of an embedded packet: both headers */
};

/* The packet that an error is about, as far as it is embedded. */
struct embedded {
	struct mr_ipv4 *ip;
	uint8_t *l4;
	uint32_t n_l4; /* available bytes of it, at least 8 */
	uint16_t sport, dport;
	bool has_sum; /* its IP checksum is right */
};

static void find_ports(struct embedded *e)
{
	const struct mr_icmp *icmp = (const void *)e->l4;
	const struct mr_udp *udp = (const void *)e->l4;

	e->sport = e->dport = 0;
	if (e->ip->proto == IPPROTO_ICMP) {
		e->sport = e->dport = icmp->id;
	} else if (nat_has_ports(e->ip->proto)) {
		e->sport = udp->src;
		e->dport = udp->dst;
	}
}

/* Whether ICMP extensions (RFC 4884) begin at this offset of an error. */
static bool has_extensions(const uint8_t *icmp, uint32_t at, uint32_t n)
{
	enum { VERSION = 2, HEADER_BYTES = 4 };

	return at + HEADER_BYTES <= n && icmp[at] == VERSION << 4 &&
	       icmp[at + 1] == 0;
}

/*
 * How many of the n bytes after an error's header belong to the embedded
 * packet. Extensions follow it after 32 words or more, further than anything
 * that we change. A smaller length may be what a sender wrote to an octet that
 * used to be unused, so it counts only if extensions begin there.
 */
static uint32_t embedded_bytes(const uint8_t *icmp, uint32_t n)
{
	const uint32_t n_head = sizeof(struct mr_icmp);
	const uint32_t n_before = icmp[5] * 4u;

	return n_before < n && n_before >= MIN_EMBEDDED &&
			       n_before < MAX_CHANGED &&
			       has_extensions(icmp, n_head + n_before,
					      n_head + n) ?
		       n_before :
		       n;
}

/* Parse the IP header of an embedded packet of n bytes. */
static enum nat_drop parse_ip(const struct nat_path *path, uint32_t n,
			      struct embedded *e)
{
	uint32_t n_ip;

	if (n < sizeof(*e->ip))
		return NAT_DROP_ICMP_EMBEDDED;
	n_ip = (e->ip->version_ihl & 15u) * 4;
	if (e->ip->version_ihl >> 4 != 4 || n_ip < sizeof(*e->ip) ||
	    n < n_ip + 8 || (e->ip->fragment & htons(MR_IPV4_OFFSET)) != 0)
		return NAT_DROP_ICMP_EMBEDDED;
	e->has_sum = mr_csum_fold(mr_csum_add((const uint8_t *)e->ip, n_ip,
					      0)) == UINT16_MAX;
	if (!e->has_sum && path->config->checks_embedded_sums)
		return NAT_DROP_ICMP_EMBEDDED_CSUM;
	/* If the sum is wrong, the length may be wrong as well. */
	if (e->has_sum && ntohs(e->ip->total_bytes) < n)
		n = ntohs(e->ip->total_bytes);
	if (n < n_ip + 8)
		return NAT_DROP_ICMP_EMBEDDED;
	e->l4 = (uint8_t *)e->ip + n_ip;
	e->n_l4 = n - n_ip;
	return NAT_OK;
}

/*
 * RFC 5508 REQ-3. Routers and hosts quote headers that they have changed: with
 * another TTL, an IP checksum of 0, or a length without the header. So the
 * embedded sum may be wrong, unless errors are handled strictly.
 */
static enum nat_drop parse_error(struct nat_path *path,
				 struct nat_packet *packet, struct embedded *e)
{
	const uint32_t at = packet->l2_bytes + packet->ip_bytes;
	const uint32_t n_icmp = packet->total_bytes - packet->ip_bytes;
	const uint32_t n_head = sizeof(struct mr_icmp);
	const uint32_t n = n_icmp - n_head;
	enum nat_drop drop;

	if (nat_sum_of(path, packet, at, n_icmp) != UINT16_MAX)
		return NAT_DROP_ICMP_CSUM;
	if (!nat_pull_up(path, packet,
			 at + n_head + (n < MAX_CHANGED ? n : MAX_CHANGED)))
		return NAT_DROP_NO_PAGE;
	packet->ip = (void *)(mr_frame_data(path->base, packet->frames) +
			      packet->l2_bytes);
	packet->l4 = (uint8_t *)packet->ip + packet->ip_bytes;
	e->ip = (void *)(packet->l4 + n_head);
	drop = parse_ip(path, embedded_bytes(packet->l4, n), e);
	if (drop != NAT_OK)
		return drop;
	if (e->ip->proto == IPPROTO_ICMP && !nat_icmp_is_query(e->l4[0]) &&
	    !nat_icmp_is_reply(e->l4[0]))
		return NAT_DROP_ICMP_EMBEDDED;
	find_ports(e);
	return NAT_OK;
}

/* Update the embedded IP checksum by a delta, and return the delta of that. A
 * wrong checksum of 0 was never computed and stays 0. */
static uint32_t fix_ip_sum(struct embedded *e, uint32_t delta)
{
	const uint16_t before = e->ip->csum;

	if (before == 0 && !e->has_sum)
		return 0;
	e->ip->csum = mr_csum_fix(before, delta);
	return mr_csum_delta16(before, e->ip->csum);
}

/*
 * Change the source or destination of the embedded packet, and update its
 * checksums, if present, and the error's. The embedded layer-4 checksum is not
 * verified: a wrong one stays wrong.
 */
static void replace_end(struct nat_packet *packet, struct embedded *e,
			bool is_source, uint32_t addr, uint16_t port)
{
	struct mr_icmp *outer = (void *)packet->l4;
	const uint32_t addr_delta =
		mr_csum_delta32(is_source ? e->ip->src : e->ip->dst, addr);
	uint32_t offset = nat_csum_offset(e->ip->proto);
	uint32_t port_delta = 0, delta;
	uint16_t before, after;

	delta = addr_delta + fix_ip_sum(e, addr_delta);
	if (is_source)
		e->ip->src = addr;
	else
		e->ip->dst = addr;
	if (e->ip->proto == IPPROTO_ICMP || nat_has_ports(e->ip->proto)) {
		uint8_t *at = e->l4 + (e->ip->proto == IPPROTO_ICMP ? 4 :
				       is_source                    ? 0 :
								      2);

		memcpy(&before, at, sizeof(before));
		memcpy(at, &port, sizeof(port));
		port_delta = mr_csum_delta16(before, port);
		delta += port_delta;
	}
	if (e->ip->proto == IPPROTO_ICMP)
		offset = 2;
	if (offset != 0 && offset + 2 <= e->n_l4) {
		memcpy(&before, e->l4 + offset, sizeof(before));
		after = nat_fix_l4(
			before, e->ip->proto == IPPROTO_ICMP ? 0 : addr_delta,
			port_delta, false, e->ip->proto);
		memcpy(e->l4 + offset, &after, sizeof(after));
		delta += mr_csum_delta16(before, after);
	}
	outer->csum = mr_csum_fix(outer->csum, delta);
}

/* Find the id that this id replaced, by this worker or by a rule. */
static const struct mr_flow_old_id *find_old_id(const struct nat_path *path,
						uint16_t id)
{
	if (((ntohs(id) ^ path->next_id) & (path->id_step - 1)) == 0)
		return nat_old_id_at(path, id);
	return path->rule_ids != NULL ? &path->rule_ids[ntohs(id)] : NULL;
}

/* Restore the replaced id, unless the new id was used again since. */
static void restore_id(const struct nat_path *path, struct nat_packet *packet,
		       struct embedded *e, uint32_t inside, uint32_t remote)
{
	struct mr_icmp *outer = (void *)packet->l4;
	const struct mr_flow_old_id *old = find_old_id(path, e->ip->id);
	uint32_t delta;

	if ((e->ip->fragment & htons(MR_IPV4_DF)) || old == NULL ||
	    old->mark != mr_flow_id_mark(inside, remote, e->ip->proto))
		return;
	delta = mr_csum_delta16(e->ip->id, old->id);
	e->ip->id = old->id;
	delta += fix_ip_sum(e, delta);
	outer->csum = mr_csum_fix(outer->csum, delta);
}

/* The packet left as outside, to remote; restore it: REQ-4. */
static enum nat_drop revert_source(struct nat_path *path,
				   struct nat_packet *packet,
				   struct embedded *e, uint32_t remote,
				   struct nat_verdict *verdict)
{
	const struct nat_tuple outside = { .addr = e->ip->src,
					   .port = e->sport,
					   .proto = e->ip->proto };
	const struct nat_map *map;
	uint32_t id;

	nat_maps_find_in(path->maps, &outside, 1, &id);
	if (packet->from == NAT_INSIDE && path->has_peers &&
	    (id == MR_FLOW_NONE || nat_maps_is_elsewhere(path->maps, id))) {
		verdict->is_looped = true; /* its worker does the rest */
		return NAT_OK;
	}
	if (id == MR_FLOW_NONE)
		return NAT_DROP_ICMP_NO_MAPPING;
	if (!nat_maps_may_in(path->maps, id, remote))
		return NAT_DROP_FILTERED;
	if (packet->ip->ttl <= 1)
		return NAT_DROP_TTL;
	map = nat_maps_at(path->maps, id);
	restore_id(path, packet, e, map->inside.addr, remote);
	replace_end(packet, e, true, map->inside.addr,
		    nat_map_port(map, map->inside.port, e->sport));
	verdict->dst = map->inside.addr;
	verdict->to = NAT_INSIDE;
	return NAT_OK;
}

/* The mapped address of an error's sender, if all of it is mapped: REQ-5. */
static uint32_t basic_addr(const struct nat_path *path, uint32_t addr)
{
	const struct nat_tuple any = { .addr = addr };
	uint32_t id;

	nat_maps_find_out(path->maps, &any, 1, &id);
	return id != MR_FLOW_NONE ? nat_maps_at(path->maps, id)->outside_addr :
				    0;
}

/* From inside: the packet was received by inside. */
static enum nat_drop revert_destination(struct nat_path *path,
					struct nat_packet *packet,
					struct embedded *e,
					struct nat_verdict *verdict)
{
	const struct nat_tuple inside = { .addr = e->ip->dst,
					  .port = e->dport,
					  .proto = e->ip->proto };
	const uint32_t basic = basic_addr(path, packet->ip->src);
	const struct nat_map *map;
	uint32_t id;

	nat_maps_find_out(path->maps, &inside, 1, &id);
	if (id == MR_FLOW_NONE)
		return NAT_DROP_ICMP_NO_MAPPING;
	if (packet->ip->ttl <= 1)
		return NAT_DROP_TTL;
	map = nat_maps_at(path->maps, id);
	verdict->src = basic != 0 ? basic : map->outside_addr;
	if (nat_addrs_of(&path->addrs, e->ip->src) & NAT_ADDR_EXTERNAL) {
		const enum nat_drop drop =
			path->config->hairpins ?
				revert_source(path, packet, e,
					      map->outside_addr, verdict) :
				NAT_DROP_HAIRPIN_OFF;

		if (drop != NAT_OK)
			return drop;
	}
	replace_end(packet, e, false, map->outside_addr,
		    nat_map_port(map, map->outside_port, e->dport));
	return NAT_OK;
}

enum nat_drop nat_icmp_translate(struct nat_path *path,
				 struct nat_packet *packet,
				 struct nat_verdict *ret_verdict)
{
	const struct nat_addrs *addrs = &path->addrs;
	const bool is_out = packet->from == NAT_INSIDE;
	struct embedded e;
	enum nat_drop drop;

	if (packet->has_more) /* its checksum covers bytes that are not here */
		return NAT_DROP_FRAGMENT_WRONG;
	drop = parse_error(path, packet, &e);
	if (drop != NAT_OK)
		return drop;
	if (e.ip->src != packet->ip->dst)
		return NAT_DROP_ICMP_EMBEDDED_SENDER;
	*ret_verdict =
		(struct nat_verdict){ .src = packet->ip->src,
				      .dst = packet->ip->dst,
				      .to = is_out ? NAT_OUTSIDE : NAT_INSIDE };
	ret_verdict->is_excluded =
		nat_addrs_is_excluded(addrs, is_out ? e.ip->src : e.ip->dst,
				      e.ip->proto,
				      is_out ? e.sport : e.dport) &&
		nat_addrs_of(addrs, is_out ? e.ip->dst : e.ip->src) &
			NAT_ADDR_SUBSCRIBER;
	if (ret_verdict->is_excluded)
		return packet->ip->ttl > 1 ? NAT_OK : NAT_DROP_TTL;
	return is_out ? revert_destination(path, packet, &e, ret_verdict) :
			revert_source(path, packet, &e, e.ip->dst, ret_verdict);
}
