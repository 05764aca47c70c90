/* SPDX-License-Identifier: BSD-3-Clause */
/* Write answers over their requests, which request.c has checked. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/wire.h>

#include "answer/answer.h"

enum { OUR_TTL = 64, ND_HOP_LIMIT = 255 };

/* An advertisement with the option that has our address. */
struct advertisement {
	struct mr_neighbour neighbour;
	uint8_t option, option_units, mac[6];
} __attribute__((packed));

/* Make the only entry of a frame n_bytes long, if there is room. */
static bool set_frame_bytes(const struct mr_answer *answer,
			    struct mr_frame *frame, uint32_t n_bytes)
{
	if (frame->len > n_bytes) {
		frame->len = n_bytes;
		return true;
	}
	return mr_frame_put(answer->cache, frame, n_bytes - frame->len) == 0;
}

/*
 * To a probe with unspecified source, to all nodes: RFC 4861 7.2.4. It has no
 * extension headers, whatever the solicitation had.
 */
static bool write_advertisement(const struct mr_answer *answer,
				struct mri_request *r)
{
	static const uint8_t unspecified[16];
	static const uint8_t all_nodes[16] = { 0xff, 2, [15] = 1 };
	static const uint8_t all_nodes_mac[6] = { 0x33, 0x33, [5] = 1 };
	const uint32_t at = r->view.l3_bytes + (uint32_t)sizeof(struct mr_ipv6);
	struct mr_ipv6 *ip = (void *)(r->bytes + r->view.l3_bytes);
	const bool is_probe = memcmp(ip->src, unspecified, 16) == 0;
	struct advertisement say = {
		.neighbour = { .type = MR_ICMPV6_ADVERTISEMENT },
		.option = MR_NEIGHBOUR_TARGET_MAC,
		.option_units = 1,
	};
	uint32_t flags = MR_NEIGHBOUR_OVERRIDE;

	memcpy(say.neighbour.target,
	       r->bytes + r->view.l4_bytes +
		       offsetof(struct mr_neighbour, target),
	       16);
	memcpy(say.mac, answer->config.mac, 6);
	if (!set_frame_bytes(answer, r->frames, at + (uint32_t)sizeof(say)))
		return false;
	if (answer->config.is_router)
		flags |= MR_NEIGHBOUR_ROUTER;
	if (is_probe) {
		memcpy(r->bytes, all_nodes_mac, 6);
	} else {
		flags |= MR_NEIGHBOUR_SOLICITED;
		memcpy(r->bytes, r->bytes + 6, 6);
	}
	memcpy(r->bytes + 6, answer->config.mac, 6);
	say.neighbour.flags = htonl(flags);
	memcpy(ip->dst, is_probe ? all_nodes : ip->src, 16);
	memcpy(ip->src, say.neighbour.target, 16);
	ip->version_class_flow = htonl(6u << 28);
	ip->payload_bytes = htons(sizeof(say));
	ip->next = IPPROTO_ICMPV6;
	ip->hop_limit = ND_HOP_LIMIT;
	r->view.l4_bytes = (uint16_t)at;
	r->view.l4_len_bytes = sizeof(say);
	say.neighbour.csum = (uint16_t)~mr_csum_fold(
		mr_csum_add((const uint8_t *)&say, sizeof(say),
			    mr_csum_pseudo(r->bytes, &r->view)));
	memcpy(r->bytes + at, &say, sizeof(say));
	return true;
}

/* Leave out what is between the IP header and ICMP: move the headers before it
 * towards ICMP. Returns its bytes. */
static uint32_t drop_options(const struct mr_answer *answer,
			     struct mri_request *r, uint32_t n_ip)
{
	const uint32_t n_head = r->view.l3_bytes + n_ip;
	const uint32_t n = r->view.l4_bytes - n_head;
	const uint32_t n_short =
		n > 0 && !(r->frames[0].flags & MR_FRAME_MORE) &&
				r->frames[0].len - n < MR_ETH_MIN_BYTES ?
			MR_ETH_MIN_BYTES - (r->frames[0].len - n) :
			0;

	if (n == 0)
		return 0;
	memmove(r->bytes + n, r->bytes, n_head);
	r->bytes += n;
	r->view.l4_bytes = (uint16_t)n_head;
	(void)mr_frame_pull(&r->frames[0], n);
	/* Without room, the frame stays short. */
	if (mr_frame_put(answer->cache, &r->frames[0], n_short) == 0)
		memset(r->bytes + r->frames[0].len - n_short, 0, n_short);
	return n;
}

static void write_echo4(const struct mr_answer *answer, struct mri_request *r)
{
	const uint32_t n = drop_options(answer, r, sizeof(struct mr_ipv4));
	struct mr_ipv4 *ip = (void *)(r->bytes + r->view.l3_bytes);

	ip->version_ihl = 0x45;
	ip->total_bytes = htons((uint16_t)(ntohs(ip->total_bytes) - n));
	ip->ttl = OUR_TTL;
	mr_csum_write_ipv4(ip);
}

static void write_echo6(const struct mr_answer *answer, struct mri_request *r)
{
	const uint32_t n = drop_options(answer, r, sizeof(struct mr_ipv6));
	struct mr_ipv6 *ip = (void *)(r->bytes + r->view.l3_bytes);

	ip->payload_bytes = htons((uint16_t)(ntohs(ip->payload_bytes) - n));
	ip->next = IPPROTO_ICMPV6;
	ip->hop_limit = OUR_TTL;
}

static void write_echo(const struct mr_answer *answer, struct mri_request *r)
{
	if (r->frames[0].flags & MR_FRAME_CSUM_PARTIAL)
		(void)mr_csum_write(answer->base, r->frames, &r->view);
	(void)mr_net_answer_echo(r->bytes, r->frames[0].len, &r->view);
	mr_net_swap_macs(r->bytes);
	mr_net_swap_addrs(r->bytes, &r->view);
	if (r->view.ether_type == MR_ETHER_IPV4)
		write_echo4(answer, r);
	else
		write_echo6(answer, r);
}

void mri_answer_clear(struct mr_frame *frame, struct mr_meta *meta)
{
	frame->flags &=
		~(uint32_t)(MR_FRAME_CSUM_PARTIAL | MR_FRAME_CSUM_VALID);
	if (meta != NULL)
		*meta = (struct mr_meta){ .valid = meta->valid & MR_META_VLAN,
					  .vlan_proto = meta->vlan_proto,
					  .vlan_tci = meta->vlan_tci };
}

bool mri_answer_write(const struct mr_answer *answer,
		      struct mri_request *request, uint32_t what)
{
	if (what == MR_ANSWER_ARP)
		mr_net_answer_arp(request->bytes, &request->view,
				  answer->config.mac);
	else if (what != MR_ANSWER_SOLICITATION)
		write_echo(answer, request);
	else if (!write_advertisement(answer, request))
		return false;
	mri_answer_clear(request->frames, request->meta);
	return true;
}
