/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragment a packet that is too big for the next link. Source: RFC 791. */
#include "split.h"

#include "frame.h"
#include "header.h"
#include "ip_options.h"

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
	nat_copy_from(path, packet, packet->l2_bytes + packet->ip_bytes + at, n,
		      (uint8_t *)ip + n_header);
	fragment = (uint16_t)((packet->fragment_offset + at) / 8);
	if (at + n < n_l4 || packet->has_more)
		fragment |= MR_IPV4_MF;
	ip->fragment = htons(fragment);
	ip->total_bytes = htons((uint16_t)(n_header + n));
	ip->csum = 0;
	ip->csum = (uint16_t)~mr_csum_fold(
		mr_csum_add((const uint8_t *)ip, n_header, 0));
	nat_send(path, &piece, to, mac);
	return true;
}

void nat_split(struct nat_path *path, struct nat_packet *packet,
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
