/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partial checksums.
 *
 * A kernel that sends over veth or into a tap leaves the TCP or UDP sum to the
 * device: the field holds the pseudo-header sum only (CHECKSUM_PARTIAL), and
 * XDP loses the note that says so. This is the one case in which the library
 * reads headers without being asked: csum=auto, on for veth and tap alone.
 *
 * On tx the kernel is told to finish the sum, by metadata in the frame's
 * headroom (XDP_TXMD_FLAGS_CHECKSUM, 6.8); a veth then hands it to the peer's
 * stack as it was. Else the sum is finished here.
 *
 * Source: linux/Documentation/networking/xsk-tx-metadata.rst,
 * checksum-offloads.rst; RFC 1071; RFC 768 (a UDP sum of 0 is sent as 0xffff).
 */
#include "socket/queue.h"
#include "xdp.h"

uint32_t mri_xdp_csum_mark(const struct mr_port *port, struct mr_frame *frames,
			   uint32_t n)
{
	bool is_first = true;
	uint32_t n_marked = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mr_partial partial;

		if (is_first && mr_partial_find(port->base, &frames[i], NULL,
						&partial) == 0) {
			frames[i].flags |= MR_FRAME_CSUM_PARTIAL;
			n_marked++;
		}
		is_first = !(frames[i].flags & MR_FRAME_MORE);
	}
	return n_marked;
}

void mri_xdp_csum_send(struct xdp_txq *txq, const struct mr_frame *frames,
		       const struct mr_meta *meta, struct xsk_tx_meta *request)
{
	void *base = txq->port->base.base;
	uint64_t *events = txq->base.stats.events;
	struct mr_partial partial;

	/* It may have been rewritten since it was marked. */
	if (mr_partial_find(base, frames, meta, &partial) < 0)
		return;
	if (!txq->has_csum) {
		mr_partial_finish(base, frames, &partial);
		mr_counter_add(&events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
		return;
	}
	request->flags |= XSK_TXMD_CHECKSUM;
	request->csum_start = (uint16_t)partial.start_bytes;
	request->csum_offset =
		(uint16_t)(partial.field_bytes - partial.start_bytes);
	mr_counter_add(&events[MR_TX_EVENT_CSUM_DEVICE], 1);
}
