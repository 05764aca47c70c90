/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An outgoing packet: addresses, ports, TTL and checksums in its headers, the
 * layer-2 header, and the outbox. Sources: RFC 1624, RFC 768, RFC 6864 5.3.1,
 * RFC 6691.
 */
#include "core.h"

uint32_t nat_room(const struct nat_path *path)
{
	return path->chunk_bytes - path->headroom_bytes - MR_VLAN_BYTES -
	       MR_ETH_BYTES;
}

bool nat_make(struct nat_path *path, struct nat_packet *packet,
	      uint32_t n_bytes)
{
	const uint64_t addr = mr_frag_alloc(path->cache, path->chunk_bytes);
	const uint32_t n_frame = MR_ETH_BYTES + n_bytes;

	if (addr == MR_ADDR_NONE)
		return false;
	memset(packet, 0, sizeof(*packet));
	packet->n = 1;
	packet->l2_bytes = MR_ETH_BYTES;
	packet->frames[0] = (struct mr_frame){
		.addr = addr + path->headroom_bytes + MR_VLAN_BYTES,
		.len = n_frame < MR_ETH_MIN_BYTES ? MR_ETH_MIN_BYTES : n_frame
	};
	memset(mr_frame_data(path->base, packet->frames), 0, MR_ETH_MIN_BYTES);
	counter_add(&path->stats.made, 1);
	return true;
}

void *nat_put_ip(struct nat_path *path, const struct nat_packet *packet,
		 const struct mr_ipv4 *header)
{
	struct mr_ipv4 *ip =
		(void *)(mr_frame_data(path->base, packet->frames) +
			 packet->l2_bytes);

	*ip = *header;
	ip->version_ihl = 0x45;
	ip->ttl = NAT_OUR_TTL;
	ip->csum = (uint16_t)~mr_csum_fold(
		mr_csum_add((const uint8_t *)ip, sizeof(*ip), 0));
	return ip + 1;
}

static void put(struct nat_path *path, struct nat_packet *packet,
		enum nat_side to, struct nat_outbox *outbox,
		uint16_t ether_type, uint64_t mac)
{
	const struct nat_link *link = &path->links[to];
	struct mr_frame *first = &packet->frames[0];

	if (outbox->n + packet->n > NAT_OUTBOX_MAX) {
		nat_drop(path, packet, NAT_DROP_TX_FULL);
		return;
	}
	if (link->l2_bytes < packet->l2_bytes) {
		first->addr += packet->l2_bytes - link->l2_bytes;
		first->len -= packet->l2_bytes - link->l2_bytes;
	} else if (mr_frame_push(path->cache, first,
				 link->l2_bytes - packet->l2_bytes) < 0) {
		nat_drop(path, packet, NAT_DROP_NO_PAGE);
		return;
	}
	nat_write_link(mr_frame_data(path->base, first), link, ether_type, mac);
	memcpy(&outbox->frames[outbox->n], packet->frames,
	       packet->n * sizeof(*packet->frames));
	outbox->n += packet->n;
	counter_add(&path->stats.sent[to], 1);
}

void nat_send_as(struct nat_path *path, struct nat_packet *packet,
		 enum nat_side to, uint16_t ether_type, uint64_t mac)
{
	put(path, packet, to, &path->outboxes[to], ether_type, mac);
}

void nat_send(struct nat_path *path, struct nat_packet *packet,
	      enum nat_side to, uint64_t mac)
{
	nat_send_as(path, packet, to, MR_ETHER_IPV4, mac);
}

void nat_send_looped(struct nat_path *path, struct nat_packet *packet)
{
	packet->frames[0].flags |= NAT_FRAME_LOOPED;
	put(path, packet, NAT_OUTSIDE, &path->loop, MR_ETHER_IPV4,
	    path->links[NAT_OUTSIDE].mac);
}

uint8_t *nat_tcp_option(const struct mr_tcp *tcp, uint32_t n_bytes,
			uint8_t kind, uint8_t n_option)
{
	enum { END = 0, NOP = 1 };
	uint8_t *option = (uint8_t *)(uintptr_t)(tcp + 1);
	const uint8_t *end = (const uint8_t *)tcp + n_bytes;

	while (option < end && *option != END) {
		if (*option == NOP) {
			option++;
			continue;
		}
		if (end - option < 2 || option[1] < 2 ||
		    end - option < option[1])
			return NULL;
		if (*option == kind && option[1] == n_option)
			return option;
		option += option[1];
	}
	return NULL;
}

void nat_clamp_mss(uint16_t mss, struct mr_tcp *tcp, uint32_t n_bytes,
		   bool is_partial)
{
	enum { MSS = 2, MSS_BYTES = 4 };
	uint8_t *option = nat_tcp_option(tcp, n_bytes, MSS, MSS_BYTES);
	uint16_t before, after = htons(mss);

	if (option == NULL)
		return;
	memcpy(&before, option + 2, sizeof(before));
	if (ntohs(before) <= mss)
		return;
	memcpy(option + 2, &after, sizeof(after));
	if (is_partial)
		return; /* the device will compute it */
	/* In the middle of a word, its bytes are swapped. */
	if ((option - (uint8_t *)tcp) & 1) {
		before = (uint16_t)(before << 8 | before >> 8);
		after = (uint16_t)(after << 8 | after >> 8);
	}
	tcp->csum = mr_csum_fix(tcp->csum, mr_csum_delta16(before, after));
}

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

void nat_forward_to(struct nat_path *path, struct nat_packet *packet,
		    const struct nat_verdict *verdict, uint64_t mac)
{
	const uint16_t mtu = path->links[verdict->to].mtu;
	const bool is_too_big = packet->total_bytes > mtu;

	if (is_too_big && (packet->ip->fragment & htons(MR_IPV4_DF))) {
		nat_icmp_tell(path, packet, NAT_ICMP_UNREACHABLE,
			      NAT_ICMP_TOO_BIG, mtu);
		nat_drop(path, packet, NAT_DROP_TOO_BIG);
		return;
	}
	if (packet->ip_bytes > sizeof(*packet->ip) &&
	    path->config->fills_options &&
	    !nat_options_fill(path, packet, verdict->to)) {
		nat_drop(path, packet, NAT_DROP_MALFORMED);
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
static void loop(struct nat_path *path, struct nat_packet *packet,
		 const struct nat_verdict *verdict)
{
	struct mr_ipv4 *ip = packet->ip;

	nat_rewrite(path, packet, verdict);
	ip->ttl++;
	ip->csum = mr_csum_fix(ip->csum, (uint16_t)~NAT_TTL_DELTA);
	count_verdict(path, packet, verdict);
	nat_send_looped(path, packet);
}

void nat_forward(struct nat_path *path, struct nat_packet *packet,
		 const struct nat_verdict *verdict)
{
	enum nat_reason reason;
	uint64_t mac;

	if (verdict->is_looped) {
		loop(path, packet, verdict);
		return;
	}
	reason = nat_resolve(path, packet, verdict, &mac);
	if (reason == NAT_OK)
		nat_forward_to(path, packet, verdict, mac);
	else if (reason != NAT_TAKEN) /* else it waits */
		nat_refuse(path, packet, reason);
}
