/* SPDX-License-Identifier: BSD-3-Clause */
/* Send a packet as its verdict says. */
#include "forward.h"

#include "frame.h"
#include "header.h"
#include "icmp.h"
#include "icmp_send.h"
#include "ip_options.h"
#include "resolve.h"
#include "rewrite.h"
#include "split.h"
#include "tcp_option.h"

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
	nat_rewrite(path, packet, verdict);
	count_verdict(path, packet, verdict);
	if (is_too_big)
		nat_split(path, packet, verdict->to, mac);
	else
		nat_send(path, packet, verdict->to, mac);
}

/* Its source is translated; whichever worker has its other end does the rest,
 * and treats both as one router hop. */
static void send_to_other_worker(struct nat_path *path,
				 struct nat_packet *packet,
				 const struct nat_verdict *verdict)
{
	struct mr_ipv4 *ip = packet->ip;

	nat_rewrite(path, packet, verdict);
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
