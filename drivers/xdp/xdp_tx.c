/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmit half of the AF_XDP driver.
 *
 *     application --> tx ring --> kernel --> completion ring --> caller's cache
 *
 * Invariant: n_outstanding entries are posted and not completed, at most what
 * the completion ring holds; postings[] has them by chunk, so that closing the
 * queue takes back exactly its own references.
 *
 * Every entry is checked before it is posted: the kernel skips an invalid one,
 * and whether its buffer comes back depends on the kernel's version. What the
 * kernel would refuse but can be mended is reshaped (xdp_copy.c), the rest is a
 * named drop. Frame flags that the kernel does not know are masked out.
 *
 * In copy mode the kernel works inside sendto(): the kick. Its errno values are
 * those of drivers/xdp/README.md; none is waited for without bound.
 *
 * Source: linux/Documentation/networking/af_xdp.rst; net/xdp/xsk.c.
 */
#include <errno.h>
#include <sys/socket.h>

#include "xdp.h"

enum {
	/* Kicks of one burst, but for one more per frame that was lost. */
	MAX_KICKS = 8,
};

static void count_event(struct xdp_txq *txq, enum mr_tx_event event, uint64_t n)
{
	mr_counter_add(&txq->base.stats.events[event], n);
}

static void count_drop(struct xdp_txq *txq, enum mr_tx_drop drop, uint64_t n)
{
	mr_counter_add(&txq->base.stats.drops[drop], n);
}

/* Of the next n completed entries, those that end a frame. */
static uint32_t n_frames_reaped(struct xdp_txq *txq, uint32_t n)
{
	uint32_t n_frames = 0;

	if (!txq->has_sg)
		return n;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t place = (txq->n_reaped + i) & txq->tx.mask;

		n_frames += txq->ends[place / 64] >> (place % 64) & 1;
	}
	return n_frames;
}

/* A frame that the device took and lost is completed like any other. */
static void count_reaped(struct xdp_txq *txq, uint32_t n_frames)
{
	const uint32_t n_lost =
		txq->n_lost < n_frames ? txq->n_lost : n_frames;

	txq->n_lost -= n_lost;
	if (n_lost > 0)
		count_drop(txq, MR_TX_DROP_DEVICE, n_lost);
	mr_counter_add(&txq->base.stats.completed, n_frames - n_lost);
	mr_counter_add(&txq->base.stats.pending, (uint64_t)0 - n_frames);
}

/*
 * Completions of entries that we have posted; how many. A completion of
 * anything else would be somebody's page freed under him.
 */
static uint32_t keep_ours(struct xdp_txq *txq, uint64_t *addrs, uint32_t n)
{
	uint32_t n_ours = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t addr = addrs[i];

		if (addr >= txq->n_registered_bytes ||
		    txq->postings[xdp_posting(addr)] == 0)
			continue;
		txq->postings[xdp_posting(addr)]--;
		addrs[n_ours++] = addr;
	}
	return n_ours;
}

/* Completed buffers to the caller's cache. */
static void reap(struct xdp_txq *txq, struct mr_cache *cache)
{
	uint64_t addrs[MR_BURST_MAX];
	uint32_t n;

	while (txq->n_outstanding > 0) {
		n = xring_peek_addrs(&txq->comp, addrs, MR_BURST_MAX);
		if (n == 0)
			return;
		xring_release(&txq->comp, n);
		n = keep_ours(txq, addrs, n);
		mr_frag_free_bulk(cache, addrs, n);
		count_reaped(txq, n_frames_reaped(txq, n));
		txq->n_reaped += n;
		txq->n_outstanding -= n;
	}
}

/*
 * Make the kernel send what is in the ring. It may stop early: its budget is
 * used up, the device is full, a frame was lost. Go on while that helps.
 */
static void kick(struct xdp_txq *txq, struct mr_cache *cache)
{
	/* Each loss takes a descriptor at least, so there are at most so many. */
	uint32_t n_may_be_lost = xring_n_left(&txq->tx);
	uint32_t n_kicks = 0;

	txq->is_stalled = false;
	for (;;) {
		const uint32_t n_before = xring_n_left(&txq->tx);
		ssize_t sent;

		if (n_before == 0 || !xring_needs_wakeup(&txq->tx) ||
		    n_kicks == MAX_KICKS)
			return;
		sent = sendto(txq->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
		count_event(txq, MR_TX_EVENT_WAKEUP, 1);
		if (sent < 0 && errno == EBUSY && n_may_be_lost > 0) {
			txq->n_lost++; /* dropped and completed; go on */
			n_may_be_lost--;
			continue;
		}
		n_kicks++;
		if (sent < 0 && (errno == ENXIO || errno == ENETDOWN)) {
			/* A zero-copy driver says ENXIO in a reset, too. */
			if (errno == ENXIO && txq->port->n_zc_queues == 0)
				__atomic_store_n(&txq->port->is_gone, 1,
						 __ATOMIC_RELAXED);
			txq->is_stalled = true;
			return;
		}
		if (sent < 0)
			count_event(txq, MR_TX_EVENT_AGAIN, 1);
		if (txq->port->n_zc_queues > 0)
			return; /* the driver works on its own from here */
		if (xring_n_left(&txq->tx) == n_before) {
			/* No room for completions, or the device is full. */
			reap(txq, cache);
			if (n_kicks > 1 || txq->n_outstanding == 0)
				return;
		}
	}
}

/* Whether the kernel takes this entry as it lies. */
static inline bool is_plain(const struct xdp_txq *txq,
			    const struct mr_frame *entry)
{
	const uint64_t in_chunk = entry->addr & txq->chunk_mask;

	return entry->len != 0 && in_chunk >= txq->n_front_bytes &&
	       in_chunk + entry->len <= (uint64_t)txq->chunk_mask + 1 &&
	       entry->addr < txq->n_registered_bytes &&
	       txq->postings[xdp_posting(entry->addr)] != UINT8_MAX;
}

static inline void post(struct xdp_txq *txq, uint32_t place,
			const struct mr_frame *entry, uint32_t options)
{
	struct mr_frame *descriptor = xring_frame_at(&txq->tx, place);

	descriptor->addr = entry->addr;
	descriptor->len = entry->len;
	descriptor->flags = options;
	txq->postings[xdp_posting(entry->addr)]++;
	if (txq->has_sg) {
		const uint32_t at = (txq->n_posted + place) & txq->tx.mask;
		const uint64_t bit = UINT64_C(1) << (at % 64);

		if (options & XSK_PKT_CONTD)
			txq->ends[at / 64] &= ~bit;
		else
			txq->ends[at / 64] |= bit;
	}
}

/* Room for descriptors, with every completion certain of its place too. */
static uint32_t n_room(struct xdp_txq *txq, uint32_t n)
{
	const uint32_t n_free = txq->tx.n_entries - txq->n_outstanding;

	return xring_n_room(&txq->tx, n < n_free ? n : n_free);
}

/* Cold: a frame that is not one plain entry. Returns the entries to post. */
__attribute__((noinline)) static uint32_t
prepare(struct xdp_txq *txq, struct mr_cache *cache, const struct mr_frame *in,
	uint32_t n, const struct mr_meta *meta, struct mr_frame out[MR_MAX_SEGS])
{
	const bool is_partial = in[0].flags & MR_FRAME_CSUM_PARTIAL;
	bool is_fit = n <= MR_MAX_SEGS && (n == 1 || txq->has_sg) &&
		      mr_frame_n_bytes(in, n) >= XDP_MIN_FRAME_BYTES;

	for (uint32_t i = 0; i < n && is_fit; i++)
		is_fit = is_plain(txq, &in[i]) &&
			 (!is_partial || mr_frame_is_sole(cache, &in[i]));
	if (is_fit) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = in[i];
	} else {
		n = mri_xdp_reshape(txq, cache, in, n, out);
	}
	/* What the kernel would take for a request of ours, or for invalid. */
	for (uint32_t i = 0; i < n; i++)
		out[i].flags &= MR_FRAME_MORE;
	if (n > 0 && is_partial)
		mri_xdp_csum_send(txq, out, meta);
	return n;
}

/* The device is no more: frames are taken and lost, by name. */
static uint32_t drop_all(struct xdp_txq *txq, struct mr_cache *cache,
			 const struct mr_frame *frames, uint32_t n)
{
	const uint32_t n_frames = mr_frame_n_frames(frames, n);

	mr_frame_free_bulk(cache, frames, n);
	mr_counter_add(&txq->base.stats.accepted, n_frames);
	mr_counter_add(&txq->base.stats.bytes,
		       mr_frame_n_bytes(frames, n));
	count_drop(txq, MR_TX_DROP_PORT_GONE, n_frames);
	return n;
}

/* What one burst posts, counted once at its end. */
struct burst {
	uint32_t n_room;
	uint32_t n_descriptors;
	uint32_t n_posted_frames;
	uint32_t n_frames;
	uint64_t n_bytes;
};

/* One frame of n entries. False: no room for it now. */
static bool send_frame(struct xdp_txq *txq, struct mr_cache *cache,
		       const struct mr_frame *frames, uint32_t n,
		       const struct mr_meta *meta, struct burst *burst)
{
	struct mr_frame out[MR_MAX_SEGS];
	uint32_t n_out;

	/* Reshaping may need as many descriptors as a frame can have. */
	if (burst->n_room - burst->n_descriptors <
	    (n > MR_MAX_SEGS ? 0u : (uint32_t)MR_MAX_SEGS))
		return false;
	burst->n_frames++;
	burst->n_bytes += mr_frame_n_bytes(frames, n);
	if (mr_frame_n_bytes(frames, n) >
	    __atomic_load_n(&txq->port->mtu_bytes, __ATOMIC_RELAXED) +
		    XDP_LINK_BYTES) {
		count_drop(txq, MR_TX_DROP_TOO_LONG, 1);
		mr_frame_free_bulk(cache, frames, n);
		return true;
	}
	n_out = prepare(txq, cache, frames, n, meta, out);
	for (uint32_t i = 0; i < n_out; i++)
		post(txq, burst->n_descriptors++, &out[i],
		     out[i].flags & (XSK_PKT_CONTD | XSK_TX_METADATA));
	burst->n_posted_frames += n_out > 0;
	return true;
}

static void submit(struct xdp_txq *txq, const struct burst *burst)
{
	xring_submit(&txq->tx, burst->n_descriptors);
	txq->n_posted += burst->n_descriptors;
	txq->n_outstanding += burst->n_descriptors;
	mr_counter_add(&txq->base.stats.accepted, burst->n_frames);
	mr_counter_add(&txq->base.stats.bytes, burst->n_bytes);
	mr_counter_add(&txq->base.stats.pending, burst->n_posted_frames);
}

uint32_t mri_xdp_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			  const struct mr_frame *frames,
			  const struct mr_meta *meta, uint32_t n)
{
	struct xdp_txq *txq = xdp_txq_of(base);
	const uint32_t max_bytes =
		__atomic_load_n(&txq->port->mtu_bytes, __ATOMIC_RELAXED) +
		XDP_LINK_BYTES;
	struct burst burst = { 0 };
	uint32_t i = 0;

	n = mr_frame_n_whole(frames, n);
	if (__atomic_load_n(&txq->port->is_gone, __ATOMIC_RELAXED))
		return drop_all(txq, cache, frames, n);
	reap(txq, cache);
	burst.n_room = n_room(txq, txq->tx.n_entries);

	while (i < n) {
		const struct mr_frame *frame = &frames[i];

		/* Nearly all: one entry that goes out as it lies. */
		if ((frame->flags & (MR_FRAME_MORE | MR_FRAME_CSUM_PARTIAL)) ==
			    0 &&
		    frame->len <= max_bytes && frame->len >= XDP_MIN_FRAME_BYTES &&
		    is_plain(txq, frame)) {
			if (burst.n_descriptors == burst.n_room)
				break;
			post(txq, burst.n_descriptors++, frame, 0);
			burst.n_posted_frames++;
			burst.n_frames++;
			burst.n_bytes += frame->len;
			i++;
			continue;
		}
		const uint32_t n_entries = mr_frame_n_entries(frame);

		if (!send_frame(txq, cache, frame, n_entries,
				meta != NULL ? &meta[i] : NULL, &burst))
			break;
		i += n_entries;
	}
	if (burst.n_frames > 0)
		submit(txq, &burst);
	if (i < n)
		count_event(txq, MR_TX_EVENT_RING_FULL, 1);
	if (txq->n_outstanding > 0) {
		kick(txq, cache);
		reap(txq, cache);
	}
	return i;
}

int mri_xdp_tx_arm(struct mr_queue *queue)
{
	const struct xdp_txq *txq = (const struct xdp_txq *)queue;

	/* A device that is down keeps its entries: waiting for them is idle. */
	return txq->n_outstanding > 0 && !txq->is_stalled;
}

void mri_xdp_tx_take_back(struct xdp_txq *txq)
{
	const uint64_t n_places =
		xdp_posting(txq->port->n_registered_bytes);

	for (uint64_t i = 0; i < n_places; i++) {
		const uint64_t addr = i << XDP_POSTING_SHIFT;

		for (; txq->postings[i] > 0; txq->postings[i]--)
			mr_pool_frag_free_bulk(txq->port->base.pool, &addr, 1);
	}
	txq->n_outstanding = 0;
}
