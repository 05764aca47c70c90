/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of an outgoing packet: addresses, ports, TTL and checksums.
 * Sources: RFC 1624, RFC 768, RFC 6864 5.3.1.
 */
#include "rewrite.h"

#include "header.h"

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

void nat_rewrite(struct nat_path *path, struct nat_packet *packet,
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
