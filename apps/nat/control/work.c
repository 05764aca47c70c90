/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of a worker. Port i is side i.
 *
 * Functions that take a recorder are inlined into two rounds: one for a running
 * capture, and one in which the recorder is NULL.
 */
#include <stdlib.h>

#include "work.h"
#include "mapping/rule.h"
#include "support/capture.h"
#include "support/counter.h"

enum { PUBLISH_NS = 100000000 };

/* Frames that do not fit into the queue, or its owner's ring, are dropped. */
static inline void send_outbox(struct nat_worker *w, struct recorder *recorder,
			       enum nat_side to)
{
	struct nat_outbox *outbox = nat_path_outbox(w->path, to);
	struct nat_stats *stats = nat_path_stats(w->path);
	const bool is_own = w->worker->routes[to].txq != NULL;
	uint32_t at = 0, n_now, n_taken = 0;

	while (at < outbox->n) {
		n_now = outbox->n - at;
		if (n_now > MR_BURST_MAX)
			n_now = mr_frame_n_whole(outbox->frames + at,
						 MR_BURST_MAX);
		n_taken = recorder != NULL ?
				  recorder_send(recorder, w->worker, to,
						outbox->frames + at, NULL,
						n_now) :
				  mr_worker_send(w->worker, to,
						 outbox->frames + at, n_now);
		at += n_taken;
		if (n_taken < n_now)
			break;
	}
	if (at < outbox->n) {
		const enum nat_drop drop =
			is_own ? NAT_DROP_TX_FULL : NAT_DROP_HANDOFF_FULL;
		const uint32_t n_frames =
			mr_frame_n_frames(outbox->frames + at, outbox->n - at);

		capture_drop(&w->recorder, to ^ 1, outbox->frames + at,
			     outbox->n - at, nat_drop_names[drop]);
		counter_add(&stats->drops[drop], n_frames);
		counter_add(&stats->sent[to], -(uint64_t)n_frames);
		mr_frame_free_bulk(w->worker->cache, outbox->frames + at,
				   outbox->n - at);
	}
	outbox->n = 0;
}

/* Hairpins to ends of other workers; they continue as if from outside. */
static void loop_hairpins(struct nat_worker *w, uint64_t now_ns)
{
	struct nat_outbox *outbox = nat_path_loop(w->path);
	struct nat_stats *stats = nat_path_stats(w->path);
	uint32_t n_now, n_own;

	for (uint32_t at = 0; at < outbox->n; at += n_now) {
		n_now = outbox->n - at;
		if (n_now > MR_BURST_MAX)
			n_now = mr_frame_n_whole(outbox->frames + at,
						 MR_BURST_MAX);
		n_own = nat_steer_split(w->steer, NAT_OUTSIDE,
					outbox->frames + at, n_now, now_ns,
					stats);
		if (n_own > 0) /* no worker has that end: drop it by name */
			nat_burst(w->path, NAT_OUTSIDE, outbox->frames + at,
				  n_own);
	}
	outbox->n = 0;
}

/* Send the outboxes, and confirm what has left. Returns whether something has
 * yet to leave. */
static inline bool send_all(struct nat_worker *w, struct recorder *recorder)
{
	bool waits = false;

	send_outbox(w, recorder, NAT_INSIDE);
	send_outbox(w, recorder, NAT_OUTSIDE);
	for (enum nat_side s = 0; s < NAT_SIDES; s++) {
		const struct mr_txq *txq = w->worker->routes[s ^ 1].txq;

		waits |= nat_path_sent(w->path, s, txq);
		if (txq != NULL)
			nat_path_check_mtu(w->path, s ^ 1, txq);
	}
	return waits;
}

static inline void translate_burst(struct nat_worker *w,
				   struct recorder *recorder,
				   enum nat_side from, uint32_t n,
				   uint64_t now_ns)
{
	nat_burst(w->path, from, w->frames, n);
	if (w->steer != NULL)
		loop_hairpins(w, now_ns);
	send_all(w, recorder);
}

/* One burst of one rx queue; returns its entries. */
static inline uint32_t receive_burst(struct nat_worker *w,
				     struct recorder *recorder,
				     const struct mr_worker_rxq *rxq,
				     uint64_t now_ns)
{
	const enum nat_side from = (enum nat_side)rxq->port_idx;
	const uint32_t n =
		mr_rx_burst(rxq->rxq, w->worker->cache, w->frames, w->n_burst);
	uint32_t n_own = n;

	if (n == 0)
		return 0;
	counter_add(&w->stats.bursts, 1);
	counter_add(&w->stats.entries, n);
	probe_burst(rxq->port_idx, rxq->queue_idx, n);
	if (recorder != NULL)
		recorder_rx(recorder, rxq->port_idx, rxq->queue_idx, w->frames,
			    NULL, n);
	if (w->steer != NULL)
		n_own = nat_steer_split(w->steer, from, w->frames, n, now_ns,
					nat_path_stats(w->path));
	if (n_own > 0)
		translate_burst(w, recorder, from, n_own, now_ns);
	return n;
}

/* One burst of what other workers handed over. */
static inline uint32_t take_over(struct nat_worker *w,
				 struct recorder *recorder, uint64_t now_ns)
{
	enum nat_side from;
	const uint32_t n =
		nat_steer_receive(w->steer, &from, w->frames, MR_BURST_MAX,
				  now_ns, nat_path_stats(w->path));

	if (n > 0)
		translate_burst(w, recorder, from, n, now_ns);
	return n;
}

/* Take as much as was received, so that rings do not fill when queues are full;
 * at least a burst. Returns how much. */
static inline uint32_t take_over_all(struct nat_worker *w,
				     struct recorder *recorder,
				     uint32_t n_received, uint64_t now_ns)
{
	uint32_t n = 0, n_now;

	do {
		n_now = take_over(w, recorder, now_ns);
		n += n_now;
	} while (n_now > 0 && n < n_received);
	return n;
}

void nat_work_publish(struct nat_worker *w)
{
	struct nat_maps_stats stats;
	const uint64_t *from = (const uint64_t *)&stats;
	uint64_t *to = (uint64_t *)&w->stats.maps;

	nat_maps_stats(w->maps, &stats);
	for (uint32_t i = 0; i < sizeof(stats) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/* One burst of the frames that the process before this one had received. */
static __attribute__((noinline, cold)) uint32_t
take_backlog(struct nat_worker *w, struct recorder *recorder,
	     enum nat_side from, uint64_t now_ns)
{
	const struct mr_frame *frames = w->backlog.frames[from];
	const uint32_t n_left = w->backlog.n[from] - w->n_done[from];
	const uint32_t n = mr_frame_n_whole(
		frames + w->n_done[from],
		n_left < MR_BURST_MAX ? n_left : MR_BURST_MAX);
	uint32_t n_own = n;

	memcpy(w->frames, frames + w->n_done[from], n * sizeof(frames[0]));
	w->n_done[from] += n;
	if (w->steer != NULL)
		n_own = nat_steer_split(w->steer, from, w->frames, n, now_ns,
					nat_path_stats(w->path));
	if (n_own > 0)
		translate_burst(w, recorder, from, n_own, now_ns);
	return n;
}

void nat_work_drop_backlog(struct nat_worker *w)
{
	struct nat_stats *stats = nat_path_stats(w->path);

	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		const struct mr_frame *frames =
			w->backlog.frames[s] + w->n_done[s];
		const uint32_t n = w->backlog.n[s] - w->n_done[s];
		const uint32_t n_frames = mr_frame_n_frames(frames, n);

		counter_add(&stats->received[s], n_frames);
		counter_add(&stats->drops[NAT_DROP_SHUTDOWN], n_frames);
		mr_frame_free_bulk(w->worker->cache, frames, n);
	}
	nat_work_forget_backlog(w);
}

void nat_work_forget_backlog(struct nat_worker *w)
{
	for (uint32_t s = 0; s < NAT_SIDES; s++)
		free(w->backlog.frames[s]);
	w->backlog = (struct nat_backlog){ .frames = { NULL } };
	memset(w->n_done, 0, sizeof(w->n_done));
}

/* Once per round: update the time, and publish statistics. *ret_n: 1 if the
 * next round must not wait. */
static inline uint64_t tick_round(struct nat_worker *w,
				  struct recorder *recorder, uint32_t *ret_n)
{
	const uint64_t now_ns = mr_ctx_now_ns(w->ctx);

	nat_path_tick(w->path, now_ns);
	if (w->steer != NULL)
		loop_hairpins(w, now_ns);
	*ret_n = send_all(w, recorder) + nat_rules_tick(w->maps);
	if (now_ns >= w->publish_ns) {
		w->publish_ns = now_ns + PUBLISH_NS;
		nat_work_publish(w);
	}
	if (nat_request_is_asked(&w->request))
		nat_request_answer(
			&w->request,
			&(struct nat_request_to){
				.maps = w->maps,
				.path = w->path,
				.steer = w->steer,
				.now_s = (uint32_t)(now_ns / 1000000000u) });
	return now_ns;
}

/* Returns how much work was done. */
static inline __attribute__((always_inline)) uint32_t
work_round(struct nat_worker *w, struct recorder *recorder)
{
	const struct mr_worker *worker = w->worker;
	uint32_t n;
	const uint64_t now_ns = tick_round(w, recorder, &n);

	for (enum nat_side s = 0; s < NAT_SIDES; s++)
		if (w->n_done[s] < w->backlog.n[s])
			n += take_backlog(w, recorder, s, now_ns);
	for (uint32_t i = 0; i < worker->n_rxqs; i++)
		n += receive_burst(w, recorder, &worker->rxqs[i], now_ns);
	if (w->steer != NULL)
		n += take_over_all(w, recorder, n, now_ns);
	n += mr_worker_serve(w->worker);
	n += nat_maps_is_behind(w->maps); /* that counts as work */
	if (n == 0) /* before sleeping: keep it up to date */
		nat_work_publish(w);
	return n;
}

__attribute__((noinline, cold)) static uint32_t
recorded_round(struct nat_worker *w)
{
	return work_round(w, capture_recorder(&w->recorder));
}

int nat_work(struct mr_worker *worker, void *opaque)
{
	struct nat_worker *w = (struct nat_worker *)opaque + worker->idx;
	uint32_t n;

	do {
		n = capture_is_on(&w->recorder) ? recorded_round(w) :
						  work_round(w, NULL);
	} while (mr_worker_wait(worker, n));
	return 0;
}
