/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path: handles a single frame of any kind. */
#include "slow_path.h"

#include "arp.h"
#include "decide.h"
#include "forward.h"
#include "fragment.h"
#include "frame.h"
#include "icmp_send.h"
#include "kernel.h"
#include "local.h"
#include "parse.h"
#include "syn.h"

static void handle_whole(struct nat_path *path, struct nat_packet *packet)
{
	enum nat_drop drop = nat_parse_l4(path, packet);
	struct nat_verdict verdict;

	if (drop == NAT_OK)
		drop = nat_decide(path, packet, &verdict);
	if (nat_kernel_takes(path, packet, drop))
		drop = NAT_TAKEN;
	switch (drop) {
	case NAT_OK:
		nat_forward_packet(path, packet, &verdict);
		break;
	case NAT_TAKEN:
		nat_local(path, packet);
		break;
	case NAT_DROP_UNSOLICITED_SYN:
		nat_syn_hold(path, packet);
		break;
	default:
		nat_refuse_packet(path, packet, drop);
	}
}

static void handle_ipv4(struct nat_path *path, struct nat_packet *packet)
{
	const enum nat_drop drop = nat_parse_ip(path, packet);

	if (drop != NAT_OK)
		nat_drop_packet(path, packet, drop);
	else if (packet->fragment_offset != 0 || packet->has_more)
		nat_fragment(path, packet);
	else
		handle_whole(path, packet);
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
	enum nat_drop drop;
	uint16_t ether_type;

	packet.from = (uint8_t)from;
	packet.n = n;
	packet.is_looped = frames->flags & NAT_FRAME_LOOPED;
	memcpy(packet.frames, frames, n * sizeof(*frames));
	packet.frames[0].flags &= ~NAT_FRAME_LOOPED;
	drop = mr_frame_unshare(path->cache, packet.frames, n) < 0 ?
		       NAT_DROP_NO_PAGE :
		       nat_parse_link(path, &packet, &ether_type);
	/* DHCP, IPv6; VLANs of the host. */
	if (drop == NAT_DROP_VLAN ||
	    (drop == NAT_DROP_NOT_FOR_US && is_group(path, &packet)))
		nat_leave_to_kernel(path, &packet, drop);
	else if (drop != NAT_OK)
		nat_drop_packet(path, &packet, drop);
	else if (ether_type == MR_ETHER_IPV4)
		handle_ipv4(path, &packet);
	else if (ether_type != MR_ETHER_ARP)
		nat_leave_to_kernel(path, &packet, NAT_DROP_ETHER_TYPE);
	else if (nat_arp_input(path, &packet))
		nat_forward_ready(path);
}
