/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost: frames to the driver's rx ring. As in vhost_rx.c there are rounds: a
 * round reads the chains, and then copies the frames into them.
 *
 * With merged buffers a frame takes as many chains as it fills; without, one.
 *
 * Source: virtio 1.2, 5.1.6.3.2, 5.1.6.4.
 */
#include <string.h>

#include "vhost.h"
#include "vhost_chain.h"
#include "vhost_plain.h"
#include "virtio_header.h"

/* A frame, and its chains. */
struct target {
	const struct mr_frame *entries;
	uint32_t n_entries;
	uint32_t n_bytes; /* with the header */
	uint32_t first;   /* of its chains */
	uint32_t n_chains;
};

struct round {
	struct vhost_reader reader;
	struct target targets[VHOST_ROUND];
	uint32_t n_targets;
	uint32_t written[VHOST_PIECES]; /* bytes, by chain */
};

enum room {
	ROOM_ENOUGH,
	ROOM_LATER, /* after the driver adds buffers, or in the next round */
	ROOM_NEVER, /* the frame is longer than its buffers */
};

static bool is_merged(const struct vhost_txq *txq)
{
	return vhost_has(txq->features, VIRTIO_F_MRG_RXBUF);
}

/* Read chains for a frame. */
static inline __attribute__((always_inline)) enum room
find_room(const struct vhost_txq *txq, struct round *round,
	  struct target *target, const bool is_packed)
{
	struct vhost_reader *reader = &round->reader;
	uint64_t n_bytes = 0;
	bool is_empty;

	target->first = reader->n_chains;
	do {
		const struct vhost_chain *chain =
			vhost_read(reader, VIRTIO_DESC_WRITE, is_packed);

		if (chain == NULL)
			break;
		if (chain->n_pieces > 0)
			__builtin_prefetch(reader->pieces[chain->first].bytes,
					   1);
		n_bytes += chain->n_bytes;
	} while (n_bytes < target->n_bytes && is_merged(txq));
	target->n_chains = reader->n_chains - target->first;
	/* The header of a merged frame lies in the first. */
	is_empty =
		target->n_chains > 0 && reader->chains[target->first].n_bytes <
						reader->ring->header_bytes;
	if (n_bytes >= target->n_bytes && !is_empty)
		return ROOM_ENOUGH;
	vhost_unread(reader, target->n_chains);
	if (target->n_chains == 0 && !(reader->is_full && target->first == 0))
		return ROOM_LATER;
	if (is_empty || !is_merged(txq) ||
	    (reader->is_full && target->first == 0))
		return ROOM_NEVER;
	return ROOM_LATER;
}

/* Copy the header and its frame, and record the bytes in each chain. */
static void copy_bytes(const struct vhost_txq *txq, struct round *round,
		       const struct target *target,
		       struct virtio_header *header)
{
	const struct vhost_reader *reader = &round->reader;
	const struct vhost_chain *chain = &reader->chains[target->first];
	struct vhost_piece *piece = &round->reader.pieces[chain->first];
	uint32_t left = target->n_bytes;

	header->n_buffers = (uint16_t)target->n_chains;
	vhost_copy_to(&piece, (const uint8_t *)header,
		      reader->ring->header_bytes);
	for (uint32_t i = 0; i < target->n_entries; i++)
		vhost_copy_to(&piece, txq->memory + target->entries[i].addr,
			      target->entries[i].len);
	for (uint32_t i = 0; i < target->n_chains; i++) {
		const uint64_t n = chain[i].n_bytes;

		round->written[target->first + i] =
			n < left ? (uint32_t)n : left;
		left -= round->written[target->first + i];
	}
}

/* Copy a frame, and log its pieces as they were before. */
__attribute__((noinline)) static void copy_and_log(const struct vhost_txq *txq,
						   struct round *round,
						   const struct target *target,
						   struct virtio_header *header)
{
	const struct vhost_reader *reader = &round->reader;
	const uint32_t first = reader->chains[target->first].first;
	struct vhost_piece pieces[VHOST_PIECES];
	uint32_t n = 0, left = target->n_bytes;

	for (uint32_t i = 0; i < target->n_chains; i++)
		n += reader->chains[target->first + i].n_pieces;
	memcpy(pieces, &reader->pieces[first], n * sizeof(pieces[0]));
	copy_bytes(txq, round, target, header);
	/* Only what was written: a buffer may be all of the guest's memory. */
	for (uint32_t i = 0; i < n && left > 0; i++) {
		const uint32_t len =
			pieces[i].n_bytes < left ? pieces[i].n_bytes : left;

		mri_vhost_log_bytes(reader->ring, pieces[i].bytes, len);
		left -= len;
	}
}

static void copy_frame(const struct vhost_txq *txq, struct round *round,
		       const struct target *target,
		       struct virtio_header *header)
{
	if (round->reader.ring->log != NULL)
		copy_and_log(txq, round, target, header);
	else
		copy_bytes(txq, round, target, header);
}

static inline __attribute__((always_inline)) void
use_round(struct vhost_txq *txq, struct round *round, const bool is_packed)
{
	if (vhost_use_all(&round->reader, round->written, is_packed))
		mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_WAKEUP], 1);
}

static void count_sent(struct vhost_txq *txq, const struct vhost_ring *ring,
		       const struct target *target)
{
	mr_counter_add(&txq->base.stats.completed, 1);
	mr_counter_add(&txq->base.stats.bytes,
		       target->n_bytes - ring->header_bytes);
}

static uint32_t drop_frame(struct vhost_txq *txq, struct mr_cache *cache,
			   const struct mr_frame *frames, uint32_t n,
			   enum mr_tx_drop drop)
{
	mr_frame_free_bulk(cache, frames, n);
	mr_counter_add(&txq->base.stats.drops[drop], 1);
	return n;
}

/* Whether a frame needs no offloads; one that does ends the round. */
static bool is_plain(const struct mr_frame *frame, const struct mr_meta *meta)
{
	return !(frame->flags & MR_FRAME_CSUM_PARTIAL) &&
	       (meta == NULL || !(meta->valid & MR_META_GSO));
}

static int find_fault(const struct vhost_txq *txq,
		      const struct mr_frame *frames, uint32_t n,
		      uint64_t max_bytes)
{
	return mr_tx_find_fault(txq->base.queue.port->region, frames, n,
				VIRTIO_MIN_FRAME_BYTES, max_bytes);
}

/*
 * Send frames without offloads, from frames[0] on, in one round. Returns
 * entries. If these are fewer than n, look at the rest again; *room says why.
 */
__attribute__((noinline)) static uint32_t
send_round(struct vhost_txq *txq, struct vhost_ring *ring,
	   struct mr_cache *cache, const struct mr_frame *frames,
	   const struct mr_meta *meta, uint32_t n, enum room *room,
	   const bool is_packed)
{
	const uint32_t max_bytes =
		__atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED);
	struct virtio_header header = { 0 };
	uint32_t n_done = 0;
	struct round round;

	*room = ROOM_ENOUGH;
	round.n_targets = 0;
	vhost_begin(&round.reader, ring, is_packed);
	while (n_done < n && round.n_targets < VHOST_ROUND &&
	       is_plain(&frames[n_done], meta != NULL ? &meta[n_done] : NULL)) {
		struct target *target = &round.targets[round.n_targets];
		const uint32_t k = mr_frame_n_entries(&frames[n_done]);

		if (find_fault(txq, &frames[n_done], k, max_bytes) >= 0)
			break;
		target->entries = &frames[n_done];
		target->n_entries = k;
		target->n_bytes =
			(uint32_t)mr_frame_n_bytes(&frames[n_done], k) +
			ring->header_bytes;
		*room = find_room(txq, &round, target, is_packed);
		if (*room != ROOM_ENOUGH)
			break;
		round.n_targets++;
		n_done += k;
	}
	for (uint32_t i = 0; i < round.n_targets; i++) {
		copy_frame(txq, &round, &round.targets[i], &header);
		count_sent(txq, ring, &round.targets[i]);
	}
	use_round(txq, &round, is_packed);
	mr_frame_free_bulk(cache, frames, n_done);
	if (n_done == 0 && round.reader.is_bad)
		mri_vhost_ring_break(ring);
	return n_done;
}

/*
 * Off the fast path: send or drop one frame of n entries. Returns n, or 0: no
 * room now.
 */
static __attribute__((noinline)) uint32_t
send_special(struct vhost_txq *txq, struct vhost_ring *ring,
	     struct mr_cache *cache, const struct mr_frame *frames,
	     const struct mr_meta *meta, uint32_t n, const bool is_packed)
{
	const uint64_t max_bytes =
		mri_virtio_is_gso(&txq->base, frames, meta) ?
			VIRTIO_MAX_GSO_BYTES :
			__atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED);
	int drop = find_fault(txq, frames, n, max_bytes);
	struct mr_frame own[MR_MAX_SEGS];
	struct virtio_header header;
	struct target *target;
	struct round round;
	enum room room;

	if (drop >= 0)
		return drop_frame(txq, cache, frames, n, (enum mr_tx_drop)drop);
	round.n_targets = 1;
	target = &round.targets[0];
	*target = (struct target){
		.entries = own,
		.n_entries = n,
		.n_bytes = (uint32_t)mr_frame_n_bytes(frames, n) +
			   ring->header_bytes,
	};
	vhost_begin(&round.reader, ring, is_packed);
	room = find_room(txq, &round, target, is_packed);
	if (room == ROOM_LATER && round.reader.is_bad)
		mri_vhost_ring_break(ring);
	if (room == ROOM_LATER)
		return 0;
	if (room == ROOM_NEVER)
		return drop_frame(txq, cache, frames, n, MR_TX_DROP_TOO_LONG);
	memcpy(own, frames, n * sizeof(own[0]));
	drop = mri_virtio_make_header(&txq->base, cache, own, n, meta, &header);
	if (drop >= 0)
		return drop_frame(txq, cache, own, n, (enum mr_tx_drop)drop);
	copy_frame(txq, &round, target, &header);
	count_sent(txq, ring, target);
	use_round(txq, &round, is_packed);
	mr_frame_free_bulk(cache, own, n);
	return n;
}

/* ---- runs of plain frames ---- */

/* How many of n entries are whole frames without offloads. */
static inline uint32_t count_plain(const struct vhost_txq *txq,
				   const struct mr_cache *cache,
				   const struct mr_frame *frames,
				   const struct mr_meta *meta, uint32_t n)
{
	const struct mr_pages pages = mr_cache_pages(cache);
	const uint32_t span =
		__atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED) -
		VIRTIO_MIN_FRAME_BYTES;
	struct mr_room room;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (frames[i].flags & (MR_FRAME_MORE | MR_FRAME_CSUM_PARTIAL) ||
		    frames[i].len - VIRTIO_MIN_FRAME_BYTES > span ||
		    !mr_pages_room(&pages, &frames[i], &room))
			break;
	n = i;
	for (i = 0; meta != NULL && i < n; i++)
		if (meta[i].valid & MR_META_GSO)
			break;
	return meta != NULL ? i : n;
}

/*
 * Copy n frames behind headers, or as many as fit; written: bytes of each.
 * Counts them.
 */
static inline uint32_t copy_plain(struct vhost_txq *txq,
				  const struct vhost_plain *plain,
				  const struct mr_frame *frames,
				  uint32_t *written, uint32_t n)
{
	static const struct virtio_header header = { .n_buffers = 1 };
	const uint8_t *const memory = txq->memory;
	uint64_t n_bytes = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t len = frames[i].len;

		if (len + VIRTIO_HEADER_BYTES > plain[i].n_bytes)
			break;
		memcpy(plain[i].bytes, &header, VIRTIO_HEADER_BYTES);
		vhost_copy(plain[i].bytes + VIRTIO_HEADER_BYTES,
			   memory + frames[i].addr, len);
		written[i] = len + VIRTIO_HEADER_BYTES;
		n_bytes += len;
	}
	mr_counter_add(&txq->base.stats.completed, i);
	mr_counter_add(&txq->base.stats.bytes, n_bytes);
	return i;
}

/* A run of at most n entries. Returns frames, which are entries. */
static inline __attribute__((always_inline)) uint32_t
send_plain(struct vhost_txq *txq, struct vhost_ring *ring,
	   struct mr_cache *cache, const struct mr_frame *frames,
	   const struct mr_meta *meta, uint32_t n, const bool is_packed)
{
	struct vhost_plain plain[VHOST_ROUND];
	uint32_t written[VHOST_ROUND];

	n = count_plain(txq, cache, frames, meta,
			n < VHOST_ROUND ? n : VHOST_ROUND);
	n = vhost_read_plain(ring, plain, n,
			     VIRTIO_HEADER_BYTES + VIRTIO_MIN_FRAME_BYTES,
			     VIRTIO_DESC_WRITE, is_packed);
	n = copy_plain(txq, plain, frames, written, n);
	if (n == 0)
		return 0;
	if (vhost_use_plain(ring, plain, written, n, is_packed))
		mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_WAKEUP], 1);
	mr_frame_free_bulk(cache, frames, n);
	return n;
}

static inline __attribute__((always_inline)) uint32_t
transmit(struct vhost_txq *txq, struct vhost_ring *ring, struct mr_cache *cache,
	 const struct mr_frame *frames, const struct mr_meta *meta, uint32_t n,
	 const bool is_packed)
{
	const bool takes_plain = vhost_takes_plain(ring);
	uint32_t n_done = 0, k;
	enum room room;

	while (n_done < n) {
		const struct mr_meta *m = meta != NULL ? &meta[n_done] : NULL;

		k = takes_plain ? send_plain(txq, ring, cache, frames + n_done,
					     m, n - n_done, is_packed) :
				  0;
		n_done += k;
		if (k > 0)
			continue;
		/* Nothing to look at; invalid frames wait, too. */
		if (vhost_is_empty(&ring->vq, is_packed))
			break;
		k = send_round(txq, ring, cache, frames + n_done, m, n - n_done,
			       &room, is_packed);
		if (k == 0 && room == ROOM_LATER)
			break;
		if (k == 0) {
			k = mr_frame_n_entries(frames + n_done);
			k = send_special(txq, ring, cache, frames + n_done, m,
					 k, is_packed);
		}
		if (k == 0)
			break;
		n_done += k;
	}
	return n_done;
}

static uint64_t count_frames(const struct mr_frame *frames, uint32_t n)
{
	uint64_t n_frames = 0;

	for (uint32_t i = 0; i < n; i++)
		n_frames += !(frames[i].flags & MR_FRAME_MORE);
	return n_frames;
}

uint32_t mri_vhost_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			    const struct mr_frame *frames,
			    const struct mr_meta *meta, uint32_t n)
{
	struct vhost_txq *txq = (struct vhost_txq *)base;
	struct vhost_ring *ring;
	uint32_t n_done;

	n = mr_frame_n_whole(frames, n);
	txq->is_short = n > 0;
	if (n == 0)
		return 0;
	ring = vhost_enter_tx(&txq->ring);
	if (ring == NULL)
		return 0;
	if (ring->is_armed)
		mri_vhost_ring_disarm(ring);
	n_done = ring->vq.is_packed ?
			 transmit(txq, ring, cache, frames, meta, n, true) :
			 transmit(txq, ring, cache, frames, meta, n, false);
	vhost_leave_tx(&txq->ring, ring);
	txq->is_short = n_done < n;
	if (n_done < n)
		mr_counter_add(&base->stats.events[MR_TX_EVENT_RING_FULL], 1);
	mr_counter_add(&base->stats.accepted, count_frames(frames, n_done));
	return n_done;
}
