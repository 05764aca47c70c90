/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmit half: one ring of descriptors, and what each one holds: posted[].
 *
 *     application --> posted[tail], ring[tail] --> TDT --> device
 *     caller's cache <-- posted[clean] <-- where the device reports to be
 *
 * Invariant: posted[clean .. tail - 1] are exactly the references that the
 * queue owns (and contexts, which own none), which closing takes back.
 *
 * The last descriptor of each burst requests a report (RS). igb then writes its
 * head to memory, so checking any number of descriptors takes one load (82576,
 * "Tx Completions Head Write Back"); the 82574 sets DD in that descriptor,
 * whose place the first one of its group records. Sent buffers go to the cache
 * of the call that collects them, INTEL_TX_REAP or more at once, straight from
 * posted[]; a burst of 0 collects all.
 *
 * What the device reports is checked: an impossible head is no progress.
 */
#include "intel.h"

static inline uint32_t n_outstanding(const struct intel_txq *txq)
{
	return txq->tail - txq->clean;
}

/* DD: whole groups, reported by the last descriptor of each. */
static uint32_t n_done_by_groups(const struct intel_txq *txq)
{
	uint32_t end = txq->clean;

	while (end != txq->tail) {
		const uint32_t place = end & txq->mask;
		const uint32_t last = txq->group_end[place];
		const uint64_t word = __atomic_load_n(&txq->ring[last].words[1],
						      __ATOMIC_ACQUIRE);

		if (!(word >> INTEL_TX_DD_SHIFT & 1))
			break;
		end += ((last - place) & txq->mask) + 1;
	}
	return end - txq->clean;
}

static inline uint32_t n_done(const struct intel_txq *txq)
{
	uint32_t n;

	if (txq->head == NULL)
		return n_done_by_groups(txq);
	n = (__atomic_load_n(txq->head, __ATOMIC_ACQUIRE) - txq->clean) &
	    txq->mask;
	return n <= n_outstanding(txq) ? n : 0;
}

/* Cold: some of these places are contexts or parts of a frame. */
__attribute__((noinline)) static void
collect_special(struct intel_txq *txq, struct mr_cache *cache, uint32_t n)
{
	uint64_t addrs[MR_BURST_MAX];
	uint32_t n_addrs = 0, n_frames = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t posted =
			txq->posted[(txq->clean + i) & txq->mask];

		if (posted & INTEL_POSTED_MORE)
			txq->n_special--;
		else
			n_frames++;
		if (posted == INTEL_POSTED_CONTEXT)
			continue;
		addrs[n_addrs++] = posted & ~INTEL_POSTED_MORE;
		if (n_addrs == MR_BURST_MAX) {
			mr_frag_free_bulk(cache, addrs, n_addrs);
			n_addrs = 0;
		}
	}
	mr_frag_free_bulk(cache, addrs, n_addrs);
	txq->clean += n;
	mr_counter_add(&txq->base.stats.completed, n_frames);
}

/* Move the buffers of n sent descriptors to the caller's cache. */
static void collect(struct intel_txq *txq, struct mr_cache *cache, uint32_t n)
{
	const uint32_t place = txq->clean & txq->mask;
	const uint32_t n_to_end = txq->mask + 1 - place;
	const uint32_t n_first = n < n_to_end ? n : n_to_end;

	if (txq->n_special > 0) {
		collect_special(txq, cache, n);
		return;
	}
	mr_frag_free_bulk(cache, txq->posted + place, n_first);
	if (n > n_first)
		mr_frag_free_bulk(cache, txq->posted, n - n_first);
	txq->clean += n;
	mr_counter_add(&txq->base.stats.completed, n);
}

__attribute__((noinline)) static void reap(struct intel_txq *txq,
					   struct mr_cache *cache)
{
	const uint32_t n = n_done(txq);

	if (n > 0)
		collect(txq, cache, n);
}

__attribute__((noinline, cold)) bool
mri_intel_tx_find_segment(struct intel_txq *txq, const struct mr_frame *entry)
{
	uint64_t begin, end;

	if (!mr_region_find(txq->port->base.region, entry->addr, entry->len,
			    &begin, &end))
		return false;
	txq->segment_begin = begin;
	txq->segment_bytes = end - begin;
	return true;
}

/*
 * A single-entry frame without offloads, of a length that the device takes
 * (INTEL_MIN_TX_BYTES, and up to max_above more), in mapped memory.
 */
static inline bool is_plain(const struct intel_txq *txq,
			    const struct mr_frame *frame,
			    const struct mr_meta *meta, uint32_t max_above)
{
	const uint32_t asks = MR_FRAME_MORE | MR_FRAME_CSUM_PARTIAL;

	return (frame->flags & asks) == 0 &&
	       frame->len - INTEL_MIN_TX_BYTES <= max_above &&
	       intel_tx_is_mapped(txq, frame) &&
	       (meta == NULL || (meta->valid & MR_META_VLAN) == 0);
}

static inline void submit(struct intel_txq *txq, uint32_t tail)
{
	const uint32_t last = (tail - 1) & txq->mask;

	txq->ring[last].words[1] |= INTEL_TX_RS;
	if (txq->head == NULL)
		txq->group_end[txq->tail & txq->mask] = (uint16_t)last;
	txq->tail = tail;
	intel_write(txq->port, txq->tail_reg, tail & txq->mask);
}

/* Post the first of n frames, up to one that is not plain. Returns how many. */
__attribute__((always_inline)) static inline uint32_t
post_plain(const struct intel_txq *txq, uint32_t tail,
	   const struct mr_frame *frames, const struct mr_meta *meta,
	   uint32_t n, uint64_t *n_bytes)
{
	struct intel_desc *const ring = txq->ring;
	uint64_t *const posted = txq->posted;
	const uint32_t mask = txq->mask;
	const uint32_t max_above =
		__atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED) -
		INTEL_MIN_TX_BYTES;
	const struct mr_frame *const end = frames + n;
	const struct mr_frame *frame;
	uint64_t n_sum_bytes = 0;

	for (frame = frames; frame != end; frame++, tail++) {
		const uint32_t place = tail & mask;
		const uint32_t len = frame->len;
		const uint64_t addr = frame->addr;

		if (!is_plain(txq, frame, meta, max_above))
			break;
		if (meta != NULL)
			meta++;
		posted[place] = addr;
		ring[place].words[0] = txq->region_iova + addr;
		ring[place].words[1] = txq->command + len * txq->per_byte;
		n_sum_bytes += len;
	}
	*n_bytes += n_sum_bytes;
	return (uint32_t)(frame - frames);
}

static inline void count(struct intel_txq *txq,
			 const struct intel_tx_burst *burst)
{
	if (burst->tail != txq->tail)
		submit(txq, burst->tail);
	mr_counter_add(&txq->base.stats.accepted, burst->n_frames);
	mr_counter_add(&txq->base.stats.bytes, burst->n_bytes);
}

/* A burst that is not all plain, or does not fit. */
__attribute__((noinline)) static uint32_t
send_mixed(struct intel_txq *txq, struct mr_cache *cache,
	   const struct mr_frame *frames, const struct mr_meta *meta,
	   uint32_t n)
{
	struct intel_tx_burst burst = {
		.tail = txq->tail,
		.n_room = txq->mask - n_outstanding(txq),
	};
	uint32_t i = 0;

	n = mr_frame_n_whole(frames, n);
	while (i < n) {
		const uint32_t n_left = n - i;
		const uint32_t n_plain = post_plain(
			txq, burst.tail, frames + i,
			meta != NULL ? meta + i : NULL,
			n_left < burst.n_room ? n_left : burst.n_room,
			&burst.n_bytes);

		burst.tail += n_plain;
		burst.n_room -= n_plain;
		burst.n_frames += n_plain;
		i += n_plain;
		if (i == n ||
		    !mri_intel_tx_frame(txq, cache, &frames[i],
					meta != NULL ? &meta[i] : NULL, &burst))
			break;
		i += mr_frame_n_entries(&frames[i]);
	}
	count(txq, &burst);
	if (i < n)
		mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_RING_FULL],
			       1);
	return i;
}

__attribute__((always_inline)) static inline uint32_t
send(struct intel_txq *txq, struct mr_cache *cache,
     const struct mr_frame *frames, const struct mr_meta *meta, uint32_t n)
{
	struct intel_tx_burst burst = { 0 };
	uint32_t n_plain = 0;

	if (intel_is_gone(txq->port))
		return mr_txq_lose(&txq->base, cache, frames, n,
				   MR_TX_DROP_PORT_GONE);
	if (n_outstanding(txq) >= INTEL_TX_REAP || n == 0)
		reap(txq, cache);
	if (n <= txq->mask - n_outstanding(txq))
		n_plain = post_plain(txq, txq->tail, frames, meta, n,
				     &burst.n_bytes);
	/* Post again what was posted: the device does not know yet. */
	if (n_plain < n)
		return send_mixed(txq, cache, frames, meta, n);
	burst.tail = txq->tail + n;
	burst.n_frames = n;
	count(txq, &burst);
	return n;
}

/* A separate copy: the loop above does not check for metadata. */
__attribute__((noinline)) static uint32_t
send_with_meta(struct intel_txq *txq, struct mr_cache *cache,
	       const struct mr_frame *frames, const struct mr_meta *meta,
	       uint32_t n)
{
	return send(txq, cache, frames, meta, n);
}

uint32_t mri_intel_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			    const struct mr_frame *frames,
			    const struct mr_meta *meta, uint32_t n)
{
	struct intel_txq *txq = (struct intel_txq *)base;

	if (meta != NULL)
		return send_with_meta(txq, cache, frames, meta, n);
	return send(txq, cache, frames, NULL, n);
}

int mri_intel_tx_arm(struct mr_queue *queue)
{
	struct intel_txq *txq = (struct intel_txq *)queue;
	struct intel_port *port = txq->port;

	if (n_outstanding(txq) == 0 || intel_is_gone(port))
		return 0;
	if (n_done(txq) > 0)
		return 1;
	/* Without a vector: look again soon, unless nothing can leave. */
	if (txq->irq_bit == 0)
		return (int)__atomic_load_n(&port->is_up, __ATOMIC_RELAXED);
	mri_intel_irq_forget(port, queue->fd, txq->irq_bit);
	if (n_done(txq) > 0)
		return 1;
	if (intel_is_gone(port))
		return 0;
	mri_intel_irq_arm(port, txq->irq_bit);
	return n_done(txq) > 0;
}

void mri_intel_txq_stats(const struct mr_txq *base, struct mr_tx_stats *stats)
{
	uint64_t n_gone = stats->completed;

	(void)base;
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_gone += stats->drops[i];
	/* While frames move: what is gone was read after what was accepted. */
	stats->pending =
		stats->accepted > n_gone ? stats->accepted - n_gone : 0;
}
