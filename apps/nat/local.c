/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to our own addresses: ping is answered, fragment by fragment. */
#include "core.h"
#include "rewrite.h"

enum { OUR_TTL = 64 };

static void echo(struct nat_path *path, struct nat_packet *packet)
{
	const struct mr_eth *eth =
		(const void *)mr_frame_data(path->base, packet->frames);
	const uint64_t mac = nat_mac(eth->src);
	struct mr_ipv4 *ip = packet->ip;
	struct mr_icmp *icmp = (void *)packet->l4;
	const uint32_t src = ip->src;
	uint16_t before, after;

	memcpy(&before, &ip->ttl, sizeof(before)); /* and the protocol */
	ip->ttl = OUR_TTL;
	memcpy(&after, &ip->ttl, sizeof(after));
	ip->csum = mr_csum_fix(ip->csum, mr_csum_delta16(before, after));
	ip->src = ip->dst;
	ip->dst = src;
	if (icmp != NULL) {
		memcpy(&before, icmp, sizeof(before)); /* type and code */
		icmp->type = NAT_ICMP_ECHO_REPLY;
		memcpy(&after, icmp, sizeof(after));
		icmp->csum = mr_csum_fix_nonzero(
			icmp->csum, mr_csum_delta16(before, after));
	}
	/* The request is used up, the answer one of ours, in the same frame. */
	counter_add(&path->stats.drops[NAT_TAKEN], 1);
	counter_add(&path->stats.made, 1);
	nat_send(path, packet, packet->from, mac);
}

void nat_local(struct nat_path *path, struct nat_packet *packet)
{
	const struct mr_icmp *icmp = (const void *)packet->l4;

	if (path->config->answers_ping && packet->proto == IPPROTO_ICMP &&
	    (icmp == NULL || icmp->type == NAT_ICMP_ECHO)) {
		echo(path, packet);
		return;
	}
	/* Traceroute's last step, from inside: RFC 1122 3.2.2.1. */
	if (packet->from == NAT_INSIDE && packet->proto == IPPROTO_UDP)
		nat_icmp_tell(path, packet, NAT_ICMP_UNREACHABLE,
			      NAT_ICMP_NO_PORT, 0);
	nat_drop(path, packet, NAT_DROP_NO_MAPPING);
}
