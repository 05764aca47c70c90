/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merging the segments of a burst: the entries. lib/net/gro.c decides which
 * headers go together.
 *
 *     A1 X B1 A2 B2 A3  -->  A1 A2' A3'  X  B1 B2'      ': without headers
 *
 * The segments of a frame are linked by the indices of their first entries. An
 * entry is moved only once, after all links are known. A frame that cannot be
 * merged ends the merge of its flow, so that the flow stays in order.
 */
#include <string.h>

#include <millrace/driver.h>
#include <millrace/experimental/gro.h>

#include "net/net.h"
#include "port/offload.h"

/* Flows that are merged at the same time; Linux has 8 per bucket. */
enum { FLOWS = 16 };

struct flow {
	struct mri_gro gro;
	uint32_t first, last; /* indices of segments */
	uint32_t n_entries;
};

struct merge {
	uint8_t *base;
	const struct mr_cache *cache;
	uint32_t offloads;
	uint32_t mtu_bytes;
	struct mr_frame *frames;
	struct mr_meta *metas;
	uint32_t n_flows;
	uint32_t oldest; /* replaced when there are more flows */
	uint32_t n_merged;
	struct flow flows[FLOWS];
	uint16_t next[MR_BURST_MAX]; /* of a segment; 0: it is the last one */
	bool is_next[MR_BURST_MAX];  /* of another */
};

/* The checksum is correct or partial, and segmentation restores it. */
static bool is_sum_right(const struct merge *m, uint32_t i,
			 const struct mri_gro *gro)
{
	const struct mr_net_view *view = &gro->view;
	const struct mr_meta *meta = &m->metas[i];
	const uint32_t flags = m->frames[i].flags;
	const uint16_t pseudo = mr_csum_pseudo(gro->bytes, view);
	uint16_t field;

	memcpy(&field, gro->bytes + view->csum_bytes, sizeof(field));
	if (field == 0)
		return false; /* correct, but segmentation writes 0xffff */
	if (flags & MR_FRAME_CSUM_PARTIAL) {
		if (meta->valid & MR_META_CSUM &&
		    (meta->csum_start_bytes != view->l4_bytes ||
		     meta->csum_start_bytes + meta->csum_offset_bytes !=
			     view->csum_bytes))
			return false; /* that of a tunnelled packet */
		if (field == pseudo)
			return true;
	}
	return flags & MR_FRAME_CSUM_VALID ||
	       mr_csum_fold(pseudo + mr_csum_frame(m->base, &m->frames[i],
						   view->l4_bytes,
						   view->l4_len_bytes)) ==
		       UINT16_MAX;
}

/* Whether a merged frame could have this metadata. */
static bool is_meta_plain(const struct mr_meta *meta)
{
	const uint32_t plain = MR_META_RSS_HASH | MR_META_RX_TIME |
			       MR_META_VLAN | MR_META_CSUM | MR_META_MARK;

	return !(meta->valid & ~plain);
}

static bool is_meta_equal(const struct mr_meta *a, const struct mr_meta *b)
{
	const uint32_t both = MR_META_VLAN | MR_META_MARK;

	return (a->valid & both) == (b->valid & both) &&
	       (!(a->valid & MR_META_VLAN) ||
		(a->vlan_tci == b->vlan_tci &&
		 a->vlan_proto == b->vlan_proto)) &&
	       (!(a->valid & MR_META_MARK) || a->mark == b->mark);
}

static enum mri_gro_kind look(const struct merge *m, uint32_t i, uint32_t k,
			      struct mri_gro *gro)
{
	const struct mr_frame *frame = &m->frames[i];
	const enum mri_gro_kind kind =
		mri_gro_begin(gro, m->base + frame->addr, frame->len,
			      (uint32_t)mr_frame_n_bytes(frame, k));

	if (kind == MRI_GRO_SEGMENT &&
	    (!(m->offloads & mri_offload_cuts(gro->gso_type)) ||
	     (uint32_t)gro->view.l4_bytes + gro->view.l4_len_bytes -
			     gro->view.l3_bytes >
		     m->mtu_bytes ||
	     !is_meta_plain(&m->metas[i]) ||
	     !mr_frame_is_exclusive(m->cache, frame) ||
	     !is_sum_right(m, i, gro)))
		return MRI_GRO_ALONE;
	return kind;
}

/* End the flow's merge, which may be of one segment. */
static void finish_flow(struct merge *m, const struct flow *flow)
{
	const struct mri_gro *gro = &flow->gro;
	struct mr_frame *frame = &m->frames[flow->first];
	struct mr_meta *meta = &m->metas[flow->first];

	if (gro->n < 2)
		return;
	mri_gro_finish(gro, m->base + frame->addr);
	frame->flags &= ~(uint32_t)MR_FRAME_CSUM_VALID;
	frame->flags |= MR_FRAME_CSUM_PARTIAL;
	meta->valid |= MR_META_CSUM | MR_META_GSO;
	meta->csum_start_bytes = gro->view.l4_bytes;
	meta->csum_offset_bytes = gro->view.csum_bytes - gro->view.l4_bytes;
	meta->gso_bytes = (uint16_t)gro->n_segment_bytes;
	meta->gso_type = gro->gso_type;
}

static void finish_all(struct merge *m)
{
	for (uint32_t f = 0; f < m->n_flows; f++)
		finish_flow(m, &m->flows[f]);
	m->n_flows = 0;
}

static struct flow *find_flow(struct merge *m, const struct mri_gro *gro)
{
	for (uint32_t f = 0; f < m->n_flows; f++)
		if (mri_gro_is_same_flow(&m->flows[f].gro, gro))
			return &m->flows[f];
	return NULL;
}

/* Append a segment of k entries. False: it does not follow. */
static bool append(struct merge *m, struct flow *flow, uint32_t i, uint32_t k,
		   const struct mri_gro *gro)
{
	if (flow->n_entries + k > MR_MAX_SEGS ||
	    !is_meta_equal(&m->metas[flow->first], &m->metas[i]) ||
	    !mri_gro_add(&flow->gro, gro))
		return false;
	m->frames[i].addr += gro->n_header_bytes;
	m->frames[i].len -= gro->n_header_bytes;
	m->frames[i].flags &= MR_FRAME_MORE;
	m->next[flow->last] = (uint16_t)i;
	m->is_next[i] = true;
	m->n_merged++;
	flow->last = i;
	flow->n_entries += k;
	return true;
}

/* A slot for a flow, replacing another one if necessary. */
static struct flow *make_place(struct merge *m)
{
	struct flow *flow = &m->flows[m->oldest];

	if (m->n_flows < FLOWS)
		return &m->flows[m->n_flows++];
	m->oldest = (m->oldest + 1) % FLOWS;
	finish_flow(m, flow);
	return flow;
}

static void add_frame(struct merge *m, uint32_t i, uint32_t k)
{
	struct mri_gro gro;
	const enum mri_gro_kind kind = look(m, i, k, &gro);
	struct flow *flow;

	if (kind == MRI_GRO_UNKNOWN)
		finish_all(m);
	if (kind < MRI_GRO_ALONE)
		return;
	flow = find_flow(m, &gro);
	if (kind == MRI_GRO_SEGMENT && flow != NULL &&
	    append(m, flow, i, k, &gro))
		return;
	if (flow != NULL)
		finish_flow(m, flow);
	else if (kind == MRI_GRO_SEGMENT)
		flow = make_place(m);
	if (kind == MRI_GRO_SEGMENT)
		*flow = (struct flow){ gro, i, i, k };
	else if (flow != NULL)
		*flow = m->flows[--m->n_flows];
}

/* Gather the entries of a frame and of those linked to it. Returns how many. */
static uint32_t gather(const struct merge *m, uint32_t i, struct mr_frame *to)
{
	uint32_t n = 0;

	for (;; i = m->next[i]) {
		const uint32_t k = mr_frame_n_entries(&m->frames[i]);

		memcpy(&to[n], &m->frames[i], k * sizeof(to[0]));
		n += k;
		if (m->next[i] == 0)
			return n;
		to[n - 1].flags |= MR_FRAME_MORE;
	}
}

/* Frames only move to higher indices: later segments join earlier frames. */
static void rearrange(struct merge *m, uint32_t n)
{
	struct mr_frame moved[MR_BURST_MAX];
	uint16_t from[MR_BURST_MAX], to[MR_BURST_MAX];
	uint32_t n_heads = 0, at = 0;

	for (uint32_t i = 0; i < n; i += mr_frame_n_entries(&m->frames[i])) {
		if (m->is_next[i])
			continue;
		from[n_heads] = (uint16_t)i;
		to[n_heads++] = (uint16_t)at;
		at += gather(m, i, &moved[at]);
	}
	memcpy(m->frames, moved, n * sizeof(moved[0]));
	while (n_heads-- > 0)
		if (from[n_heads] != to[n_heads])
			m->metas[to[n_heads]] = m->metas[from[n_heads]];
}

uint32_t mr_gro(struct mr_cache *cache, uint32_t offloads, uint32_t mtu_bytes,
		struct mr_frame *frames, struct mr_meta *metas, uint32_t n)
{
	struct merge m;

	m.base = mr_region_base(mr_pool_region(mr_cache_pool(cache)));
	m.cache = cache;
	m.offloads = offloads;
	m.mtu_bytes = mtu_bytes != 0 ? mtu_bytes : UINT32_MAX;
	m.frames = frames;
	m.metas = metas;
	m.n_flows = m.oldest = m.n_merged = 0;
	memset(m.next, 0, n * sizeof(m.next[0]));
	memset(m.is_next, 0, n * sizeof(m.is_next[0]));
	for (uint32_t i = 0, k; i < n; i += k) {
		k = mr_frame_n_entries(&frames[i]);
		add_frame(&m, i, k);
	}
	finish_all(&m);
	if (m.n_merged > 0)
		rearrange(&m, n);
	return m.n_merged;
}
