/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The forwarding loop.
 *
 *     rx burst --> patch, macswap, learn or drop --> tx burst, or hand-off ring
 *
 * Some ports deliver frames that need their metadata (merged segments, tags
 * outside the frame). If there is one, metadata is forwarded; otherwise none is
 * produced. Segments for such a port are merged if it can segment them: it was
 * opened for a receiver that handles a long frame at the cost of a short one.
 *
 * Frames that a tx queue does not accept are dropped and counted by reason: a
 * forwarder that waits turns overload into latency, and lets one slow port stop
 * the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <millrace/experimental/gro.h>

#include "forward.h"
#include "support/counter.h"

const char *const forward_drop_names[N_FORWARD_DROPS] = {
	[DROP_TX_FULL] = "tx_full",     [DROP_HANDOFF_FULL] = "handoff_full",
	[DROP_NO_ROUTE] = "no_route",   [DROP_MODE] = "mode_drop",
	[DROP_SAME_PORT] = "same_port", [DROP_LINK_LOCAL] = "link_local",
	[DROP_RUNT] = "runt",           [DROP_TOO_SHARED] = "too_shared",
	[DROP_NO_PAGE] = "no_page",     [DROP_SHUTDOWN] = "shutdown",
};

static void drop_frames(struct forwarder *fwd, const struct mr_frame *frames,
			uint32_t n, enum forward_drop why)
{
	capture_drop(&fwd->recorder, CAPTURE_LAST_PORT, frames, n,
		     forward_drop_names[why]);
	counter_add(&fwd->stats.drops[why], mr_frame_n_frames(frames, n));
	mr_frame_free_bulk(fwd->worker->cache, frames, n);
}

void forward_drop_at_end(struct forwarder *fwd, const struct mr_frame *frames,
			 uint32_t n)
{
	drop_frames(fwd, frames, n, DROP_SHUTDOWN);
}

/* Why the way to a port took less than all. */
static enum forward_drop why_not_sent(const struct forwarder *fwd,
				      uint32_t port)
{
	const struct mr_worker_route *route = &fwd->worker->routes[port];

	if (route->txq != NULL)
		return DROP_TX_FULL;
	return route->handoff != NULL ? DROP_HANDOFF_FULL : DROP_NO_ROUTE;
}

static bool has_merges(const struct forward_shared *shared, uint32_t port)
{
	return __atomic_load_n(&shared->merges[port], __ATOMIC_RELAXED) != 0;
}

/* metas: NULL, or those of the frames. */
static uint32_t send_with_extras(struct forwarder *fwd, uint32_t port,
				 struct mr_frame *frames, struct mr_meta *metas,
				 uint32_t n)
{
	const uint32_t merges = __atomic_load_n(&fwd->shared->merges[port],
						__ATOMIC_RELAXED);

	if (merges != 0)
		counter_add(&fwd->stats.merged,
			    mr_gro(fwd->worker->cache, merges,
				   __atomic_load_n(&fwd->shared->mtus[port],
						   __ATOMIC_RELAXED),
				   frames, metas, n));
	if (fwd->round_recorder != NULL)
		return recorder_send(fwd->round_recorder, fwd->worker, port,
				     frames, metas, n);
	return mr_worker_send_meta(fwd->worker, port, frames, metas, n);
}

static void send_or_drop(struct forwarder *fwd, uint32_t port,
			 struct mr_frame *frames, struct mr_meta *metas,
			 uint32_t n)
{
	const uint32_t n_sent =
		fwd->has_extras[port] ?
			send_with_extras(fwd, port, frames, metas, n) :
			mr_worker_send_meta(fwd->worker, port, frames, metas,
					    n);

	if (n_sent < n)
		drop_frames(fwd, frames + n_sent, n - n_sent,
			    why_not_sent(fwd, port));
}

static void forward_patch(struct forwarder *fwd, uint32_t port, uint32_t n)
{
	send_or_drop(fwd, forward_peer(port), fwd->frames, fwd->metas, n);
}

static bool swap_addresses(struct forwarder *fwd, struct mr_frame *frame,
			   uint32_t n, enum forward_drop *ret_why)
{
	uint8_t *bytes, sender[6];

	*ret_why = DROP_RUNT;
	if (frame->len < MR_ETH_BYTES)
		return false;
	*ret_why = DROP_NO_PAGE;
	if (mr_frame_unshare(fwd->worker->cache, frame, n) < 0)
		return false;
	bytes = mr_frame_data(fwd->base, frame);
	memcpy(sender, bytes + 6, 6);
	memcpy(bytes + 6, bytes, 6);
	memcpy(bytes, sender, 6);
	return true;
}

static void forward_macswap(struct forwarder *fwd, uint32_t port, uint32_t n)
{
	/* A single port sends them back. */
	const uint32_t to =
		fwd->worker->n_ports == 1 ? port : forward_peer(port);
	struct mr_frame *frames = fwd->frames;
	uint32_t n_kept = 0;

	for (uint32_t i = 0, n_entries; i < n; i += n_entries) {
		enum forward_drop why;

		n_entries = mr_frame_n_entries(frames + i);
		if (!swap_addresses(fwd, frames + i, n_entries, &why)) {
			drop_frames(fwd, frames + i, n_entries, why);
			continue;
		}
		if (n_kept < i)
			memmove(frames + n_kept, frames + i,
				n_entries * sizeof(frames[0]));
		if (fwd->metas != NULL)
			fwd->metas[n_kept] = fwd->metas[i];
		n_kept += n_entries;
	}
	send_or_drop(fwd, to, frames, fwd->metas, n_kept);
}

static void forward_drop(struct forwarder *fwd, uint32_t port, uint32_t n)
{
	(void)port;
	drop_frames(fwd, fwd->frames, n, DROP_MODE);
}

/* The frame of n entries at a place of the burst, which an outbox holds all of.
 */
static void put_into_outbox(struct forwarder *fwd, uint32_t port, uint32_t at,
			    uint32_t n)
{
	struct outbox *outbox = &fwd->outboxes[port];

	memcpy(outbox->frames + outbox->n, fwd->frames + at,
	       n * sizeof(fwd->frames[0]));
	if (fwd->metas != NULL)
		outbox->metas[outbox->n] = fwd->metas[at];
	outbox->n += n;
}

/*
 * To all ports but the one it came from, by reference: each port but the first
 * needs one more owner of every entry.
 */
static void flood_frame(struct forwarder *fwd, uint32_t from, uint32_t at,
			uint32_t n)
{
	const struct mr_frame *frame = fwd->frames + at;
	struct mr_cache *cache = fwd->worker->cache;
	uint32_t n_ports = 0;

	for (uint32_t p = 0; p < fwd->worker->n_ports; p++) {
		if (p == from)
			continue;
		if (n_ports > 0 && mr_frame_ref(cache, frame, n) < 0) {
			/* It has this owner less to give: count one lost. */
			counter_add(&fwd->stats.cloned, 1);
			counter_add(&fwd->stats.drops[DROP_TOO_SHARED], 1);
			continue;
		}
		put_into_outbox(fwd, p, at, n);
		counter_add(&fwd->stats.cloned, n_ports > 0);
		n_ports++;
	}
	counter_add(&fwd->stats.flooded, 1);
}

/* One frame of mode learn: learn its sender, then find its receiver. */
static void bridge_frame(struct forwarder *fwd, uint32_t from, uint32_t at,
			 uint32_t n)
{
	const struct mr_frame *frame = fwd->frames + at;
	const uint8_t *bytes = mr_frame_data(fwd->base, frame);
	uint64_t receiver, sender;
	uint32_t to;

	if (frame->len < MR_ETH_BYTES) {
		drop_frames(fwd, frame, n, DROP_RUNT);
		return;
	}
	receiver = fdb_mac(bytes);
	sender = fdb_mac(bytes + 6);
	if (!(bytes[6] & 1) && sender != 0) /* a group sends nothing */
		fdb_learn(fwd->fdb, sender, from, fwd->now_s);
	/* IEEE 802.1Q, table 8-1: pause, LACP, STP and such stay on the link.
	 */
	if (receiver >> 4 == 0x0180c2000000 >> 4) {
		drop_frames(fwd, frame, n, DROP_LINK_LOCAL);
		return;
	}
	to = bytes[0] & 1 ? FDB_NOWHERE : fdb_find(fwd->fdb, receiver);
	if (to == FDB_NOWHERE)
		flood_frame(fwd, from, at, n);
	else if (to == from)
		drop_frames(fwd, frame, n, DROP_SAME_PORT);
	else
		put_into_outbox(fwd, to, at, n);
}

static void forward_learn(struct forwarder *fwd, uint32_t port, uint32_t n)
{
	for (uint32_t i = 0, n_entries; i < n; i += n_entries) {
		n_entries = mr_frame_n_entries(fwd->frames + i);
		bridge_frame(fwd, port, i, n_entries);
	}
	for (uint32_t p = 0; p < fwd->worker->n_ports; p++) {
		struct outbox *outbox = &fwd->outboxes[p];

		if (outbox->n > 0)
			send_or_drop(fwd, p, outbox->frames,
				     fwd->metas != NULL ? outbox->metas : NULL,
				     outbox->n);
		outbox->n = 0;
	}
}

void forward_explain(void *forwarder, uint32_t port, bool is_tx,
		     const uint8_t *bytes, uint32_t n, char *ret)
{
	const struct forwarder *fwd = forwarder;
	uint32_t to;

	(void)port;
	if (fwd->fdb == NULL || is_tx || n < MR_ETH_BYTES)
		return;
	to = bytes[0] & 1 ? FDB_NOWHERE : fdb_find(fwd->fdb, fdb_mac(bytes));
	if (to == FDB_NOWHERE)
		snprintf(ret, CAPTURE_MAX_TEXT, "fdb: %s, so flooded",
			 bytes[0] & 1 ? "a group address" : "unknown receiver");
	else
		snprintf(ret, CAPTURE_MAX_TEXT, "fdb: receiver on port %u", to);
}

typedef void forward_fn(struct forwarder *fwd, uint32_t port, uint32_t n);

static forward_fn *const forward_fns[] = {
	[MODE_PATCH] = forward_patch,
	[MODE_MACSWAP] = forward_macswap,
	[MODE_LEARN] = forward_learn,
	[MODE_DROP] = forward_drop,
};

/* The other workers see it after their round. */
static void count_to_limit(struct forwarder *fwd, uint32_t n)
{
	struct forward_shared *shared = fwd->shared;
	const uint64_t n_frames = __atomic_add_fetch(
		&shared->n_frames, mr_frame_n_frames(fwd->frames, n),
		__ATOMIC_RELAXED);

	const uint64_t one = 1;

	if (n_frames < shared->options->n_frames)
		return;
	__atomic_store_n(&shared->is_done, 1, __ATOMIC_RELAXED);
	/* Cannot fail but for being readable already. */
	if (write(shared->done_fd, &one, sizeof(one)) < 0)
		return;
}

/* One burst of one rx queue; returns its entries. */
static inline uint32_t forward_queue(struct forwarder *fwd,
				     struct recorder *recorder,
				     const struct mr_worker_rxq *rxq,
				     forward_fn *forward, bool has_limit)
{
	const uint32_t n =
		mr_rx_burst_meta(rxq->rxq, fwd->worker->cache, fwd->frames,
				 fwd->metas, fwd->n_burst);

	if (n == 0)
		return 0;
	counter_add(&fwd->stats.bursts, 1);
	counter_add(&fwd->stats.entries, n);
	probe_burst(rxq->port_idx, rxq->queue_idx, n);
	if (recorder != NULL)
		recorder_rx(recorder, rxq->port_idx, rxq->queue_idx,
			    fwd->frames, fwd->metas, n);
	if (has_limit)
		count_to_limit(fwd, n);
	forward(fwd, rxq->port_idx, n);
	return n;
}

static inline uint32_t forward_round(struct forwarder *fwd,
				     struct recorder *recorder,
				     forward_fn *forward, bool has_limit)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < fwd->worker->n_rxqs; i++)
		n += forward_queue(fwd, recorder, &fwd->worker->rxqs[i],
				   forward, has_limit);
	return n;
}

/* A capture is running. */
__attribute__((noinline, cold)) static uint32_t
recorded_round(struct forwarder *fwd, forward_fn *forward, bool has_limit)
{
	uint32_t n;

	fwd->round_recorder = capture_recorder(&fwd->recorder);
	for (uint32_t p = 0; p < fwd->worker->n_ports; p++)
		fwd->has_extras[p] = true;
	n = forward_round(fwd, fwd->round_recorder, forward, has_limit);
	for (uint32_t p = 0; p < fwd->worker->n_ports; p++)
		fwd->has_extras[p] = has_merges(fwd->shared, p);
	fwd->round_recorder = NULL;
	return n;
}

/* Ageing counts in seconds: read the clock after a pause, else now and then. */
static void look_at_clock(struct forwarder *fwd, uint32_t n_moved)
{
	if (fwd->fdb != NULL && fwd->n_rounds % 64 == 0)
		fwd->now_s = (uint32_t)(mr_ctx_now_ns(fwd->shared->ctx) /
					1000000000u);
	fwd->n_rounds = n_moved > 0 ? fwd->n_rounds + 1 : 0;
}

int forward_run(struct mr_worker *worker, void *opaque)
{
	struct forwarder *fwd = (struct forwarder *)opaque + worker->idx;
	const struct options *options = fwd->shared->options;
	forward_fn *forward = forward_fns[options->mode];
	const bool has_limit = options->n_frames > 0;
	uint32_t n = 0;

	do {
		look_at_clock(fwd, n);
		n = capture_is_on(&fwd->recorder) ?
			    recorded_round(fwd, forward, has_limit) :
			    forward_round(fwd, NULL, forward, has_limit);
		n += mr_worker_serve(worker);
		if (has_limit &&
		    __atomic_load_n(&fwd->shared->is_done, __ATOMIC_RELAXED))
			break;
	} while (mr_worker_wait(worker, n));
	return 0;
}

static bool make_room(struct forwarder *fwd, bool has_meta)
{
	if (has_meta)
		fwd->metas = calloc(MR_BURST_MAX, sizeof(fwd->metas[0]));
	if (fwd->fdb != NULL)
		fwd->outboxes =
			calloc(fwd->worker->n_ports, sizeof(fwd->outboxes[0]));
	return (fwd->metas != NULL || !has_meta) &&
	       (fwd->outboxes != NULL || fwd->fdb == NULL);
}

struct forwarder *forward_create(struct forward_shared *shared,
				 struct mr_workers *workers, uint32_t n)
{
	struct forwarder *all = aligned_alloc(64, n * sizeof(struct forwarder));

	if (all == NULL)
		return NULL;
	memset(all, 0, n * sizeof(*all));
	for (uint32_t i = 0; i < n; i++) {
		struct forwarder *fwd = &all[i];

		fwd->shared = shared;
		fwd->worker = mr_workers_get(workers, i);
		fwd->base = shared->base;
		fwd->fdb = shared->fdb;
		fwd->n_burst = shared->options->plane.burst;
		for (uint32_t p = 0; p < MAX_PORTS; p++)
			fwd->has_extras[p] = has_merges(shared, p);
		if (!make_room(fwd, shared->has_meta)) {
			forward_destroy(all, n);
			return NULL;
		}
	}
	return all;
}

void forward_destroy(struct forwarder *forwarders, uint32_t n)
{
	for (uint32_t i = 0; forwarders != NULL && i < n; i++) {
		free(forwarders[i].outboxes);
		free(forwarders[i].metas);
	}
	free(forwarders);
}
