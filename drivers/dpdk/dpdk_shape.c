/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slow path: frames that are not a single buffer with one owner.
 *
 * Each entry gets a header: that of its place if the entry has the page to
 * itself, else an extra one. The first header requests the offloads that the
 * device supports; otherwise checksums are completed here, which requires a
 * frame that nobody else reads. Frames are copied if they must be modified but
 * are shared, if DPDK does not know their segment, or if they have more entries
 * than the device takes.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>

#include <millrace/net.h>

#include "dpdk.h"

struct plan {
	uint64_t ol_flags;   /* for the device */
	uint64_t tx_offload; /* the same */
	bool fix_pseudo;     /* the device expects a sum without the length */
	bool finish_sum;     /* here: a partial one */
	struct mr_net_view view;
	struct mr_partial partial;
};

static uint8_t *data_of(const struct dpdk_txq *txq,
			const struct mr_frame *entry)
{
	return txq->view->base + entry->addr;
}

static bool is_registered(const struct dpdk_txq *txq,
			  const struct mr_frame *entry)
{
	const uint64_t n_bytes = dpdk_n_registered(txq->view);

	return entry->addr < n_bytes && entry->len <= n_bytes - entry->addr;
}

/* The header lengths in the format of the mbuf. */
static uint64_t lengths(const struct mr_net_view *view, uint32_t l4_bytes,
			uint16_t segment_bytes)
{
	const struct rte_mbuf words = {
		.l2_len = view->l3_bytes,
		.l3_len = (uint64_t)(view->l4_bytes - view->l3_bytes),
		.l4_len = l4_bytes,
		.tso_segsz = segment_bytes,
	};

	return words.tx_offload;
}

static bool plan_segments(const struct dpdk_txq *txq, const uint8_t *bytes,
			  const struct mr_meta *meta, struct plan *plan)
{
	const struct mr_net_view *view = &plan->view;
	const bool is_tcp = view->l4_proto == IPPROTO_TCP;

	/* UDP: DPDK 22.11 has a flag for fragments, not for segments. */
	if (!is_tcp || meta->gso_bytes == 0 ||
	    !(txq->offloads & RTE_ETH_TX_OFFLOAD_TCP_TSO))
		return false;
	plan->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
	if (plan->ol_flags & RTE_MBUF_F_TX_IPV4)
		plan->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
	plan->tx_offload =
		lengths(view, (uint32_t)(bytes[view->l4_bytes + 12] >> 4) * 4,
			meta->gso_bytes);
	plan->fix_pseudo = true;
	return true;
}

/* Plan the checksum. False: the device cannot segment the frame. */
static bool plan_sum(const struct dpdk_txq *txq, const struct mr_frame *frames,
		     uint32_t n_bytes, const struct mr_meta *meta,
		     struct plan *plan)
{
	const bool is_long = meta != NULL && (meta->valid & MR_META_GSO);
	const uint8_t *bytes = data_of(txq, frames);
	struct mr_net_view *view = &plan->view;
	bool is_tcp;

	if (!(frames[0].flags & MR_FRAME_CSUM_PARTIAL))
		return !is_long;
	if (mr_net_parse(bytes, frames[0].len, n_bytes, view) < 0 ||
	    view->csum_bytes == 0) {
		plan->finish_sum = mr_partial_find(txq->view->base, frames,
						   meta, &plan->partial) == 0;
		return !is_long;
	}
	is_tcp = view->l4_proto == IPPROTO_TCP;
	plan->ol_flags |= view->ether_type == 0x86dd ? RTE_MBUF_F_TX_IPV6 :
						       RTE_MBUF_F_TX_IPV4;
	if (is_long)
		return plan_segments(txq, bytes, meta, plan);
	if (txq->offloads & (is_tcp ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM :
				      RTE_ETH_TX_OFFLOAD_UDP_CKSUM)) {
		plan->ol_flags |= is_tcp ? RTE_MBUF_F_TX_TCP_CKSUM :
					   RTE_MBUF_F_TX_UDP_CKSUM;
		plan->tx_offload = lengths(view, 0, 0);
	} else {
		plan->ol_flags = 0;
		plan->finish_sum = mr_partial_find(txq->view->base, frames,
						   meta, &plan->partial) == 0;
	}
	return true;
}

/* Most entries that the device takes in such a frame. */
static uint32_t max_entries(const struct dpdk_txq *txq, const struct plan *plan)
{
	const struct rte_eth_desc_lim *lim = &txq->port->info.tx_desc_lim;
	const uint32_t n = plan->ol_flags & RTE_MBUF_F_TX_TCP_SEG ?
				   lim->nb_seg_max :
				   lim->nb_mtu_seg_max;

	if (!(txq->offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS))
		return 1;
	return n == 0 ? MR_MAX_SEGS : RTE_MIN(n, (uint32_t)MR_MAX_SEGS);
}

/* Devices that segment expect the pseudo-header sum without the length. */
static void fix_pseudo(const struct dpdk_txq *txq,
		       const struct mr_frame *frames, const struct plan *plan)
{
	uint8_t *bytes = data_of(txq, frames);
	const void *l3 = bytes + plan->view.l3_bytes;
	const uint16_t sum = plan->ol_flags & RTE_MBUF_F_TX_IPV6 ?
				     rte_ipv6_phdr_cksum(l3, plan->ol_flags) :
				     rte_ipv4_phdr_cksum(l3, plan->ol_flags);

	memcpy(bytes + plan->view.csum_bytes, &sum, sizeof(sum));
}

/* Whether the entries may go to the device unchanged. */
static bool can_post(const struct dpdk_txq *txq, const struct mr_cache *cache,
		     const struct mr_frame *frames, uint32_t n,
		     const struct plan *plan)
{
	const bool will_write =
		plan->finish_sum || plan->fix_pseudo || plan->ol_flags != 0;
	struct mr_room room;

	if (n > max_entries(txq, plan))
		return false;
	if (mr_frame_room(cache, &frames[0], &room) < 0 && will_write)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!is_registered(txq, &frames[i]) ||
		    frames[i].len > UINT16_MAX)
			return false;
	return true;
}

/* Copy a frame to fresh buffers, at most max of them. 0: *ret_drop says why. */
static uint32_t copy(struct dpdk_txq *txq, struct mr_cache *cache,
		     const struct mr_frame *in, uint32_t n_in, uint32_t max,
		     struct mr_frame *out, int *ret_drop)
{
	const struct mr_port *base = txq->port->base;
	const uint64_t room = mr_port_room_bytes(base);

	*ret_drop = MR_TX_DROP_TOO_LONG;
	if (mr_frame_n_bytes(in, n_in) > max * room)
		return 0;
	*ret_drop = MR_TX_DROP_NO_BUFFER;
	return mr_port_copy_frame(base, cache, in, n_in,
				  dpdk_n_registered(txq->view), out);
}

/*
 * Whether an entry may use the header of its place: nobody else has a part of
 * the page. A frag of a frag cache has no headroom.
 */
static bool fits_place(const struct dpdk_txq *txq, const struct mr_cache *cache,
		       const struct mr_frame *entry)
{
	const uint32_t page_bytes = 1u << txq->view->page_shift;
	const uint32_t at = (uint32_t)entry->addr & (page_bytes - 1);
	struct mr_room room;

	mr_frame_room(cache, entry, &room);
	return room.front_bytes > 0 && at >= txq->view->shift_bytes &&
	       at + entry->len <= page_bytes;
}

void mri_dpdk_unwrite(struct rte_mbuf *mbuf, const struct dpdk_note *note)
{
	uint8_t *bytes = rte_pktmbuf_mtod(mbuf, uint8_t *);

	if (note->l4_at != 0)
		memcpy(bytes + note->l4_at, &note->l4_sum, 2);
	if (note->ip_at != 0)
		memcpy(bytes + note->ip_at, &note->ip_sum, 2);
}

/* Return headers that were not sent. */
void mri_dpdk_unshape(struct dpdk_txq *txq, struct rte_mbuf *mbuf)
{
	for (struct rte_mbuf *next; mbuf != NULL; mbuf = next) {
		next = mbuf->next;
		mbuf->next = NULL;
		mbuf->nb_segs = 1;
		mbuf->port = DPDK_NO_TAG;
		if (mbuf->pool == txq->extras->mempool)
			txq->extras->stack[txq->extras->n++] = mbuf;
	}
}

/* Take a linked header for each of n entries. NULL: not enough now. */
static struct rte_mbuf *take_headers(struct dpdk_txq *txq,
				     const struct mr_cache *cache,
				     const struct mr_frame *frames, uint32_t n)
{
	struct rte_mbuf *first = NULL, **at = &first;

	for (uint32_t i = 0; i < n; i++) {
		const bool is_own = fits_place(txq, cache, &frames[i]);
		struct rte_mbuf *mbuf =
			is_own ? dpdk_header(txq->view, frames[i].addr) :
				 mri_dpdk_extra_get(txq->extras);

		if (mbuf == NULL) {
			mri_dpdk_unshape(txq, first);
			return NULL;
		}
		mbuf->port = DPDK_NO_TAG;
		*at = mbuf;
		at = &mbuf->next;
	}
	return first;
}

static void write_headers(struct dpdk_txq *txq, struct rte_mbuf *mbuf,
			  const struct mr_frame *frames, uint32_t n,
			  const struct plan *plan)
{
	struct rte_mbuf *const first = mbuf;

	for (uint32_t i = 0; i < n; i++, mbuf = mbuf->next) {
		uint8_t *bytes = data_of(txq, &frames[i]);

		if (mbuf->pool == txq->extras->mempool) {
			const struct rte_mbuf *place =
				dpdk_header(txq->view, frames[i].addr);

			mbuf->buf_addr = bytes;
			rte_mbuf_iova_set(
				mbuf, rte_mbuf_iova_get(place) +
					      (rte_iova_t)(bytes -
							   (uint8_t *)place
								   ->buf_addr));
			mbuf->buf_len = (uint16_t)frames[i].len;
		}
		mbuf->data_off = (uint16_t)(bytes - (uint8_t *)mbuf->buf_addr);
		mbuf->data_len = (uint16_t)frames[i].len;
		/* Always: it may be shared, or segmented by clones. */
		mbuf->ol_flags = RTE_MBUF_F_EXTERNAL;
		mbuf->port = txq->tag | (i + 1 < n ? DPDK_INNER : 0);
	}
	first->ol_flags |= plan->ol_flags;
	first->tx_offload = plan->tx_offload;
	first->nb_segs = (uint16_t)n;
	first->pkt_len = (uint32_t)mr_frame_n_bytes(frames, n);
}

/* Save what the plan, or a device before sending, will overwrite. */
static void take_note(const uint8_t *bytes, const struct plan *plan,
		      struct dpdk_note *note)
{
	if (plan->finish_sum)
		note->l4_at = (uint16_t)plan->partial.field_bytes;
	else if (plan->ol_flags &
		 (RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_TCP_SEG))
		note->l4_at = plan->view.csum_bytes;
	if (plan->ol_flags & RTE_MBUF_F_TX_IP_CKSUM)
		note->ip_at = plan->view.l3_bytes + 10;
	memcpy(&note->l4_sum, bytes + note->l4_at, 2);
	memcpy(&note->ip_sum, bytes + note->ip_at, 2);
	if (plan->finish_sum)
		note->events |= 1u << MR_TX_EVENT_CSUM_SOFTWARE;
	else if (note->l4_at != 0)
		note->events |= 1u << MR_TX_EVENT_CSUM_DEVICE;
}

static void write_frame(struct dpdk_txq *txq, struct mr_frame *frames,
			const struct plan *plan)
{
	if (plan->finish_sum)
		mr_partial_finish(txq->view->base, frames, &plan->partial);
	if (plan->fix_pseudo)
		fix_pseudo(txq, frames, plan);
}

int mri_dpdk_shape(struct dpdk_txq *txq, struct mr_cache *cache,
		   const struct mr_frame *frames, uint32_t n,
		   const struct mr_meta *meta, struct rte_mbuf **ret_mbuf,
		   struct dpdk_note *ret_note)
{
	const bool is_gso = meta != NULL && (meta->valid & MR_META_GSO);
	const uint64_t max_bytes =
		is_gso ? UINT64_MAX :
			 __atomic_load_n(&txq->port->mtu_bytes,
					 __ATOMIC_RELAXED) +
				 DPDK_LINK_BYTES;
	const int drop = mr_tx_find_fault(txq->port->base->region, frames, n,
					  DPDK_MIN_FRAME_BYTES, max_bytes);
	int shape = DPDK_POSTABLE;
	struct mr_frame own[MR_MAX_SEGS];
	struct plan plan = { 0 };

	*ret_note = (struct dpdk_note){ 0 };
	if (drop >= 0)
		return drop;
	if (!plan_sum(txq, frames, (uint32_t)mr_frame_n_bytes(frames, n), meta,
		      &plan))
		return MR_TX_DROP_TOO_LONG; /* nobody segments it */
	if (can_post(txq, cache, frames, n, &plan)) {
		memcpy(own, frames, n * sizeof(own[0]));
	} else {
		const bool is_foreign = !is_registered(txq, &frames[0]);

		n = copy(txq, cache, frames, n, max_entries(txq, &plan), own,
			 &shape);
		if (n == 0)
			return shape;
		shape = DPDK_COPIED;
		ret_note->events = 1u
				   << (is_foreign ? MR_TX_EVENT_FOREIGN_COPIED :
						    MR_TX_EVENT_EDGE_COPIED);
	}
	*ret_mbuf = take_headers(txq, cache, own, n);
	if (*ret_mbuf == NULL) {
		if (shape == DPDK_COPIED)
			mr_frame_free_bulk(cache, own, n);
		return DPDK_LATER;
	}
	take_note(data_of(txq, own), &plan, ret_note);
	write_frame(txq, own, &plan);
	write_headers(txq, *ret_mbuf, own, n, &plan);
	return shape;
}
