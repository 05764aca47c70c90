/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand over an end of a pair to another process. Both ends have to be ports of
 * the data plane: the rings are the process's own, so the new one makes others,
 * and each end fills those that it sends to as they were.
 */
#include <errno.h>

#include "pair.h"

enum { LANE_LAYOUT = 1 /* uint64_t, the completed frames, then mr_frame */ };

static int take(struct mr_port *base, const struct mr_spec *spec,
		struct mr_parcel *parcel, struct mr_reason *reason)
{
	(void)parcel;
	return mri_pair_open(base, spec, reason);
}

/* Put the frames of a lane, which stay there: this process may go on. */
static void put_lane(const struct pair_port *port, uint32_t i,
		     struct mr_frame *frames, uint64_t *addrs,
		     struct mr_parcel *parcel)
{
	const struct pair_txq *txq = &port->txqs[i];
	const uint64_t n_completed =
		mr_counter_get(&txq->lane->n_taken_frames) -
		txq->first_taken_frames;
	const uint32_t n = mr_ring_spsc_peek_burst(txq->lane->ring, frames,
						   txq->n_ring_entries);
	char name[MR_PARCEL_NAME_BYTES];

	for (uint32_t at = 0; at < n; at++)
		addrs[at] = frames[at].addr;
	mr_parcel_put(parcel, mr_parcel_name(name, "completed", i), LANE_LAYOUT,
		      &n_completed, sizeof(n_completed));
	mr_parcel_put(parcel, mr_parcel_name(name, "frames", i), LANE_LAYOUT,
		      frames, n * sizeof(frames[0]));
	mr_pool_put_posted(port->base.pool, parcel,
			   mr_parcel_name(name, "posted", i), addrs, n);
}

static int give(struct mr_port *base, struct mr_parcel *parcel,
		struct mr_reason *reason)
{
	const struct pair_port *port = (const struct pair_port *)base;
	const uint32_t n = port->link->n_ring_entries;
	struct mr_frame *frames =
		mr_alloc(base->ctx, 0, n * (sizeof(*frames) + sizeof(uint64_t)));

	if (frames == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for its state",
			       base->info->name);
	for (uint32_t i = 0; i < port->link->n_queues; i++)
		put_lane(port, i, frames, (uint64_t *)(frames + n), parcel);
	mr_free(base->ctx, frames);
	return 0;
}

/* Whether these are whole frames that may be sent, with these references. */
static bool are_frames(const struct pair_txq *txq,
		       const struct mr_frame *frames, const uint64_t *addrs,
		       uint32_t n)
{
	uint32_t len;

	if (mr_frame_n_whole(frames, n) != n)
		return false;
	for (uint32_t i = 0; i < n; i += len) {
		len = mr_frame_n_entries(frames + i);
		if (len > txq->max_segs ||
		    mr_tx_find_fault(txq->region, frames + i, len, 1,
				     UINT64_MAX) >= 0)
			return false;
	}
	for (uint32_t i = 0; i < n; i++)
		if (frames[i].addr != addrs[i])
			return false;
	return true;
}

static int resume_lane(struct pair_port *port, uint32_t i, uint64_t *addrs,
		       const struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct pair_txq *txq = &port->txqs[i];
	const void *frames = NULL;
	char name[MR_PARCEL_NAME_BYTES];
	uint64_t n_completed;
	size_t n_bytes = 0;
	uint32_t n;
	int err;

	if ((err = mr_parcel_get(parcel, mr_parcel_name(name, "completed", i),
				 LANE_LAYOUT, &n_completed, sizeof(n_completed),
				 reason)) < 0 ||
	    (err = mr_parcel_find(parcel, mr_parcel_name(name, "frames", i),
				  LANE_LAYOUT, &frames, &n_bytes, reason)) < 0)
		return err;
	n = (uint32_t)(n_bytes / sizeof(struct mr_frame));
	if (n_bytes > txq->n_ring_entries * sizeof(struct mr_frame))
		n = UINT32_MAX; /* which nobody has posted */
	err = mr_pool_claim_posted(port->base.pool, parcel,
				   mr_parcel_name(name, "posted", i), addrs, n,
				   reason);
	if (err < 0)
		return err;
	if (!are_frames(txq, frames, addrs, n))
		return mr_fail(reason, -EPROTO,
			       "%s: a frame of the state is damaged",
			       port->base.info->name);
	txq->first_taken_frames = 0 - n_completed;
	txq->lane->n_posted =
		mr_ring_spsc_enqueue_burst(txq->lane->ring, frames, n);
	return 0;
}

static int resume(struct mr_port *base, struct mr_parcel *parcel,
		  struct mr_reason *reason)
{
	struct pair_port *port = (struct pair_port *)base;
	const struct pair_link *link = port->link;
	uint64_t *addrs;
	int err = 0;

	if (!link->is_open[!port->end])
		return mr_fail(reason, -ENOTSUP,
			       "%s: cannot be handed over: its other end is no "
			       "port of the data plane",
			       base->info->name);
	addrs = mr_alloc(base->ctx, 0, link->n_ring_entries * sizeof(*addrs));
	if (addrs == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for its frames",
			       base->info->name);
	for (uint32_t i = 0; i < link->n_queues && err == 0; i++)
		err = resume_lane(port, i, addrs, parcel, reason);
	mr_free(base->ctx, addrs);
	return err;
}

const struct mr_hand_over_ops mri_pair_hand_over = {
	.offer = mr_hand_over_nothing, /* all is known at the end */
	.take = take,
	.give = give,
	.resume = resume,
};
