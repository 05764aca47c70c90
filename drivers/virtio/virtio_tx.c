/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmit half of the virtio-net driver.
 *
 *     application --> descriptors --> device --> used entry --> caller's cache
 *
 * Descriptors are taken in ring order, in whatever order the device uses them:
 * [tail, head) is posted, bufs[] has the buffer to free for each, chains[] how
 * many descriptors a frame has. Used ones are freed from the tail, so a run of
 * plain frames that were used in order is freed straight from bufs[].
 *
 * A header precedes each frame. It is usually written into the frame's
 * headroom, so that the frame needs one descriptor: this requires a single
 * owner and enough room, both of which the caller's cache shows without
 * touching the page. mri_virtio_prepare() in virtio_frame.c does the rest.
 *
 * Bursts look for used descriptors only when n_lazy are posted: for a single
 * frame, that costs as much as sending it.
 *
 * If the device claims to have used what was not posted, the queue is broken,
 * and stops until mr_port_poll() recovers it.
 *
 * Source: virtio 1.2, 2.7.13, 2.8.21; 5.1.6.2 "Packet Transmission".
 */
#include "virtio.h"

/* ---- what the device has used ---- */

/* Mark a frame as used. Returns its descriptors; 0: no such frame is posted. */
static uint32_t mark_used(struct virtio_txq *txq, uint32_t place)
{
	const uint32_t mask = txq->vq.mask;
	uint32_t n;

	if (((place - txq->tail) & mask) >= txq->head - txq->tail)
		return 0;
	n = txq->chains[place & mask];
	if (n == 0 || n & VIRTIO_CHAIN_DONE)
		return 0;
	txq->chains[place & mask] |= VIRTIO_CHAIN_DONE;
	txq->n_odd++;
	return n;
}

/* Free all used frames at the tail. */
static void give_back_marked(struct virtio_txq *txq, struct mr_cache *cache)
{
	const uint32_t mask = txq->vq.mask;
	uint64_t addrs[MR_BURST_MAX];
	uint32_t n_addrs = 0, n_frames = 0;

	while (txq->tail != txq->head &&
	       txq->chains[txq->tail & mask] & VIRTIO_CHAIN_DONE) {
		const uint32_t n =
			txq->chains[txq->tail & mask] - VIRTIO_CHAIN_DONE;

		if (n_addrs + n > MR_BURST_MAX) {
			mr_frag_free_bulk(cache, addrs, n_addrs);
			n_addrs = 0;
		}
		for (uint32_t i = 0; i < n; i++, txq->tail++) {
			txq->chains[txq->tail & mask] = 1;
			if (txq->bufs[txq->tail & mask] != MR_ADDR_NONE)
				addrs[n_addrs++] = txq->bufs[txq->tail & mask];
		}
		txq->n_odd -= n > 1 ? 2 : 1;
		n_frames++;
	}
	mr_frag_free_bulk(cache, addrs, n_addrs);
	txq->n_frames -= n_frames;
	mr_counter_add(&txq->base.stats.completed, n_frames);
}

/*
 * Get the id of the next used entry, if any. In a split ring there are n_split
 * of them.
 */
static inline bool next_used(const struct virtio_txq *txq, uint32_t n_split,
			     const bool is_packed, uint32_t *ret_id)
{
	const struct virtio_vq *vq = &txq->vq;
	uint64_t word;

	if (!is_packed) {
		*ret_id = (uint32_t)virtio_split_used(vq, vq->n_used);
		return n_split > 0;
	}
	word = virtio_packed_load(vq, vq->n_used);
	*ret_id = virtio_packed_id(word);
	return virtio_packed_is_used(vq, vq->n_used, word);
}

/*
 * Frames of several descriptors, or used out of order. With IN_ORDER a used
 * entry includes all before it.
 */
__attribute__((noinline)) static void
reap_slow(struct virtio_txq *txq, struct mr_cache *cache, const bool is_packed)
{
	struct virtio_vq *vq = &txq->vq;
	uint32_t n_split = is_packed ? 0 : virtio_split_n_ready(vq);
	uint32_t next = txq->tail, id;

	if (n_split > txq->n_frames)
		txq->is_broken = true;
	while (!txq->is_broken && next_used(txq, n_split, is_packed, &id)) {
		uint32_t place = txq->is_in_order ? next & vq->mask : id, n, at;

		do {
			at = place;
			n = id > vq->mask || (!is_packed && n_split == 0) ?
				    0 :
				    mark_used(txq, at);
			if (n == 0) {
				txq->is_broken = true;
				break;
			}
			vq->n_used =
				(uint16_t)(vq->n_used + (is_packed ? n : 1));
			n_split -= !is_packed;
			next += n;
			place = (at + n) & vq->mask;
		} while (at != id);
	}
	give_back_marked(txq, cache);
}

/*
 * With IN_ORDER: how many of the n oldest frames one used descriptor of a
 * packed ring covers; 0 if it is not used, or covers more.
 */
static inline uint32_t n_in_batch(const struct virtio_txq *txq, uint32_t n)
{
	const struct virtio_vq *vq = &txq->vq;
	const uint64_t word = virtio_packed_load(vq, vq->n_used);
	const uint32_t last = virtio_packed_id(word) - (txq->tail & vq->mask);

	return virtio_packed_is_used(vq, vq->n_used, word) && last < n ?
		       last + 1 :
		       0;
}

/*
 * How many of the n oldest frames, of one descriptor each, were used in order:
 * a run up to the end of the ring.
 */
static inline uint32_t n_in_order(const struct virtio_txq *txq, uint32_t n,
				  const bool is_packed)
{
	const struct virtio_vq *vq = &txq->vq;
	const uint32_t mask = vq->mask, place = txq->tail & mask;
	const uint32_t at = vq->n_used & mask;
	const struct virtio_packed_desc *const packed = vq->packed + at;
	/* A packed ring has none. */
	const uint64_t *const used = is_packed ? NULL : vq->used_ring + at;
	/* The upper half of a used descriptor: flags and id. */
	const uint32_t flags = virtio_used_flags(vq, vq->n_used) << 16;
	const uint32_t both = VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL;
	const uint32_t flags_mask = both << 16 | UINT16_MAX;
	uint32_t i;

	n = n < mask + 1 - place ? n : mask + 1 - place;
	if (!is_packed && txq->is_in_order)
		return n;
	n = n < mask + 1 - at ? n : mask + 1 - at;
	if (txq->is_in_order)
		return n_in_batch(txq, n);
	for (i = 0; i < n; i++) {
		const uint64_t entry =
			is_packed ? __atomic_load_n(&packed[i].word,
						    __ATOMIC_ACQUIRE) :
				    __atomic_load_n(&used[i], __ATOMIC_RELAXED);

		if (is_packed ? ((uint32_t)(entry >> 32) & flags_mask) !=
					(flags | (place + i)) :
				(uint32_t)entry != place + i)
			break;
	}
	return i;
}

/* Free the n oldest frames, of one descriptor each: a run of bufs[]. */
static inline void give_back(struct virtio_txq *txq, struct mr_cache *cache,
			     uint32_t n)
{
	mr_frag_free_bulk(cache, txq->bufs + (txq->tail & txq->vq.mask), n);
	txq->vq.n_used = (uint16_t)(txq->vq.n_used + n);
	txq->tail += n;
	txq->n_frames -= n;
	mr_counter_add(&txq->base.stats.completed, n);
}

/* Free buffers of used frames to the caller's cache. */
static inline void reap(struct virtio_txq *txq, struct mr_cache *cache,
			const bool is_packed)
{
	const struct virtio_vq *vq = &txq->vq;
	uint32_t n_left = is_packed ? txq->n_frames : virtio_split_n_ready(vq);
	uint32_t n;

	if (txq->n_odd == 0 && n_left <= txq->n_frames)
		do { /* once or twice, if the ring wraps; or for each batch */
			n = n_in_order(txq, n_left, is_packed);
			if (n == 0)
				break;
			give_back(txq, cache, n);
			n_left -= n;
		} while ((txq->tail & vq->mask) == 0 || txq->is_in_order);
	/* Used in another way, or invalid. */
	if (n_left > 0 &&
	    (!is_packed ||
	     virtio_packed_is_used(vq, vq->n_used,
				   virtio_packed_load(vq, vq->n_used))))
		reap_slow(txq, cache, is_packed);
}

/* ---- what it is to send ---- */

/* One burst, counted at its end. */
struct burst {
	uint32_t n_posted; /* available entries: frames, or descriptors */
	uint32_t n_frames; /* that were taken */
	uint64_t n_bytes;
};

/*
 * How many of n entries are plain: whole frames, of a length that may be sent,
 * with room for a header. Entries with a whole page take no call.
 */
static inline uint32_t n_plain(const struct virtio_txq *txq,
			       const struct mr_cache *cache,
			       const struct mr_frame *frames, uint32_t n,
			       const uint32_t header_bytes)
{
	const struct mr_pages pages = mr_cache_pages(cache);
	const uint32_t least = VIRTIO_MIN_FRAME_BYTES;
	const uint32_t span =
		__atomic_load_n(&txq->max_plain_bytes, __ATOMIC_RELAXED) -
		least;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct mr_frame *frame = &frames[i];
		struct mr_room room;

		if (frame->flags & (MR_FRAME_MORE | MR_FRAME_CSUM_PARTIAL) ||
		    frame->len - least > span)
			break;
		if (mr_pages_room(&pages, frame, &room) &&
		    room.front_bytes >= header_bytes)
			continue;
		if (!mri_virtio_has_room(txq, cache, frame))
			break;
	}
	return i;
}

/*
 * The common case: the plain frames at the start of n entries go into a run up
 * to the end of the ring. Returns how many, and their bytes.
 */
static inline __attribute__((always_inline)) uint32_t
send_plain(struct virtio_txq *txq, const struct mr_cache *cache,
	   const struct mr_frame *frames, uint32_t n, uint32_t n_posted,
	   uint64_t *n_bytes, const struct virtio_tx_kind kind)
{
	const uint32_t head = txq->head, mask = txq->vq.mask;
	const uint32_t place = head & mask;
	uint32_t n_room = txq->vq.n_entries - (head - txq->tail);

	n_room = n_room < mask + 1 - place ? n_room : mask + 1 - place;
	n = n_plain(txq, cache, frames, n < n_room ? n : n_room,
		    kind.header_bytes);
	txq->head = head + n;
	txq->n_frames += n;

	/* Local copies: the stores below could alias any of them. */
	struct virtio_desc *const desc = txq->vq.desc + place;
	struct virtio_packed_desc *const packed = txq->vq.packed + place;
	uint16_t *const avail = txq->vq.avail->ring;
	const uint32_t at = txq->vq.n_avail + n_posted;
	uint64_t *const bufs = txq->bufs + place;
	uint8_t *const headers = txq->memory - kind.header_bytes;
	const uint64_t iova = txq->iova - kind.header_bytes;
	const uint64_t word = virtio_packed_word(
		kind.header_bytes, place, virtio_avail_flags(&txq->vq, head));

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t addr = frames[i].addr;
		const uint32_t len = frames[i].len;

		/* A header without offloads. */
		__builtin_memset(headers + addr, 0, kind.header_bytes);
		bufs[i] = addr;
		*n_bytes += len;
		if (kind.is_packed) {
			virtio_packed_store(&packed[i], iova + addr,
					    word + len + ((uint64_t)i << 32));
		} else {
			desc[i].addr = iova + addr;
			desc[i].len = len + kind.header_bytes;
			desc[i].flags = 0;
			avail[(at + i) & mask] = (uint16_t)(place + i);
		}
	}
	return n;
}

/* Post the pieces of a frame, for which there is room; the first one last. */
static void post_pieces(struct virtio_txq *txq, struct burst *burst,
			const struct virtio_piece *pieces, uint32_t n,
			const bool is_packed)
{
	const uint32_t head = txq->head, mask = txq->vq.mask;

	for (uint32_t i = n; i-- > 0;) {
		virtio_write_desc(&txq->vq, head + i, pieces[i].iova,
				  pieces[i].n_bytes, head & mask,
				  i + 1 < n ? VIRTIO_DESC_NEXT : 0, is_packed);
		txq->bufs[(head + i) & mask] = pieces[i].buf;
		txq->chains[(head + i) & mask] = 0;
	}
	txq->chains[head & mask] = (uint8_t)n;
	if (!is_packed)
		txq->vq.avail
			->ring[(txq->vq.n_avail + burst->n_posted) & mask] =
			(uint16_t)(head & mask);
	burst->n_posted += is_packed ? n : 1;
	txq->head += n;
	txq->n_frames++;
	txq->n_odd += n > 1;
}

/* A frame off the fast path. False: there may be no room for it. */
static bool send_slow(struct virtio_txq *txq, struct mr_cache *cache,
		      const struct mr_frame *frames, uint32_t n,
		      const struct mr_meta *meta, struct burst *burst,
		      const bool is_packed)
{
	const uint32_t n_room = txq->vq.n_entries - (txq->head - txq->tail);
	struct virtio_piece pieces[VIRTIO_MAX_CHAIN];
	uint32_t n_pieces;

	if (n <= MR_MAX_SEGS && n + 1 > n_room)
		return false;
	burst->n_frames++;
	burst->n_bytes += mr_frame_n_bytes(frames, n);
	n_pieces = mri_virtio_prepare(txq, cache, frames, n, meta,
				      txq->head & txq->vq.mask, pieces);
	if (n_pieces > 0)
		post_pieces(txq, burst, pieces, n_pieces, is_packed);
	return true;
}

/* After the plain frames at the start of a burst of n. Returns entries sent. */
__attribute__((noinline)) static uint32_t
send_rest(struct virtio_txq *txq, struct mr_cache *cache,
	  const struct mr_frame *frames, const struct mr_meta *meta, uint32_t n,
	  struct burst *burst, const struct virtio_tx_kind kind)
{
	uint32_t i = burst->n_frames;

	while (i < n) {
		uint32_t n_entries =
			send_plain(txq, cache, frames + i, n - i,
				   burst->n_posted, &burst->n_bytes, kind);

		burst->n_posted += n_entries;
		burst->n_frames += n_entries;
		i += n_entries;
		if (i == n || txq->head - txq->tail == txq->vq.n_entries)
			break;
		if (n_entries > 0)
			continue; /* the run may have ended with the ring */
		n_entries = mr_frame_n_entries(&frames[i]);
		if (!send_slow(txq, cache, &frames[i], n_entries,
			       meta != NULL ? &meta[i] : NULL, burst,
			       kind.is_packed))
			break;
		i += n_entries;
	}
	if (i < n)
		mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_RING_FULL],
			       1);
	return i;
}

static inline void submit(struct virtio_txq *txq, uint32_t n_posted,
			  uint32_t n_frames, uint64_t n_bytes,
			  const bool is_packed)
{
	struct mr_tx_stats *stats = &txq->base.stats;

	mr_counter_add(&stats->accepted, n_frames);
	mr_counter_add(&stats->bytes, n_bytes);
	if (n_posted > 0 &&
	    (is_packed ? virtio_packed_publish(&txq->vq, n_posted) :
			 virtio_split_publish(&txq->vq, n_posted)))
		mr_counter_add(&stats->events[MR_TX_EVENT_WAKEUP], 1);
}

/* Cold: the queue was armed, or is in another state: find out. */
__attribute__((noinline)) static uint32_t wake_up(struct virtio_txq *txq)
{
	const struct virtio_vq *vq = &txq->vq;
	uint32_t state = VIRTIO_LINKED;
	const bool is_linked = __atomic_compare_exchange_n(
		&txq->state, &state, VIRTIO_RUNS, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);

	/* The ring of a broken one belongs to mr_port_poll(). */
	if (virtio_is_over(state))
		return state;
	if (txq->is_armed)
		virtio_disable(&txq->vq);
	txq->is_armed = false;
	if (!is_linked)
		return state;
	virtio_ring_bell(vq, vq->is_packed ?
				     virtio_packed_next(vq, vq->n_avail) :
				     vq->n_avail);
	mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_WAKEUP], 1);
	return VIRTIO_RUNS;
}

static inline __attribute__((always_inline)) uint32_t
transmit_inside(struct mr_txq *base, struct mr_cache *cache,
		const struct mr_frame *frames, const struct mr_meta *meta,
		uint32_t n, const struct virtio_tx_kind kind)
{
	struct virtio_txq *txq = virtio_txq_of(base);
	uint64_t n_bytes = 0;
	uint32_t n_sent;

	n = mr_frame_n_whole(frames, n);
	if (txq->is_armed || __atomic_load_n(&txq->state, __ATOMIC_ACQUIRE)) {
		const uint32_t state = wake_up(txq);

		if (state == VIRTIO_GONE)
			return mr_txq_lose(base, cache, frames, n,
					   MR_TX_DROP_PORT_GONE);
		if (state == VIRTIO_BROKEN)
			return 0;
		if (state == VIRTIO_NO_LINK)
			n = 0;
	}
	if (n == 0 || txq->head - txq->tail + n > txq->n_lazy) {
		reap(txq, cache, kind.is_packed);
		if (txq->is_broken) {
			mri_virtio_txq_hand_over(txq);
			return 0;
		}
	}
	if (n == 0)
		return 0;
	n_sent = send_plain(txq, cache, frames, n, 0, &n_bytes, kind);
	if (n_sent < n) {
		struct burst burst = { n_sent, n_sent, n_bytes };

		n_sent = send_rest(txq, cache, frames, meta, n, &burst, kind);
		submit(txq, burst.n_posted, burst.n_frames, burst.n_bytes,
		       kind.is_packed);
		return n_sent;
	}
	submit(txq, n, n, n_bytes, kind.is_packed);
	return n;
}

static inline __attribute__((always_inline)) uint32_t
transmit(struct mr_txq *base, struct mr_cache *cache,
	 const struct mr_frame *frames, const struct mr_meta *meta, uint32_t n,
	 const struct virtio_tx_kind kind)
{
	struct virtio_vq *vq = &virtio_txq_of(base)->vq;

	virtio_enter(vq);
	n = transmit_inside(base, cache, frames, meta, n, kind);
	virtio_leave(vq);
	return n;
}

static uint32_t split(struct mr_txq *txq, struct mr_cache *cache,
		      const struct mr_frame *frames, const struct mr_meta *meta,
		      uint32_t n)
{
	return transmit(txq, cache, frames, meta, n,
			(struct virtio_tx_kind){ false, VIRTIO_HEADER_BYTES });
}

static uint32_t split_hash(struct mr_txq *txq, struct mr_cache *cache,
			   const struct mr_frame *frames,
			   const struct mr_meta *meta, uint32_t n)
{
	return transmit(
		txq, cache, frames, meta, n,
		(struct virtio_tx_kind){ false, VIRTIO_HASH_HEADER_BYTES });
}

static uint32_t packed(struct mr_txq *txq, struct mr_cache *cache,
		       const struct mr_frame *frames,
		       const struct mr_meta *meta, uint32_t n)
{
	return transmit(txq, cache, frames, meta, n,
			(struct virtio_tx_kind){ true, VIRTIO_HEADER_BYTES });
}

static uint32_t packed_hash(struct mr_txq *txq, struct mr_cache *cache,
			    const struct mr_frame *frames,
			    const struct mr_meta *meta, uint32_t n)
{
	return transmit(
		txq, cache, frames, meta, n,
		(struct virtio_tx_kind){ true, VIRTIO_HASH_HEADER_BYTES });
}

mr_tx_burst_fn *mri_virtio_tx_burst_of(struct virtio_tx_kind kind)
{
	if (kind.header_bytes == VIRTIO_HEADER_BYTES)
		return kind.is_packed ? packed : split;
	return kind.is_packed ? packed_hash : split_hash;
}

void mri_virtio_tx_take_back(struct virtio_txq *txq)
{
	for (; txq->tail != txq->head; txq->tail++) {
		const uint32_t place = txq->tail & txq->vq.mask;

		if (txq->bufs[place] != MR_ADDR_NONE)
			mr_pool_frag_free_bulk(txq->port->base.pool,
					       &txq->bufs[place], 1);
		txq->chains[place] = 1;
	}
	txq->head = txq->tail = 0;
	txq->n_frames = txq->n_odd = 0;
}
