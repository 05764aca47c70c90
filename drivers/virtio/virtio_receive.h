/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive half of the virtio-net driver; virtio_rx.c instantiates its bursts.
 *
 *     caller's cache --> descriptor --> device --> used entry --> application
 *
 * Invariant, from open to close: every descriptor of the ring is posted, with
 * the buffer that bufs[] has for its id. A burst takes a used entry only if it
 * can post a fresh buffer with the same descriptor; so the ring is never short
 * of buffers, and any id that a device makes up names a buffer that we may
 * deliver. Used and available numbers are always a lap apart.
 *
 * The device writes a header before the data, so a buffer is posted from that
 * many bytes before the end of the pool's headroom. Headers are read only if
 * they can matter: see struct virtio_rx_kind. Each kind, on each ring, is an
 * instance of receive() with constant arguments.
 *
 * A long frame has several used buffers, whose number is in the header of the
 * first. They stay in the ring until the last one has come.
 *
 * With IN_ORDER a device may mark only the first place of a batch as used, with
 * the id of the last; the others are full. If frames can be that long, such a
 * batch is expanded in the ring itself, and then read like any other.
 *
 * Source: virtio 1.2, 2.7.8, 2.7.9, 2.8.8, 2.8.9; 5.1.6.4 "Processing of
 * Incoming Packets".
 */
#ifndef VIRTIO_VIRTIO_RECEIVE_H
#define VIRTIO_VIRTIO_RECEIVE_H

#include "virtio.h"
#include "virtio_header.h"

/* A buffer that the device returns. */
struct used {
	uint32_t id;
	uint32_t n_bytes; /* written, header included */
};

static inline struct used used_of(uint64_t entry, const bool is_packed)
{
	if (is_packed)
		return (struct used){ virtio_packed_id(entry),
				      (uint32_t)entry };
	return (struct used){ (uint32_t)entry, (uint32_t)(entry >> 32) };
}

/*
 * Read a packed descriptor, which is used if its upper half has these flags. An
 * unused one gets an impossible id.
 */
static inline struct used used_packed(const struct virtio_packed_desc *desc,
				      uint32_t flags)
{
	const uint32_t both = VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL;
	const uint64_t word = __atomic_load_n(&desc->word, __ATOMIC_ACQUIRE);

	return (struct used){ ((uint32_t)(word >> 32) ^ flags) &
				      (both << 16 | UINT16_MAX),
			      (uint32_t)word };
}

static inline struct used used_split(const uint64_t *entry)
{
	return used_of(__atomic_load_n(entry, __ATOMIC_RELAXED), false);
}

/* The used entry of this number; in a packed ring, if it is used. */
static inline struct used load_used(const struct virtio_vq *vq, uint32_t number,
				    const bool is_packed)
{
	const uint32_t place = number & vq->mask;

	return used_of(__atomic_load_n(is_packed ? &vq->packed[place].word :
						   &vq->used_ring[place],
				       __ATOMIC_RELAXED),
		       is_packed);
}

static void store_used(const struct virtio_vq *vq, uint32_t number,
		       struct used used, bool is_packed)
{
	if (is_packed)
		__atomic_store_n(
			&vq->packed[number & vq->mask].word,
			virtio_packed_word(used.n_bytes, used.id,
					   virtio_used_flags(vq, number)),
			__ATOMIC_RELAXED);
	else
		__atomic_store_n(&vq->used_ring[number & vq->mask],
				 used.id | (uint64_t)used.n_bytes << 32,
				 __ATOMIC_RELAXED);
}

/*
 * Cold: expand the batch that begins at this number, of at most a lap. All but
 * its last buffer are full, so there is none unless frames can be that long.
 * Anything else is left for the reader of the entry, who breaks off.
 */
__attribute__((noinline)) static void
write_out_batch(struct virtio_rxq *rxq, uint32_t number, bool is_packed)
{
	const struct virtio_vq *vq = &rxq->vq;
	const struct used last = load_used(vq, number, is_packed);
	const uint32_t n = (last.id - number) & vq->mask;

	if (last.id > vq->mask ||
	    !__atomic_load_n(&rxq->has_batches, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < n; i++)
		store_used(vq, number + i,
			   (struct used){ (number + i) & vq->mask,
					  rxq->post_bytes },
			   is_packed);
	store_used(vq, number + n, last, is_packed);
}

/* A used entry; in a split ring, expands batches. */
static inline struct used look(struct virtio_rxq *rxq, uint32_t number,
			       const struct virtio_rx_kind kind)
{
	struct used used = load_used(&rxq->vq, number, kind.is_packed);

	if (kind.is_in_order && !kind.is_packed &&
	    used.id != (number & rxq->vq.mask)) {
		write_out_batch(rxq, number, false);
		used = load_used(&rxq->vq, number, false);
	}
	return used;
}

/* The device made up an id: from here on, it cannot be trusted. */
static void break_off(struct virtio_rxq *rxq)
{
	mr_counter_add(&rxq->base.stats.drops[MR_RX_DROP_INVALID], 1);
	rxq->is_broken = true;
}

/* With IN_ORDER, the device may leave some out: expand batches. */
static uint32_t n_ready_in_order(struct virtio_rxq *rxq, uint32_t n)
{
	const struct virtio_vq *vq = &rxq->vq;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t number = vq->n_used + i;
		const uint64_t word = virtio_packed_load(vq, number);

		if (!virtio_packed_is_used(vq, number, word))
			break;
		if (virtio_packed_id(word) != (number & vq->mask))
			write_out_batch(rxq, number, true);
	}
	return i;
}

/*
 * The number of used buffers, at most n, and at most a ring of them. For a
 * packed ring without IN_ORDER it is a guess: the reader checks each one.
 */
static inline uint32_t n_ready(struct virtio_rxq *rxq, uint32_t n,
			       const struct virtio_rx_kind kind)
{
	const struct virtio_vq *vq = &rxq->vq;
	uint32_t n_used;

	if (kind.is_packed) {
		n = n < vq->n_entries ? n : vq->n_entries;
		return kind.is_in_order ? n_ready_in_order(rxq, n) :
					  virtio_packed_n_likely(vq, n);
	}
	n_used = virtio_split_n_ready(vq);
	if (n_used > vq->n_entries) {
		break_off(rxq);
		mri_virtio_rxq_hand_over(rxq);
		return 0;
	}
	return n_used < n ? n_used : n;
}

/* Of a packed descriptor to post again: its whole word but the id. */
static inline uint64_t fresh_word(const struct virtio_rxq *rxq, uint32_t number)
{
	const struct virtio_vq *vq = &rxq->vq;

	return virtio_packed_word(
		rxq->post_bytes, 0,
		virtio_avail_flags(vq, number + vq->n_entries) |
			VIRTIO_DESC_WRITE);
}

static inline bool are_used(const struct virtio_rxq *rxq, uint32_t number,
			    uint32_t n, const struct virtio_rx_kind kind)
{
	return !kind.is_packed || virtio_packed_are_used(&rxq->vq, number, n);
}

/* Post the descriptor of a used entry again, with this buffer. */
static void repost(struct virtio_rxq *rxq, uint32_t number, uint32_t id,
		   uint64_t buf, const struct virtio_rx_kind kind)
{
	struct virtio_vq *vq = &rxq->vq;
	const uint32_t place = number & vq->mask;

	rxq->bufs[id] = buf;
	if (!kind.is_packed) {
		vq->desc[id].addr = buf + rxq->iova;
		vq->avail->ring[place] = (uint16_t)id;
		return;
	}
	virtio_packed_store(&vq->packed[place], buf + rxq->iova,
			    fresh_word(rxq, number) | (uint64_t)id << 32);
}

/* The header of the buffer posted under an id. */
static inline const struct virtio_header *
header_of(const struct virtio_rxq *rxq, uint32_t id)
{
	return (const void *)(rxq->memory + rxq->bufs[id] + rxq->post_offset);
}

/* Read the header of a frame whose first buffer has n_bytes of data. */
static void read_meta(const struct virtio_rxq *rxq,
		      const struct virtio_header *header, uint32_t n_bytes,
		      struct mr_meta *meta)
{
	virtio_header_meta(header, n_bytes, meta);
	if (rxq->has_hash && header->hash_report != 0) {
		meta->valid |= MR_META_RSS_HASH;
		meta->rss_hash = header->hash;
		meta->hash_type =
			header->hash_report < VIRTIO_N_HASH_TYPES ?
				virtio_hash_types[header->hash_report] :
				0;
	}
}

/* Fill in the metadata of the frames of n received entries, if wanted. */
__attribute__((noinline)) static void fill_meta(const struct virtio_rxq *rxq,
						const struct mr_frame *frames,
						struct mr_meta *meta,
						uint32_t n, bool has_headers)
{
	bool is_first = true;

	for (uint32_t i = 0; i < n; i++) {
		const struct virtio_header *header =
			(const void *)(rxq->memory + frames[i].addr -
				       rxq->header_bytes);

		meta[i].valid = 0;
		if (has_headers && is_first)
			read_meta(rxq, header, frames[i].len, &meta[i]);
		is_first = !(frames[i].flags & MR_FRAME_MORE);
	}
}

/* Whether the header is of a single-buffer frame; and its flags. */
static inline bool is_plain(const uint8_t *bytes, const uint8_t *later,
			    uint32_t *ret_flags,
			    const struct virtio_rx_kind kind)
{
	const struct virtio_header *header = (const void *)bytes;

	__builtin_prefetch(later);
	*ret_flags = virtio_header_flags(header);
	return !kind.is_merged || header->n_buffers == 1;
}

/*
 * The common case: single-buffer frames at the start of n used buffers, for as
 * many fresh ones, in a run up to the end of the ring. Returns how many, up to
 * the first other frame.
 */
static inline __attribute__((always_inline)) uint32_t
take_plain(struct virtio_rxq *rxq, uint32_t number, uint32_t n,
	   const uint64_t *fresh, struct mr_frame *frames, uint64_t *n_bytes,
	   const struct virtio_rx_kind kind)
{
	/* Local copies: the stores below could alias any of them. */
	const uint32_t mask = rxq->vq.mask, place = number & mask;
	struct virtio_packed_desc *const packed = rxq->vq.packed + place;
	struct virtio_desc *const desc = rxq->vq.desc;
	const uint64_t *const ring =
		kind.is_packed ? NULL : rxq->vq.used_ring + place;
	uint16_t *const avail = rxq->vq.avail->ring + place;
	uint64_t *const bufs = rxq->bufs;
	const uint64_t iova = rxq->iova;
	const uint32_t header_bytes = rxq->header_bytes;
	const uint32_t data_offset = rxq->post_offset + header_bytes;
	const uint32_t least = VIRTIO_MIN_FRAME_BYTES;
	const uint32_t span = rxq->post_bytes - header_bytes - least;
	const uint8_t *const headers = rxq->memory + rxq->post_offset;
	const uint64_t word = fresh_word(rxq, number);
	const uint32_t used_flags = virtio_used_flags(&rxq->vq, number) << 16;
	uint32_t i;

	n = n < mask + 1 - place ? n : mask + 1 - place;
	for (i = 0; i < n; i++) {
		const struct used used =
			kind.is_packed ? used_packed(&packed[i], used_flags) :
					 used_split(&ring[i]);
		const uint32_t id = used.id;
		const uint32_t len = used.n_bytes - header_bytes;
		uint32_t flags = 0;
		uint64_t buf;

		if ((kind.is_in_order ? id != place + i : id > mask) ||
		    len - least > span)
			break;
		buf = bufs[id];
		/* Later ones have this id while order is kept. */
		if (kind.has_headers &&
		    !is_plain(headers + buf,
			      headers + bufs[(place + i + 4) & mask], &flags,
			      kind))
			break;
		frames[i].addr = buf + data_offset;
		frames[i].len = len;
		frames[i].flags = flags;
		*n_bytes += len;
		bufs[id] = fresh[i];
		if (kind.is_packed) {
			virtio_packed_store(&packed[i], fresh[i] + iova,
					    word | (uint64_t)id << 32);
		} else {
			desc[id].addr = fresh[i] + iova;
			/* In order, each keeps its place. */
			if (!kind.is_in_order)
				avail[i] = (uint16_t)id;
		}
	}
	return i;
}

struct taken {
	uint32_t n_buffers; /* reposted; 0: look again later */
	uint32_t n_entries; /* for the application */
	uint32_t n_bytes;
};

/*
 * Take a frame of n_buffers, as the device claims; n used ones are there, and
 * as many fresh ones and entries.
 */
static struct taken take_merged(struct virtio_rxq *rxq, uint32_t number,
				uint32_t n_buffers, uint32_t n, uint64_t *fresh,
				struct mr_frame *frames,
				const struct virtio_rx_kind kind)
{
	struct taken taken = { .n_buffers = n_buffers };
	bool is_valid = true;

	if (n_buffers > MR_MAX_SEGS && n_buffers <= rxq->vq.n_entries) {
		rxq->n_skip = n_buffers;
		mr_counter_add(&rxq->base.stats.drops[MR_RX_DROP_TOO_LONG], 1);
		return (struct taken){ 0 };
	}
	if (n_buffers == 0 || n_buffers > rxq->vq.n_entries) {
		is_valid = false;
		taken.n_buffers = 1;
	}
	if (taken.n_buffers > n ||
	    !are_used(rxq, number, taken.n_buffers, kind))
		return (struct taken){ 0 };
	for (uint32_t i = 0; i < taken.n_buffers; i++) {
		const struct used used = look(rxq, number + i, kind);
		const uint32_t skip = i == 0 ? rxq->header_bytes : 0;
		uint64_t buf;

		if (used.id > rxq->vq.mask) {
			break_off(rxq);
			return (struct taken){ .n_buffers = i };
		}
		is_valid &=
			used.n_bytes > skip && used.n_bytes <= rxq->post_bytes;
		/* One by one: the device may repeat an id. */
		buf = rxq->bufs[used.id];
		repost(rxq, number + i, used.id, fresh[i], kind);
		fresh[i] = buf; /* for the next frame, if this one is bad */
		frames[i].addr = buf + rxq->post_offset + skip;
		frames[i].len = used.n_bytes - skip;
		frames[i].flags = MR_FRAME_MORE;
		taken.n_bytes += used.n_bytes - skip;
	}
	if (!is_valid) {
		mr_counter_add(&rxq->base.stats.drops[MR_RX_DROP_INVALID], 1);
		taken.n_bytes = 0;
		return taken;
	}
	frames[0].flags |= virtio_header_flags(
		(const void *)(rxq->memory + frames[0].addr -
			       rxq->header_bytes));
	frames[n_buffers - 1].flags &= ~(uint32_t)MR_FRAME_MORE;
	taken.n_entries = n_buffers;
	return taken;
}

/*
 * The slow path: the first of a batch, a frame of several buffers, or an
 * invalid entry. Expands a batch, so that later looks find single entries.
 */
__attribute__((noinline)) static struct taken
take_slow(struct virtio_rxq *rxq, uint32_t number, uint32_t n, uint64_t *fresh,
	  struct mr_frame *frames, const struct virtio_rx_kind kind)
{
	const bool is_used = are_used(rxq, number, 1, kind);
	const struct used used = look(rxq, number, kind);
	struct taken taken = { .n_buffers = 1, .n_entries = 1 };
	uint64_t n_bytes = 0;

	if (!is_used)
		return (struct taken){ 0 };
	if (used.id > rxq->vq.mask ||
	    (kind.is_in_order && used.id != (number & rxq->vq.mask))) {
		break_off(rxq);
		return (struct taken){ 0 };
	}
	if (kind.is_merged) {
		const uint32_t n_buffers = header_of(rxq, used.id)->n_buffers;

		if (n_buffers != 1)
			return take_merged(rxq, number, n_buffers, n, fresh,
					   frames, kind);
	}
	if (take_plain(rxq, number, 1, fresh, frames, &n_bytes, kind) == 0) {
		repost(rxq, number, used.id, rxq->bufs[used.id], kind);
		mr_counter_add(&rxq->base.stats.drops[MR_RX_DROP_INVALID], 1);
		return (struct taken){ .n_buffers = 1 };
	}
	taken.n_bytes = (uint32_t)n_bytes;
	return taken;
}

/* Make n descriptors, with old or new buffers, available to the device. */
static inline void publish(struct virtio_rxq *rxq, uint32_t n,
			   const struct virtio_rx_kind kind)
{
	struct virtio_vq *vq = &rxq->vq;
	bool is_rung;

	vq->n_used = (uint16_t)(vq->n_used + n);
	is_rung = kind.is_packed ? virtio_packed_publish(vq, n) :
				   virtio_split_publish(vq, n);
	if (is_rung)
		mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_WAKEUP], 1);
}

/* Post the buffers of the rest of a frame that was too long again. */
static void skip(struct virtio_rxq *rxq, uint32_t n,
		 const struct virtio_rx_kind kind)
{
	uint32_t i;

	n = rxq->n_skip < n ? rxq->n_skip : n;
	for (i = 0; i < n && are_used(rxq, rxq->vq.n_used + i, 1, kind); i++) {
		const struct used used = look(rxq, rxq->vq.n_used + i, kind);

		if (used.id > rxq->vq.mask) {
			break_off(rxq);
			break;
		}
		repost(rxq, rxq->vq.n_used + i, used.id, rxq->bufs[used.id],
		       kind);
	}
	rxq->n_skip -= i;
	publish(rxq, i, kind);
	if (rxq->is_broken)
		mri_virtio_rxq_hand_over(rxq);
}

/* Post n_taken used buffers again, and count what came in them. */
static inline void deliver(struct virtio_rxq *rxq, uint32_t n_taken,
			   uint32_t n_frames, uint64_t n_bytes,
			   const struct virtio_rx_kind kind)
{
	mr_counter_add(&rxq->base.stats.bytes, n_bytes);
	mr_counter_add(&rxq->base.stats.delivered, n_frames);
	if (n_taken > 0)
		publish(rxq, n_taken, kind);
}

/* Cold: the queue is not in its normal state. False: nothing to receive. */
__attribute__((noinline)) static bool wake_up(struct virtio_rxq *rxq)
{
	/* The ring of a broken one belongs to mr_port_poll(). */
	if (__atomic_load_n(&rxq->state, __ATOMIC_ACQUIRE) != VIRTIO_RUNS)
		return false;
	virtio_disable(&rxq->vq);
	rxq->is_armed = false;
	return true;
}

/* One burst: n fresh buffers, and counts of used ones. */
struct burst {
	uint32_t n;
	uint32_t n_taken;   /* used buffers, posted again */
	uint32_t n_entries; /* for the application; uses up fresh ones */
	uint32_t n_frames;
	uint64_t n_bytes;
};

/* After the plain frames at the start of a burst. */
__attribute__((noinline)) static void
take_rest(struct virtio_rxq *rxq, struct mr_cache *cache, uint64_t *fresh,
	  struct mr_frame *frames, struct burst *burst,
	  const struct virtio_rx_kind kind)
{
	while (!rxq->is_broken && burst->n_taken < burst->n) {
		const uint32_t at = burst->n_entries;
		const uint32_t n_left = burst->n - burst->n_taken;
		const uint32_t number = rxq->vq.n_used + burst->n_taken;
		const uint32_t n_plain =
			take_plain(rxq, number, n_left, fresh + at, frames + at,
				   &burst->n_bytes, kind);
		struct taken slow = { n_plain, n_plain, 0 };

		burst->n_frames += n_plain;
		if (n_plain == 0) {
			slow = take_slow(rxq, number, n_left, fresh + at,
					 frames + at, kind);
			burst->n_frames += slow.n_entries > 0;
		}
		if (slow.n_buffers == 0)
			break;
		burst->n_taken += slow.n_buffers;
		burst->n_entries += slow.n_entries;
		burst->n_bytes += slow.n_bytes;
	}
	mr_frag_free_bulk(cache, fresh + burst->n_entries,
			  burst->n - burst->n_entries);
}

static inline __attribute__((always_inline)) uint32_t
receive(struct mr_rxq *base, struct mr_cache *cache, struct mr_frame *frames,
	struct mr_meta *meta, uint32_t n, const struct virtio_rx_kind kind)
{
	struct virtio_rxq *rxq = virtio_rxq_of(base);
	uint64_t fresh[MR_BURST_MAX];
	struct burst burst = { 0 };
	uint64_t n_bytes = 0;
	uint32_t n_fresh;

	if ((rxq->is_armed || __atomic_load_n(&rxq->state, __ATOMIC_ACQUIRE)) &&
	    !wake_up(rxq))
		return 0;
	n = n_ready(rxq, n, kind);
	if (n == 0)
		return 0;
	if (kind.is_merged && rxq->n_skip > 0) {
		skip(rxq, n, kind);
		return 0;
	}
	n_fresh = mr_frag_alloc_bulk(cache, fresh, n, rxq->page_bytes);
	if (n_fresh < n)
		mr_counter_add(&base->stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
	n = take_plain(rxq, rxq->vq.n_used, n_fresh, fresh, frames, &n_bytes,
		       kind);
	if (n < n_fresh) {
		burst = (struct burst){ n_fresh, n, n, n, n_bytes };
		take_rest(rxq, cache, fresh, frames, &burst, kind);
		deliver(rxq, burst.n_taken, burst.n_frames, burst.n_bytes,
			kind);
		n = burst.n_entries;
		if (rxq->is_broken)
			mri_virtio_rxq_hand_over(rxq);
	} else {
		deliver(rxq, n, n, n_bytes, kind);
	}
	if (meta != NULL)
		fill_meta(rxq, frames, meta, n, kind.has_headers);
	return n;
}

#endif
