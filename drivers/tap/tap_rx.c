/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap: frames from the kernel. A read returns a frame; its header says what the
 * kernel left undone: the checksum, and with tso the segmentation.
 */
#include <errno.h>
#include <poll.h>

#include "tap.h"

/* Replace the buffers that the last frame took. False: no page. */
static bool refill(struct tap_rxq *rxq, struct mr_cache *cache)
{
	const struct mr_port *port = rxq->base.queue.port;
	uint64_t addrs[MR_MAX_SEGS];
	const uint32_t n = rxq->n_used;
	const uint32_t n_got =
		mr_frag_alloc_bulk(cache, addrs, n, port->page_bytes);

	/* From the last slot on, so that missing buffers stay in front. */
	for (uint32_t i = 0; i < n_got; i++) {
		const uint32_t place = --rxq->n_used;

		rxq->addrs[place] = addrs[i] + port->headroom_bytes;
		rxq->pieces[1 + place] = (struct iovec){
			(uint8_t *)port->base + rxq->addrs[place],
			rxq->room_bytes,
		};
	}
	return n_got == n;
}

/*
 * Returns the drop reason of what was read, or -1. The kernel cuts off what
 * does not fit, and tells nobody: hence the byte behind the buffers.
 */
static int find_rx_fault(const struct tap_rxq *rxq, uint64_t n_bytes)
{
	if (n_bytes < TAP_MIN_FRAME_BYTES)
		return MR_RX_DROP_INVALID;
	return n_bytes > (uint64_t)rxq->n_segs * rxq->room_bytes ?
		       MR_RX_DROP_TOO_LONG :
		       -1;
}

/* Make a frame of n_bytes from the first buffers. Returns how many. */
static uint32_t take(struct tap_rxq *rxq, struct mr_frame *frames,
		     uint32_t n_bytes)
{
	uint32_t n = 0;

	for (uint32_t left = n_bytes; left > 0; n++) {
		const uint32_t len =
			left < rxq->room_bytes ? left : rxq->room_bytes;

		left -= len;
		frames[n] = (struct mr_frame){
			.addr = rxq->addrs[n],
			.len = len,
			.flags = left > 0 ? MR_FRAME_MORE : 0,
		};
	}
	rxq->n_used = n;
	if (rxq->header.flags & TAP_NEEDS_CSUM)
		frames[0].flags |= MR_FRAME_CSUM_PARTIAL;
	else if (rxq->header.flags & TAP_DATA_VALID)
		frames[0].flags |= MR_FRAME_CSUM_VALID;
	return n;
}

static void fill_meta(const struct tap_header *header, struct mr_meta *meta)
{
	meta->valid = 0;
	if (header->flags & TAP_NEEDS_CSUM) {
		meta->valid |= MR_META_CSUM;
		meta->csum_start_bytes = header->csum_start;
		meta->csum_offset_bytes = header->csum_offset;
	}
	if (header->gso_type != 0) {
		meta->valid |= MR_META_GSO;
		meta->gso_type = header->gso_type;
		meta->gso_bytes = header->gso_bytes;
	}
}

uint32_t mri_tap_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			  struct mr_frame *frames, struct mr_meta *meta,
			  uint32_t n)
{
	struct tap_rxq *rxq = (struct tap_rxq *)base;
	uint64_t n_frames = 0, n_bytes = 0, n_partial = 0;
	uint32_t n_done = 0;

	/* Dropped frames fill no entry: bounded by the reads, too. */
	for (uint32_t i = 0; i < n && n_done + rxq->n_segs <= n; i++) {
		ssize_t got;
		int drop;

		if (rxq->n_used > 0 && !refill(rxq, cache)) {
			mr_counter_add(
				&base->stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
			break;
		}
		got = readv(rxq->fd, rxq->pieces, 2 + (int)rxq->n_segs);
		if (got < (ssize_t)sizeof(rxq->header)) {
			if (got < 0)
				mri_tap_is_gone(base->queue.port, errno);
			break;
		}
		got -= (ssize_t)sizeof(rxq->header);
		drop = find_rx_fault(rxq, (uint64_t)got);
		if (drop >= 0) {
			mr_counter_add(&base->stats.drops[drop], 1);
			mr_counter_add(&base->stats.received, 1);
			continue;
		}
		n_frames++;
		if (meta != NULL)
			fill_meta(&rxq->header, &meta[n_done]);
		n_done += take(rxq, &frames[n_done], (uint32_t)got);
		n_bytes += (uint64_t)got;
		n_partial += rxq->header.flags & TAP_NEEDS_CSUM;
	}
	mr_counter_add(&base->stats.received, n_frames);
	mr_counter_add(&base->stats.delivered, n_frames);
	mr_counter_add(&base->stats.bytes, n_bytes);
	mr_counter_add(&base->stats.events[MR_RX_EVENT_CSUM_PARTIAL],
		       n_partial);
	return n_done;
}

/* The fd is readable as long as there is a frame. */
int mri_tap_rx_arm(struct mr_queue *queue)
{
	struct pollfd fd = { .fd = queue->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLIN;
}
