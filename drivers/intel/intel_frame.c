/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slow path of transmission: frames of several entries, with checksums or
 * segments for the device to compute, with a tag to insert, or too short for
 * its padding; and frames that are dropped, each with a named reason.
 *
 * A context descriptor before the data requests offloads. The device keeps it,
 * so one is posted only if it differs from the last.
 *
 *     82574  offsets of headers and of their checksum fields
 *     igb    lengths of headers (82576, 7.2.2.2)
 *
 * For TSO, both expect an IPv4 header without length and checksum, and a
 * pseudo-header sum without the length. This is the only case in which bytes of
 * a frame change; a shared frame is copied first.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/net.h>
#include <millrace/wire.h>

#include "intel.h"

enum { KEEP = -1 /* no drop */, NO_SUM = -1 };

struct job {
	struct mr_frame entries[MR_MAX_SEGS];
	uint32_t n;
	uint64_t n_bytes;
	int sum_event; /* how its checksum is completed, or NO_SUM */
	bool has_context;
	uint64_t context[2];
	uint64_t command;      /* extra bits of the data descriptors */
	uint32_t header_bytes; /* before each segment; 0: no segmentation */
};

static uint8_t *job_bytes(const struct intel_txq *txq, const struct job *job)
{
	return mr_frame_data(txq->port->base.base, &job->entries[0]);
}

/* The drop reason for these entries, if any. */
static int check_entries(struct intel_txq *txq, const struct job *job)
{
	for (uint32_t i = 0; i < job->n; i++) {
		const struct mr_frame *entry = &job->entries[i];

		if (entry->len > txq->max_entry_bytes)
			return MR_TX_DROP_TOO_LONG;
		if (entry->len == 0 || (!intel_tx_is_mapped(txq, entry) &&
					!mri_intel_tx_find_segment(txq, entry)))
			return MR_TX_DROP_INVALID;
	}
	return job->n_bytes < MR_ETH_BYTES ? MR_TX_DROP_INVALID : KEEP;
}

/* Pad in a separate buffer what the device cannot pad. */
static int pad(struct intel_txq *txq, struct mr_cache *cache, struct job *job)
{
	const struct mr_port *port = &txq->port->base;
	const uint64_t addr = mr_frag_alloc(cache, port->page_bytes);
	struct mr_frame padded = { .addr = addr + port->headroom_bytes,
				   .len = INTEL_MIN_TX_BYTES };
	uint8_t *to = mr_frame_data(port->base, &padded);

	if (addr == MR_ADDR_NONE)
		return MR_TX_DROP_NO_BUFFER;
	memset(to, 0, INTEL_MIN_TX_BYTES);
	mr_frame_copy_bytes(port->base, job->entries, 0, to,
			    (uint32_t)job->n_bytes);
	mr_frame_free_bulk(cache, job->entries, job->n);
	job->entries[0] = padded;
	job->n = 1;
	job->n_bytes = INTEL_MIN_TX_BYTES;
	return KEEP;
}

/* The context for the headers of view; false: they do not fit. */
static bool describe(const struct intel_txq *txq,
		     const struct mr_net_view *view, struct job *job)
{
	const uint64_t l3 = view->l3_bytes, l4 = view->l4_bytes;
	const bool is_ipv4 = view->ether_type == MR_ETHER_IPV4;
	const bool is_tcp = view->l4_proto == IPPROTO_TCP;

	if (txq->is_igb) {
		job->context[0] = (l4 - l3) | l3 << INTEL_CTX_MACLEN_SHIFT;
		job->context[1] = INTEL_TX_DTYP_CTXT | INTEL_TX_DEXT |
				  (is_ipv4 ? INTEL_CTX_IPV4 : 0u) |
				  (is_tcp ? INTEL_CTX_TCP : 0u);
		return l4 - l3 < 1u << 9 && l3 < 1u << 7;
	}
	/* From, field and end (0: all) of the IP header, then of the rest. */
	job->context[0] = l3 | (l3 + offsetof(struct mr_ipv4, csum)) << 8 |
			  (is_ipv4 ? l4 - 1 : 0) << 16 | l4 << 32 |
			  (uint64_t)view->csum_bytes << 40;
	job->context[1] = INTEL_TX_DEXT | (is_ipv4 ? INTEL_CTX_82574_IP : 0u) |
			  (is_tcp ? INTEL_CTX_82574_TCP : 0u);
	return view->csum_bytes <= UINT8_MAX;
}

/* Edit the headers as the device expects them for segmentation. */
static void edit_headers(uint8_t *bytes, const struct mr_net_view *view)
{
	struct mr_tcp *tcp = (struct mr_tcp *)(bytes + view->l4_bytes);
	/* Without the length: its complement is added. */
	const uint32_t sum = mr_csum_pseudo(bytes, view) +
			     (uint16_t)~htons(view->l4_len_bytes);

	tcp->csum = mr_csum_fold32(sum);
	if (view->ether_type == MR_ETHER_IPV4) {
		struct mr_ipv4 *ip = (struct mr_ipv4 *)(bytes + view->l3_bytes);

		ip->total_bytes = 0;
		ip->csum = 0;
	} else {
		/* The payload's length (RFC 8200, section 3). */
		memset(bytes + view->l3_bytes + 4, 0, 2);
	}
}

/* Have the device cut segments of at most gso_bytes each. */
static int segment(struct intel_txq *txq, struct job *job,
		   const struct mr_net_view *view, const struct mr_meta *meta)
{
	uint8_t *bytes = job_bytes(txq, job);
	const struct mr_tcp *tcp = (struct mr_tcp *)(bytes + view->l4_bytes);
	const bool is_ipv4 = view->ether_type == MR_ETHER_IPV4;
	const uint32_t tcp_bytes = tcp->offset >> 4 << 2;
	const uint32_t header_bytes = view->l4_bytes + tcp_bytes;
	const uint64_t payload_bytes = job->n_bytes - header_bytes;
	const uint64_t mss = meta->gso_bytes;

	if (view->l4_proto != IPPROTO_TCP || tcp_bytes < sizeof(*tcp) ||
	    header_bytes > job->entries[0].len || header_bytes > UINT8_MAX ||
	    meta->gso_type != (is_ipv4 ? MR_GSO_TCPV4 : MR_GSO_TCPV6) ||
	    /* A trailer would become payload. */
	    job->n_bytes != (uint64_t)view->l4_bytes + view->l4_len_bytes)
		return MR_TX_DROP_INVALID;
	if (header_bytes + mss >
	    __atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED))
		return MR_TX_DROP_TOO_LONG;
	if (payload_bytes <= mss)
		return KEEP; /* one segment, already complete */
	edit_headers(bytes, view);
	job->header_bytes = header_bytes;
	if (is_ipv4)
		job->command |= (uint64_t)INTEL_TX_POPTS_IXSM
				<< INTEL_TX_POPTS_SHIFT;
	if (txq->is_igb) {
		job->context[1] |= (uint64_t)tcp_bytes
					   << INTEL_CTX_L4LEN_SHIFT |
				   mss << INTEL_CTX_MSS_SHIFT;
		job->command |= INTEL_TX_TSE;
		return KEEP;
	}
	job->context[1] |= payload_bytes | INTEL_CTX_82574_TSE |
			   (uint64_t)header_bytes
				   << INTEL_CTX_82574_HDRLEN_SHIFT |
			   mss << INTEL_CTX_82574_MSS_SHIFT;
	job->command |= INTEL_TX_TSE_82574;
	return KEEP;
}

static bool wants_segments(const struct mr_meta *meta)
{
	return meta != NULL && (meta->valid & MR_META_GSO) &&
	       meta->gso_bytes != 0;
}

/* Complete in software what the device cannot, in a copy if necessary. */
static int finish_here(struct intel_txq *txq, struct mr_cache *cache,
		       struct job *job, const struct mr_partial *partial)
{
	if (!mr_frame_is_exclusive(cache, &job->entries[0]) &&
	    mr_frame_unshare(cache, job->entries, job->n) < 0)
		return MR_TX_DROP_NO_BUFFER;
	mr_partial_finish(txq->port->base.base, job->entries, partial);
	job->sum_event = MR_TX_EVENT_CSUM_SOFTWARE;
	return KEEP;
}

/*
 * Have the device complete the checksum if it is TCP's or UDP's and the headers
 * are at offsets that a context can express.
 */
static int finish_sum(struct intel_txq *txq, struct mr_cache *cache,
		      struct job *job, const struct mr_meta *meta)
{
	const bool is_told = meta != NULL && (meta->valid & MR_META_CSUM);
	const bool has_segments = wants_segments(meta);
	struct mr_partial partial;
	struct mr_net_view view;

	if (has_segments && !mr_frame_is_exclusive(cache, &job->entries[0]) &&
	    mr_frame_unshare(cache, job->entries, job->n) < 0)
		return MR_TX_DROP_NO_BUFFER;
	/* Rewritten since it was marked: leave it. */
	if (mr_partial_find(txq->port->base.base, job->entries, meta,
			    &partial) < 0)
		return is_told || has_segments ? MR_TX_DROP_INVALID : KEEP;
	if (mr_net_parse(job_bytes(txq, job), job->entries[0].len,
			 (uint32_t)job->n_bytes, &view) < 0 ||
	    view.l4_bytes != partial.start_bytes ||
	    view.csum_bytes != partial.field_bytes ||
	    !describe(txq, &view, job))
		return has_segments ? MR_TX_DROP_INVALID :
				      finish_here(txq, cache, job, &partial);
	job->has_context = true;
	job->sum_event = MR_TX_EVENT_CSUM_DEVICE;
	job->command |= (uint64_t)INTEL_TX_POPTS_TXSM << INTEL_TX_POPTS_SHIFT;
	return has_segments ? segment(txq, job, &view, meta) : KEEP;
}

/* Have the device insert a tag, if the port announced support. */
static void insert_tag(const struct intel_txq *txq, struct job *job,
		       uint64_t tci)
{
	job->command |= INTEL_TX_VLE;
	if (!txq->is_igb) {
		job->command |= tci << INTEL_TX_VLAN_82574_SHIFT;
		return;
	}
	if (!job->has_context) {
		job->has_context = true;
		job->context[0] = MR_ETH_BYTES << INTEL_CTX_MACLEN_SHIFT;
		job->context[1] = INTEL_TX_DTYP_CTXT | INTEL_TX_DEXT;
	}
	job->context[0] |= tci << INTEL_CTX_VLAN_SHIFT;
}

/* What the frame needs, or its drop reason. */
static int prepare(struct intel_txq *txq, struct mr_cache *cache,
		   struct job *job, const struct mr_meta *meta)
{
	int drop = check_entries(txq, job);

	if (drop != KEEP)
		return drop;
	if (job->n_bytes < INTEL_MIN_TX_BYTES)
		drop = pad(txq, cache, job);
	else if (job->entries[0].flags & MR_FRAME_CSUM_PARTIAL)
		drop = finish_sum(txq, cache, job, meta);
	if (drop == KEEP && meta != NULL && (meta->valid & MR_META_VLAN))
		insert_tag(txq, job, meta->vlan_tci);
	if (drop == KEEP && job->header_bytes == 0 &&
	    job->n_bytes > __atomic_load_n(&txq->max_bytes, __ATOMIC_RELAXED))
		drop = MR_TX_DROP_TOO_LONG;
	if (drop == KEEP && job->n_bytes > INTEL_TX_PAYLEN_MAX)
		drop = MR_TX_DROP_TOO_LONG;
	return drop;
}

static void post(struct intel_txq *txq, struct intel_tx_burst *burst,
		 uint64_t posted, uint64_t word0, uint64_t word1)
{
	const uint32_t place = burst->tail++ & txq->mask;

	burst->n_room--;
	txq->n_special += (posted & INTEL_POSTED_MORE) != 0;
	txq->posted[place] = posted;
	txq->ring[place].words[0] = word0;
	txq->ring[place].words[1] = word1;
}

static void post_job(struct intel_txq *txq, const struct job *job,
		     struct intel_tx_burst *burst)
{
	/* PAYLEN, where there is one. */
	const uint64_t command =
		(txq->command & ~(uint64_t)INTEL_TX_EOP) | job->command |
		(job->n_bytes - job->header_bytes) * (txq->per_byte - 1);

	if (job->has_context && (job->context[0] != txq->context[0] ||
				 job->context[1] != txq->context[1])) {
		post(txq, burst, INTEL_POSTED_CONTEXT, job->context[0],
		     job->context[1]);
		txq->context[0] = job->context[0];
		txq->context[1] = job->context[1];
	}
	for (uint32_t i = 0; i < job->n; i++) {
		const struct mr_frame *entry = &job->entries[i];
		const bool is_last = i + 1 == job->n;

		post(txq, burst,
		     entry->addr | (is_last ? 0 : INTEL_POSTED_MORE),
		     txq->region_iova + entry->addr,
		     command | entry->len | (is_last ? INTEL_TX_EOP : 0u));
	}
}

bool mri_intel_tx_frame(struct intel_txq *txq, struct mr_cache *cache,
			const struct mr_frame *frames,
			const struct mr_meta *meta,
			struct intel_tx_burst *burst)
{
	const uint32_t n = mr_frame_n_entries(frames);
	const uint64_t n_bytes = mr_frame_n_bytes(frames, n);
	struct mr_tx_stats *stats = &txq->base.stats;
	struct job job = { .n = n, .n_bytes = n_bytes, .sum_event = NO_SUM };
	int drop = MR_TX_DROP_TOO_LONG;

	if (n <= MR_MAX_SEGS) {
		if (burst->n_room < n + 1) /* with a context */
			return false;
		memcpy(job.entries, frames, n * sizeof(frames[0]));
		drop = prepare(txq, cache, &job, meta);
	}
	burst->n_frames++;
	burst->n_bytes += n_bytes;
	if (drop == KEEP) {
		post_job(txq, &job, burst);
		if (job.sum_event != NO_SUM)
			mr_counter_add(&stats->events[job.sum_event], 1);
		return true;
	}
	mr_counter_add(&stats->drops[drop], 1);
	/* Not frames: pad() and unsharing replaced buffers. */
	mr_frame_free_bulk(cache, n <= MR_MAX_SEGS ? job.entries : frames,
			   job.n);
	return true;
}
