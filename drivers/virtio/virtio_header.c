/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header of a frame to send: what the other side has to do.
 *
 * Source: virtio 1.2, 5.1.6.2.
 */
#include <millrace/wire.h>

#include "virtio_header.h"

static bool has_offload(const struct mr_txq *txq, uint32_t offload)
{
	return txq->queue.port->info->offloads & offload;
}

static uint32_t offload_of_gso(uint32_t gso_type)
{
	switch (gso_type) {
	case MR_GSO_TCPV4:
		return MR_OFFLOAD_TSO4;
	case MR_GSO_TCPV6:
		return MR_OFFLOAD_TSO6;
	case MR_GSO_UDP:
		return MR_OFFLOAD_USO;
	default:
		return 0;
	}
}

bool mri_virtio_is_gso(const struct mr_txq *txq, const struct mr_frame *frame,
		       const struct mr_meta *meta)
{
	return meta != NULL && meta->valid & MR_META_GSO &&
	       meta->gso_bytes > 0 && frame->flags & MR_FRAME_CSUM_PARTIAL &&
	       has_offload(txq, offload_of_gso(meta->gso_type));
}

/* Bytes before the payload, a hint for the other side. */
static uint32_t headers_bytes(const struct mr_port *port,
			      const struct mr_frame *frame,
			      const struct virtio_header *header)
{
	const uint32_t at = header->csum_start;
	const uint8_t *bytes = mr_frame_data(port->base, frame);

	if (header->gso_type == VIRTIO_GSO_UDP_L4)
		return at + sizeof(struct mr_udp);
	if (at + sizeof(struct mr_tcp) > frame->len)
		return at + sizeof(struct mr_tcp);
	return at + (bytes[at + offsetof(struct mr_tcp, offset)] >> 4) * 4u;
}

/* False: no page for a copy. */
static bool do_csum(struct mr_txq *txq, struct mr_cache *cache,
		    struct mr_frame *frames, uint32_t n,
		    const struct mr_meta *meta, struct virtio_header *header)
{
	void *const base = txq->queue.port->base;
	enum mr_tx_event event = MR_TX_EVENT_CSUM_DEVICE;
	struct mr_partial partial;

	if (mr_partial_find(base, frames, meta, &partial) < 0)
		return true;
	if (has_offload(txq, MR_OFFLOAD_CSUM_TX)) {
		header->flags = VIRTIO_HEADER_NEEDS_CSUM;
		header->csum_start = (uint16_t)partial.start_bytes;
		header->csum_offset =
			(uint16_t)(partial.field_bytes - partial.start_bytes);
	} else {
		if (mr_frame_unshare(cache, frames, n) < 0)
			return false;
		mr_partial_finish(base, frames, &partial);
		event = MR_TX_EVENT_CSUM_SOFTWARE;
	}
	mr_counter_add(&txq->stats.events[event], 1);
	return true;
}

int mri_virtio_make_header(struct mr_txq *txq, struct mr_cache *cache,
			   struct mr_frame *frames, uint32_t n,
			   const struct mr_meta *meta,
			   struct virtio_header *ret_header)
{
	struct virtio_header *header = ret_header;

	*header = (struct virtio_header){ 0 };
	if (frames[0].flags & MR_FRAME_CSUM_PARTIAL &&
	    !do_csum(txq, cache, frames, n, meta, header))
		return MR_TX_DROP_NO_BUFFER;
	if (!mri_virtio_is_gso(txq, frames, meta))
		return -1;
	/* Segments need checksums, whose position is unknown. */
	if (header->flags == 0)
		return MR_TX_DROP_INVALID;
	header->gso_type = (uint8_t)meta->gso_type;
	header->gso_bytes = meta->gso_bytes;
	header->header_bytes =
		(uint16_t)headers_bytes(txq->queue.port, frames, header);
	return -1;
}
