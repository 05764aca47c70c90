/* SPDX-License-Identifier: BSD-3-Clause */
/* pair: the sending end of a lane. */
#include "pair.h"

/* Post n entries of good frames, which fit, to the other end. */
static void post(struct pair_lane *lane, const struct mr_frame *frames,
		 uint32_t n)
{
	if (n == 0)
		return;
	mr_ring_spsc_enqueue_burst(lane->ring, frames, n);
	__atomic_store_n(&lane->n_posted, lane->n_posted + n, __ATOMIC_SEQ_CST);
}

uint32_t mri_pair_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			   const struct mr_frame *frames,
			   const struct mr_meta *meta, uint32_t n)
{
	struct pair_txq *txq = (struct pair_txq *)base;
	/* Exact or too small: only the consumer changes it, by taking. */
	uint32_t n_room =
		txq->n_ring_entries - mr_ring_spsc_count(txq->lane->ring);
	uint64_t n_frames = 0, n_bytes = 0;
	uint32_t i, n_done = 0; /* [n_done, i): good frames, not posted yet */

	(void)meta;
	n = mr_frame_n_whole(frames, n);
	txq->n_wanted = 0;
	for (i = 0; i < n;) {
		const uint32_t len = mr_frame_n_entries(frames + i);
		const int drop =
			len > txq->max_segs ?
				MR_TX_DROP_TOO_LONG :
				mr_tx_find_fault(txq->region, frames + i, len,
						 1, UINT64_MAX);

		if (drop < 0 && len > n_room) {
			txq->n_wanted = len;
			mr_counter_add(
				&base->stats.events[MR_TX_EVENT_RING_FULL], 1);
			break;
		}
		n_frames++;
		n_bytes += mr_frame_n_bytes(frames + i, len);
		if (drop < 0) {
			n_room -= len;
		} else {
			post(txq->lane, frames + n_done, i - n_done);
			mr_frame_free_bulk(cache, frames + i, len);
			mr_counter_add(&base->stats.drops[drop], 1);
			n_done = i + len;
		}
		i += len;
	}
	post(txq->lane, frames + n_done, i - n_done);
	mri_pair_bell_pull(&txq->lane->rx_bell);

	mr_counter_add(&base->stats.accepted, n_frames);
	mr_counter_add(&base->stats.bytes, n_bytes);
	return i;
}

/*
 * Buffers go to the other end for good, so there is nothing to collect. A
 * sleeper waits for room: a burst that was cut short has work as soon as the
 * frame that did not fit would.
 */
int mri_pair_tx_arm(struct mr_queue *queue)
{
	struct pair_txq *txq = (struct pair_txq *)queue;
	struct pair_lane *lane = txq->lane;
	uint32_t n_pending;

	if (txq->n_wanted == 0)
		return 0;
	mri_pair_bell_arm(&lane->tx_bell);
	n_pending = lane->n_posted -
		    __atomic_load_n(&lane->n_taken, __ATOMIC_SEQ_CST);
	if (txq->n_ring_entries - n_pending < txq->n_wanted)
		return 0;
	mri_pair_bell_disarm(&lane->tx_bell);
	return 1;
}

void mri_pair_txq_stats(const struct mr_txq *base, struct mr_tx_stats *stats)
{
	const struct pair_txq *txq = (const struct pair_txq *)base;
	uint64_t n_gone;

	stats->completed = mr_counter_get(&txq->lane->n_taken_frames) -
			   txq->first_taken_frames;
	n_gone = stats->completed;
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_gone += stats->drops[i];
	/* While frames move: what is completed was read last. */
	stats->pending =
		stats->accepted > n_gone ? stats->accepted - n_gone : 0;
}
