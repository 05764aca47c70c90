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

#include "virtio.h"
#include "virtio_header.h"

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
		mri_virtio_is_gso(&txq->base, frames, meta) ?
			VIRTIO_MAX_GSO_BYTES :
			__atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED);
	int drop = mr_tx_find_fault(txq->port->base.region, frames, n,
				    VIRTIO_MIN_FRAME_BYTES, max_bytes);
	struct virtio_header header;
	struct mr_frame own[MR_MAX_SEGS];

	if (drop >= 0)
		return lose(txq, cache, frames, n, (enum mr_tx_drop)drop);
	memcpy(own, frames, n * sizeof(own[0]));
	drop = mri_virtio_make_header(&txq->base, cache, own, n, meta, &header);
	if (drop >= 0)
		return lose(txq, cache, own, n, (enum mr_tx_drop)drop);
	return cut(txq, cache, own, n, &header, place, out);
}
