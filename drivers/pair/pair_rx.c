/* SPDX-License-Identifier: BSD-3-Clause */
/* pair: the receiving end of a lane. */
#include "pair.h"

uint32_t mri_pair_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			   struct mr_frame *frames, struct mr_meta *meta,
			   uint32_t n)
{
	struct pair_lane *lane = ((struct pair_rxq *)base)->lane;
	const uint32_t n_taken =
		__atomic_load_n(&lane->n_taken, __ATOMIC_RELAXED);
	uint64_t n_frames = 0, n_bytes = 0;

	/* Acquire: pairs with the store in post(); then the ring has them. */
	if (__atomic_load_n(&lane->n_posted, __ATOMIC_ACQUIRE) == n_taken ||
	    !mri_pair_claim(lane))
		return 0;

	/* Frames are posted whole, so only the burst can cut one. */
	n = mr_frame_n_whole(frames,
			     mr_ring_spsc_peek_burst(lane->ring, frames, n));
	mr_ring_spsc_release(lane->ring, n);
	for (uint32_t i = 0; i < n; i++) {
		n_frames += !(frames[i].flags & MR_FRAME_MORE);
		n_bytes += frames[i].len;
	}
	for (uint32_t i = 0; meta != NULL && i < n; i++)
		meta[i].valid = 0;

	mr_counter_add(&lane->n_taken_frames, n_frames);
	__atomic_store_n(&lane->n_taken, lane->n_taken + n, __ATOMIC_SEQ_CST);
	mri_pair_bell_pull(&lane->tx_bell);
	mri_pair_unclaim(lane, cache);

	mr_counter_add(&base->stats.received, n_frames);
	mr_counter_add(&base->stats.delivered, n_frames);
	mr_counter_add(&base->stats.bytes, n_bytes);
	return n;
}

int mri_pair_rx_arm(struct mr_queue *queue)
{
	struct pair_lane *lane = ((struct pair_rxq *)queue)->lane;

	mri_pair_bell_arm(&lane->rx_bell);
	if (__atomic_load_n(&lane->n_posted, __ATOMIC_SEQ_CST) ==
	    __atomic_load_n(&lane->n_taken, __ATOMIC_SEQ_CST))
		return 0;
	mri_pair_bell_disarm(&lane->rx_bell);
	return 1;
}
