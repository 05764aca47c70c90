/* SPDX-License-Identifier: BSD-3-Clause */
/* The rx bursts of packed rings: instances of receive(). */
#include "virtio_receive.h"

static uint32_t plain(struct mr_rxq *rxq, struct mr_cache *cache,
		      struct mr_frame *frames, struct mr_meta *meta, uint32_t n)
{
	return receive(rxq, cache, frames, meta, n,
		       (struct virtio_rx_kind){ .is_packed = true });
}

static uint32_t headers(struct mr_rxq *rxq, struct mr_cache *cache,
			struct mr_frame *frames, struct mr_meta *meta,
			uint32_t n)
{
	return receive(rxq, cache, frames, meta, n,
		       (struct virtio_rx_kind){ .is_packed = true,
						.has_headers = true });
}

static uint32_t merged(struct mr_rxq *rxq, struct mr_cache *cache,
		       struct mr_frame *frames, struct mr_meta *meta,
		       uint32_t n)
{
	return receive(rxq, cache, frames, meta, n,
		       (struct virtio_rx_kind){ .is_packed = true,
						.has_headers = true,
						.is_merged = true });
}

static uint32_t in_order(struct mr_rxq *rxq, struct mr_cache *cache,
			 struct mr_frame *frames, struct mr_meta *meta,
			 uint32_t n)
{
	return receive(rxq, cache, frames, meta, n,
		       (struct virtio_rx_kind){ .is_packed = true,
						.is_in_order = true });
}

static uint32_t in_order_headers(struct mr_rxq *rxq, struct mr_cache *cache,
				 struct mr_frame *frames, struct mr_meta *meta,
				 uint32_t n)
{
	return receive(rxq, cache, frames, meta, n,
		       (struct virtio_rx_kind){ .is_packed = true,
						.is_in_order = true,
						.has_headers = true });
}

static uint32_t in_order_merged(struct mr_rxq *rxq, struct mr_cache *cache,
				struct mr_frame *frames, struct mr_meta *meta,
				uint32_t n)
{
	return receive(rxq, cache, frames, meta, n,
		       (struct virtio_rx_kind){ .is_packed = true,
						.is_in_order = true,
						.has_headers = true,
						.is_merged = true });
}

mr_rx_burst_fn *mri_virtio_packed_rx_burst_of(struct virtio_rx_kind kind)
{
	static mr_rx_burst_fn *const bursts[2][3] = {
		{ plain, headers, merged },
		{ in_order, in_order_headers, in_order_merged },
	};

	return bursts[kind.is_in_order][kind.is_merged ? 2 : kind.has_headers];
}

void mri_virtio_packed_rx_fill(struct virtio_rxq *rxq)
{
	struct virtio_vq *vq = &rxq->vq;
	const struct virtio_rx_kind kind = { .is_packed = true };

	/* As if a lap of used ones had just been taken. */
	vq->n_used = (uint16_t)(0 - vq->n_entries);
	for (uint32_t i = 0; i < vq->n_entries; i++)
		repost(rxq, vq->n_used + i, i, rxq->bufs[i], kind);
	publish(rxq, vq->n_entries, kind);
}
