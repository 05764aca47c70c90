/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap: frames to the kernel. A write sends a frame. Checksums and segmentation
 * are left to the kernel, which skips both for frames that stay on this host.
 */
#include <errno.h>

#include "tap.h"

/* What is left to the kernel. False: GSO without the checksum's offset. */
static bool make_header(struct tap_txq *txq, const struct mr_frame *frame,
			const struct mr_meta *meta, struct tap_header *header)
{
	struct mr_partial partial;

	*header = (struct tap_header){ 0 };
	if (frame->flags & MR_FRAME_CSUM_PARTIAL &&
	    mr_partial_find(txq->base.queue.port->base, frame, meta,
			    &partial) == 0) {
		header->flags = TAP_NEEDS_CSUM;
		header->csum_start = (uint16_t)partial.start_bytes;
		header->csum_offset =
			(uint16_t)(partial.field_bytes - partial.start_bytes);
		mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_CSUM_DEVICE],
			       1);
	}
	if (meta == NULL || !(meta->valid & MR_META_GSO) ||
	    meta->gso_bytes == 0)
		return true;
	header->gso_type = (uint8_t)meta->gso_type;
	header->gso_bytes = meta->gso_bytes;
	/* The kernel finds the end of the headers itself. */
	return header->flags != 0;
}

/* Returns the drop reason, -1 if it was sent, or -2: not now. */
static int send_one(struct tap_txq *txq, const struct mr_frame *frames,
		    uint32_t n, const struct mr_meta *meta)
{
	struct mr_port *port = txq->base.queue.port;
	const int drop =
		mr_tx_find_fault(port->region, frames, n, TAP_MIN_FRAME_BYTES,
				 TAP_MAX_FRAME_BYTES);
	struct iovec pieces[1 + MR_MAX_SEGS];
	struct tap_header header;

	if (drop >= 0)
		return drop;
	if (!make_header(txq, frames, meta, &header))
		return MR_TX_DROP_INVALID;
	pieces[0] = (struct iovec){ &header, sizeof(header) };
	for (uint32_t i = 0; i < n; i++)
		pieces[1 + i] =
			(struct iovec){ mr_frame_data(port->base, &frames[i]),
					frames[i].len };
	if (writev(txq->fd, pieces, 1 + (int)n) >= 0)
		return -1;
	if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
		return -2;
	/* EINVAL: the kernel read the headers. EIO: the interface is down. */
	return mri_tap_is_gone(port, errno) ? MR_TX_DROP_PORT_GONE :
					      MR_TX_DROP_DEVICE;
}

uint32_t mri_tap_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			  const struct mr_frame *frames,
			  const struct mr_meta *meta, uint32_t n)
{
	struct tap_txq *txq = (struct tap_txq *)base;
	uint64_t n_frames = 0, n_sent = 0;
	uint32_t done = 0, k;

	n = mr_frame_n_whole(frames, n);
	for (; done < n; done += k) {
		int result;

		k = mr_frame_n_entries(&frames[done]);
		result = send_one(txq, &frames[done], k,
				  meta != NULL ? &meta[done] : NULL);
		if (result == -2) {
			mr_counter_add(&base->stats.events[MR_TX_EVENT_AGAIN],
				       1);
			break;
		}
		if (result >= 0)
			mr_counter_add(&base->stats.drops[result], 1);
		n_sent += result < 0;
		n_frames++;
	}
	mr_counter_add(&base->stats.accepted, n_frames);
	mr_counter_add(&base->stats.completed, n_sent);
	mr_counter_add(&base->stats.bytes, mr_frame_n_bytes(frames, done));
	mr_frame_free_bulk(cache, frames, done);
	return done;
}

/* Nothing is pending. */
int mri_tap_tx_arm(struct mr_queue *queue)
{
	(void)queue;
	return 0;
}
