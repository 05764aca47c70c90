/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slow path of transmission: frames with several entries, a checksum to
 * complete, segmentation, other owners, or no headroom, and frames that the
 * device must not see. Each becomes pieces, or a named drop.
 *
 * A header that does not fit before its frame goes to the queue's own memory: a
 * slot per place of the ring, and one of zeros for all frames without offloads.
 *
 * Source: virtio 1.2, 5.1.6.2.
 */
#include <string.h>

#include <millrace/wire.h>

#include "virtio.h"

static void count_event(struct virtio_txq *txq, enum mr_tx_event event)
{
	mr_counter_add(&txq->base.stats.events[event], 1);
}

static bool is_ours_in_front(const struct virtio_txq *txq,
			     const struct mr_cache *cache,
			     const struct mr_frame *entry)
{
	struct mr_room room;

	mr_frame_room(cache, entry, &room);
	return room.front_bytes >= txq->header_bytes;
}

bool mri_virtio_has_room(const struct virtio_txq *txq,
			 const struct mr_cache *cache,
			 const struct mr_frame *entry)
{
	/* All segments are mapped, so the device can access the entry. */
	return mr_region_is_backed(txq->port->base.region, entry->addr,
				   entry->len) &&
	       is_ours_in_front(txq, cache, entry);
}

/* The feature for this kind of segmentation; 0: none. */
static uint64_t feature_of_gso(uint32_t gso_type)
{
	switch (gso_type) {
	case MR_GSO_TCPV4:
		return virtio_bit(VIRTIO_F_HOST_TSO4);
	case MR_GSO_TCPV6:
		return virtio_bit(VIRTIO_F_HOST_TSO6);
	case MR_GSO_UDP:
		return virtio_bit(VIRTIO_F_HOST_USO);
	default:
		return 0;
	}
}

/* Whether the device segments this frame. */
static bool is_gso(const struct virtio_txq *txq, const struct mr_frame *frame,
		   const struct mr_meta *meta)
{
	return meta != NULL && meta->valid & MR_META_GSO &&
	       meta->gso_bytes > 0 && frame->flags & MR_FRAME_CSUM_PARTIAL &&
	       txq->port->features & feature_of_gso(meta->gso_type);
}

/* Bytes before the payload, a hint for the device. */
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

/*
 * Offload the checksum if the device supports it, else complete it here, in a
 * copy if the frame is shared. False: no page for a copy.
 */
static bool do_csum(struct virtio_txq *txq, struct mr_cache *cache,
		    struct mr_frame *frames, uint32_t n,
		    const struct mr_meta *meta, struct virtio_header *header)
{
	struct mr_port *port = &txq->port->base;
	struct mr_partial partial;

	if (mr_partial_find(port->base, frames, meta, &partial) < 0)
		return true;
	if (virtio_has(txq->port, VIRTIO_F_CSUM)) {
		header->flags = VIRTIO_HEADER_NEEDS_CSUM;
		header->csum_start = (uint16_t)partial.start_bytes;
		header->csum_offset =
			(uint16_t)(partial.field_bytes - partial.start_bytes);
		count_event(txq, MR_TX_EVENT_CSUM_DEVICE);
		return true;
	}
	if (mr_frame_unshare(cache, frames, n) < 0)
		return false;
	mr_partial_finish(port->base, frames, &partial);
	count_event(txq, MR_TX_EVENT_CSUM_SOFTWARE);
	return true;
}

/* Put the header of a frame without headroom into its slot. */
static uint64_t put_aside(struct virtio_txq *txq, uint32_t place,
			  const struct virtio_header *header)
{
	static const struct virtio_header zero;
	uint8_t *slots = txq->headers.memory;
	uint32_t slot = txq->vq.n_entries; /* the zero one */

	if (memcmp(header, &zero, sizeof(zero)) != 0) {
		slot = place;
		memcpy(slots + (size_t)slot * VIRTIO_HEADER_SLOT_BYTES, header,
		       txq->header_bytes);
	}
	return txq->headers.iova + (uint64_t)slot * VIRTIO_HEADER_SLOT_BYTES;
}

static uint32_t lose(struct virtio_txq *txq, struct mr_cache *cache,
		     const struct mr_frame *frames, uint32_t n,
		     enum mr_tx_drop drop)
{
	mr_frame_free_bulk(cache, frames, n);
	mr_counter_add(&txq->base.stats.drops[drop], 1);
	return 0;
}

/* The frame unchanged, with its header before it or as a separate piece. */
static uint32_t cut(struct virtio_txq *txq, struct mr_cache *cache,
		    const struct mr_frame *frames, uint32_t n,
		    const struct virtio_header *header, uint32_t place,
		    struct virtio_piece *out)
{
	const bool is_in_front = is_ours_in_front(txq, cache, &frames[0]);
	struct virtio_piece *piece = out;

	if (is_in_front)
		memcpy(txq->memory + frames[0].addr - txq->header_bytes, header,
		       txq->header_bytes);
	else
		*piece++ = (struct virtio_piece){ put_aside(txq, place, header),
						  txq->header_bytes,
						  MR_ADDR_NONE };
	for (uint32_t i = 0; i < n; i++)
		*piece++ =
			(struct virtio_piece){ txq->iova + frames[i].addr,
					       frames[i].len, frames[i].addr };
	if (is_in_front) {
		out->iova -= txq->header_bytes;
		out->n_bytes += txq->header_bytes;
	}
	return (uint32_t)(piece - out);
}

uint32_t mri_virtio_prepare(struct virtio_txq *txq, struct mr_cache *cache,
			    const struct mr_frame *frames, uint32_t n,
			    const struct mr_meta *meta, uint32_t place,
			    struct virtio_piece *out)
{
	const uint64_t max_bytes =
		is_gso(txq, frames, meta) ?
			VIRTIO_MAX_GSO_BYTES :
			__atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED);
	const int drop = mr_tx_find_fault(txq->port->base.region, frames, n,
					  VIRTIO_MIN_FRAME_BYTES, max_bytes);
	struct virtio_header header = { 0 };
	struct mr_frame own[MR_MAX_SEGS];

	if (drop >= 0)
		return lose(txq, cache, frames, n, (enum mr_tx_drop)drop);
	memcpy(own, frames, n * sizeof(own[0]));
	if (frames[0].flags & MR_FRAME_CSUM_PARTIAL &&
	    !do_csum(txq, cache, own, n, meta, &header))
		return lose(txq, cache, own, n, MR_TX_DROP_NO_BUFFER);
	if (is_gso(txq, frames, meta)) {
		/* Segments need checksums, whose position is unknown. */
		if (header.flags == 0)
			return lose(txq, cache, own, n, MR_TX_DROP_INVALID);
		header.gso_type = (uint8_t)meta->gso_type;
		header.gso_bytes = meta->gso_bytes;
		header.header_bytes =
			(uint16_t)headers_bytes(&txq->port->base, own, &header);
	}
	return cut(txq, cache, own, n, &header, place, out);
}
