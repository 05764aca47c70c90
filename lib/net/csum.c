/* SPDX-License-Identifier: BSD-3-Clause */
/* Internet checksums. Source: RFC 1071; RFC 793 3.1; RFC 768; RFC 8200 8.1. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <millrace/net.h>
#include <millrace/wire.h>

#include "net/net.h"

/*
 * The sum is the same in either byte order (RFC 1071 section 2 (B)), so words
 * are added as they are in memory, four bytes at a time into 64 bits, which
 * hold 2^32 of them before a carry could be lost.
 */
uint64_t mr_csum_add(const uint8_t *bytes, uint32_t n_bytes, uint64_t sum)
{
	uint32_t word;
	uint16_t half = 0;

	for (; n_bytes >= sizeof(word); n_bytes -= (uint32_t)sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum += word;
		bytes += sizeof(word);
	}
	if (n_bytes >= sizeof(half)) {
		memcpy(&half, bytes, sizeof(half));
		sum += half;
		bytes += sizeof(half);
		n_bytes -= (uint32_t)sizeof(half);
	}
	if (n_bytes == 1) {
		half = 0;
		memcpy(&half, bytes, 1); /* the missing byte is 0 */
		sum += half;
	}
	return sum;
}

uint16_t mr_csum_fold(uint64_t sum)
{
	return mr_csum_fold64(sum);
}

uint64_t mr_csum_frame(void *base, const struct mr_frame *frames, uint32_t at,
		       uint32_t n_bytes)
{
	uint64_t sum = 0;
	bool is_odd = false;

	for (uint32_t i = 0; n_bytes > 0; i++) {
		if (at < frames[i].len) {
			uint32_t n = frames[i].len - at;
			uint16_t part;

			n = n < n_bytes ? n : n_bytes;
			part = mr_csum_fold(mr_csum_add(
				mr_frame_data(base, &frames[i]) + at, n, 0));
			/* At an odd place a byte counts for its neighbour. */
			sum += is_odd ? (uint16_t)(part << 8 | part >> 8) :
					part;
			is_odd ^= n & 1;
			n_bytes -= n;
			at = 0;
		} else {
			at -= frames[i].len;
		}
		if (!(frames[i].flags & MR_FRAME_MORE))
			break;
	}
	return sum;
}

uint16_t mr_csum_pseudo(const uint8_t *bytes, const struct mr_net_view *view)
{
	const uint8_t *l3 = bytes + view->l3_bytes;
	const uint64_t rest =
		(uint64_t)htons(view->l4_proto) + htons(view->l4_len_bytes);

	if (view->ether_type == MRI_ETHER_IPV4)
		return mr_csum_fold(mr_csum_add(l3 + 12, 2 * 4, rest));
	return mr_csum_fold(mr_csum_add(l3 + 8, 2 * 16, rest));
}

void mr_csum_write_ipv4(void *l3)
{
	struct mr_ipv4 *ip = l3;

	ip->csum = 0;
	ip->csum = (uint16_t)~mr_csum_fold(
		mr_csum_add(l3, (ip->version_ihl & 15u) * 4, 0));
}

/*
 * Where the checksum is in a layer-4 header of the first entry; 0: none that
 * can be made. If UDP and IP disagree about the length, it does not cover
 * l4_len_bytes.
 */
static uint32_t offset_in_l4(void *base, const struct mr_frame *frames,
			     const struct mr_net_view *view)
{
	const uint8_t *l4 = mr_frame_data(base, frames) + view->l4_bytes;
	const uint8_t icmp = view->ether_type == MRI_ETHER_IPV4 ?
				     IPPROTO_ICMP :
				     IPPROTO_ICMPV6;
	uint32_t offset = 0;

	if (view->l4_bytes == 0 || view->is_fragment || view->is_routed ||
	    view->l4_bytes + 8u > frames[0].len)
		return 0;
	if (view->l4_proto == IPPROTO_TCP)
		offset = offsetof(struct mr_tcp, csum);
	else if (view->l4_proto == icmp)
		offset = offsetof(struct mr_icmp, csum);
	else if (view->l4_proto == IPPROTO_UDP &&
		 ((const struct mr_udp *)l4)->n_bytes ==
			 htons(view->l4_len_bytes))
		offset = offsetof(struct mr_udp, csum);
	return offset + 2 <= view->l4_len_bytes ? offset : 0;
}

/* Over the layer-4 packet and its pseudo-header. */
static uint64_t sum_l4(void *base, const struct mr_frame *frames,
		       const struct mr_net_view *view)
{
	const uint64_t pseudo =
		view->l4_proto == IPPROTO_ICMP ?
			0 :
			mr_csum_pseudo(mr_frame_data(base, frames), view);

	return mr_csum_frame(base, frames, view->l4_bytes, view->l4_len_bytes) +
	       pseudo;
}

int mr_csum_check(void *base, const struct mr_frame *frames,
		  const struct mr_net_view *view)
{
	const uint8_t *l3 = mr_frame_data(base, frames) + view->l3_bytes;
	const uint32_t offset = offset_in_l4(base, frames, view);
	const bool is_v4 = view->ether_type == MRI_ETHER_IPV4;
	uint16_t field;

	if (is_v4 &&
	    mr_csum_fold(mr_csum_add(l3, (l3[0] & 15u) * 4, 0)) != UINT16_MAX)
		return -EBADMSG;
	if (offset == 0)
		return -ENOTSUP;
	memcpy(&field, mr_frame_data(base, frames) + view->l4_bytes + offset,
	       sizeof(field));
	if (is_v4 && view->l4_proto == IPPROTO_UDP && field == 0)
		return 0;
	return mr_csum_fold(sum_l4(base, frames, view)) == UINT16_MAX ?
		       0 :
		       -EBADMSG;
}

int mr_csum_write(void *base, const struct mr_frame *frames,
		  const struct mr_net_view *view)
{
	const uint32_t offset = offset_in_l4(base, frames, view);
	uint8_t *field = mr_frame_data(base, frames) + view->l4_bytes + offset;
	uint16_t sum = 0;

	if (offset == 0)
		return -ENOTSUP;
	memcpy(field, &sum, sizeof(sum));
	sum = (uint16_t)~mr_csum_fold(sum_l4(base, frames, view));
	if (sum == 0 && view->l4_proto == IPPROTO_UDP)
		sum = UINT16_MAX;
	memcpy(field, &sum, sizeof(sum));
	return 0;
}
