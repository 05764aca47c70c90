/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive half of the AF_XDP driver.
 *
 *     caller's cache --> fill ring --> kernel --> rx ring --> application
 *
 * From open to close, the fill ring, the kernel and the rx ring together hold
 * rxq->n_bufs buffers: those marked in rxq->posted[]. A burst takes an entry
 * only if it can replace its buffer, so the application cannot starve the
 * kernel.
 *
 * A long frame has several descriptors, which stay in the rx ring until the
 * last one has arrived.
 *
 * Source: linux/Documentation/networking/af_xdp.rst, "Rings",
 * "XDP_USE_NEED_WAKEUP bind flag", "Multi-Buffer Support".
 */
#include <errno.h>
#include <sys/socket.h>

#include "socket/probe.h"
#include "socket/queue.h"
#include "xdp.h"

enum {
	IDLE_POLLS_PER_CLOCK = 256, /* empty bursts per reading of the clock */
	IDLE_KICK_NS = 1000 * 1000,
};

static void wake_kernel(struct xdp_rxq *rxq)
{
	(void)recvfrom(rxq->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_WAKEUP], 1);
}

/* An empty burst. After a millisecond without a frame, wake the kernel even if
 * it has not asked for that: some drivers would never receive again. */
static void watch_idle_queue(struct xdp_rxq *rxq)
{
	uint64_t now_ns;

	if (++rxq->n_idle_polls % IDLE_POLLS_PER_CLOCK != 0)
		return;
	now_ns = mr_ctx_now_ns(rxq->port->base.ctx);
	if (rxq->idle_since_ns == 0)
		rxq->idle_since_ns = now_ns;
	if (now_ns - rxq->idle_since_ns < IDLE_KICK_NS)
		return;
	rxq->idle_since_ns = now_ns;
	if (xring_n_left(&rxq->fill) == 0)
		mr_counter_add(
			&rxq->base.stats.events[MR_RX_EVENT_STARVED_KICK], 1);
	wake_kernel(rxq);
}

/* An empty burst of a busy-polled queue: nothing else runs its NAPI. */
static void poll_device(struct xdp_rxq *rxq)
{
	const struct mr_ctx *ctx = rxq->port->base.ctx;

	if (mr_ctx_now_ns(ctx) - rxq->polled_ns < XDP_BUSY_INTERVAL_NS)
		return;
	wake_kernel(rxq);
	rxq->polled_ns = mr_ctx_now_ns(ctx);
}

/* How many entries at the start are whole frames. 0 of MR_MAX_SEGS or more: the
 * first frame is too long. */
static uint32_t n_deliverable(const struct mr_frame *frames, uint32_t n)
{
	uint32_t n_whole = 0;

	for (uint32_t i = 0; i < n && i - n_whole < MR_MAX_SEGS; i++)
		if (!(frames[i].flags & MR_FRAME_MORE))
			n_whole = i + 1;
	return n_whole;
}

/* Give the kernel n buffers. The fill ring has room for all n_bufs. */
static void post(struct xdp_rxq *rxq, const uint64_t *addrs, uint32_t n)
{
	/* Copies: the compiler assumes that posted[] aliases rxq. */
	uint8_t *const posted = rxq->posted;
	uint64_t *const entries = rxq->fill.entries;
	const uint32_t shift = rxq->chunk_shift, mask = rxq->fill.mask;
	const uint32_t at = rxq->fill.cached;

	for (uint32_t i = 0; i < n; i++) {
		entries[(at + i) & mask] = addrs[i];
		posted[addrs[i] >> shift] = 1;
	}
	xring_submit(&rxq->fill, n);
}

/* Give the kernel fresh buffers for those of n entries that leave the ring.
 * Returns the entries' bytes. */
static uint64_t exchange_buffers(struct xdp_rxq *rxq, const uint64_t *fresh,
				 const struct mr_frame *frames, uint32_t n)
{
	/* Copies, as in post(). */
	uint8_t *const posted = rxq->posted;
	uint64_t *const entries = rxq->fill.entries;
	const uint32_t shift = rxq->chunk_shift, mask = rxq->fill.mask;
	const uint32_t at = rxq->fill.cached;
	uint64_t n_bytes = 0;

	/* socket/recover.c relies on the order. */
	for (uint32_t i = 0; i < n; i++) {
		entries[(at + i) & mask] = fresh[i];
		posted[fresh[i] >> shift] = 1;
		posted[frames[i].addr >> shift] = 0;
		n_bytes += frames[i].len;
	}
	xring_submit(&rxq->fill, n);
	return n_bytes;
}

/* Cold. Return the buffers of a frame that is too long to the fill ring, up to
 * its last entry that has arrived; the next burst continues. */
static void drop_long_frame(struct xdp_rxq *rxq, const struct mr_frame *frames,
			    uint32_t n)
{
	const uint64_t chunk_mask = (UINT64_C(1) << rxq->chunk_shift) - 1;
	uint64_t addrs[MR_BURST_MAX];
	uint32_t n_drop = 0;
	bool more;

	if (n == 0)
		return;
	do {
		more = frames[n_drop].flags & MR_FRAME_MORE;
		addrs[n_drop] = frames[n_drop].addr & ~chunk_mask;
		n_drop++;
	} while (more && n_drop < n);
	post(rxq, addrs, n_drop);
	xring_release(&rxq->rx, n_drop);

	rxq->in_long_frame = more;
	if (!more) {
		mr_counter_add(&rxq->base.stats.drops[MR_RX_DROP_TOO_LONG], 1);
		mr_counter_add(&rxq->base.stats.received, 1);
	}
}

/* Cold. Keep the fresh buffers that the device can reach: the others are in a
 * segment that is newer than the port. */
static uint32_t keep_registered(struct xdp_rxq *rxq, struct mr_pool *pool,
				uint64_t *addrs, uint32_t n)
{
	const uint32_t n_kept =
		mr_pool_keep_below(pool, addrs, n, rxq->port->lease.n_bytes);

	mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_UNREGISTERED],
		       n - n_kept);
	return n_kept;
}

/* Up to n buffers that the device can reach. */
static uint32_t alloc_registered(struct xdp_rxq *rxq, struct mr_cache *cache,
				 uint64_t *addrs, uint32_t n)
{
	const uint32_t chunk_bytes = 1u << rxq->chunk_shift;
	const uint64_t n_bytes = rxq->port->lease.n_bytes;
	struct mr_pool *pool;
	uint32_t n_got = mr_frag_alloc_bulk(cache, addrs, n, chunk_bytes);

	if (mr_addrs_are_below(addrs, n_got, n_bytes))
		return n_got;
	/* Once more; the page allocator prefers low segments. */
	pool = mr_cache_pool(cache);
	n_got = keep_registered(rxq, pool, addrs, n_got);
	n = mr_pool_frag_alloc_bulk(pool, addrs + n_got, n - n_got);
	return n_got + keep_registered(rxq, pool, addrs + n_got, n);
}

/* Replace the buffers of n entries. Returns how many entries, of whole frames,
 * have a new buffer. */
static uint32_t refill(struct xdp_rxq *rxq, struct mr_cache *cache,
		       const struct mr_frame *frames, uint32_t n,
		       uint64_t *ret_bytes)
{
	uint64_t fresh[MR_BURST_MAX];
	const uint32_t n_fresh = alloc_registered(rxq, cache, fresh, n);
	const uint32_t n_used = mr_frame_n_whole(frames, n_fresh);

	*ret_bytes = exchange_buffers(rxq, fresh, frames, n_used);
	xdp_probe_refill(rxq->base.queue.idx, n_used);
	if (n_used < n_fresh)
		mr_frag_free_bulk(cache, fresh + n_used, n_fresh - n_used);
	return n_used;
}

/* Drop frames that reach into the tailroom: a device may deliver more than its
 * MTU. Returns how many are left. With tailroom, a frame has one entry. */
static uint32_t drop_without_tailroom(struct xdp_rxq *rxq,
				      struct mr_cache *cache,
				      struct mr_frame *frames, uint32_t n,
				      uint64_t *n_bytes)
{
	const uint32_t chunk_bytes = 1u << rxq->chunk_shift;
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at =
			(uint32_t)frames[i].addr & (chunk_bytes - 1);

		if (at + frames[i].len + rxq->tailroom_bytes <= chunk_bytes) {
			frames[n_kept++] = frames[i];
			continue;
		}
		*n_bytes -= frames[i].len;
		mr_frame_free_bulk(cache, &frames[i], 1);
	}
	mr_counter_add(&rxq->base.stats.drops[MR_RX_DROP_TOO_LONG], n - n_kept);
	mr_counter_add(&rxq->base.stats.received, n - n_kept);
	return n_kept;
}

static void count_received(struct mr_rxq *rxq, const struct mr_frame *frames,
			   uint32_t n, uint64_t n_bytes)
{
	const uint32_t n_frames =
		rxq->n_min > 1 ? mr_frame_n_frames(frames, n) : n;

	mr_counter_add(&rxq->stats.bytes, n_bytes);
	mr_counter_add(&rxq->stats.delivered, n_frames);
	mr_counter_add(&rxq->stats.received, n_frames);
}

uint32_t mri_xdp_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			  struct mr_frame *frames, struct mr_meta *meta,
			  uint32_t n)
{
	struct xdp_rxq *rxq = xdp_rxq_of(base);
	/* An rx descriptor is a struct mr_frame. */
	const uint32_t n_ready = xring_peek_frames(&rxq->rx, frames, n);
	const bool has_sg = base->n_min > 1;
	const uint32_t n_whole =
		has_sg ? n_deliverable(frames, n_ready) : n_ready;
	uint64_t n_bytes;
	uint32_t n_rx = 0;

	if (rxq->in_long_frame || (n_whole == 0 && n_ready >= MR_MAX_SEGS))
		drop_long_frame(rxq, frames, n_ready);
	else if (n_whole > 0) {
		n_rx = refill(rxq, cache, frames, n_whole, &n_bytes);
		xring_release(&rxq->rx, n_rx);
		if (n_rx < n_whole)
			mr_counter_add(
				&base->stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
		if (rxq->tailroom_bytes > 0)
			n_rx = drop_without_tailroom(rxq, cache, frames, n_rx,
						     &n_bytes);
		count_received(base, frames, n_rx, n_bytes);
		rxq->idle_since_ns = 0;
	}

	if (xring_needs_wakeup(&rxq->fill))
		wake_kernel(rxq);
	if (n_ready == 0 && rxq->is_busy)
		poll_device(rxq);
	else if (n_ready == 0)
		watch_idle_queue(rxq);
	if (rxq->has_partial_csums && n_rx > 0)
		mr_counter_add(
			&base->stats.events[MR_RX_EVENT_CSUM_PARTIAL],
			mri_xdp_csum_mark(&rxq->port->base, frames, n_rx));
	if (meta != NULL)
		mri_xdp_read_meta(rxq, frames, meta, n_rx);
	return n_rx;
}

int mri_xdp_rx_arm(struct mr_queue *queue)
{
	struct xdp_rxq *rxq = (struct xdp_rxq *)queue;

	if (__atomic_load_n(&rxq->port->is_gone, __ATOMIC_RELAXED))
		return 0;
	if (xring_n_ready(&rxq->rx, 1) > 0)
		return 1;
	if (xring_needs_wakeup(&rxq->fill))
		wake_kernel(rxq);
	return 0;
}

int mri_xdp_rx_fill(struct xdp_rxq *rxq)
{
	struct mr_pool *pool = rxq->port->base.pool;
	uint64_t addrs[MR_BURST_MAX];

	for (uint32_t n_left = rxq->n_bufs, n; n_left > 0; n_left -= n) {
		n = n_left < MR_BURST_MAX ? n_left : MR_BURST_MAX;
		n = mr_pool_frag_alloc_bulk(pool, addrs, n);
		/* The pool may have grown since we looked. */
		n = keep_registered(rxq, pool, addrs, n);
		post(rxq, addrs, n);
		if (n == 0)
			return -ENOMEM;
	}
	return 0;
}

void mri_xdp_rx_take_back(struct xdp_rxq *rxq)
{
	const uint64_t n_chunks = rxq->port->lease.n_bytes >> rxq->chunk_shift;

	for (uint64_t chunk = 0; chunk < n_chunks; chunk++) {
		const uint64_t addr = chunk << rxq->chunk_shift;

		if (rxq->posted[chunk])
			mr_pool_frag_free_bulk(rxq->port->base.pool, &addr, 1);
		rxq->posted[chunk] = 0;
	}
}
