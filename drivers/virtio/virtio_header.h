/* SPDX-License-Identifier: BSD-3-Clause */
/* The header before each frame, as our flags and metadata, and back. */
#ifndef VIRTIO_VIRTIO_HEADER_H
#define VIRTIO_VIRTIO_HEADER_H

#include <millrace/driver.h>

#include "virtio_spec.h"

/* VIRTIO_HEADER_* to MR_FRAME_*: both are single bits. */
static inline uint32_t virtio_header_flags(const struct virtio_header *header)
{
	const uint32_t flags = header->flags;

	return (flags & VIRTIO_HEADER_NEEDS_CSUM) * MR_FRAME_CSUM_PARTIAL |
	       (flags & VIRTIO_HEADER_DATA_VALID) *
		       (MR_FRAME_CSUM_VALID / VIRTIO_HEADER_DATA_VALID);
}

/* The metadata of a frame whose first entry has n_bytes of data. */
static inline void virtio_header_meta(const struct virtio_header *header,
				      uint32_t n_bytes, struct mr_meta *meta)
{
	const uint32_t gso_type = header->gso_type & ~(uint32_t)VIRTIO_GSO_ECN;

	meta->valid = 0;
	meta->csum_start_bytes = header->csum_start;
	meta->csum_offset_bytes = header->csum_offset;
	/* The checksum is written there later, so check the copy. */
	if (header->flags & VIRTIO_HEADER_NEEDS_CSUM &&
	    meta->csum_start_bytes + meta->csum_offset_bytes +
			    sizeof(uint16_t) <=
		    n_bytes)
		meta->valid |= MR_META_CSUM;
	if (gso_type != VIRTIO_GSO_NONE) {
		meta->valid |= MR_META_GSO;
		meta->gso_type = (uint16_t)gso_type;
		meta->gso_bytes = header->gso_bytes;
	}
}

/* virtio_header.c */
/* Whether the other side segments this frame, as the port's offloads say. */
bool mri_virtio_is_gso(const struct mr_txq *txq, const struct mr_frame *frame,
		       const struct mr_meta *meta);
/*
 * Make the header of a frame of n entries. Complete the checksum if the other
 * side does not; shared entries are copied first, and frames[] then has the
 * copies. Returns -1, or the reason to drop the frame. The caller keeps it.
 */
int mri_virtio_make_header(struct mr_txq *txq, struct mr_cache *cache,
			   struct mr_frame *frames, uint32_t n,
			   const struct mr_meta *meta,
			   struct virtio_header *ret_header);

#endif
