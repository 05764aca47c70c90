/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmit half of the AF_XDP driver.
 *
 *     application --> tx ring --> kernel --> completion ring --> caller's cache
 *
 * Entries n_reaped to tx.cached of the tx ring are outstanding: posted and not
 * completed, never more than the completion ring holds. Each owns a reference
 * to its buffer; closing the queue takes back exactly these. A completion is
 * usually for the oldest entry; if not, its entry is exchanged with the oldest,
 * so that the outstanding ones stay contiguous.
 *
 * Every entry is checked before it is posted: the kernel skips an invalid one,
 * and whether its buffer returns depends on the kernel's version. copy.c
 * reshapes what can be mended; the rest is a named drop.
 *
 * In copy mode the kernel sends within sendto(), the kick; drivers/xdp/README.md
 * lists its errors.
 *
 * Source: linux/Documentation/networking/af_xdp.rst; net/xdp/xsk.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "socket/probe.h"
#include "socket/queue.h"
#include "xdp.h"

enum {
	/* Per burst, plus one per lost frame. */
	MAX_KICKS = 8,
	/* Bursts and time before a zero-copy driver is woken again. */
	PATIENT_BURSTS = 16,
	PATIENT_NS = 1000 * 1000,
	WAIT_STEP_NS = 200 * 1000,
};

static void count_event(struct xdp_txq *txq, enum mr_tx_event event)
{
	mr_counter_add(&txq->base.stats.events[event], 1);
}

static void count_drop(struct xdp_txq *txq, enum mr_tx_drop drop, uint64_t n)
{
	mr_counter_add(&txq->base.stats.drops[drop], n);
}

static uint32_t n_outstanding(const struct xdp_txq *txq)
{
	return txq->tx.cached - txq->n_reaped;
}

/* How many of the oldest n entries end a frame. */
static uint32_t n_frames_ended(const struct xdp_txq *txq, uint32_t n)
{
	uint32_t n_frames = 0;

	if (txq->max_segs == 1)
		return n;
	for (uint32_t i = 0; i < n; i++)
		n_frames += !(xring_frame_at(&txq->tx, txq->n_reaped + i)
				      ->flags &
			      XSK_PKT_CONTD);
	return n_frames;
}

static void count_reaped(struct xdp_txq *txq, uint32_t n_frames)
{
	uint32_t n_lost = 0;

	if (txq->n_before > 0) {
		const uint32_t n =
			txq->n_before < n_frames ? txq->n_before : n_frames;

		txq->n_before -= n;
		n_frames -= n;
	}
	/* A lost frame completes like any other. */
	if (txq->n_lost > 0) {
		n_lost = txq->n_lost < n_frames ? txq->n_lost : n_frames;
		txq->n_lost -= n_lost;
		count_drop(txq, MR_TX_DROP_DEVICE, n_lost);
	}
	mr_counter_add(&txq->base.stats.completed, n_frames - n_lost);
	mr_counter_add(&txq->base.stats.pending, (uint64_t)0 - n_frames);
}

/* Cold: find an outstanding entry by its address; tx.cached: none. In copy
 * mode, Linux 6.18 clears the lowest bit of the address (net/xdp/xsk.c,
 * xsk_skb_destructor_set_addr). */
__attribute__((noinline)) static uint32_t
find_entry(const struct xdp_txq *txq, uint32_t number, uint64_t addr)
{
	while (number != txq->tx.cached &&
	       (xring_frame_at(&txq->tx, number)->addr ^ addr) > 1)
		number++;
	return number;
}

/* Cold: exchange the completed entry and its flags with the oldest. False: the
 * kernel has taken no such entry. */
__attribute__((noinline)) static bool
move_to_front(const struct xdp_txq *txq, uint32_t oldest, uint64_t addr)
{
	const uint32_t number = find_entry(txq, oldest, addr);
	struct mr_frame *front = xring_frame_at(&txq->tx, oldest);
	struct mr_frame *entry = xring_frame_at(&txq->tx, number);
	const struct mr_frame moved = *front, completed = *entry;

	/* The kernel may complete a frame before it moves its consumer. */
	if (txq->tx.cached - number <= xring_n_left(&txq->tx))
		return false;
	*entry = moved;
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* for mri_xdp_tx_mend() */
	*front = completed;
	return true;
}

void mri_xdp_tx_mend(struct xdp_txq *txq)
{
	const uint64_t *addrs = txq->comp.entries;
	const uint32_t end =
		__atomic_load_n(txq->comp.producer, __ATOMIC_ACQUIRE);
	uint32_t number = txq->n_reaped;
	struct mr_frame *front;
	uint64_t addr;

	for (uint32_t at = txq->comp.cached; at != end; at++, number++) {
		addr = addrs[at & txq->comp.mask];
		front = xring_frame_at(&txq->tx, number);
		if (((front->addr ^ addr) & ~UINT64_C(1)) == 0)
			continue;
		/* The first that is not in its place: was it being moved? */
		if (find_entry(txq, number, addr) == txq->tx.cached &&
		    find_entry(txq, number + 1, front->addr) != txq->tx.cached)
			front->addr = addr;
		return;
	}
}

/* How many of n completions are for outstanding entries; these become the
 * oldest ones. */
static uint32_t match_entries(const struct xdp_txq *txq, const uint64_t *addrs,
			      uint32_t n)
{
	const struct xring tx = txq->tx;
	const uint32_t oldest = txq->n_reaped;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (xring_frame_at(&tx, oldest + i)->addr != addrs[i] &&
		    !move_to_front(txq, oldest + i, addrs[i]))
			break;
	return i;
}

/* Cold: ignore a completion without an outstanding entry: it would free a page
 * of another owner. False: it has one, which the kernel has yet to consume. */
static bool ignore_unknown(struct xdp_txq *txq, uint64_t addr)
{
	if (find_entry(txq, txq->n_reaped, addr) != txq->tx.cached)
		return false;
	count_event(txq, MR_TX_EVENT_UNKNOWN_COMPLETION);
	/* How many, and before which position: see socket/recover.c. */
	*txq->unknown = (uint64_t)txq->comp.cached << 32 |
			((uint32_t)*txq->unknown + 1);
	xring_release(&txq->comp, 1);
	return true;
}

static void reap_outstanding(struct xdp_txq *txq, struct mr_cache *cache)
{
	const uint64_t *addrs;
	uint32_t n_ready, n;

	do {
		n_ready = xring_peek_addrs(&txq->comp, &addrs,
					   n_outstanding(txq));
		if (n_ready == 0)
			return;
		n = match_entries(txq, addrs, n_ready);
		xdp_probe_completion(txq->base.queue.idx, n);
		if (txq->times.n_asked > 0)
			mri_xdp_times_note(txq, n);
		if (cache == NULL)
			mr_pool_frag_free_bulk(txq->port->base.pool, addrs, n);
		else if (n == 1)
			mr_frag_free(cache, addrs[0]);
		else
			mr_frag_free_bulk(cache, addrs, n);
		count_reaped(txq, n_frames_ended(txq, n));
		txq->n_reaped += n;
		xring_release(&txq->comp, n);
		if (n < n_ready && !ignore_unknown(txq, addrs[n]))
			return;
	} while (n_outstanding(txq) > 0);
}

/* Free completed buffers to the caller's cache; without one, to the pool. */
static inline void reap(struct xdp_txq *txq, struct mr_cache *cache)
{
	if (n_outstanding(txq) > 0)
		reap_outstanding(txq, cache);
}

/* Whether frames leave within sendto(): in copy mode, and with busy polling. */
static bool call_sends(const struct xdp_txq *txq)
{
	return txq->port->lease.n_zc_queues == 0 || txq->is_busy;
}

/*
 * Whether a zero-copy driver was already told of all that it has not taken. It
 * is told again after some bursts or some time, since its interrupt may be
 * moderated (igb); with busy polling, as long as telling it moves frames.
 */
static bool was_woken(struct xdp_txq *txq)
{
	if (txq->is_stalled || txq->n_woken_for != txq->tx.cached ||
	    txq->port->lease.n_zc_queues == 0)
		return false;
	if (txq->is_busy)
		return xring_n_left(&txq->tx) == txq->n_left_before &&
		       mr_ctx_now_ns(txq->port->base.ctx) - txq->woken_ns <
			       XDP_BUSY_INTERVAL_NS;
	return ++txq->n_patient < PATIENT_BURSTS &&
	       mr_ctx_now_ns(txq->port->base.ctx) - txq->woken_ns < PATIENT_NS;
}

/* Make the kernel send what is in the ring. It may stop early, because of its
 * budget, a full device or a lost frame: continue while that helps. */
static void kick(struct xdp_txq *txq, struct mr_cache *cache)
{
	/* Each loss takes at least one descriptor. */
	uint32_t n_may_be_lost = xring_n_left(&txq->tx);
	uint32_t n_kicks = 0;
	/* EBUSY of a zero-copy driver is no loss. */
	const bool is_copying = txq->port->lease.n_zc_queues == 0;
	/* was_woken() last: it reads the clock. */
	const bool is_wanted = n_may_be_lost > 0 &&
			       xring_needs_wakeup(&txq->tx) && !was_woken(txq);

	txq->is_stalled = false;
	if (!is_wanted)
		return;
	for (;;) {
		const uint32_t n_before = xring_n_left(&txq->tx);
		ssize_t sent;

		if (n_before == 0 || !xring_needs_wakeup(&txq->tx) ||
		    n_kicks == MAX_KICKS)
			return;
		sent = sendto(txq->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
		count_event(txq, MR_TX_EVENT_WAKEUP);
		if (sent < 0 && errno == EBUSY && is_copying &&
		    n_may_be_lost > 0) {
			txq->n_lost++; /* dropped and completed; go on */
			n_may_be_lost--;
			continue;
		}
		n_kicks++;
		if (sent < 0 && (errno == ENXIO || errno == ENETDOWN)) {
			/* Zero-copy drivers also return ENXIO in a reset. */
			if (errno == ENXIO && is_copying)
				__atomic_store_n(&txq->port->is_gone, 1,
						 __ATOMIC_RELAXED);
			txq->is_stalled = true;
			return;
		}
		if (sent < 0)
			count_event(txq, MR_TX_EVENT_AGAIN);
		if (!is_copying) {
			/* The driver continues on its own. */
			txq->n_woken_for =
				sent < 0 ? txq->tx.cached - 1 : txq->tx.cached;
			txq->n_patient = 0;
			txq->n_left_before = n_before;
			txq->woken_ns = mr_ctx_now_ns(txq->port->base.ctx);
			return;
		}
		if (xring_n_left(&txq->tx) == n_before) {
			/* No room for completions, or the device is full. */
			reap(txq, cache);
			if (n_kicks > 1 || n_outstanding(txq) == 0)
				return;
		}
	}
}

/* Whether the kernel takes this entry, of a byte or more, unchanged. */
static inline bool is_plain(const struct xdp_txq *txq, uint64_t addr,
			    uint32_t len)
{
	const uint32_t n_front = txq->n_front_bytes;
	/* Wraps if it begins before n_front. */
	const uint32_t at = ((uint32_t)addr & txq->chunk_mask) - n_front;

	return (uint64_t)at + len <= (uint64_t)txq->chunk_mask + 1 - n_front &&
	       addr < txq->n_registered_bytes;
}

static void post(struct xdp_txq *txq, uint32_t place,
		 const struct mr_frame *entry)
{
	struct mr_frame *descriptor =
		xring_frame_at(&txq->tx, txq->tx.cached + place);

	*descriptor = *entry;
	descriptor->flags &= XSK_PKT_CONTD | XSK_TX_METADATA;
}

/* Room for descriptors and for their completions. */
static uint32_t n_room(struct xdp_txq *txq)
{
	return xring_n_room(&txq->tx, txq->tx.n_entries - n_outstanding(txq));
}

/* What a frame asks the kernel for: MR_META_*. */
static uint32_t asks_for(const struct xdp_txq *txq, const struct mr_meta *meta)
{
	return meta != NULL ? meta->valid & txq->times.asks : 0;
}

/* How many of n entries precede the first one that asks for something. */
static uint32_t n_not_asking(const struct xdp_txq *txq,
			     const struct mr_meta *meta, uint32_t n)
{
	uint32_t i = 0;

	if (meta == NULL || txq->times.asks == 0)
		return n;
	while (i < n && asks_for(txq, &meta[i]) == 0)
		i++;
	return i;
}

/* Request what the frame needs from the kernel, in metadata in front of it. */
static void put_request(struct xdp_txq *txq, struct mr_frame *frames,
			const struct mr_meta *meta, bool is_partial,
			uint32_t asks)
{
	struct xdp_tx_request request = { .magic = 0 };

	if (is_partial)
		mri_xdp_csum_send(txq, frames, meta, &request.kernel);
	if (asks & MR_META_TX_TIME)
		mri_xdp_times_ask(txq, meta, &request);
	if (asks & MR_META_LAUNCH_TIME) {
		request.kernel.flags |= XSK_TXMD_LAUNCH_TIME;
		request.kernel.launch_time = meta->launch_ns;
	}
	if (request.kernel.flags == 0)
		return;
	memcpy(mr_frame_data(txq->port->base.base, &frames[0]) -
		       txq->n_front_bytes,
	       &request, txq->n_front_bytes);
	frames[0].flags |= XSK_TX_METADATA;
}

/* Cold: a frame that is not one plain entry. Returns the entries to post. */
__attribute__((noinline)) static uint32_t
prepare(struct xdp_txq *txq, struct mr_cache *cache, const struct mr_frame *in,
	uint32_t n, const struct mr_meta *meta,
	struct mr_frame out[MR_MAX_SEGS])
{
	const bool is_partial = in[0].flags & MR_FRAME_CSUM_PARTIAL;
	const uint32_t asks = asks_for(txq, meta);
	struct mr_room room;
	/* A sum goes into the first entry, a request in front of it. */
	bool is_fit = n <= txq->max_segs &&
		      mr_frame_n_bytes(in, n) >= XDP_MIN_FRAME_BYTES &&
		      ((!is_partial && asks == 0) ||
		       (mr_frame_room(cache, &in[0], &room) == 0 &&
			room.front_bytes >= txq->n_front_bytes));

	for (uint32_t i = 0; i < n && is_fit; i++)
		is_fit = in[i].len > 0 &&
			 is_plain(txq, in[i].addr, in[i].len);
	if (is_fit) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = in[i];
	} else {
		n = mri_xdp_reshape(txq, cache, in, n, out);
	}
	/* The kernel reads other flags as requests, or as invalid. */
	for (uint32_t i = 0; i < n; i++)
		out[i].flags &= MR_FRAME_MORE;
	if (n > 0 && (is_partial || asks != 0))
		put_request(txq, out, meta, is_partial, asks);
	return n;
}

/* What one burst posts, counted once at its end. */
struct burst {
	uint32_t n_room;
	uint32_t n_descriptors;
	uint32_t n_dropped_frames;
	uint32_t n_frames;
	uint64_t n_bytes;
};

/* Post the plain frames at the start, up to the end of the ring: those of one
 * entry that the kernel takes unchanged. Returns how many. */
static uint32_t post_plain(const struct xdp_txq *base, uint32_t place,
			   const struct mr_frame *frames, uint32_t n,
			   uint64_t *n_bytes)
{
	/* A copy: the compiler assumes that descriptors alias the queue. */
	const struct xdp_txq txq = {
		.n_registered_bytes = base->n_registered_bytes,
		.chunk_mask = base->chunk_mask,
		.n_front_bytes = base->n_front_bytes,
	};
	const uint32_t asks = MR_FRAME_MORE | MR_FRAME_CSUM_PARTIAL;
	const uint32_t max_above =
		xdp_max_bytes(base->port) - XDP_MIN_FRAME_BYTES;
	const uint32_t at = (base->tx.cached + place) & base->tx.mask;
	struct mr_frame *const descriptors =
		(struct mr_frame *)base->tx.entries + at;
	uint64_t n_sum_bytes = 0;
	uint32_t i;

	if (n > base->tx.n_entries - at)
		n = base->tx.n_entries - at;
	for (i = 0; i < n; i++) {
		const uint64_t addr = frames[i].addr;
		const uint32_t len = frames[i].len;

		if ((frames[i].flags & asks) != 0 ||
		    len - XDP_MIN_FRAME_BYTES > max_above ||
		    !is_plain(&txq, addr, len))
			break;
		descriptors[i].addr = addr;
		descriptors[i].len = len;
		descriptors[i].flags = 0;
		n_sum_bytes += len;
	}
	*n_bytes += n_sum_bytes;
	return i;
}

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
	if (mr_frame_n_bytes(frames, n) > xdp_max_bytes(txq->port)) {
		count_drop(txq, MR_TX_DROP_TOO_LONG, 1);
		mr_frame_free_bulk(cache, frames, n);
		burst->n_dropped_frames++;
		return true;
	}
	n_out = prepare(txq, cache, frames, n, meta, out);
	for (uint32_t i = 0; i < n_out; i++)
		post(txq, burst->n_descriptors++, &out[i]);
	burst->n_dropped_frames += n_out == 0;
	return true;
}

static void submit(struct xdp_txq *txq, const struct burst *burst)
{
	xring_submit(&txq->tx, burst->n_descriptors);
	mr_counter_add(&txq->base.stats.accepted, burst->n_frames);
	mr_counter_add(&txq->base.stats.bytes, burst->n_bytes);
	mr_counter_add(&txq->base.stats.pending,
		       burst->n_frames - burst->n_dropped_frames);
}

/* Post what there is room for, in whole frames; how many entries. */
static uint32_t send_burst(struct xdp_txq *txq, struct mr_cache *cache,
			   const struct mr_frame *frames,
			   const struct mr_meta *meta, uint32_t n)
{
	struct burst burst = { .n_room = n_room(txq) };
	uint32_t i = 0;

	for (;;) {
		const uint32_t n_left = burst.n_room - burst.n_descriptors;
		const uint32_t n_plain = post_plain(
			txq, burst.n_descriptors, frames + i,
			n_not_asking(txq, meta != NULL ? meta + i : NULL,
				     n - i < n_left ? n - i : n_left),
			&burst.n_bytes);

		burst.n_descriptors += n_plain;
		burst.n_frames += n_plain;
		i += n_plain;
		if (i == n)
			break;
		if (n_plain > 0)
			continue;
		if (!send_frame(txq, cache, &frames[i],
				mr_frame_n_entries(&frames[i]),
				meta != NULL ? &meta[i] : NULL, &burst))
			break;
		i += mr_frame_n_entries(&frames[i]);
	}
	if (burst.n_frames > 0)
		submit(txq, &burst);
	if (i < n)
		count_event(txq, MR_TX_EVENT_RING_FULL);
	return i;
}

uint32_t mri_xdp_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			  const struct mr_frame *frames,
			  const struct mr_meta *meta, uint32_t n)
{
	struct xdp_txq *txq = xdp_txq_of(base);

	n = mr_frame_n_whole(frames, n);
	if (__atomic_load_n(&txq->port->is_gone, __ATOMIC_RELAXED))
		return mr_txq_lose(base, cache, frames, n,
				   MR_TX_DROP_PORT_GONE);
	reap(txq, cache);
	if (n > 0)
		n = send_burst(txq, cache, frames, meta, n);
	if (n_outstanding(txq) > 0) {
		kick(txq, cache);
		if (call_sends(txq))
			reap(txq, cache);
	}
	return n;
}

int mri_xdp_tx_arm(struct mr_queue *queue)
{
	const struct xdp_txq *txq = (const struct xdp_txq *)queue;

	/* A device that is down keeps its entries. */
	return n_outstanding(txq) > 0 && !txq->is_stalled;
}

uint32_t mri_xdp_tx_wait(struct xdp_txq *txq, uint64_t deadline_ns)
{
	const struct timespec step = { .tv_nsec = WAIT_STEP_NS };
	uint32_t n_left;

	for (;;) {
		reap(txq, NULL);
		if (n_outstanding(txq) == 0)
			return 0;
		n_left = xring_n_left(&txq->tx);
		if (n_outstanding(txq) <= n_left)
			return 0;
		if (mr_ctx_now_ns(txq->port->base.ctx) >= deadline_ns)
			return n_outstanding(txq) - n_left;
		nanosleep(&step, NULL);
	}
}

void mri_xdp_tx_note_left(struct xdp_txq *txq)
{
	for (; n_outstanding(txq) > 0; txq->n_reaped++)
		txq->left[txq->n_left++] =
			xring_frame_at(&txq->tx, txq->n_reaped)->addr;
}

void mri_xdp_tx_take_back(struct xdp_txq *txq)
{
	mr_pool_frag_free_bulk(txq->port->base.pool, txq->left, txq->n_left);
	txq->n_left = 0;
}
