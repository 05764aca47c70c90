/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send a packet as its verdict says: rewrite its headers, and fragment it if it
 * is too big for the next link. Sources: RFC 791, RFC 768, RFC 1624, RFC 6864
 * 5.3.1.
 */
#include "forward.h"

#include "frame.h"
#include "header.h"
#include "icmp.h"
#include "icmp_send.h"
#include "ip_options.h"
#include "resolve.h"
#include "tcp_option.h"

static void rewrite_l4(struct nat_packet *packet,
		       const struct nat_verdict *verdict, uint32_t addr_delta)
{
	const uint32_t offset = nat_csum_offset(packet->proto);
	struct mr_icmp *icmp = (void *)packet->l4;
	struct mr_udp *udp = (void *)packet->l4;
	uint32_t port_delta = 0;
	uint16_t csum;

	if (packet->proto == IPPROTO_ICMP) {
		if (packet->sport != verdict->sport) {
			icmp->csum = mr_csum_fix_nonzero(
				icmp->csum,
				mr_csum_delta16(icmp->id, verdict->sport));
			icmp->id = verdict->sport;
		}
		return;
	}
	if (offset == 0)
		return;
	if (nat_has_ports(packet->proto)) {
		port_delta = mr_csum_delta16(udp->src, verdict->sport) +
			     mr_csum_delta16(udp->dst, verdict->dport);
		udp->src = verdict->sport;
		udp->dst = verdict->dport;
	}
	memcpy(&csum, packet->l4 + offset, sizeof(csum));
	csum = nat_fix_l4(csum, addr_delta, port_delta, packet->is_partial,
			  packet->proto);
	memcpy(packet->l4 + offset, &csum, sizeof(csum));
}

/* Write addresses, ports, id and TTL of the verdict to the headers. */
static void rewrite_headers(struct nat_path *path, struct nat_packet *packet,
			    const struct nat_verdict *verdict)
{
	struct mr_ipv4 *ip = packet->ip;
	const uint32_t addr_delta = mr_csum_delta32(ip->src, verdict->src) +
				    mr_csum_delta32(ip->dst, verdict->dst);
	uint32_t delta = addr_delta + NAT_TTL_DELTA;

	if (verdict->has_id) {
		delta += mr_csum_delta16(ip->id, verdict->id);
		ip->id = verdict->id;
	} else if (ip->src != verdict->src &&
		   (ip->fragment & htons(MR_IPV4_DF)) == 0) {
		delta += nat_replace_id(path, ip);
	}
	ip->src = verdict->src;
	ip->dst = verdict->dst;
	ip->ttl--;
	ip->csum = mr_csum_fix(ip->csum, delta);
	if (packet->l4 != NULL)
		rewrite_l4(packet, verdict, addr_delta);
}

/* The options that every fragment has, padded; returns the header's length. */
static uint32_t later_header(const struct mr_ipv4 *ip, uint32_t n_header,
			     uint8_t *to)
{
	const uint8_t *option = (const uint8_t *)(ip + 1);
	const uint8_t *end = (const uint8_t *)ip + n_header;
	uint32_t n = sizeof(*ip);

	memcpy(to, ip, sizeof(*ip));
	while (option < end &&
	       *option != NAT_OPTION_END) { /* checked by parse.c */
		const uint32_t n_option = nat_option_bytes(option);

		if (*option & NAT_OPTION_COPIED) {
			memcpy(to + n, option, n_option);
			n += n_option;
		}
		option += n_option;
	}
	while (n % 4 != 0)
		to[n++] = 0;
	to[0] = (uint8_t)(4 << 4 | n / 4);
	return n;
}

/* Do what the device would have done: it handles only whole packets. */
static void finish_sum(struct nat_path *path, struct nat_packet *packet)
{
	const uint32_t offset = nat_csum_offset(packet->proto);
	uint16_t csum;

	packet->frames[0].flags &= ~(uint32_t)MR_FRAME_CSUM_PARTIAL;
	if (!packet->is_partial || offset == 0)
		return;
	csum = (uint16_t)~nat_sum_of(path, packet,
				     packet->l2_bytes + packet->ip_bytes,
				     packet->total_bytes - packet->ip_bytes);
	if (csum == 0 && packet->proto != IPPROTO_TCP)
		csum = UINT16_MAX;
	memcpy(packet->l4 + offset, &csum, sizeof(csum));
}

/* Send layer 4's bytes at to at + n, after a header. */
static bool send_piece(struct nat_path *path, const struct nat_packet *packet,
		       const uint8_t *header, uint32_t n_header, uint32_t at,
		       uint32_t n, enum nat_side to, uint64_t mac)
{
	const uint32_t n_l4 = packet->total_bytes - packet->ip_bytes;
	struct nat_packet piece;
	struct mr_ipv4 *ip;
	uint16_t fragment;

	if (!nat_make(path, &piece, n_header + n))
		return false;
	ip = (void *)(mr_frame_data(path->base, piece.frames) + piece.l2_bytes);
	memcpy(ip, header, n_header);
	mr_frame_copy_bytes(path->base, packet->frames,
			    packet->l2_bytes + packet->ip_bytes + at,
			    (uint8_t *)ip + n_header, n);
	fragment = (uint16_t)((packet->fragment_offset + at) / 8);
	if (at + n < n_l4 || packet->has_more)
		fragment |= MR_IPV4_MF;
	ip->fragment = htons(fragment);
	ip->total_bytes = htons((uint16_t)(n_header + n));
	mr_csum_write_ipv4(ip);
	nat_send(path, &piece, to, mac);
	return true;
}

/* Send it as fragments of at most the link's MTU. */
static void send_fragments(struct nat_path *path, struct nat_packet *packet,
			   enum nat_side to, uint64_t mac)
{
	const uint32_t n_l4 = packet->total_bytes - packet->ip_bytes;
	uint32_t room = nat_room(path);
	uint8_t later[60];
	uint32_t n_later, n;

	if (room > path->links[to].mtu)
		room = path->links[to].mtu;
	finish_sum(path, packet);
	n_later = later_header(packet->ip, packet->ip_bytes, later);
	for (uint32_t at = 0; at < n_l4; at += n) {
		const uint32_t n_header = at == 0 ? packet->ip_bytes : n_later;

		n = n_l4 - at;
		if (n > room - n_header)
			n = (room - n_header) & ~7u;
		if (!send_piece(path, packet,
				at == 0 ? (const uint8_t *)packet->ip : later,
				n_header, at, n, to, mac)) {
			nat_drop_packet(path, packet, NAT_DROP_NO_PAGE);
			return;
		}
	}
	/* It left in pieces, one of which counts as the packet itself. */
	counter_sub(&path->stats.made, 1);
	mr_frame_free_bulk(path->cache, packet->frames, packet->n);
}

static void count_verdict(struct nat_path *path,
			  const struct nat_packet *packet,
			  const struct nat_verdict *verdict)
{
	if (verdict->is_excluded)
		counter_add(&path->stats.excluded, 1);
	else
		counter_add(&path->stats.translated[packet->from], 1);
	if (verdict->to == packet->from || verdict->is_looped)
		counter_add(&path->stats.hairpinned, 1);
}

static void forward_to(struct nat_path *path, struct nat_packet *packet,
		       const struct nat_verdict *verdict, uint64_t mac)
{
	const uint16_t mtu = path->links[verdict->to].mtu;
	const bool is_too_big = packet->total_bytes > mtu;

	if (is_too_big && (packet->ip->fragment & htons(MR_IPV4_DF))) {
		nat_icmp_send(path, packet, NAT_ICMP_UNREACHABLE,
			      NAT_ICMP_TOO_BIG, mtu);
		nat_drop_packet(path, packet, NAT_DROP_TOO_BIG);
		return;
	}
	if (packet->ip_bytes > sizeof(*packet->ip) &&
	    path->config->fills_options &&
	    !nat_options_fill(path, packet, verdict->to)) {
		nat_drop_packet(path, packet, NAT_DROP_MALFORMED);
		return;
	}
	if ((packet->tcp_flags & MR_TCP_SYN) && path->mss != 0)
		nat_clamp_mss(path->mss, (void *)packet->l4,
			      (((struct mr_tcp *)(void *)packet->l4)->offset >>
			       4) * 4u,
			      packet->is_partial);
	rewrite_headers(path, packet, verdict);
	count_verdict(path, packet, verdict);
	if (is_too_big)
		send_fragments(path, packet, verdict->to, mac);
	else
		nat_send(path, packet, verdict->to, mac);
}

/* Its source is translated; the worker of its other end does the rest, and
 * counts both as one router hop. */
static void send_to_other_worker(struct nat_path *path,
				 struct nat_packet *packet,
				 const struct nat_verdict *verdict)
{
	struct mr_ipv4 *ip = packet->ip;

	rewrite_headers(path, packet, verdict);
	ip->ttl++;
	ip->csum = mr_csum_fix(ip->csum, (uint16_t)~NAT_TTL_DELTA);
	count_verdict(path, packet, verdict);
	nat_send_looped(path, packet);
}

void nat_forward_packet(struct nat_path *path, struct nat_packet *packet,
			const struct nat_verdict *verdict)
{
	enum nat_drop drop;
	uint64_t mac;

	if (verdict->is_looped) {
		send_to_other_worker(path, packet, verdict);
		return;
	}
	drop = nat_resolve(path, packet, verdict, &mac);
	if (drop == NAT_OK)
		forward_to(path, packet, verdict, mac);
	else if (drop != NAT_TAKEN) /* else it waits */
		nat_refuse_packet(path, packet, drop);
}

void nat_forward_ready(struct nat_path *path)
{
	struct nat_packet packet;
	struct nat_verdict verdict;
	uint64_t mac;

	while (nat_resolver_take_ready(path, &packet, &verdict, &mac))
		forward_to(path, &packet, &verdict, mac);
}
