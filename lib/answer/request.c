/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a frame asks us. No frame is trusted: a field is read only within the
 * first entry.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/wire.h>

#include "answer/answer.h"

static const uint8_t unspecified[16];
static const uint8_t loopback[16] = { [15] = 1 };

bool mri_answer_is_host4(uint32_t addr)
{
	addr = ntohl(addr);
	return addr != 0 && addr >> 24 != 127 && addr >> 28 < 14;
}

bool mri_answer_is_host6(const uint8_t *addr)
{
	return addr[0] != 0xff && memcmp(addr, unspecified, 16) != 0 &&
	       memcmp(addr, loopback, 16) != 0;
}

static bool is_our_ipv4(const struct mr_answer *answer, uint32_t addr)
{
	for (uint32_t i = 0; i < answer->config.n_ipv4; i++)
		if (answer->ipv4[i] == addr)
			return true;
	return false;
}

static bool is_our_ipv6(const struct mr_answer *answer, const uint8_t *addr)
{
	const uint8_t *ours = mri_answer_ipv6(answer);

	for (uint32_t i = 0; i < answer->config.n_ipv6; i++)
		if (memcmp(ours + i * 16, addr, 16) == 0)
			return true;
	return false;
}

/*
 * Whether the first bytes of a frame show that it is no request, as most are
 * not. Frames with tags or extension headers are left to the parser.
 */
static bool is_other(const uint8_t *bytes, uint32_t n_bytes)
{
	uint16_t type;

	if (n_bytes < MR_ETH_BYTES + 10)
		return true;
	memcpy(&type, bytes + 12, sizeof(type));
	if (type == htons(MR_ETHER_IPV4))
		return bytes[MR_ETH_BYTES + 9] != IPPROTO_ICMP;
	return type == htons(MR_ETHER_IPV6) &&
	       (bytes[MR_ETH_BYTES + 6] == IPPROTO_TCP ||
		bytes[MR_ETH_BYTES + 6] == IPPROTO_UDP);
}

/* Whether its tags are those of our VLAN. VLAN 0 has only a priority. */
static bool is_in_vlan(const struct mr_answer *answer,
		       const struct mri_request *r)
{
	enum { ID = 0xfff };
	uint16_t ids[3] = { 0 };
	uint32_t n = 0;

	if (r->meta != NULL && r->meta->valid & MR_META_VLAN &&
	    (r->meta->vlan_tci & ID) != 0)
		ids[n++] = r->meta->vlan_tci & ID;
	for (uint32_t at = MR_ETH_BYTES; at < r->view.l3_bytes;
	     at += MR_VLAN_BYTES) {
		const uint16_t id =
			(uint16_t)(r->bytes[at] << 8 | r->bytes[at + 1]) & ID;

		if (id != 0)
			ids[n++] = id;
	}
	return ids[0] == answer->config.vlans[0] &&
	       ids[1] == answer->config.vlans[1] && ids[2] == 0;
}

static uint32_t classify_arp(const struct mr_answer *answer,
			     const struct mri_request *r)
{
	const struct mr_arp *arp = (const void *)(r->bytes + r->view.l3_bytes);
	uint32_t sender;

	if (r->view.l3_bytes + sizeof(*arp) > r->frames[0].len ||
	    arp->hardware != htons(1) ||
	    arp->protocol != htons(MR_ETHER_IPV4) || arp->hardware_bytes != 6 ||
	    arp->protocol_bytes != 4 || arp->op != htons(MR_ARP_REQUEST) ||
	    !is_our_ipv4(answer, arp->target) ||
	    is_our_ipv4(answer, arp->sender))
		return MRI_ANSWER_NOT_US;
	sender = ntohl(arp->sender); /* 0: it asks whether we exist */
	return arp->sender_mac[0] & 1 || sender >> 24 == 127 ||
			       sender >> 28 >= 14 ?
		       MR_ANSWER_MALFORMED :
		       MR_ANSWER_ARP;
}

/* Whether the ICMP header and n_bytes in all are in the first entry. */
static bool has_icmp(const struct mri_request *r, uint32_t n_bytes)
{
	return r->view.l4_bytes != 0 && !r->view.is_fragment &&
	       !r->view.is_routed && r->view.l4_len_bytes >= n_bytes &&
	       r->view.l4_bytes + n_bytes <= r->frames[0].len;
}

/* A partial checksum has been on no wire that could have damaged the frame. */
static bool is_sum_right(const struct mr_answer *answer,
			 const struct mri_request *r)
{
	return r->frames[0].flags & MR_FRAME_CSUM_PARTIAL ||
	       mr_csum_check(answer->base, r->frames, &r->view) == 0;
}

/* Whether an IPv4 source route names further hops; RFC 791 3.1. */
static bool is_routed_further(const struct mri_request *r)
{
	enum { END = 0, NOTHING = 1, LOOSE = 131, STRICT = 137 };
	const uint32_t end = r->view.l4_bytes;
	uint32_t at = r->view.l3_bytes + (uint32_t)sizeof(struct mr_ipv4);

	while (at < end && r->bytes[at] != END) {
		const uint8_t *option = r->bytes + at;

		if (option[0] == NOTHING) {
			at++;
			continue;
		}
		if (end - at < 3 || option[1] < 2 || option[1] > end - at)
			break;
		if ((option[0] == LOOSE || option[0] == STRICT) &&
		    option[2] <= option[1])
			return true;
		at += option[1];
	}
	return false;
}

static uint32_t classify_ipv4(const struct mr_answer *answer,
			      const struct mri_request *r)
{
	const struct mr_ipv4 *ip = (const void *)(r->bytes + r->view.l3_bytes);
	const struct mr_icmp *icmp =
		(const void *)(r->bytes + r->view.l4_bytes);

	if (r->view.l4_proto != IPPROTO_ICMP || !has_icmp(r, sizeof(*icmp)) ||
	    icmp->type != MR_ICMP_ECHO || r->bytes[0] & 1 ||
	    !is_our_ipv4(answer, ip->dst) || is_routed_further(r))
		return MRI_ANSWER_NOT_US;
	if (!mri_answer_is_host4(ip->src) || is_our_ipv4(answer, ip->src) ||
	    icmp->code != 0 || !is_sum_right(answer, r))
		return MR_ANSWER_MALFORMED;
	return MR_ANSWER_ECHO;
}

/* Whether the options of a solicitation are whole; RFC 4861 7.1.1. */
static bool has_good_options(const struct mri_request *r, bool is_probe)
{
	uint32_t at = r->view.l4_bytes + (uint32_t)sizeof(struct mr_neighbour);
	const uint32_t end = r->view.l4_bytes + r->view.l4_len_bytes;

	while (at < end) {
		if (end - at < 8 || r->bytes[at + 1] == 0 ||
		    r->bytes[at + 1] * 8u > end - at ||
		    (is_probe && r->bytes[at] == MR_NEIGHBOUR_SOURCE_MAC))
			return false;
		at += r->bytes[at + 1] * 8u;
	}
	return true;
}

static uint32_t classify_solicitation(const struct mr_answer *answer,
				      const struct mri_request *r,
				      const struct mr_ipv6 *ip)
{
	const struct mr_neighbour *ask =
		(const void *)(r->bytes + r->view.l4_bytes);
	const bool is_probe = memcmp(ip->src, unspecified, 16) == 0;
	uint8_t solicited[16] = { 0xff, 2, [11] = 1, 0xff };

	if (!has_icmp(r, r->view.l4_len_bytes) ||
	    r->view.l4_len_bytes < sizeof(*ask) ||
	    r->frames[0].flags & MR_FRAME_MORE ||
	    !is_our_ipv6(answer, ask->target) || is_our_ipv6(answer, ip->src) ||
	    (ip->dst[0] != 0xff && !is_our_ipv6(answer, ip->dst)))
		return MRI_ANSWER_NOT_US;
	memcpy(solicited + 13, ask->target + 13, 3);
	if (ip->hop_limit != 255 || ask->code != 0 || ip->src[0] == 0xff ||
	    memcmp(ip->src, loopback, 16) == 0 ||
	    (is_probe && memcmp(ip->dst, solicited, 16) != 0) ||
	    !has_good_options(r, is_probe) || !is_sum_right(answer, r))
		return MR_ANSWER_MALFORMED;
	return MR_ANSWER_SOLICITATION;
}

static uint32_t classify_ipv6(const struct mr_answer *answer,
			      const struct mri_request *r)
{
	const struct mr_ipv6 *ip = (const void *)(r->bytes + r->view.l3_bytes);
	const struct mr_icmp *icmp =
		(const void *)(r->bytes + r->view.l4_bytes);

	if (r->view.l4_proto != IPPROTO_ICMPV6 || !has_icmp(r, sizeof(*icmp)))
		return MRI_ANSWER_NOT_US;
	if (icmp->type == MR_ICMPV6_SOLICITATION)
		return classify_solicitation(answer, r, ip);
	if (icmp->type != MR_ICMPV6_ECHO || r->bytes[0] & 1 ||
	    !is_our_ipv6(answer, ip->dst))
		return MRI_ANSWER_NOT_US;
	if (!mri_answer_is_host6(ip->src) || is_our_ipv6(answer, ip->src) ||
	    icmp->code != 0 || !is_sum_right(answer, r))
		return MR_ANSWER_MALFORMED;
	return MR_ANSWER_ECHO6;
}

uint32_t mri_answer_classify(struct mr_answer *answer, struct mr_frame *frames,
			     struct mr_meta *meta, uint32_t n,
			     struct mri_request *ret_request)
{
	struct mri_request r = { .frames = frames,
				 .meta = meta,
				 .bytes = mr_frame_data(answer->base, frames) };
	uint32_t what = MRI_ANSWER_NOT_US;
	uint64_t n_frame;

	if (is_other(r.bytes, frames[0].len))
		return MRI_ANSWER_NOT_US;
	n_frame = mr_frame_n_bytes(frames, n);
	if (n_frame > UINT32_MAX ||
	    mr_net_parse(r.bytes, frames[0].len, (uint32_t)n_frame, &r.view) <
		    0 ||
	    r.view.l3_bytes == 0 || !is_in_vlan(answer, &r) ||
	    (!(r.bytes[0] & 1) && memcmp(r.bytes, answer->config.mac, 6) != 0))
		return MRI_ANSWER_NOT_US;
	if (r.view.ether_type == MR_ETHER_ARP)
		what = classify_arp(answer, &r);
	else if (r.view.ether_type == MR_ETHER_IPV4)
		what = classify_ipv4(answer, &r);
	else if (r.view.ether_type == MR_ETHER_IPV6)
		what = classify_ipv6(answer, &r);
	if (what != MRI_ANSWER_NOT_US && r.bytes[6] & 1)
		what = MR_ANSWER_MALFORMED; /* from a group */
	*ret_request = r;
	return answer->config.neighbours == NULL ?
		       what :
		       mri_answer_learn(answer, &r, what);
}
