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

static void drop(struct xdp_txq *txq, struct mr_cache *cache,
		 const struct mr_frame *in, uint32_t n, enum mr_tx_drop why)
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
static void unref(struct mr_cache *cache, const struct mr_frame *in,
		  const uint32_t *n_refs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n_refs[i]; k++)
			mr_frame_free_bulk(cache, &in[i], 1);
}

/* 0: a page has as many owners as it can count; then the frame is copied. */
static uint32_t split(struct xdp_txq *txq, struct mr_cache *cache,
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
				unref(cache, in, n_refs, i + 1);
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

/* Bytes of the whole frame, or 0 if an entry of it cannot be read. */
static uint64_t readable_bytes(const struct xdp_txq *txq,
			       const struct mr_frame *in, uint32_t n)
{
	uint64_t n_bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (in[i].len == 0 ||
		    !mr_region_is_backed(txq->port->base.region, in[i].addr,
					 in[i].len))
			return 0;
		n_bytes += in[i].len;
	}
	return n_bytes;
}

/* Buffers for a copy of n_bytes; how many, 0 if there are too few. */
static uint32_t alloc_copy(const struct xdp_txq *txq, struct mr_cache *cache,
			   uint64_t n_bytes, uint32_t room_bytes,
			   uint64_t addrs[MR_MAX_SEGS])
{
	const uint32_t chunk_bytes = txq->chunk_mask + 1;
	const uint32_t n = (uint32_t)((n_bytes + room_bytes - 1) / room_bytes);
	const uint32_t n_got = mr_frag_alloc_bulk(cache, addrs, n, chunk_bytes);
	bool is_ok = n_got == n;

	/* The caller's pool may itself be one that is not registered. */
	for (uint32_t i = 0; i < n_got; i++)
		is_ok = is_ok && addrs[i] < txq->n_registered_bytes;
	if (!is_ok)
		mr_frag_free_bulk(cache, addrs, n_got);
	return is_ok ? n : 0;
}

static uint32_t copy(struct xdp_txq *txq, struct mr_cache *cache,
		     const struct mr_frame *in, uint32_t n, uint64_t n_bytes,
		     struct mr_frame out[MR_MAX_SEGS])
{
	const uint32_t offset = txq->port->base.headroom_bytes;
	const uint32_t room =
		txq->chunk_mask + 1 - offset - txq->port->base.tailroom_bytes;
	uint8_t *base = txq->port->base.base;
	uint64_t addrs[MR_MAX_SEGS];
	uint32_t n_out, from = 0, from_at = 0;

	if (n_bytes > (uint64_t)room * txq->max_segs) {
		drop(txq, cache, in, n, MR_TX_DROP_TOO_LONG);
		return 0;
	}
	n_out = alloc_copy(txq, cache, n_bytes, room, addrs);
	if (n_out == 0) {
		drop(txq, cache, in, n, MR_TX_DROP_NO_BUFFER);
		return 0;
	}
	for (uint32_t i = 0; i < n_out; i++) {
		struct mr_frame *to = &out[i];

		*to = (struct mr_frame){ .addr = addrs[i] + offset };
		while (to->len < room && from < n) {
			const uint32_t n_left = in[from].len - from_at;
			const uint32_t k = n_left < room - to->len ?
						   n_left :
						   room - to->len;

			memcpy(base + to->addr + to->len,
			       base + in[from].addr + from_at, k);
			to->len += k;
			from_at += k;
			if (from_at == in[from].len) {
				from++;
				from_at = 0;
			}
		}
		to->flags = i + 1 < n_out ? MR_FRAME_MORE : 0;
	}
	out[0].flags |= in[0].flags & ~(uint32_t)MR_FRAME_MORE;
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
	const uint64_t n_bytes = readable_bytes(txq, in, n);
	enum mr_tx_event why;
	uint32_t n_out;

	if (n_bytes < XDP_MIN_FRAME_BYTES) {
		drop(txq, cache, in, n, MR_TX_DROP_INVALID);
		return 0;
	}
	if (n > MR_MAX_SEGS) {
		drop(txq, cache, in, n, MR_TX_DROP_TOO_LONG);
		return 0;
	}
	if (can_split(txq, in, n)) {
		n_out = split(txq, cache, in, n, out);
		if (n_out > 0)
			return n_out;
	}
	why = why_copied(txq, in, n);
	n_out = copy(txq, cache, in, n, n_bytes, out);
	if (n_out > 0)
		mr_counter_add(&txq->base.stats.events[why], 1);
	return n_out;
}
