/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partial checksums.
 *
 * A kernel that sends over veth or into a tap leaves the TCP or UDP sum to the
 * device: the field holds the pseudo-header sum only (CHECKSUM_PARTIAL), and
 * XDP loses the note that says so. This is the one case in which the library
 * reads headers without being asked: csum=auto, on for veth and tap alone.
 *
 * A field that equals the pseudo-header sum is taken for partial. Where a sum
 * that is complete and right happens to equal it, finishing it gives the same
 * value again; a corrupt one that happens to equal it, one of 65536 corrupt
 * ones, would be mended. All other corrupt sums leave as they came.
 *
 * On tx the kernel is told to finish the sum, by metadata in the frame's
 * headroom (XDP_TXMD_FLAGS_CHECKSUM, 6.8); a veth then hands it to the peer's
 * stack as it was. Else the sum is finished here.
 *
 * Source: linux/Documentation/networking/xsk-tx-metadata.rst,
 * checksum-offloads.rst; RFC 1071; RFC 768 (a UDP sum of 0 is sent as 0xffff).
 */
#include <netinet/in.h>
#include <string.h>

#include <millrace/net.h>

#include "xdp.h"

static uint32_t whole_bytes(const struct mr_frame *frames)
{
	uint32_t n_bytes = frames[0].len;

	for (uint32_t i = 0; frames[i].flags & MR_FRAME_MORE; i++)
		n_bytes += frames[i + 1].len;
	return n_bytes;
}

static bool is_partial(const uint8_t *bytes, uint32_t n_bytes,
		       uint32_t n_frame, struct mr_net_view *ret_view)
{
	uint16_t field;

	if (mr_net_parse(bytes, n_bytes, n_frame, ret_view) < 0 ||
	    ret_view->csum_bytes == 0)
		return false;
	memcpy(&field, bytes + ret_view->csum_bytes, sizeof(field));
	return field == mr_csum_pseudo(bytes, ret_view);
}

uint32_t mri_xdp_csum_mark(const struct mr_port *port, struct mr_frame *frames,
			   uint32_t n)
{
	bool is_first = true;
	uint32_t n_marked = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mr_net_view view;

		if (is_first &&
		    is_partial(mr_frame_data(port->base, &frames[i]),
			       frames[i].len, whole_bytes(&frames[i]), &view)) {
			frames[i].flags |= MR_FRAME_CSUM_PARTIAL;
			n_marked++;
		}
		is_first = !(frames[i].flags & MR_FRAME_MORE);
	}
	return n_marked;
}

/* The sum over [start, end of frame), whatever entries it lies in. */
static uint64_t sum_from(const struct mr_port *port,
			 const struct mr_frame *frames, uint32_t n,
			 uint32_t start, uint32_t n_bytes)
{
	uint64_t sum = 0;
	bool is_odd = false;

	for (uint32_t i = 0; i < n && n_bytes > 0; i++) {
		uint32_t k;
		uint16_t part;

		if (start >= frames[i].len) {
			start -= frames[i].len;
			continue;
		}
		k = frames[i].len - start;
		k = k < n_bytes ? k : n_bytes;
		part = mr_csum_fold(mr_csum_add(
			mr_frame_data(port->base, &frames[i]) + start, k, 0));
		/* At an odd place each byte counts for its neighbour. */
		sum += is_odd ? (uint16_t)(part << 8 | part >> 8) : part;
		is_odd ^= k & 1;
		n_bytes -= k;
		start = 0;
	}
	return sum;
}

/* What has to be summed, and where the sum goes. */
struct partial {
	uint32_t start;   /* first byte, from the frame's first */
	uint32_t n_bytes; /* from there */
	uint32_t field;   /* offset of the checksum field, in the first entry */
	bool has_no_zero; /* a sum of 0 is sent as 0xffff */
};

/* By the caller's metadata, else by the headers. False: nothing to finish. */
static bool find_partial(const struct mr_port *port,
			 const struct mr_frame *frames,
			 const struct mr_meta *meta, struct partial *ret_partial)
{
	const uint8_t *bytes = mr_frame_data(port->base, &frames[0]);
	const uint32_t n_frame = whole_bytes(frames);
	struct mr_net_view view;

	if (meta != NULL && (meta->valid & MR_META_CSUM)) {
		const uint32_t start = meta->csum_start_bytes;
		const uint32_t field = start + meta->csum_offset_bytes;

		/* As skb_checksum_help(): to the end, and 0 is 0xffff. */
		*ret_partial = (struct partial){ start, n_frame - start, field,
						 true };
		return field + sizeof(uint16_t) <= frames[0].len;
	}
	/* It may have been rewritten since it was marked: look again. */
	if (!is_partial(bytes, frames[0].len, n_frame, &view))
		return false;
	*ret_partial = (struct partial){ view.l4_bytes, view.l4_len_bytes,
					 view.csum_bytes,
					 view.l4_proto == IPPROTO_UDP };
	return true;
}

static void finish(struct xdp_txq *txq, struct mr_frame *frames, uint32_t n,
		   const struct partial *partial)
{
	uint8_t *bytes = mr_frame_data(txq->port->base.base, &frames[0]);
	uint16_t sum = (uint16_t)~mr_csum_fold(sum_from(&txq->port->base,
							frames, n,
							partial->start,
							partial->n_bytes));

	if (sum == 0 && partial->has_no_zero)
		sum = UINT16_MAX;
	memcpy(bytes + partial->field, &sum, sizeof(sum));
	mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
}

void mri_xdp_csum_send(struct xdp_txq *txq, struct mr_frame *frames, uint32_t n,
		       const struct mr_meta *meta)
{
	uint8_t *bytes = mr_frame_data(txq->port->base.base, &frames[0]);
	struct xsk_tx_meta request = { .flags = XSK_TXMD_CHECKSUM };
	struct partial partial;

	if (!find_partial(&txq->port->base, frames, meta, &partial))
		return;
	if (!txq->has_csum) {
		finish(txq, frames, n, &partial);
		return;
	}
	request.csum_start = (uint16_t)partial.start;
	request.csum_offset = (uint16_t)(partial.field - partial.start);
	memcpy(bytes - sizeof(request), &request, sizeof(request));
	frames[0].flags |= XSK_TX_METADATA;
	mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_CSUM_DEVICE], 1);
}
