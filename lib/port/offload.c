/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device lacks, done for all drivers before they see the frame: segments
 * are cut (MR_META_GSO) and tags written (MR_META_VLAN). Checksums stay
 * partial: each driver knows how its device finishes them, or finishes them
 * itself.
 *
 *     frames + metadata --> as they lie ----------------------> driver's burst
 *                       --> tag, written into the headroom --/
 *                       --> tag, written into a copy -------/
 *                       --> held: copied, piece by piece ---/
 *
 * A frame that is shared or has no headroom is copied for its tag, if the copy
 * is one entry as well. Where the driver refuses a frame, its tag or its copy
 * goes, and it is the caller's as it was. Other frames that are cut or tagged
 * are held, one per queue: a burst takes it and sends as much as there is room
 * for, and the following ones begin with the rest.
 *
 * Each queue has burst and arm functions of this file in front of the driver's,
 * from when it is opened until it is closed: no device inserts all tags, or
 * knows all clocks.
 *
 * The queue's counters count what the driver sees: segments. A frame lost here
 * is counted as accepted and dropped; while one is held it is accepted and
 * pending, so that a queue which drains is not taken for empty. So all segments
 * but the last are frames more than came: MR_TX_EVENT_GSO_ADDED.
 */
#include <errno.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/port_device.h>

#include "net/net.h"
#include "port/offload.h"

enum {
	MACS_BYTES = 12,
	MIN_FRAME_BYTES = 14,
	PIECES = 64, /* entries that are copied before the driver is called */
};

/* Of one queue. */
struct mri_offload {
	mr_tx_burst_fn *burst; /* the driver's, as the next */
	int (*arm)(struct mr_queue *queue);
	uint32_t n;    /* entries of the frame held; 0: none is; atomic */
	uint32_t done; /* bytes of its payload that were sent */
	bool is_over;  /* all were */
	struct mr_frame frame[MR_MAX_SEGS];
	struct mr_meta meta; /* of each piece */
	struct mri_gso gso;
};

/* Copied pieces with their metadata: parallel arrays for the driver. */
struct pieces {
	uint32_t n;
	struct mr_frame frames[PIECES];
	struct mr_meta metas[PIECES];
};

static struct mri_offload *state_of(const struct mr_txq *txq)
{
	return __atomic_load_n(&txq->offload, __ATOMIC_RELAXED);
}

uint32_t mri_offload_cuts(uint16_t gso_type)
{
	switch (gso_type) {
	case MR_GSO_TCPV4:
		return MR_OFFLOAD_TSO4;
	case MR_GSO_TCPV6:
		return MR_OFFLOAD_TSO6;
	case MR_GSO_UDP:
		return MR_OFFLOAD_USO;
	default:
		return 0;
	}
}

/* What is requested for these, and the device does not do. */
static uint32_t find_missing(const struct mr_txq *txq,
			     const struct mr_meta *meta)
{
	const struct mr_port_info *info = txq->queue.port->info;
	const uint32_t offloads = info->offloads;
	uint32_t todo = meta->valid &
			(MR_META_VLAN | MR_META_GSO | MR_META_LAUNCH_TIME);

	/* Devices insert 802.1Q tags only. */
	if (offloads & MR_OFFLOAD_VLAN_TX &&
	    (meta->vlan_proto == 0 || meta->vlan_proto == MRI_ETHER_VLAN))
		todo &= ~(uint32_t)MR_META_VLAN;
	if (meta->gso_bytes == 0 || offloads & mri_offload_cuts(meta->gso_type))
		todo &= ~(uint32_t)MR_META_GSO;
	if (offloads & MR_OFFLOAD_LAUNCH_TIME &&
	    meta->launch_clock == info->launch_clock)
		todo &= ~(uint32_t)MR_META_LAUNCH_TIME;
	return todo;
}

/* ---- a frame that is held ---- */

/* Hold the frame, which is readable and needs `todo`. False: it is lost. */
static bool hold_frame(struct mr_txq *txq, struct mr_cache *cache,
		       const struct mr_frame *frames, uint32_t n,
		       const struct mr_meta *meta, uint32_t todo)
{
	struct mri_offload *o = state_of(txq);
	const uint32_t n_frame = (uint32_t)mr_frame_n_bytes(frames, n);
	const uint32_t n_bytes =
		n_frame < MRI_GSO_HEADER_BYTES ? n_frame : MRI_GSO_HEADER_BYTES;
	uint8_t bytes[MRI_GSO_HEADER_BYTES];

	mr_frame_copy_bytes(txq->queue.port->base, frames, 0, bytes, n_bytes);
	o->meta = *meta;
	if (!(todo & MR_META_GSO)) {
		mri_gso_whole(&o->gso, bytes, n_frame);
	} else if (mri_gso_begin(&o->gso, bytes, n_bytes, n_frame, meta) < 0) {
		mr_txq_lose(txq, cache, frames, n, MR_TX_DROP_INVALID);
		return false;
	} else {
		o->meta.valid |= MR_META_CSUM;
		o->meta.csum_start_bytes = o->gso.view.l4_bytes;
		o->meta.csum_offset_bytes =
			o->gso.view.csum_bytes - o->gso.view.l4_bytes;
	}
	if (todo & MR_META_VLAN) {
		mri_gso_tag(&o->gso, meta);
		o->meta.csum_start_bytes += MR_VLAN_BYTES;
	}
	if (o->gso.n_header_bytes > mr_port_room_bytes(txq->queue.port)) {
		mr_txq_lose(txq, cache, frames, n, MR_TX_DROP_TOO_LONG);
		return false;
	}
	if (todo & MR_META_VLAN)
		mr_counter_add(&txq->stats.events[MR_TX_EVENT_VLAN_SOFTWARE],
			       1);
	if (todo & MR_META_GSO)
		mr_counter_add(&txq->stats.events[MR_TX_EVENT_GSO_SOFTWARE], 1);
	o->meta.valid &= ~todo;
	memcpy(o->frame, frames, n * sizeof(frames[0]));
	__atomic_store_n(&o->n, n, __ATOMIC_RELAXED);
	o->done = 0;
	o->is_over = false;
	return true;
}

/*
 * Append the piece behind `done` bytes of payload. Returns its payload, or -1:
 * no room in the array, or *ret_drop.
 */
static int64_t append_piece(struct mr_txq *txq, struct mr_cache *cache,
			    const struct mri_offload *o, uint32_t done,
			    struct pieces *pieces, int *ret_drop)
{
	const struct mr_port *port = txq->queue.port;
	const uint32_t room = mr_port_room_bytes(port);
	const uint32_t n_header = o->gso.n_header_bytes;
	uint8_t header[MRI_GSO_HEADER_BYTES];
	const uint32_t n_payload = mri_gso_header(&o->gso, done, header);
	const uint32_t n = (n_header + n_payload + room - 1) / room;
	struct mr_frame *out = &pieces->frames[pieces->n];
	uint32_t at = o->gso.payload_at + done;

	*ret_drop = MR_TX_DROP_TOO_LONG;
	if (n > MR_MAX_SEGS)
		return -1;
	*ret_drop = -1;
	if (pieces->n + n > PIECES)
		return -1;
	if (mr_port_alloc_frame(port, cache, n_header + n_payload, UINT64_MAX,
				out) == 0) {
		*ret_drop = MR_TX_DROP_NO_BUFFER;
		return -1;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t skip = i == 0 ? n_header : 0;
		uint8_t *to = mr_frame_data(port->base, &out[i]);

		memcpy(to, header, skip);
		mr_frame_copy_bytes(port->base, o->frame, at, to + skip,
				    out[i].len - skip);
		at += out[i].len - skip;
	}
	out[0].flags |= o->gso.n_segment_bytes != 0 ?
				MR_FRAME_CSUM_PARTIAL :
				o->frame[0].flags & ~(uint32_t)MR_FRAME_MORE;
	pieces->metas[pieces->n] = o->meta;
	pieces->n += n;
	return n_payload;
}

/* The driver took the first n entries. */
static void count_sent(struct mr_txq *txq, struct mri_offload *o,
		       const struct pieces *pieces, uint32_t n)
{
	uint64_t n_added = 0;

	for (uint32_t i = 0; i < n; i++) {
		o->done += pieces->frames[i].len;
		if (pieces->frames[i].flags & MR_FRAME_MORE)
			continue;
		o->done -= o->gso.n_header_bytes;
		o->is_over = o->done == o->gso.n_payload_bytes;
		n_added += !o->is_over; /* the last stands for the frame */
	}
	mr_counter_add(&txq->stats.events[MR_TX_EVENT_GSO_ADDED], n_added);
}

/* Copy some pieces and offer them. False: the driver has no more room. */
static bool send_some(struct mr_txq *txq, struct mr_cache *cache,
		      struct mri_offload *o, int *ret_drop)
{
	uint32_t next = o->done, n_sent;
	struct pieces pieces;
	int64_t n_payload;

	pieces.n = 0;
	do {
		n_payload =
			append_piece(txq, cache, o, next, &pieces, ret_drop);
		next += n_payload > 0 ? (uint32_t)n_payload : 0;
	} while (n_payload >= 0 && next < o->gso.n_payload_bytes);
	if (pieces.n == 0)
		return true;
	*ret_drop = -1; /* what was sent may bring pages back */
	n_sent = o->burst(txq, cache, pieces.frames, pieces.metas, pieces.n);
	count_sent(txq, o, &pieces, n_sent);
	mr_frame_free_bulk(cache, pieces.frames + n_sent, pieces.n - n_sent);
	return n_sent == pieces.n;
}

/* Send what is left of the frame held. False: it is still held. */
static bool send_held(struct mr_txq *txq, struct mr_cache *cache)
{
	struct mri_offload *o = state_of(txq);
	int drop = -1;

	while (!o->is_over && drop < 0)
		if (!send_some(txq, cache, o, &drop))
			return false;
	if (o->is_over)
		mr_frame_free_bulk(cache, o->frame, o->n);
	else
		mr_txq_lose(txq, cache, o->frame, o->n, (enum mr_tx_drop)drop);
	__atomic_store_n(&o->n, 0, __ATOMIC_RELAXED);
	return true;
}

/* The driver wakes us while it has frames; if it has none, go on at once. */
static int stage_arm(struct mr_queue *queue)
{
	struct mr_txq *txq = (struct mr_txq *)queue;
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	const struct mri_offload *o = state_of(txq);
	const int has_work = o->arm(queue);

	if (has_work != 0 || o->n == 0)
		return has_work;
	(void)mr_txq_stats(txq, &stats);
	return stats.pending == 1; /* the one that is held */
}

uint32_t mri_offload_n_held(const struct mr_txq *txq)
{
	const struct mri_offload *o = state_of(txq);

	return o != NULL && __atomic_load_n(&o->n, __ATOMIC_RELAXED) > 0;
}

/* ---- bursts ---- */

/* Frames that go as one call: entries of our own, where one has a tag now. */
struct run {
	uint32_t n, n_tags, n_copies;
	struct mr_frame frames[MR_BURST_MAX];
	struct mr_meta metas[MR_BURST_MAX];
};

/* Make the frame a copy with a gap for a tag. False: it stays as it is. */
static bool copy_apart(const struct mr_port *port, struct mr_cache *cache,
		       struct mr_frame *frame)
{
	const uint8_t *from = mr_frame_data(port->base, frame);
	uint64_t addr;
	uint8_t *to;

	if (frame->flags & MR_FRAME_MORE ||
	    frame->len > mr_port_room_bytes(port) - MR_VLAN_BYTES ||
	    mr_frag_alloc_bulk(cache, &addr, 1, port->page_bytes) == 0)
		return false;
	frame->addr = addr + port->headroom_bytes;
	to = mr_frame_data(port->base, frame);
	memcpy(to, from, MACS_BYTES);
	memcpy(to + MACS_BYTES + MR_VLAN_BYTES, from + MACS_BYTES,
	       frame->len - MACS_BYTES);
	frame->len += MR_VLAN_BYTES;
	return true;
}

static bool is_copy(const struct mr_frame *frame, const struct mr_frame *of)
{
	return frame->addr != of->addr &&
	       frame->addr != of->addr - MR_VLAN_BYTES;
}

/* Write the tag, in place or in a copy. False: there is no room for it. */
static bool write_tag(struct mr_txq *txq, struct mr_cache *cache,
		      struct mr_frame *frame, struct mr_meta *meta)
{
	const struct mr_port *port = txq->queue.port;
	uint8_t *bytes;

	if (frame->len >= MACS_BYTES &&
	    mr_frame_push(cache, frame, MR_VLAN_BYTES) == 0) {
		bytes = mr_frame_data(port->base, frame);
		memmove(bytes, bytes + MR_VLAN_BYTES, MACS_BYTES);
	} else if (!copy_apart(port, cache, frame)) {
		return false;
	}
	bytes = mr_frame_data(port->base, frame);
	mri_tag_write(bytes + MACS_BYTES, meta);
	meta->valid &= ~(uint32_t)MR_META_VLAN;
	meta->csum_start_bytes += MR_VLAN_BYTES;
	return true;
}

/* Collect leading frames that need at most a tag, with a limit of copies. */
static void collect_run(struct mr_txq *txq, struct mr_cache *cache,
			const struct mr_frame *frames,
			const struct mr_meta *meta, uint32_t n, struct run *run)
{
	run->n = run->n_tags = run->n_copies = 0;
	while (run->n < n && run->n_copies < PIECES) {
		const uint32_t at = run->n;
		const uint32_t k = mr_frame_n_entries(&frames[at]);
		uint32_t todo = find_missing(txq, &meta[at]);

		memcpy(&run->frames[at], &frames[at], k * sizeof(frames[0]));
		run->metas[at] = meta[at];
		if (todo & MR_META_LAUNCH_TIME)
			return;
		if (todo != 0 &&
		    mr_tx_find_fault(txq->queue.port->region, &frames[at], k,
				     MIN_FRAME_BYTES, UINT64_MAX) < 0) {
			if (todo & MR_META_GSO ||
			    !write_tag(txq, cache, &run->frames[at],
				       &run->metas[at]))
				return;
			run->n_tags++;
			run->n_copies += is_copy(&run->frames[at], &frames[at]);
		}
		run->n += k;
	}
}

/* Free what was copied and sent; frames that the driver left are as before. */
static void settle_run(struct mr_txq *txq, struct mr_cache *cache,
		       const struct mr_frame *frames, struct run *run,
		       uint32_t n_sent)
{
	for (uint32_t i = 0; i < n_sent && run->n_copies > 0; i++)
		if (is_copy(&run->frames[i], &frames[i]))
			mr_frame_free_bulk(cache, &frames[i], 1);
	for (uint32_t i = n_sent; i < run->n; i++) {
		uint8_t *bytes =
			mr_frame_data(txq->queue.port->base, &run->frames[i]);

		if (run->frames[i].addr == frames[i].addr)
			continue;
		if (is_copy(&run->frames[i], &frames[i]))
			mr_frame_free_bulk(cache, &run->frames[i], 1);
		else
			memmove(bytes + MR_VLAN_BYTES, bytes, MACS_BYTES);
		run->n_tags--;
	}
	mr_counter_add(&txq->stats.events[MR_TX_EVENT_VLAN_SOFTWARE],
		       run->n_tags);
}

/* A burst of which something is to be done here. */
__attribute__((noinline)) static uint32_t
send_mixed(struct mr_txq *txq, struct mr_cache *cache,
	   const struct mr_frame *frames, const struct mr_meta *meta,
	   uint32_t n)
{
	const struct mri_offload *o = state_of(txq);
	struct run run;
	uint32_t i = 0;

	while (i < n) {
		uint32_t n_sent, todo, k;

		collect_run(txq, cache, frames + i, meta + i, n - i, &run);
		if (run.n > 0) {
			n_sent = o->burst(txq, cache, run.frames, run.metas,
					  run.n);
			settle_run(txq, cache, frames + i, &run, n_sent);
			i += n_sent;
			if (n_sent < run.n)
				break;
			continue;
		}
		todo = find_missing(txq, &meta[i]);
		k = mr_frame_n_entries(&frames[i]);
		i += k;
		if (todo & MR_META_LAUNCH_TIME)
			mr_txq_lose(txq, cache, &frames[i - k], k,
				    MR_TX_DROP_INVALID);
		else if (hold_frame(txq, cache, &frames[i - k], k, &meta[i - k],
				    todo) &&
			 !send_held(txq, cache))
			break;
	}
	return i;
}

/* With metadata, or behind a frame that is held. */
__attribute__((noinline)) static uint32_t
send_looked_at(struct mr_txq *txq, struct mr_cache *cache,
	       const struct mr_frame *frames, const struct mr_meta *meta,
	       uint32_t n)
{
	const struct mri_offload *o = state_of(txq);

	if (o->n > 0 && !send_held(txq, cache))
		return 0;
	if (meta == NULL)
		return o->burst(txq, cache, frames, NULL, n);
	n = mr_frame_n_whole(frames, n);
	for (uint32_t i = 0; i < n; i += mr_frame_n_entries(&frames[i]))
		if (find_missing(txq, &meta[i]) != 0)
			return send_mixed(txq, cache, frames, meta, n);
	return o->burst(txq, cache, frames, meta, n);
}

static uint32_t stage_burst(struct mr_txq *txq, struct mr_cache *cache,
			    const struct mr_frame *frames,
			    const struct mr_meta *meta, uint32_t n)
{
	const struct mri_offload *o = state_of(txq);

	if (meta == NULL && o->n == 0)
		return o->burst(txq, cache, frames, NULL, n);
	return send_looked_at(txq, cache, frames, meta, n);
}

/* ---- life ---- */

void mri_offload_enter(struct mr_port *port)
{
	struct mri_offload *states = port->offload;

	for (uint32_t i = 0; i < port->info->n_txqs; i++) {
		struct mr_txq *txq = port->txqs[i];

		/* A driver may show fewer queues for a while. */
		if (txq->offload != NULL)
			continue;
		states[i].burst = txq->burst;
		states[i].arm = txq->queue.arm;
		txq->burst = stage_burst;
		if (txq->queue.arm != NULL)
			txq->queue.arm = stage_arm;
		__atomic_store_n(&txq->offload, &states[i], __ATOMIC_RELEASE);
	}
}

bool mri_offload_has_entered(const struct mr_txq *txq)
{
	return txq->queue.port->offload == NULL ||
	       __atomic_load_n(&txq->offload, __ATOMIC_ACQUIRE) != NULL;
}

int mri_offload_open(struct mr_port *port, struct mr_reason *reterr_reason)
{
	if (port->n_queues_made == 0)
		return 0;
	port->offload = mr_alloc(
		port->ctx, 0, port->n_queues_made * sizeof(struct mri_offload));
	if (port->offload == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "%s: no memory for its tx queues",
			       port->info->name);
	mri_offload_enter(port);
	return 0;
}

void mri_offload_close(struct mr_port *port)
{
	const struct mri_offload *states = port->offload;

	for (uint32_t i = 0; states != NULL && i < port->n_queues_made; i++)
		for (uint32_t k = 0; k < states[i].n; k++)
			mr_pool_frag_free_bulk(port->pool,
					       &states[i].frame[k].addr, 1);
	mr_free(port->ctx, port->offload);
}
