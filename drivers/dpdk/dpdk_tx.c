/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmit half: frames to mbufs.
 *
 *     application --> mbuf --> device's tx ring --> view --> caller's cache
 *
 * A frame of one entry, in one place, with one owner uses the header of its
 * place: nobody else can have that header, since it comes with a reference to
 * its page. All others go through dpdk_shape.c.
 *
 * If nobody can clone such a frame, it is a direct mbuf, which drivers free in
 * fewer steps. Cloning a direct mbuf would access its reference count before
 * the buffer, where the previous page ends.
 *
 * Frames are gathered and handed to the device together. The caller keeps the
 * rest, from the first frame that the device does not take; changes to those
 * frames are undone.
 */
#include "dpdk.h"

/* Frames on their way to the device, in order. */
struct batch {
	uint32_t n;         /* mbufs */
	uint32_t n_entries; /* of the caller's array */
	uint32_t n_notes;   /* of those that were shaped */
	bool has_offloads;  /* the device must check them first */
	struct rte_mbuf *mbufs[MR_BURST_MAX];
	struct dpdk_note notes[MR_BURST_MAX];
};

static void count_accepted(struct dpdk_txq *txq, uint64_t n_frames,
			   uint64_t n_bytes)
{
	mr_counter_add(&txq->base.stats.accepted, n_frames);
	mr_counter_add(&txq->base.stats.bytes, n_bytes);
}

static void count_completed(struct dpdk_txq *txq, const struct dpdk_call *call)
{
	mr_counter_add(&txq->base.stats.completed, call->n_done);
	txq->n_inner -= call->n_inner;
}

/* Offer n mbufs to the device. Returns how many it took. */
static uint32_t offer(struct dpdk_txq *txq, struct mr_cache *cache,
		      struct rte_mbuf **mbufs, uint32_t n)
{
	struct dpdk_call call;
	uint32_t n_sent;

	dpdk_call_begin(&call, txq->view, cache, txq->tag, txq->extras);
	n_sent = rte_eth_tx_burst(txq->port_id, (uint16_t)txq->base.queue.idx,
				  mbufs, (uint16_t)n);
	dpdk_call_end(&call);
	count_completed(txq, &call);
	return n_sent;
}

/* Free a frame of ours, headers and buffers; it does not complete. */
static void free_frame(struct dpdk_txq *txq, struct mr_cache *cache,
		       struct rte_mbuf *mbuf)
{
	struct dpdk_call call;

	for (struct rte_mbuf *seg = mbuf; seg != NULL; seg = seg->next)
		seg->port = DPDK_NO_TAG;
	dpdk_call_begin(&call, txq->view, cache, txq->tag, txq->extras);
	rte_pktmbuf_free(mbuf);
	dpdk_call_end(&call);
}

/*
 * With offloads, the device checks each frame first, and may refuse one for
 * good. Returns how many were sent or lost.
 */
static __rte_noinline uint32_t offer_prepared(struct dpdk_txq *txq,
					      struct mr_cache *cache,
					      struct rte_mbuf **mbufs,
					      uint32_t n)
{
	uint32_t n_done = 0;

	while (n_done < n) {
		const uint32_t n_ok = rte_eth_tx_prepare(
			txq->port_id, (uint16_t)txq->base.queue.idx,
			mbufs + n_done, (uint16_t)(n - n_done));
		const uint32_t n_sent = offer(txq, cache, mbufs + n_done, n_ok);

		n_done += n_sent;
		if (n_sent < n_ok)
			break;
		if (n_done == n)
			break;
		txq->n_inner -= mbufs[n_done]->nb_segs - 1;
		free_frame(txq, cache, mbufs[n_done++]);
		mr_counter_add(&txq->base.stats.drops[MR_TX_DROP_DEVICE], 1);
	}
	return n_done;
}

static void count_events(struct dpdk_txq *txq, uint32_t events)
{
	for (; events != 0; events &= events - 1)
		mr_counter_add(&txq->base.stats.events[__builtin_ctz(events)],
			       1);
}

/* n_sent frames of a batch are sent or lost; the caller keeps the others. */
static __rte_noinline void settle(struct dpdk_txq *txq, struct batch *batch,
				  uint32_t n_sent)
{
	for (uint32_t i = 0; i < batch->n_notes; i++) {
		const struct dpdk_note *note = &batch->notes[i];

		if (note->at < n_sent) {
			count_events(txq, note->events);
			txq->n_inner += note->n_inner;
		} else {
			mri_dpdk_unwrite(batch->mbufs[note->at], note);
		}
	}
	batch->n_notes = 0;
}

/* Send the gathered frames. False: not all; n_entries are left. */
static bool flush(struct dpdk_txq *txq, struct mr_cache *cache,
		  struct batch *batch, uint64_t n_bytes)
{
	const uint32_t n = batch->n;
	uint32_t n_sent;

	if (n == 0)
		return true;
	n_sent = unlikely(batch->has_offloads) ?
			 offer_prepared(txq, cache, batch->mbufs, n) :
			 offer(txq, cache, batch->mbufs, n);
	batch->n = 0;
	batch->n_entries = 0;
	batch->has_offloads = false;
	if (unlikely(batch->n_notes > 0))
		settle(txq, batch, n_sent);
	for (uint32_t i = n_sent; unlikely(i < n); i++) {
		n_bytes -= batch->mbufs[i]->pkt_len;
		batch->n_entries += batch->mbufs[i]->nb_segs;
		mri_dpdk_unshape(txq, batch->mbufs[i]);
	}
	count_accepted(txq, n_sent, n_bytes);
	return n_sent == n;
}

/*
 * What a frame on the fast path may be. Passed by value: a burst writes
 * headers, after which the compiler would have to reload it through a pointer.
 */
struct plain {
	/* Length beyond the minimum, for one compare; at most a buffer. */
	uint32_t max_more_bytes;
	uint32_t shift_bytes;  /* from the page to mbuf.buf_addr */
	struct mr_pages pages; /* registered, one page each */
	uint8_t *headers;      /* theirs */
	uint64_t header_stride;
	uint64_t ol_flags;
	uint16_t tag;
};

static inline struct plain plain_of(const struct dpdk_txq *txq,
				    const struct mr_cache *cache)
{
	struct mr_pages pages = mr_cache_pages(cache);
	const struct dpdk_view *view = txq->view;
	const uint32_t room_bytes =
		(1u << view->page_shift) - view->shift_bytes;
	const uint32_t max_bytes =
		__atomic_load_n(&txq->port->mtu_bytes, __ATOMIC_RELAXED) +
		DPDK_LINK_BYTES;
	const uint64_t n_registered = dpdk_n_registered(view);
	uint64_t n_pages = 0;

	if (likely(pages.shift == view->page_shift &&
		   pages.addr < n_registered))
		n_pages = (n_registered - pages.addr) >> view->page_shift;
	pages.n = (uint32_t)RTE_MIN(n_pages, (uint64_t)pages.n);
	return (struct plain){
		.max_more_bytes =
			RTE_MIN(max_bytes, room_bytes) - DPDK_MIN_FRAME_BYTES,
		.shift_bytes = view->shift_bytes,
		.pages = pages,
		.headers = (uint8_t *)dpdk_header(view, pages.addr),
		.header_stride = view->header_stride,
		.ol_flags = txq->plain_flags,
		.tag = txq->tag,
	};
}

/*
 * Prepare headers for the plain frames at the start, up to n. A separate loop
 * without calls, so that everything stays in registers.
 */
static __rte_noinline uint32_t gather(const struct plain *of,
				      const struct mr_frame *frames,
				      const struct mr_meta *meta, uint32_t n,
				      struct rte_mbuf **ret_mbufs,
				      uint64_t *n_bytes)
{
	const struct plain plain = *of;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t len = frames[i].len;
		const uint64_t page = (frames[i].addr - plain.pages.addr) >>
				      plain.pages.shift;
		struct rte_mbuf *mbuf;
		struct mr_room room;

		if (unlikely((frames[i].flags &
			      (MR_FRAME_MORE | MR_FRAME_CSUM_PARTIAL)) != 0 ||
			     len - DPDK_MIN_FRAME_BYTES >
				     plain.max_more_bytes ||
			     !mr_pages_room(&plain.pages, &frames[i], &room) ||
			     room.front_bytes < plain.shift_bytes))
			break;
		if (meta != NULL && meta[i].valid != 0)
			break;
		mbuf = (void *)(plain.headers + page * plain.header_stride);
		/* refcnt, nb_segs and next are already 1, 1 and NULL. */
		mbuf->data_off =
			(uint16_t)(room.front_bytes - plain.shift_bytes);
		mbuf->port = plain.tag;
		mbuf->ol_flags = plain.ol_flags;
		mbuf->pkt_len = len;
		mbuf->data_len = (uint16_t)len;
		ret_mbufs[i] = mbuf;
		sum += len;
	}
	*n_bytes += sum;
	return i;
}

/*
 * A copy belongs to us: if the device has no room now, a later burst sends it
 * first.
 */
static bool send_held(struct dpdk_txq *txq, struct mr_cache *cache)
{
	if (offer_prepared(txq, cache, &txq->held, 1) == 1)
		txq->held = NULL;
	return txq->held == NULL;
}

/*
 * A frame of n entries off the fast path. False: the caller keeps it and those
 * after it.
 */
static __rte_noinline bool send_slow(struct dpdk_txq *txq,
				     struct mr_cache *cache,
				     const struct mr_frame *frames, uint32_t n,
				     const struct mr_meta *meta,
				     struct batch *batch, uint64_t *n_bytes)
{
	const uint64_t n_frame = mr_frame_n_bytes(frames, n);
	struct dpdk_note *note = &batch->notes[batch->n_notes];
	struct rte_mbuf *mbuf;
	const int shape =
		mri_dpdk_shape(txq, cache, frames, n, meta, &mbuf, note);

	if (shape == DPDK_POSTABLE) {
		note->at = batch->n;
		note->n_inner = mbuf->nb_segs - 1;
		batch->n_notes++;
		batch->mbufs[batch->n++] = mbuf;
		batch->n_entries += n;
		batch->has_offloads |=
			(mbuf->ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK) != 0;
		*n_bytes += n_frame;
		return true;
	}
	/* Frames before it go first. */
	if (!flush(txq, cache, batch, *n_bytes)) {
		if (shape == DPDK_COPIED)
			free_frame(txq, cache, mbuf);
		return false;
	}
	*n_bytes = 0;
	if (shape == DPDK_LATER)
		return false;
	count_accepted(txq, 1, n_frame);
	mr_frame_free_bulk(cache, frames, n);
	if (shape != DPDK_COPIED) {
		mr_counter_add(&txq->base.stats.drops[shape], 1);
		return true;
	}
	count_events(txq, note->events);
	txq->n_inner += mbuf->nb_segs - 1;
	txq->held = mbuf;
	(void)send_held(txq, cache);
	return true;
}

uint64_t mri_dpdk_tx_awaited(const struct dpdk_txq *txq)
{
	const struct mr_tx_stats *stats = &txq->base.stats;
	uint64_t n = mr_counter_get(&stats->accepted) -
		     mr_counter_get(&stats->completed);

	for (int i = 0; i < MR_STATS_SLOTS; i++)
		n -= mr_counter_get(&stats->drops[i]);
	return n;
}

uint64_t mri_dpdk_tx_pending(const struct dpdk_txq *txq)
{
	return mri_dpdk_tx_awaited(txq) -
	       __atomic_load_n(&txq->tally->n_elsewhere, __ATOMIC_RELAXED);
}

/* What the device has sent, but keeps until it needs the room. */
static void collect(struct dpdk_txq *txq, struct mr_cache *cache)
{
	struct dpdk_call call;

	if (!txq->has_cleanup || mri_dpdk_tx_pending(txq) == 0)
		return;
	dpdk_call_begin(&call, txq->view, cache, txq->tag, txq->extras);
	rte_eth_tx_done_cleanup(txq->port_id, (uint16_t)txq->base.queue.idx, 0);
	dpdk_call_end(&call);
	count_completed(txq, &call);
}

uint32_t mri_dpdk_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			   const struct mr_frame *frames,
			   const struct mr_meta *meta, uint32_t n)
{
	struct dpdk_txq *txq = (struct dpdk_txq *)base;
	const struct plain plain = plain_of(txq, cache);
	struct batch batch;
	uint64_t n_bytes = 0;
	uint32_t i = 0, n_asked;

	n = n_asked = mr_frame_n_whole(frames, n);
	if (unlikely(__atomic_load_n(&txq->port->is_gone, __ATOMIC_RELAXED)))
		return mr_txq_lose(base, cache, frames, n,
				   MR_TX_DROP_PORT_GONE);
	batch.n = 0;
	batch.n_entries = 0;
	batch.n_notes = 0;
	batch.has_offloads = false;
	if (n == 0)
		collect(txq, cache);
	if (unlikely(txq->held != NULL) && !send_held(txq, cache))
		n = 0;
	while (i < n && txq->held == NULL) {
		const struct mr_meta *m = meta != NULL ? &meta[i] : NULL;
		const uint32_t n_plain =
			gather(&plain, &frames[i], m, n - i,
			       &batch.mbufs[batch.n], &n_bytes);
		uint32_t n_entries;

		batch.n += n_plain;
		batch.n_entries += n_plain;
		i += n_plain;
		if (likely(i == n))
			break;
		n_entries = mr_frame_n_entries(&frames[i]);
		if (!send_slow(txq, cache, &frames[i], n_entries,
			       meta != NULL ? &meta[i] : NULL, &batch,
			       &n_bytes))
			break;
		i += n_entries;
	}
	(void)flush(txq, cache, &batch, n_bytes);
	i -= batch.n_entries;
	txq->was_refused = i < n_asked;
	if (unlikely(txq->was_refused)) {
		mr_counter_add(&base->stats.events[MR_TX_EVENT_RING_FULL], 1);
		collect(txq, cache);
	}
	return i;
}

/*
 * Nothing signals that a device has room again, or has sent, so waiting means
 * polling. It does not wait for what a device keeps until it needs the room.
 */
int mri_dpdk_tx_arm(struct mr_queue *queue)
{
	const struct dpdk_txq *txq = (const struct dpdk_txq *)queue;

	return txq->was_refused || txq->held != NULL ||
	       (txq->has_cleanup && mri_dpdk_tx_pending(txq) > 0);
}
