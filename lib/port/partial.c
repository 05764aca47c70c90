/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partial checksums: the field of a TCP or UDP checksum holds the sum of the
 * pseudo-header only, and the device or the library adds the rest.
 *
 * A field that equals the sum of the pseudo-header counts as partial. If a
 * correct, complete checksum has the same value by chance, finishing it changes
 * nothing. A corrupt one with that value, 1 in 65536, is repaired; all other
 * corrupt checksums stay as they are.
 *
 * Source: linux/Documentation/networking/checksum-offloads.rst; RFC 1071; RFC
 * 768 (a UDP sum of 0 is sent as 0xffff).
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/net.h>

#include "port/offload.h"

static uint32_t whole_bytes(const struct mr_frame *frames)
{
	return (uint32_t)mr_frame_n_bytes(frames, mr_frame_n_entries(frames));
}

static int find_by_headers(void *base, const struct mr_frame *frames,
			   struct mr_partial *ret_partial)
{
	const uint8_t *bytes = mr_frame_data(base, &frames[0]);
	struct mr_net_view view;
	uint16_t field;

	if (mr_net_parse(bytes, frames[0].len, whole_bytes(frames), &view) <
		    0 ||
	    view.csum_bytes == 0)
		return -ENOENT;
	memcpy(&field, bytes + view.csum_bytes, sizeof(field));
	if (field != mr_csum_pseudo(bytes, &view))
		return -ENOENT;
	*ret_partial = (struct mr_partial){ .start_bytes = view.l4_bytes,
					    .n_bytes = view.l4_len_bytes,
					    .field_bytes = view.csum_bytes,
					    .has_no_zero = view.l4_proto ==
							   IPPROTO_UDP };
	return 0;
}

int mr_partial_find(void *base, const struct mr_frame *frames,
		    const struct mr_meta *meta, struct mr_partial *ret_partial)
{
	uint32_t start, field, n_frame;

	if (meta == NULL || !(meta->valid & MR_META_CSUM))
		return find_by_headers(base, frames, ret_partial);
	start = meta->csum_start_bytes;
	field = start + meta->csum_offset_bytes;
	n_frame = whole_bytes(frames);
	if (field + sizeof(uint16_t) > frames[0].len)
		return -ENOENT;
	/* As skb_checksum_help(): to the end, and 0 is 0xffff. */
	*ret_partial = (struct mr_partial){ .start_bytes = start,
					    .n_bytes = n_frame - start,
					    .field_bytes = field,
					    .has_no_zero = true };
	return 0;
}

void mr_partial_finish(void *base, const struct mr_frame *frames,
		       const struct mr_partial *partial)
{
	uint16_t sum = (uint16_t)~mr_csum_fold(mr_csum_frame(
		base, frames, partial->start_bytes, partial->n_bytes));

	if (sum == 0 && partial->has_no_zero)
		sum = UINT16_MAX;
	memcpy(mr_frame_data(base, &frames[0]) + partial->field_bytes, &sum,
	       sizeof(sum));
}
