/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive half: mbufs to frames.
 *
 *     caller's cache --> view --> device's rx ring --> mbuf --> application
 *
 * A frame takes over the page of the header's buffer; the header is then unused
 * until DPDK gets the page again. A burst asks for no more frames than the pool
 * has pages to replace: most devices drop frames for lack of a fresh buffer.
 *
 * The device may return more than the caller has room for, since a burst asks
 * for at least DPDK_MIN_ASKED, and since frames may have several segments:
 * whole frames that do not fit are stashed for the next burst.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <millrace/net.h>
#include <millrace/wire.h>

#include "dpdk.h"

/*
 * For how many of n frames the pool has pages. They are then in the cache,
 * where nobody else takes them.
 */
static uint32_t n_refillable(struct dpdk_rxq *rxq, struct mr_cache *cache,
			     uint32_t n_wanted)
{
	const uint32_t n = RTE_MAX(n_wanted, (uint32_t)DPDK_MIN_ASKED);
	const struct mr_cache_head *head =
		(const struct mr_cache_head *)(const void *)cache;
	const uint32_t n_pages =
		RTE_MIN(n * rxq->max_segs, (uint32_t)MR_BURST_MAX);
	uint64_t addrs[MR_BURST_MAX];
	uint32_t n_got;

	if (likely((head->top & MR_TOP_MASK) >= n_pages))
		return RTE_MIN(n, n_pages / rxq->max_segs);
	n_got = mr_frag_alloc_bulk(cache, addrs, n_pages,
				   1u << rxq->view->page_shift);
	mr_frag_free_bulk(cache, addrs, n_got);
	if (unlikely(n_got < RTE_MIN(n_wanted * rxq->max_segs, n_pages)))
		mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_POOL_EMPTY],
			       1);
	return RTE_MIN(n, n_got / rxq->max_segs);
}

static inline uint32_t flags_of(uint64_t ol_flags)
{
	return (ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) ==
			       RTE_MBUF_F_RX_L4_CKSUM_GOOD ?
		       MR_FRAME_CSUM_VALID :
		       0;
}

static inline void fill_meta(const struct rte_mbuf *mbuf, struct mr_meta *meta)
{
	meta->valid = 0;
	if (mbuf->ol_flags & RTE_MBUF_F_RX_RSS_HASH) {
		meta->valid |= MR_META_RSS_HASH;
		meta->rss_hash = mbuf->hash.rss;
		meta->hash_type = 0; /* ethdev does not report it */
	}
	if (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) {
		meta->valid |= MR_META_VLAN;
		meta->vlan_proto = MR_ETHER_VLAN;
		meta->vlan_tci = mbuf->vlan_tci;
	}
}

static inline struct mr_frame entry_of(const struct dpdk_rxq *rxq,
				       const struct rte_mbuf *mbuf)
{
	return (struct mr_frame){
		.addr = (uint64_t)((const uint8_t *)mbuf->buf_addr -
				   rxq->region) +
			mbuf->data_off,
		.len = mbuf->data_len,
	};
}

/*
 * The common case: a single buffer of our view, with nothing to do. An mbuf
 * that a program had meanwhile, and may have cloned, has the tag of a tx queue.
 * The header's address shows that it belongs to the view.
 */
static inline bool is_plain(const struct rte_mbuf *mbuf, uintptr_t headers,
			    uint64_t n_header_bytes, uint64_t keep_vlan)
{
	return (uintptr_t)mbuf - headers < n_header_bytes &&
	       mbuf->nb_segs == 1 && rte_mbuf_refcnt_read(mbuf) == 1 &&
	       mbuf->data_len != 0 && !dpdk_is_tag(mbuf->port) &&
	       (mbuf->ol_flags & keep_vlan) == 0 &&
	       (mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) !=
		       RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

/*
 * Convert the plain mbufs at the start, up to n. A separate loop without calls,
 * so that everything stays in registers.
 */
static __rte_noinline uint32_t convert_plain(const struct dpdk_rxq *rxq,
					     struct rte_mbuf *const *mbufs,
					     uint32_t n,
					     struct mr_frame *frames,
					     uint64_t *n_bytes)
{
	const struct dpdk_view *view = rxq->view;
	const uintptr_t headers = (uintptr_t)view->first;
	const uint64_t n_header_bytes = view->n_header_bytes;
	const uint64_t keep_vlan = rxq->keep_vlan;
	const uintptr_t region = (uintptr_t)rxq->region;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct rte_mbuf *mbuf = mbufs[i];

		if (unlikely(!is_plain(mbuf, headers, n_header_bytes,
				       keep_vlan)))
			break;
		frames[i].addr =
			(uintptr_t)mbuf->buf_addr - region + mbuf->data_off;
		frames[i].len = mbuf->data_len;
		/* One of the two bits: a plain frame does not have both. */
		frames[i].flags = mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_GOOD ?
					  MR_FRAME_CSUM_VALID :
					  0;
		sum += mbuf->data_len;
	}
	*n_bytes += sum;
	return i;
}

/* Whether each segment is a page of our region that only DPDK holds. */
static bool is_ours(const struct dpdk_rxq *rxq, const struct rte_mbuf *mbuf)
{
	for (; mbuf != NULL; mbuf = mbuf->next) {
		const struct dpdk_extras *extras = mri_dpdk_extras_of(mbuf);
		const struct dpdk_view *view =
			extras != NULL ? extras->view : mri_dpdk_view_of(mbuf);

		if (view == NULL || view->base != rxq->region ||
		    rte_mbuf_refcnt_read(mbuf) != 1 ||
		    rte_mbuf_ext_refcnt_read(mbuf->shinfo) != 1)
			return false;
	}
	return true;
}

/* Take over the pages; free the headers without them. */
static void take_frame(struct dpdk_rxq *rxq, struct rte_mbuf *mbuf,
		       struct mr_frame *frames)
{
	uint32_t n = 0;
	uint16_t tag;

	for (struct rte_mbuf *next; mbuf != NULL; mbuf = next) {
		next = mbuf->next;
		frames[n] = entry_of(rxq, mbuf);
		frames[n++].flags = next != NULL ? MR_FRAME_MORE : 0;
		mbuf->next = NULL;
		mbuf->nb_segs = 1;
		tag = dpdk_take_tag(mbuf);
		if (mri_dpdk_extras_of(mbuf) != NULL)
			mri_dpdk_extra_put(mbuf);
		mri_dpdk_completed(tag);
	}
}

/* Copy bytes of an mbuf, from an offset, into one buffer. */
static void copy_bytes(struct dpdk_rxq *rxq, const struct rte_mbuf *mbuf,
		       uint32_t from, struct mr_frame *frame)
{
	uint8_t *to = mr_frame_data(rxq->region, frame);
	const void *bytes = rte_pktmbuf_read(mbuf, from, frame->len, to);

	if (bytes != to)
		memcpy(to, bytes, frame->len);
}

/*
 * Copy a frame in foreign or shared memory: a program that uses DPDK itself may
 * put such frames into a ring. False: no page.
 */
static bool copy_frame(struct dpdk_rxq *rxq, struct mr_cache *cache,
		       const struct rte_mbuf *mbuf, struct mr_frame *frames,
		       uint32_t n)
{
	uint32_t from = 0;

	if (mr_port_alloc_frame(rxq->port->base, cache, mbuf->pkt_len,
				UINT64_MAX, frames) == 0)
		return false;
	for (uint32_t i = 0; i < n; from += frames[i++].len)
		copy_bytes(rxq, mbuf, from, &frames[i]);
	mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_FOREIGN_COPIED], 1);
	return true;
}

/*
 * Reinsert a tag that the device stripped unasked, as af_packet does: into the
 * headroom, which DPDK may use until we deliver.
 */
static void put_tag_back(struct dpdk_rxq *rxq, uint16_t tci,
			 struct mr_frame *frame)
{
	const uint8_t tag[4] = { 0x81, 0x00, (uint8_t)(tci >> 8),
				 (uint8_t)tci };
	uint8_t *bytes = mr_frame_data(rxq->region, frame);

	if (frame->len < DPDK_MIN_FRAME_BYTES)
		return;
	memmove(bytes - sizeof(tag), bytes, 12);
	memcpy(bytes - sizeof(tag) + 12, tag, sizeof(tag));
	frame->addr -= sizeof(tag);
	frame->len += sizeof(tag);
}

static void drop_frame(struct dpdk_rxq *rxq, struct rte_mbuf *mbuf,
		       enum mr_rx_drop why)
{
	rte_pktmbuf_free(mbuf);
	mr_counter_add(&rxq->base.stats.received, 1);
	mr_counter_add(&rxq->base.stats.drops[why], 1);
}

/* Entries for a frame off the fast path; 0: it cannot be delivered. */
static uint32_t n_entries(const struct dpdk_rxq *rxq,
			  const struct rte_mbuf *mbuf)
{
	const uint32_t room_bytes = mr_port_room_bytes(rxq->port->base);

	for (const struct rte_mbuf *seg = mbuf; seg != NULL; seg = seg->next)
		if (seg->data_len == 0)
			return 0;
	return is_ours(rxq, mbuf) ?
		       mbuf->nb_segs :
		       (mbuf->pkt_len + room_bytes - 1) / room_bytes;
}

/*
 * Whether a frame with RTE_MBUF_F_RX_L4_CKSUM_NONE has a partial checksum, as
 * the other side of virtio leaves it. net_tap sets it for UDP without a
 * checksum, and others may for what they did not check, so compare with the
 * pseudo-header's.
 */
static bool is_partial(const struct dpdk_rxq *rxq,
		       const struct mr_frame *frames, uint32_t n)
{
	const uint8_t *bytes = mr_frame_data(rxq->region, frames);
	struct mr_net_view view;
	uint16_t pseudo, sum;

	if (mr_net_parse(bytes, frames[0].len,
			 (uint32_t)mr_frame_n_bytes(frames, n), &view) < 0 ||
	    view.csum_bytes == 0)
		return false;
	pseudo = mr_csum_pseudo(bytes, &view);
	memcpy(&sum, bytes + view.csum_bytes, sizeof(sum));
	return sum == pseudo;
}

/* Deliver one frame off the fast path. Returns its entries, 0: none. */
static uint32_t deliver_frame(struct dpdk_rxq *rxq, struct mr_cache *cache,
			      struct rte_mbuf *mbuf, struct mr_frame *frames,
			      struct mr_meta *meta, uint32_t n)
{
	const uint64_t ol_flags = mbuf->ol_flags;
	const uint16_t tci = mbuf->vlan_tci;

	if (meta != NULL)
		fill_meta(mbuf, meta);
	if (is_ours(rxq, mbuf)) {
		take_frame(rxq, mbuf, frames);
	} else if (copy_frame(rxq, cache, mbuf, frames, n)) {
		rte_pktmbuf_free(mbuf);
	} else {
		drop_frame(rxq, mbuf, MR_RX_DROP_NO_BUFFER);
		return 0;
	}
	if (ol_flags & rxq->keep_vlan) {
		put_tag_back(rxq, tci, frames);
		if (meta != NULL)
			meta->valid &= ~(uint32_t)MR_META_VLAN;
	}
	frames[0].flags |= flags_of(ol_flags);
	if ((ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) ==
		    RTE_MBUF_F_RX_L4_CKSUM_NONE &&
	    is_partial(rxq, frames, n))
		frames[0].flags |= MR_FRAME_CSUM_PARTIAL;
	return n;
}

/*
 * The cold half of convert(): false if the frame must wait for the next burst.
 * *ret_n is its entries, 0 if it was dropped.
 */
static __rte_noinline bool
convert_odd(struct dpdk_rxq *rxq, struct mr_cache *cache, struct rte_mbuf *mbuf,
	    struct mr_frame *frames, struct mr_meta *meta, uint32_t room,
	    uint32_t *ret_n)
{
	const uint32_t n = n_entries(rxq, mbuf);

	*ret_n = 0;
	if (n == 0)
		drop_frame(rxq, mbuf, MR_RX_DROP_INVALID);
	else if (n > (rxq->has_sg ? MR_MAX_SEGS : 1))
		drop_frame(rxq, mbuf, MR_RX_DROP_TOO_LONG);
	else if (n > room)
		return false;
	else
		*ret_n = deliver_frame(rxq, cache, mbuf, frames, meta, n);
	return true;
}

/* Convert n mbufs to frames, as many as fit. Returns entries. */
static inline uint32_t convert(struct dpdk_rxq *rxq, struct mr_cache *cache,
			       struct rte_mbuf *const *mbufs, uint32_t n,
			       struct mr_frame *frames, struct mr_meta *meta,
			       uint32_t room, uint32_t *ret_n_used)
{
	uint64_t n_frames = 0, n_bytes = 0;
	uint32_t n_out = 0, i = 0;

	while (i < n && n_out < room) {
		struct mr_meta *m = meta != NULL ? &meta[n_out] : NULL;
		const uint32_t n_plain = convert_plain(
			rxq, mbufs + i, RTE_MIN(n - i, room - n_out),
			frames + n_out, &n_bytes);
		uint32_t n_segs;

		for (uint32_t k = 0; m != NULL && k < n_plain; k++)
			fill_meta(mbufs[i + k], &m[k]);
		i += n_plain;
		n_out += n_plain;
		n_frames += n_plain;
		if (likely(i == n) || n_out == room)
			break;
		m = meta != NULL ? &meta[n_out] : NULL;
		if (!convert_odd(rxq, cache, mbufs[i], &frames[n_out], m,
				 room - n_out, &n_segs))
			break;
		n_bytes += mr_frame_n_bytes(&frames[n_out], n_segs);
		n_frames += n_segs > 0;
		n_out += n_segs;
		i++;
	}
	mr_counter_add(&rxq->base.stats.received, n_frames);
	mr_counter_add(&rxq->base.stats.delivered, n_frames);
	mr_counter_add(&rxq->base.stats.bytes, n_bytes);
	*ret_n_used = i;
	return n_out;
}

static __rte_noinline uint32_t unstash(struct dpdk_rxq *rxq,
				       struct mr_cache *cache,
				       struct mr_frame *frames,
				       struct mr_meta *meta, uint32_t n)
{
	uint32_t n_used, n_out;

	n_out = convert(rxq, cache, rxq->stash + rxq->stash_at, rxq->n_stashed,
			frames, meta, n, &n_used);
	rxq->stash_at += n_used;
	rxq->n_stashed -= n_used;
	return n_out;
}

static void stash_mbufs(struct dpdk_rxq *rxq, struct rte_mbuf *const *mbufs,
			uint32_t n)
{
	memcpy(rxq->stash, mbufs, n * sizeof(mbufs[0]));
	rxq->stash_at = 0;
	rxq->n_stashed = n;
}

/* Avoid an interrupt per frame while the queue is polled. */
static __rte_noinline void disarm(struct dpdk_rxq *rxq)
{
	(void)rte_eth_dev_rx_intr_disable(rxq->port_id,
					  (uint16_t)rxq->base.queue.idx);
	rxq->is_armed = false;
}

uint32_t mri_dpdk_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			   struct mr_frame *frames, struct mr_meta *meta,
			   uint32_t n)
{
	struct dpdk_rxq *rxq = (struct dpdk_rxq *)base;
	struct rte_mbuf *mbufs[MR_BURST_MAX];
	struct dpdk_call call;
	uint32_t n_want, n_got, n_used, n_out;

	if (unlikely(rxq->is_armed))
		disarm(rxq);
	if (unlikely(rxq->n_stashed > 0))
		return unstash(rxq, cache, frames, meta, n);
	if (unlikely(n == 0))
		return 0;
	n_want = n_refillable(rxq, cache, n);
	if (unlikely(n_want == 0))
		return 0;
	dpdk_call_begin(&call, rxq->view, cache, DPDK_NO_TAG, NULL);
	n_got = rte_eth_rx_burst(rxq->port_id, (uint16_t)base->queue.idx, mbufs,
				 (uint16_t)n_want);
	if (n_got == 0) {
		dpdk_call_end(&call);
		return 0;
	}
	n_out = convert(rxq, cache, mbufs, n_got, frames, meta, n, &n_used);
	dpdk_call_end(&call);
	if (unlikely(call.was_empty))
		mr_counter_add(&base->stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
	if (unlikely(n_used < n_got))
		stash_mbufs(rxq, mbufs + n_used, n_got - n_used);
	return n_out;
}

/* An eventfd must be read before it can signal again. */
static void clear_eventfd(const struct dpdk_rxq *rxq)
{
	uint64_t n;

	if (read(rxq->base.queue.fd, &n, sizeof(n)) < 0)
		return; /* nothing in it */
}

/*
 * Whether there may be frames, which takes a receive call. If the pool has too
 * few replacement pages, the next burst must find out.
 */
static bool may_have_frames(struct dpdk_rxq *rxq)
{
	if (mr_pool_n_direct(rxq->view->pool) < DPDK_MIN_ASKED * rxq->max_segs)
		return true;
	rxq->stash_at = 0;
	rxq->n_stashed =
		rte_eth_rx_burst(rxq->port_id, (uint16_t)rxq->base.queue.idx,
				 rxq->stash, DPDK_MIN_ASKED);
	return rxq->n_stashed > 0;
}

/*
 * A device without interrupts must be polled: there is always work. Others are
 * armed before the check, so that a frame in between is not missed.
 */
int mri_dpdk_rx_arm(struct mr_queue *queue)
{
	struct dpdk_rxq *rxq = (struct dpdk_rxq *)queue;
	struct pollfd fd = { .fd = queue->fd, .events = POLLIN };

	if (rxq->n_stashed > 0 || queue->fd < 0)
		return 1;
	/* A file of the device, a tap's, is readable while it has frames. */
	if (!rxq->has_eventfd)
		return poll(&fd, 1, 0) > 0;
	/*
	 * Some first signal frames that were already polled (igb). Turn it off
	 * and on again: a device that signals only what is new since it was
	 * last enabled (e1000 with MSI) has signalled that already, and would
	 * stay silent.
	 */
	for (int i = 0; i < 2; i++) {
		if (rxq->is_armed)
			disarm(rxq);
		clear_eventfd(rxq);
		rxq->is_armed =
			rte_eth_dev_rx_intr_enable(rxq->port_id,
						   (uint16_t)queue->idx) == 0;
		if (!rxq->is_armed || may_have_frames(rxq))
			return 1;
		if (poll(&fd, 1, 0) == 0)
			return 0;
	}
	return 0;
}

void mri_dpdk_rx_free_stash(struct dpdk_rxq *rxq)
{
	for (; rxq->n_stashed > 0; rxq->n_stashed--)
		rte_pktmbuf_free(rxq->stash[rxq->stash_at++]);
}
