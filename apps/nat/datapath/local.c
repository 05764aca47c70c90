/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets to our own addresses: answer pings, fragment by fragment; refuse
 * SYNs, because no service listens (RFC 9293 3.10.7.1). If the kernel shares
 * our addresses, hand the packets to it unchanged.
 */
#include "local.h"

#include "frame.h"
#include "header.h"
#include "icmp.h"
#include "icmp_send.h"
#include "ip_options.h"
#include "kernel.h"

static void answer_ping(struct nat_path *path, struct nat_packet *packet)
{
	const struct mr_eth *eth =
		(const void *)mr_frame_data(path->base, packet->frames);
	const uint64_t mac = nat_mac(eth->src);
	struct mr_ipv4 *ip = packet->ip;
	struct mr_icmp *icmp = (void *)packet->l4;
	const uint32_t src = ip->src;
	uint16_t before, after;

	memcpy(&before, &ip->ttl, sizeof(before)); /* and the protocol */
	ip->ttl = NAT_OUR_TTL;
	memcpy(&after, &ip->ttl, sizeof(after));
	ip->csum = mr_csum_fix(ip->csum, mr_csum_delta16(before, after));
	ip->src = ip->dst;
	ip->dst = src;
	if (packet->ip_bytes > sizeof(*ip)) /* RFC 1812 4.3.3.6 */
		nat_options_fill(path, packet, (enum nat_side)packet->from);
	if (icmp != NULL) {
		memcpy(&before, icmp, sizeof(before)); /* type and code */
		icmp->type = NAT_ICMP_ECHO_REPLY;
		memcpy(&after, icmp, sizeof(after));
		icmp->csum = mr_csum_fix_nonzero(
			icmp->csum, mr_csum_delta16(before, after));
	}
	/* The request is consumed; the answer, in the same frame, is ours. */
	counter_add(&path->stats.drops[NAT_TAKEN], 1);
	counter_add(&path->stats.made, 1);
	nat_send(path, packet, packet->from, mac);
}

/* The initial sum of a segment: RFC 9293 3.1. */
static uint64_t pseudo_sum(const struct mr_ipv4 *ip, uint32_t n_l4)
{
	return mr_csum_add((const uint8_t *)&ip->src, 2 * sizeof(ip->src),
			   htons(ip->proto)) +
	       htons((uint16_t)n_l4);
}

/* Refuse a SYN if its checksum is right. Leaves the packet. */
static void refuse_syn(struct nat_path *path, const struct nat_packet *packet)
{
	const struct mr_eth *eth =
		(const void *)mr_frame_data(path->base, packet->frames);
	const struct mr_tcp *syn = (const void *)packet->l4;
	const uint32_t n_l4 = packet->total_bytes - packet->ip_bytes;
	const uint64_t mac = nat_mac(eth->src);
	struct nat_packet answer;
	struct mr_ipv4 ip = { .total_bytes = htons(sizeof(ip) + sizeof(*syn)),
			      .fragment = htons(MR_IPV4_DF),
			      .proto = IPPROTO_TCP,
			      .src = packet->ip->dst,
			      .dst = packet->ip->src };
	struct mr_tcp *tcp;

	if ((mac & 1) != 0 || /* multicast */
	    (!packet->is_partial &&
	     mr_csum_fold(pseudo_sum(packet->ip, n_l4) +
			  nat_sum_of(path, packet,
				     packet->l2_bytes + packet->ip_bytes,
				     n_l4)) != UINT16_MAX) ||
	    !nat_may_answer(path, packet) ||
	    !nat_make(path, &answer, sizeof(ip) + sizeof(*tcp)))
		return;
	tcp = nat_put_ip(path, &answer, &ip);
	*tcp = (struct mr_tcp){ .src = syn->dst,
				.dst = syn->src,
				.ack = htonl(ntohl(syn->seq) + n_l4 -
					     (syn->offset >> 4) * 4u + 1 +
					     (syn->flags & MR_TCP_FIN)),
				.offset = sizeof(*tcp) / 4 << 4,
				.flags = MR_TCP_RST | MR_TCP_ACK };
	tcp->csum = (uint16_t)~mr_csum_fold(
		mr_csum_add((const uint8_t *)tcp, sizeof(*tcp),
			    pseudo_sum(&ip, sizeof(*tcp))));
	nat_send(path, &answer, packet->from, mac);
}

void nat_local(struct nat_path *path, struct nat_packet *packet)
{
	const struct mr_icmp *icmp = (const void *)packet->l4;

	if (path->config->is_shared) {
		nat_leave_to_kernel(path, packet, NAT_TAKEN);
		return;
	}
	if (path->config->answers_ping && packet->proto == IPPROTO_ICMP &&
	    (icmp == NULL || icmp->type == NAT_ICMP_ECHO)) {
		answer_ping(path, packet);
		return;
	}
	if ((packet->tcp_flags & (MR_TCP_SYN | MR_TCP_ACK | MR_TCP_RST)) ==
		    MR_TCP_SYN &&
	    !packet->has_more && !packet->is_looped)
		refuse_syn(path, packet);
	/* Traceroute's last step, from inside: RFC 1122 3.2.2.1. */
	if (packet->from == NAT_INSIDE && packet->proto == IPPROTO_UDP)
		nat_icmp_send(path, packet, NAT_ICMP_UNREACHABLE,
			      NAT_ICMP_NO_PORT, 0);
	nat_drop_packet(path, packet, NAT_DROP_NO_MAPPING);
}
