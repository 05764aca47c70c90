/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP and ICMPv6 errors, written before the packet that they are about. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/wire.h>

#include "answer/answer.h"

enum {
	OUR_TTL = 64,
	TOS_CONTROL = 0xc0,    /* internetwork control: RFC 1812 4.3.2.5 */
	MAX_IPV4_BYTES = 576,  /* of the error: RFC 1812 4.3.2.3 */
	MAX_IPV6_BYTES = 1280, /* RFC 4443 2.4 c */
	ICMP6_REDIRECT = 137,
};

static const struct {
	uint8_t type, code, type6, code6;
} kinds[] = {
	[MR_ERROR_TTL] = { 11, 0, 3, 0 },
	[MR_ERROR_NO_ROUTE] = { 3, 0, 1, 0 },
	[MR_ERROR_NO_HOST] = { 3, 1, 1, 3 },
	[MR_ERROR_TOO_BIG] = { 3, 4, 2, 0 },
	[MR_ERROR_NO_PORT] = { 3, 3, 1, 4 },
	[MR_ERROR_PROHIBITED] = { 3, 13, 1, 1 },
};

/* To one host, from one, and not itself an error: RFC 1812 4.3.2.7. */
static bool may_have_error4(const struct mri_request *r)
{
	const struct mr_ipv4 *ip = (const void *)(r->bytes + r->view.l3_bytes);
	const uint8_t type = r->bytes[r->view.l4_bytes];

	return mri_answer_is_host4(ip->src) && ntohl(ip->dst) >> 28 < 14 &&
	       (r->view.l4_proto != IPPROTO_ICMP || type == MR_ICMP_ECHO ||
		type == MR_ICMP_ECHO_REPLY);
}

/*
 * RFC 4443 2.4 e. The parser stops at a fragment header: an extension header
 * that follows it may hide an error.
 */
static bool may_have_error6(const struct mri_request *r)
{
	const struct mr_ipv6 *ip = (const void *)(r->bytes + r->view.l3_bytes);
	const uint8_t type = r->bytes[r->view.l4_bytes];

	return mri_answer_is_host6(ip->src) && ip->dst[0] != 0xff &&
	       r->view.l4_proto != IPPROTO_DSTOPTS &&
	       r->view.l4_proto != IPPROTO_ROUTING &&
	       (r->view.l4_proto != IPPROTO_ICMPV6 ||
		(type >= MR_ICMPV6_ECHO && type != ICMP6_REDIRECT));
}

/* None about a later fragment, nor if we have no address to send it from. */
static bool may_have_error(const struct mr_answer *answer,
			   const struct mri_request *r)
{
	const bool is_ipv4 = r->view.ether_type == MR_ETHER_IPV4;

	if (r->view.l4_bytes == 0 || r->view.l4_bytes >= r->frames[0].len ||
	    (r->bytes[0] | r->bytes[6]) & 1)
		return false;
	return is_ipv4 ? answer->config.n_ipv4 > 0 && may_have_error4(r) :
			 answer->config.n_ipv6 > 0 && may_have_error6(r);
}

static void write_ipv4(const struct mr_answer *answer,
		       const struct mri_request *r, const uint8_t *old,
		       const struct mr_icmp *icmp)
{
	uint8_t *l3 = r->bytes + r->view.l3_bytes;
	const uint32_t n = r->frames[0].len - r->view.l3_bytes;
	const struct mr_ipv4 ip = {
		.version_ihl = 0x45,
		.tos = TOS_CONTROL,
		.total_bytes = htons((uint16_t)n),
		.ttl = OUR_TTL,
		.proto = IPPROTO_ICMP,
		.src = answer->ipv4[0],
		.dst = ((const struct mr_ipv4 *)(const void *)old)->src,
	};

	memcpy(l3, &ip, sizeof(ip));
	memcpy(l3 + sizeof(ip), icmp, sizeof(*icmp));
	mr_csum_write_ipv4(l3);
}

static void write_ipv6(const struct mr_answer *answer,
		       const struct mri_request *r, const uint8_t *old,
		       const struct mr_icmp *icmp)
{
	uint8_t *l3 = r->bytes + r->view.l3_bytes;
	const size_t n =
		r->frames[0].len - r->view.l3_bytes - sizeof(struct mr_ipv6);
	struct mr_ipv6 ip = { .version_class_flow = htonl(6u << 28),
			      .payload_bytes = htons((uint16_t)n),
			      .next = IPPROTO_ICMPV6,
			      .hop_limit = OUR_TTL };

	memcpy(ip.src, mri_answer_ipv6(answer), 16);
	memcpy(ip.dst, old + offsetof(struct mr_ipv6, src), 16);
	memcpy(l3, &ip, sizeof(ip));
	memcpy(l3 + sizeof(ip), icmp, sizeof(*icmp));
}

/* Write the error; false: no headroom for it. */
static bool write_error(const struct mr_answer *answer, struct mri_request *r,
			enum mr_error error, uint32_t mtu_bytes)
{
	const bool is_ipv4 = r->view.ether_type == MR_ETHER_IPV4;
	const uint32_t n_l2 = r->view.l3_bytes;
	const uint32_t n_packet =
		r->view.l4_bytes + r->view.l4_len_bytes - n_l2;
	const uint32_t n_head = (uint32_t)(sizeof(struct mr_icmp) +
					   (is_ipv4 ? sizeof(struct mr_ipv4) :
						      sizeof(struct mr_ipv6)));
	const uint32_t n_max = is_ipv4 ? MAX_IPV4_BYTES : MAX_IPV6_BYTES;
	const uint16_t mtu =
		mtu_bytes < UINT16_MAX ? (uint16_t)mtu_bytes : UINT16_MAX;
	const struct mr_icmp icmp = {
		.type = is_ipv4 ? kinds[error].type : kinds[error].type6,
		.code = is_ipv4 ? kinds[error].code : kinds[error].code6,
		.seq = error == MR_ERROR_TOO_BIG ? htons(mtu) : 0,
	};
	const uint8_t *old = r->bytes + n_l2;
	const uint32_t n =
		n_head + n_packet < n_max ? n_head + n_packet : n_max;

	if (mr_frame_push(answer->cache, &r->frames[0], n_head) < 0)
		return false;
	if (r->frames[0].len > n_l2 + n)
		r->frames[0].len = n_l2 + n;
	memmove(r->bytes - n_head, r->bytes, n_l2);
	r->bytes -= n_head;
	mr_net_swap_macs(r->bytes);
	memcpy(r->bytes + 6, answer->config.mac, 6);
	(is_ipv4 ? write_ipv4 : write_ipv6)(answer, r, old, &icmp);
	mri_answer_clear(r->frames, r->meta);
	r->frames[0].flags &= ~(uint32_t)MR_FRAME_MORE;
	(void)mr_net_parse(r->bytes, r->frames[0].len, r->frames[0].len,
			   &r->view);
	(void)mr_csum_write(answer->base, r->frames, &r->view);
	return true;
}

int mr_answer_error(struct mr_answer *answer, struct mr_frame *frames,
		    struct mr_meta *meta, uint32_t n, enum mr_error error,
		    uint32_t mtu_bytes)
{
	struct mri_request r = { .frames = frames, .meta = meta };
	const uint64_t n_frame = mr_frame_n_bytes(frames, n);

	r.bytes = mr_frame_data(answer->base, frames);
	if ((uint32_t)error >= sizeof(kinds) / sizeof(kinds[0]) ||
	    n_frame > UINT32_MAX ||
	    mr_net_parse(r.bytes, frames[0].len, (uint32_t)n_frame, &r.view) <
		    0 ||
	    !may_have_error(answer, &r))
		return 0;
	answer->now_ns = 0;
	if (!mri_answer_take_token(answer, MRI_ANSWER_ERRORS)) {
		mr_counter_add(&answer->counts[MR_ANSWER_ERROR_LIMITED], 1);
		return 0;
	}
	if (mr_frame_unshare(answer->cache, frames, n) < 0)
		return 0;
	r.bytes = mr_frame_data(answer->base, frames);
	if (!write_error(answer, &r, error, mtu_bytes))
		return 0;
	mr_frame_free_bulk(answer->cache, frames + 1, n - 1);
	mr_counter_add(&answer->counts[MR_ANSWER_ERROR], 1);
	return 1;
}
