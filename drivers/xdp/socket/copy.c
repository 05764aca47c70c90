/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that the kernel would not take as they lie.
 *
 * In an aligned UMEM no descriptor may cross a chunk edge. An entry that does
 * is split into continued descriptors, each with a reference of its own, where
 * the socket has SG. All else is copied to fresh chunks of the caller's pool:
 * entries in a segment that the device has not registered, without room in
 * front for the kernel's metadata, shared entries that must be written to, and
 * frames of several entries on a socket without SG.
 */
#include <string.h>

#include "socket/queue.h"
#include "xdp.h"

static void drop_frame(struct xdp_txq *txq, struct mr_cache *cache,
		       const struct mr_frame *in, uint32_t n,
		       enum mr_tx_drop why)
{
	mr_frame_free_bulk(cache, in, n);
	mr_counter_add(&txq->base.stats.drops[why], 1);
}

static bool is_inside(const struct xdp_txq *txq, const struct mr_frame *entry)
{
	return entry->addr < txq->n_registered_bytes &&
	       entry->len <= txq->n_registered_bytes - entry->addr;
}

/*
 * Whether splitting is enough: entries lie in registered memory and the only
 * fault is a chunk edge. An entry that must be written to is copied instead.
 */
static bool can_split(const struct xdp_txq *txq, const struct mr_frame *in,
		      uint32_t n)
{
	uint32_t n_out = 0;

	if (txq->max_segs == 1 || txq->n_front_bytes > 0 ||
	    (in[0].flags & MR_FRAME_CSUM_PARTIAL))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t first = in[i].addr >> txq->chunk_shift;
		const uint64_t last =
			(in[i].addr + in[i].len - 1) >> txq->chunk_shift;

		if (!is_inside(txq, &in[i]))
			return false;
		n_out += (uint32_t)(last - first) + 1;
	}
	return n_out <= txq->max_segs;
}

/* Undo the references that a split has added to in[0..n), n_refs[] each. */
static void undo_references(struct mr_cache *cache, const struct mr_frame *in,
			    const uint32_t *n_refs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n_refs[i]; k++)
			mr_frame_free_bulk(cache, &in[i], 1);
}

/* 0: a page has as many owners as it can count; then the frame is copied. */
static uint32_t split_entries(struct xdp_txq *txq, struct mr_cache *cache,
			      const struct mr_frame *in, uint32_t n,
			      struct mr_frame out[MR_MAX_SEGS])
{
	const uint32_t chunk_bytes = txq->chunk_mask + 1;
	uint32_t n_refs[MR_MAX_SEGS] = { 0 };
	uint32_t n_out = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mr_frame rest = in[i];

		for (;;) {
			const uint32_t room =
				chunk_bytes -
				(uint32_t)(rest.addr & txq->chunk_mask);

			out[n_out++] = rest;
			if (rest.len <= room)
				break;
			/* One more completion, so one more reference. */
			if (mr_frame_ref(cache, &in[i], 1) < 0) {
				undo_references(cache, in, n_refs, i + 1);
				return 0;
			}
			n_refs[i]++;
			out[n_out - 1].len = room;
			out[n_out - 1].flags |= MR_FRAME_MORE;
			rest.addr += room;
			rest.len -= room;
		}
		mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_EDGE_SPLIT],
			       n_refs[i]);
	}
	return n_out;
}

static uint32_t copy_entries(struct xdp_txq *txq, struct mr_cache *cache,
			     const struct mr_frame *in, uint32_t n,
			     struct mr_frame out[MR_MAX_SEGS])
{
	const struct mr_port *port = &txq->port->base;
	uint32_t n_out;

	if (mr_frame_n_bytes(in, n) >
	    (uint64_t)mr_port_room_bytes(port) * txq->max_segs) {
		drop_frame(txq, cache, in, n, MR_TX_DROP_TOO_LONG);
		return 0;
	}
	n_out = mr_port_copy_frame(port, cache, in, n, txq->n_registered_bytes,
				   out);
	if (n_out == 0)
		drop_frame(txq, cache, in, n, MR_TX_DROP_NO_BUFFER);
	else
		mr_frame_free_bulk(cache, in, n);
	return n_out;
}

static enum mr_tx_event why_copied(const struct xdp_txq *txq,
				   const struct mr_frame *in, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_inside(txq, &in[i]))
			return MR_TX_EVENT_FOREIGN_COPIED;
	return MR_TX_EVENT_EDGE_COPIED;
}

uint32_t mri_xdp_reshape(struct xdp_txq *txq, struct mr_cache *cache,
			 const struct mr_frame *in, uint32_t n,
			 struct mr_frame out[MR_MAX_SEGS])
{
	const int fault = mr_tx_find_fault(txq->port->base.region, in, n,
					   XDP_MIN_FRAME_BYTES, UINT64_MAX);
	enum mr_tx_event why;
	uint32_t n_out;

	if (fault >= 0) {
		drop_frame(txq, cache, in, n, (enum mr_tx_drop)fault);
		return 0;
	}
	if (can_split(txq, in, n)) {
		n_out = split_entries(txq, cache, in, n, out);
		if (n_out > 0)
			return n_out;
	}
	why = why_copied(txq, in, n);
	n_out = copy_entries(txq, cache, in, n, out);
	if (n_out > 0)
		mr_counter_add(&txq->base.stats.events[why], 1);
	return n_out;
}
