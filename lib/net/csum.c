/* SPDX-License-Identifier: BSD-3-Clause */
/* Internet checksums. Source: RFC 1071; RFC 793 3.1; RFC 768; RFC 8200 8.1. */
#include <arpa/inet.h>
#include <stdbool.h>
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
