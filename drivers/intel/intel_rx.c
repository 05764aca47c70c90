/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive half: one ring, whose descriptors the device overwrites.
 *
 *     place:  next                               next + n_owed_max ..
 *       | written | written | given | ... | given | owed | owed |
 *         taken by a burst,                         refilled, RDT not
 *         refilled in place                         written yet
 *
 * Invariant, from open to close: each place has a buffer, bufs[place]. A burst
 * takes one only if it can replace it with a fresh one, so a busy application
 * never starves the device. RDT advances by n_owed_max places at a time, and
 * always leaves one: RDT == RDH would mean that the device has none (82574,
 * 7.1.8, "Receive Descriptor Queue Structure").
 *
 * What the device writes is read once, by one 64-bit load of both status and
 * length, and checked before use: a lying device costs the frame. The load
 * acquires; the device writes DD after the frame and the rest of the
 * descriptor.
 */
#include <millrace/wire.h>

#include "intel.h"

enum {
	/* A whole frame in one buffer, without errors. */
	RX_PLAIN = INTEL_RX_DD | INTEL_RX_EOP,
	RX_PLAIN_MASK = INTEL_RX_DD | INTEL_RX_EOP | INTEL_RX_BROKEN,
	/* Verified checksums; and what revokes that. */
	RX_SUMMED = INTEL_RX_TCPCS | INTEL_RX_UDPCS,
	RX_SUM_BAD = INTEL_RX_IXSM | INTEL_RX_TCPE | INTEL_RX_IPE,
};

static inline uint64_t rx_status(const struct intel_desc *desc)
{
	return __atomic_load_n(&desc->words[1], __ATOMIC_ACQUIRE);
}

static inline uint32_t rx_bytes(uint64_t status)
{
	return (uint32_t)(status >> INTEL_RX_LENGTH_SHIFT) &
	       INTEL_RX_LENGTH_MASK;
}

/* 1 to buf_bytes: a device that reports more did not write it there. */
static inline bool is_possible(const struct intel_rxq *rxq, uint32_t n_bytes)
{
	return n_bytes - 1 < rxq->buf_bytes;
}

static inline uint32_t rx_flags(uint64_t status)
{
	return (status & RX_SUMMED) && !(status & RX_SUM_BAD) ?
		       MR_FRAME_CSUM_VALID :
		       0;
}

static inline struct mr_frame rx_entry(const struct intel_rxq *rxq,
				       uint32_t place, uint64_t status,
				       uint32_t flags)
{
	return (struct mr_frame){
		.addr = rxq->bufs[place] + rxq->headroom_bytes,
		.len = rx_bytes(status),
		.flags = flags,
	};
}

/* By RSS type. Source: 82576 datasheet, 7.1.2.10.1. */
static const uint8_t hash_types[INTEL_RX_RSS_TYPE + 1] = {
	[1] = MR_HASH_IPV4 | MR_HASH_L4 | MR_HASH_TCP,
	[2] = MR_HASH_IPV4,
	[3] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_TCP,
	[4] = MR_HASH_IPV6,
	[5] = MR_HASH_IPV6,
	[6] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_TCP,
	[7] = MR_HASH_IPV4 | MR_HASH_L4 | MR_HASH_UDP,
	[8] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_UDP,
	[9] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_UDP,
};

static inline void rx_meta(const struct intel_rxq *rxq,
			   const struct intel_desc *desc, uint64_t status,
			   struct mr_meta *meta)
{
	const uint64_t word = desc->words[0];

	meta->valid = 0;
	if (word & INTEL_RX_RSS_TYPE) {
		meta->valid |= MR_META_RSS_HASH;
		meta->rss_hash = (uint32_t)(word >> INTEL_RX_HASH_SHIFT);
		meta->hash_type = hash_types[word & INTEL_RX_RSS_TYPE];
	}
	if (status & rxq->vlan_mask) {
		meta->valid |= MR_META_VLAN;
		meta->vlan_proto = MR_ETHER_VLAN;
		meta->vlan_tci = (uint16_t)(status >> INTEL_RX_VLAN_SHIFT);
	}
}

/* Tell the device about refilled places once it is worth a doorbell. */
static inline void announce(struct intel_rxq *rxq, uint32_t n)
{
	rxq->next += n;
	rxq->n_owed += n;
	if (rxq->n_owed < rxq->n_owed_max || intel_is_gone(rxq->port))
		return;
	rxq->n_owed = 0;
	intel_write(rxq->port, rxq->tail_reg, (rxq->next - 1) & rxq->mask);
}

/*
 * Cold: only n_fresh of n places can be refilled. Returns how many are taken,
 * as whole frames; the other buffers go back.
 */
__attribute__((noinline, cold)) static uint32_t
cut_short(struct intel_rxq *rxq, struct mr_cache *cache,
	  const struct mr_frame *frames, const uint64_t *fresh,
	  uint32_t n_fresh)
{
	const uint32_t n = mr_frame_n_whole(frames, n_fresh);

	mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
	mr_frag_free_bulk(cache, fresh + n, n_fresh - n);
	return n;
}

/* refill() for more than one: separate, to spare one the array. */
__attribute__((noinline)) static uint32_t
refill_bulk(struct intel_rxq *rxq, struct mr_cache *cache,
	    const struct mr_frame *frames, uint32_t n)
{
	/* Read once: the compiler cannot know that ring is not rxq. */
	const struct intel_rxq q = { .ring = rxq->ring,
				     .bufs = rxq->bufs,
				     .next = rxq->next,
				     .mask = rxq->mask,
				     .data_iova = rxq->data_iova };
	uint64_t fresh[MR_BURST_MAX];
	const uint32_t n_fresh =
		mr_frag_alloc_bulk(cache, fresh, n, rxq->page_bytes);

	if (n_fresh < n)
		n = cut_short(rxq, cache, frames, fresh, n_fresh);
	for (uint32_t i = 0; i < n; i++)
		intel_rx_post(&q, (q.next + i) & q.mask, fresh[i]);
	announce(rxq, n);
	return n;
}

/*
 * Put fresh buffers in the first n places, whose own buffers the caller has as
 * whole frames. Returns how many entries the caller may keep.
 */
static inline uint32_t refill(struct intel_rxq *rxq, struct mr_cache *cache,
			      const struct mr_frame *frames, uint32_t n)
{
	uint64_t page;

	if (n > 1)
		return refill_bulk(rxq, cache, frames, n);
	page = mr_frag_alloc(cache, rxq->page_bytes);
	if (page == MR_ADDR_NONE)
		return cut_short(rxq, cache, frames, &page, 0);
	intel_rx_post(rxq, rxq->next & rxq->mask, page);
	announce(rxq, 1);
	return 1;
}

/*
 * Cold. Consume the undeliverable frame at the head of the ring, up to its end
 * or that of the visible descriptors; then the next burst continues here. The
 * buffers stay in their places.
 */
__attribute__((noinline, cold)) static void drop_frame(struct intel_rxq *rxq,
						       enum mr_rx_drop why)
{
	uint32_t n = 0;
	bool is_end = false;

	while (!is_end && n <= rxq->mask) {
		const uint32_t place = (rxq->next + n) & rxq->mask;
		const uint64_t status = rx_status(&rxq->ring[place]);

		if (!(status & INTEL_RX_DD))
			break;
		is_end = status & INTEL_RX_EOP;
		intel_rx_post(rxq, place, rxq->bufs[place]);
		n++;
	}
	/* Counted at its first piece, by what is known then. */
	if (!rxq->is_dropping)
		mr_counter_add(&rxq->base.stats.drops[why], 1);
	rxq->is_dropping = !is_end;
	announce(rxq, n);
}

/*
 * Cold. Drop what is at the head of the ring if it is not a plain frame; one
 * that came since the burst looked is left to the next burst.
 */
__attribute__((noinline, cold)) static void drop_head(struct intel_rxq *rxq)
{
	const uint64_t status = rx_status(&rxq->ring[rxq->next & rxq->mask]);

	if (!rxq->is_dropping && (status & RX_PLAIN_MASK) == RX_PLAIN &&
	    is_possible(rxq, rx_bytes(status)))
		return;
	drop_frame(rxq, (status & INTEL_RX_BROKEN) != 0 ||
					!is_possible(rxq, rx_bytes(status)) ?
				MR_RX_DROP_INVALID :
				MR_RX_DROP_TOO_LONG);
}

/* Cold: for a burst that was cut short. */
__attribute__((noinline, cold)) static uint64_t
sum_bytes(const struct mr_frame *frames, uint32_t n)
{
	return mr_frame_n_bytes(frames, n);
}

static inline void count(struct intel_rxq *rxq, uint64_t n_bytes,
			 uint32_t n_frames)
{
	mr_counter_add(&rxq->base.stats.bytes, n_bytes);
	mr_counter_add(&rxq->base.stats.delivered, n_frames);
}

__attribute__((always_inline)) static inline uint32_t
receive(struct intel_rxq *rxq, struct mr_cache *cache, struct mr_frame *frames,
	struct mr_meta *meta, uint32_t n)
{
	/* Read once: the compiler cannot know that frames are not rxq. */
	const uint32_t next = rxq->next, mask = rxq->mask;
	const struct intel_desc *const ring = rxq->ring;
	const uint64_t *const bufs = rxq->bufs;
	uint32_t n_ready, n_rx;
	uint64_t n_bytes = 0;

	for (n_ready = 0; n_ready < n; n_ready++) {
		const uint32_t place = (next + n_ready) & mask;
		const uint64_t status = rx_status(&ring[place]);
		const uint32_t len = rx_bytes(status);

		if ((status & RX_PLAIN_MASK) != RX_PLAIN ||
		    !is_possible(rxq, len))
			break;
		frames[n_ready].addr = bufs[place] + rxq->headroom_bytes;
		frames[n_ready].len = len;
		frames[n_ready].flags = rx_flags(status);
		n_bytes += len;
		if (meta != NULL)
			rx_meta(rxq, &ring[place], status, &meta[n_ready]);
	}
	if (n_ready == 0 || rxq->is_dropping) {
		if (n > 0 && (rx_status(&ring[next & mask]) & INTEL_RX_DD))
			drop_head(rxq);
		return 0;
	}
	n_rx = refill(rxq, cache, frames, n_ready);
	if (n_rx < n_ready)
		n_bytes = sum_bytes(frames, n_rx);
	count(rxq, n_bytes, n_rx);
	return n_rx;
}

/* A separate copy: the loop above does not check for metadata. */
__attribute__((noinline)) static uint32_t
receive_with_meta(struct intel_rxq *rxq, struct mr_cache *cache,
		  struct mr_frame *frames, struct mr_meta *meta, uint32_t n)
{
	return receive(rxq, cache, frames, meta, n);
}

uint32_t mri_intel_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			    struct mr_frame *frames, struct mr_meta *meta,
			    uint32_t n)
{
	struct intel_rxq *rxq = (struct intel_rxq *)base;

	if (meta != NULL)
		return receive_with_meta(rxq, cache, frames, meta, n);
	return receive(rxq, cache, frames, NULL, n);
}

/* What the ring has, in entries. */
struct look {
	uint32_t n_whole;  /* of whole frames */
	uint32_t n_frames; /* their number */
	uint32_t n_after;  /* of the next frame, which is incomplete */
	bool is_broken;    /* the next frame cannot be delivered */
};

/*
 * Whole frames at the head of the ring. A frame's last descriptor has its
 * status, hash and tag, which its first entry gets.
 */
static inline struct look look_at(const struct intel_rxq *rxq,
				  struct mr_frame *frames, struct mr_meta *meta,
				  uint32_t n)
{
	struct look look = { 0 };
	uint32_t first = 0;

	for (uint32_t i = 0; i < n && look.n_after < MR_MAX_SEGS; i++) {
		const uint32_t place = (rxq->next + i) & rxq->mask;
		const uint64_t status = rx_status(&rxq->ring[place]);

		if (!(status & INTEL_RX_DD))
			break;
		look.n_after++;
		if ((status & INTEL_RX_BROKEN) ||
		    !is_possible(rxq, rx_bytes(status))) {
			look.is_broken = true;
			break;
		}
		frames[i] = rx_entry(rxq, place, status, MR_FRAME_MORE);
		if (!(status & INTEL_RX_EOP))
			continue;
		frames[i].flags = 0;
		frames[first].flags |= rx_flags(status);
		if (meta != NULL)
			rx_meta(rxq, &rxq->ring[place], status, &meta[first]);
		first = i + 1;
		look.n_whole = first;
		look.n_frames++;
		look.n_after = 0;
	}
	return look;
}

uint32_t mri_intel_rx_burst_sg(struct mr_rxq *base, struct mr_cache *cache,
			       struct mr_frame *frames, struct mr_meta *meta,
			       uint32_t n)
{
	struct intel_rxq *rxq = (struct intel_rxq *)base;
	struct look look = { 0 };
	uint32_t n_rx;

	if (rxq->is_dropping)
		drop_frame(rxq, MR_RX_DROP_TOO_LONG);
	if (!rxq->is_dropping)
		look = look_at(rxq, frames, meta, n);
	if (look.n_whole == 0) {
		if (look.is_broken)
			drop_frame(rxq, MR_RX_DROP_INVALID);
		else if (look.n_after == MR_MAX_SEGS)
			drop_frame(rxq, MR_RX_DROP_TOO_LONG);
		return 0;
	}
	n_rx = refill(rxq, cache, frames, look.n_whole);
	count(rxq, mr_frame_n_bytes(frames, n_rx),
	      n_rx == look.n_whole ? look.n_frames :
				     mr_frame_n_frames(frames, n_rx));
	return n_rx;
}

int mri_intel_rx_arm(struct mr_queue *queue)
{
	struct intel_rxq *rxq = (struct intel_rxq *)queue;
	const uint32_t place = rxq->next & rxq->mask;

	if (intel_is_gone(rxq->port))
		return 0; /* nothing comes any more; the fd stays quiet */
	if (rx_status(&rxq->ring[place]) & INTEL_RX_DD)
		return 1;
	mri_intel_irq_forget(rxq->port, queue->fd, rxq->irq_bit);
	if (rx_status(&rxq->ring[place]) & INTEL_RX_DD)
		return 1;
	if (intel_is_gone(rxq->port))
		return 0;
	mri_intel_irq_arm(rxq->port, rxq->irq_bit);
	return (rx_status(&rxq->ring[place]) & INTEL_RX_DD) != 0;
}

void mri_intel_rxq_stats(const struct mr_rxq *base, struct mr_rx_stats *stats)
{
	(void)base;
	stats->received = stats->delivered;
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		stats->received += stats->drops[i];
}
