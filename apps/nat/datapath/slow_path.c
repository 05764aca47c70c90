/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path: handles a single frame of any kind. */
#include "core.h"

void nat_drop(struct nat_path *path, struct nat_packet *packet,
	      enum nat_reason reason)
{
	capture_drop(path->recorder, packet->from, packet->frames, packet->n,
		     nat_reason_names[reason]);
	mr_frame_free_bulk(path->cache, packet->frames, packet->n);
	counter_add(&path->stats.drops[reason], 1);
}

enum nat_reason nat_decide(struct nat_path *path, struct nat_packet *packet,
			   struct nat_verdict *ret_verdict)
{
	const struct mr_icmp *icmp = (const void *)packet->l4;

	if (packet->proto != IPPROTO_ICMP || nat_icmp_is_query(icmp->type) ||
	    nat_icmp_is_reply(icmp->type))
		return nat_decide_plain(path, packet, ret_verdict);
	if (nat_icmp_is_error(icmp->type))
		return nat_icmp_translate(path, packet, ret_verdict);
	return NAT_DROP_ICMP_TYPE;
}

static void whole(struct nat_path *path, struct nat_packet *packet)
{
	enum nat_reason reason = nat_parse_l4(path, packet);
	struct nat_verdict verdict;

	if (reason == NAT_OK)
		reason = nat_decide(path, packet, &verdict);
	if (nat_kernel_takes(path, packet, reason))
		reason = NAT_TAKEN;
	switch (reason) {
	case NAT_OK:
		nat_forward(path, packet, &verdict);
		break;
	case NAT_TAKEN:
		nat_local(path, packet);
		break;
	case NAT_DROP_UNSOLICITED_SYN:
		nat_syn_hold(path, packet);
		break;
	default:
		nat_refuse(path, packet, reason);
	}
}

static void ipv4(struct nat_path *path, struct nat_packet *packet)
{
	const enum nat_reason reason = nat_parse_ip(path, packet);

	if (reason != NAT_OK)
		nat_drop(path, packet, reason);
	else if (packet->fragment_offset != 0 || packet->has_more)
		nat_fragment(path, packet);
	else
		whole(path, packet);
}

static bool is_group(const struct nat_path *path,
		     const struct nat_packet *packet)
{
	return *mr_frame_data(path->base, packet->frames) & 1;
}

void nat_one(struct nat_path *path, enum nat_side from,
	     const struct mr_frame *frames, uint32_t n)
{
	struct nat_packet packet;
	enum nat_reason reason;
	uint16_t ether_type;

	packet.from = (uint8_t)from;
	packet.n = n;
	packet.is_looped = frames->flags & NAT_FRAME_LOOPED;
	memcpy(packet.frames, frames, n * sizeof(*frames));
	packet.frames[0].flags &= ~NAT_FRAME_LOOPED;
	reason = mr_frame_unshare(path->cache, packet.frames, n) < 0 ?
			 NAT_DROP_NO_PAGE :
			 nat_parse_link(path, &packet, &ether_type);
	/* DHCP, IPv6; VLANs of the host. */
	if (reason == NAT_DROP_VLAN ||
	    (reason == NAT_DROP_NOT_FOR_US && is_group(path, &packet)))
		nat_leave(path, &packet, reason);
	else if (reason != NAT_OK)
		nat_drop(path, &packet, reason);
	else if (ether_type == MR_ETHER_ARP)
		nat_arp_input(path, &packet);
	else if (ether_type == MR_ETHER_IPV4)
		ipv4(path, &packet);
	else
		nat_leave(path, &packet, NAT_DROP_ETHER_TYPE);
}
