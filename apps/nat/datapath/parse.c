/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame: find its headers, and check them and its addresses. Sources: RFC
 * 791, RFC 768, RFC 9293 3.1, RFC 7126, RFC 1122 3.2.1.
 */
#include "parse.h"

#include <arpa/inet.h>

#include "frame.h"
#include "icmp.h"
#include "ip_options.h"

enum nat_drop nat_parse_link(struct nat_path *path, struct nat_packet *packet,
			     uint16_t *ret_ether_type)
{
	const struct nat_link *link = &path->links[packet->from];
	const struct mr_eth *eth;
	uint16_t type, vlan = 0;

	packet->l2_bytes = MR_ETH_BYTES;
	if (!nat_pull_up(path, packet, MR_ETH_BYTES))
		return NAT_DROP_RUNT;
	eth = (const void *)mr_frame_data(path->base, packet->frames);
	type = ntohs(eth->type);
	if (type == MR_ETHER_VLAN) {
		const struct mr_vlan *tag;

		packet->l2_bytes += MR_VLAN_BYTES;
		if (!nat_pull_up(path, packet, packet->l2_bytes))
			return NAT_DROP_RUNT;
		eth = (const void *)mr_frame_data(path->base, packet->frames);
		tag = (const void *)(eth + 1);
		/* Ignore the priority; tag 0 has nothing else. */
		vlan = tag->tci & htons(0x0fff);
		type = ntohs(tag->type);
	}
	if (nat_mac(eth->dst) != link->mac &&
	    !(type == MR_ETHER_ARP && nat_mac(eth->dst) == NAT_MAC_MASK))
		return NAT_DROP_NOT_FOR_US;
	if (vlan != link->vlan)
		return NAT_DROP_VLAN;
	*ret_ether_type = type;
	return NAT_OK;
}

/* Source routes are dropped: RFC 7126 4.3.5, 4.4.5. */
static enum nat_drop check_options(const uint8_t *option, uint32_t n)
{
	enum nat_drop drop = NAT_OK;

	while (n > 0 && *option != NAT_OPTION_END) {
		uint32_t n_option = 1;

		if (*option != NAT_OPTION_NOP) {
			if (n < 2 || option[1] < 2 || option[1] > n)
				return NAT_DROP_MALFORMED;
			n_option = option[1];
		}
		if (*option == NAT_OPTION_LSRR || *option == NAT_OPTION_SSRR)
			drop = NAT_DROP_SOURCE_ROUTE;
		option += n_option;
		n -= n_option;
	}
	return drop;
}

static enum nat_drop check_addrs(const struct nat_path *path,
				 const struct nat_packet *packet)
{
	const struct nat_addrs *addrs = &path->addrs;
	const enum nat_side from = packet->from;
	const uint32_t src = packet->ip->src, dst = packet->ip->dst;
	const uint32_t is = nat_addrs_of(addrs, src);

	if (nat_addrs_is_martian(addrs, from, src) ||
	    nat_addrs_is_martian(addrs, from, dst))
		return NAT_DROP_MARTIAN;
	if ((is & NAT_ADDR_EXTERNAL && !packet->is_looped) ||
	    is & NAT_ADDR_OWN << NAT_INSIDE ||
	    (from == NAT_OUTSIDE ?
		     is & NAT_ADDR_INSIDE :
		     !(is & (NAT_ADDR_SUBSCRIBER | NAT_ADDR_INSIDE))))
		return NAT_DROP_SPOOFED;
	return NAT_OK;
}

enum nat_drop nat_parse_ip(struct nat_path *path, struct nat_packet *packet)
{
	const uint32_t at = packet->l2_bytes;
	enum nat_drop drop;
	struct mr_ipv4 *ip;
	uint16_t fragment;

	if (!nat_pull_up(path, packet, at + sizeof(*ip)))
		return NAT_DROP_MALFORMED;
	ip = (void *)(mr_frame_data(path->base, packet->frames) + at);
	packet->ip_bytes = (ip->version_ihl & 15u) * 4;
	packet->total_bytes = ntohs(ip->total_bytes);
	if (ip->version_ihl >> 4 != 4 || packet->ip_bytes < sizeof(*ip) ||
	    packet->total_bytes < packet->ip_bytes ||
	    mr_frame_n_bytes(packet->frames, packet->n) <
		    at + packet->total_bytes ||
	    !nat_pull_up(path, packet, at + packet->ip_bytes))
		return NAT_DROP_MALFORMED;
	ip = (void *)(mr_frame_data(path->base, packet->frames) + at);
	if (nat_sum_of(path, packet, at, packet->ip_bytes) != UINT16_MAX)
		return NAT_DROP_IP_CSUM;
	packet->ip = ip;
	packet->proto = ip->proto;
	packet->is_partial = packet->frames[0].flags & MR_FRAME_CSUM_PARTIAL;
	fragment = ntohs(ip->fragment);
	packet->fragment_offset = (fragment & MR_IPV4_OFFSET) * 8u;
	packet->has_more = fragment & MR_IPV4_MF;
	packet->is_first = packet->fragment_offset == 0;
	packet->l4 = NULL;
	packet->sport = packet->dport = 0;
	packet->tcp_flags = 0;
	drop = check_options((const uint8_t *)(ip + 1),
			     packet->ip_bytes - (uint32_t)sizeof(*ip));
	if (drop == NAT_OK)
		drop = check_addrs(path, packet);
	if (drop == NAT_OK)
		nat_trim(path, packet);
	return drop;
}

/* The shortest layer-4 header that can be translated. */
static uint32_t l4_bytes_of(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_ICMP:
		return 8;
	case IPPROTO_DCCP:
		return 12;
	case IPPROTO_TCP:
		return sizeof(struct mr_tcp);
	default:
		return 0;
	}
}

static enum nat_drop parse_ports(struct nat_packet *packet, uint32_t n_l4)
{
	const bool is_whole = !packet->has_more;
	const struct mr_icmp *icmp = (const void *)packet->l4;
	const struct mr_udp *udp = (const void *)packet->l4;
	const struct mr_tcp *tcp = (const void *)packet->l4;

	switch (packet->proto) {
	case IPPROTO_ICMP:
		if (nat_icmp_is_query(icmp->type) ||
		    nat_icmp_is_reply(icmp->type))
			packet->sport = packet->dport = icmp->id;
		return NAT_OK;
	case IPPROTO_UDP:
		if (ntohs(udp->n_bytes) < sizeof(*udp) ||
		    (is_whole && ntohs(udp->n_bytes) > n_l4))
			return NAT_DROP_L4_MALFORMED;
		break;
	case IPPROTO_TCP:
		/* Also in a fragment: options are read. */
		if ((tcp->offset >> 4) * 4u < sizeof(*tcp) ||
		    (tcp->offset >> 4) * 4u > n_l4)
			return NAT_DROP_L4_MALFORMED;
		packet->tcp_flags = tcp->flags;
		break;
	default:
		return NAT_OK;
	}
	packet->sport = udp->src;
	packet->dport = udp->dst;
	return NAT_OK;
}

enum nat_drop nat_parse_l4(struct nat_path *path, struct nat_packet *packet)
{
	const uint32_t at = packet->l2_bytes + packet->ip_bytes;
	const uint32_t n_l4 = packet->total_bytes - packet->ip_bytes;
	uint32_t n = l4_bytes_of(packet->proto);

	if (n_l4 < n || !nat_pull_up(path, packet, at + n))
		return NAT_DROP_L4_MALFORMED;
	packet->l4 = mr_frame_data(path->base, packet->frames) + at;
	if (packet->proto == IPPROTO_TCP) { /* including its options */
		n = (((struct mr_tcp *)(void *)packet->l4)->offset >> 4) * 4u;
		if (n <= n_l4 && !nat_pull_up(path, packet, at + n))
			return NAT_DROP_L4_MALFORMED;
	}
	return parse_ports(packet, n_l4);
}
