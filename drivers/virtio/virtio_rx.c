/* SPDX-License-Identifier: BSD-3-Clause */
/* The rx bursts: instances of receive(). */
#include "virtio_receive.h"

/* What follows the name is the kind, which the compiler knows then. */
#define BURST(name, ...)                                                       \
	static uint32_t name(struct mr_rxq *rxq, struct mr_cache *cache,       \
			     struct mr_frame *frames, struct mr_meta *meta,    \
			     uint32_t n)                                       \
	{                                                                      \
		virtio_enter(&virtio_rxq_of(rxq)->vq);                         \
		n = receive(rxq, cache, frames, meta, n,                       \
			    (struct virtio_rx_kind){ __VA_ARGS__ });           \
		virtio_leave(&virtio_rxq_of(rxq)->vq);                         \
		return n;                                                      \
	}

BURST(split, .is_packed = false)
BURST(split_headers, .has_headers = true)
BURST(split_merged, .has_headers = true, .is_merged = true)
BURST(split_in_order, .is_in_order = true)
BURST(split_in_order_headers, .is_in_order = true, .has_headers = true)
BURST(split_in_order_merged, .is_in_order = true, .has_headers = true,
      .is_merged = true)
BURST(packed, .is_packed = true)
BURST(packed_headers, .is_packed = true, .has_headers = true)
BURST(packed_merged, .is_packed = true, .has_headers = true, .is_merged = true)
BURST(packed_in_order, .is_packed = true, .is_in_order = true)
BURST(packed_in_order_headers, .is_packed = true, .is_in_order = true,
      .has_headers = true)
BURST(packed_in_order_merged, .is_packed = true, .is_in_order = true,
      .has_headers = true, .is_merged = true)

mr_rx_burst_fn *mri_virtio_rx_burst_of(struct virtio_rx_kind kind)
{
	static mr_rx_burst_fn *const bursts[2][2][3] = {
		{ { split, split_headers, split_merged },
		  { split_in_order, split_in_order_headers,
		    split_in_order_merged } },
		{ { packed, packed_headers, packed_merged },
		  { packed_in_order, packed_in_order_headers,
		    packed_in_order_merged } },
	};

	return bursts[kind.is_packed][kind.is_in_order]
		     [kind.is_merged ? 2 : kind.has_headers];
}

void mri_virtio_rx_fill(struct virtio_rxq *rxq)
{
	struct virtio_vq *vq = &rxq->vq;
	const struct virtio_rx_kind kind = { .is_packed = vq->is_packed };

	/* As if a lap of used ones had just been taken. */
	vq->n_used = (uint16_t)(0 - vq->n_entries);
	for (uint32_t i = 0; i < vq->n_entries; i++) {
		if (!kind.is_packed) {
			vq->desc[i].len = rxq->post_bytes;
			vq->desc[i].flags = VIRTIO_DESC_WRITE;
		}
		repost(rxq, vq->n_used + i, i, rxq->bufs[i], kind);
	}
	publish(rxq, vq->n_entries, kind);
}
