/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the frames of a capture when they are due. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "net/replay.h"
#include "support/counter.h"

enum {
	/* The thread may sleep if the next frame is due later than this. */
	SPIN_NS = 100000,
	SLEEP_NS = 10000000,
};

/* A user may think that the program hangs if it waits longer. */
static const uint64_t far_ns = 10000000000;
/* No frame is due later: 146 years. */
static const double last_due_ns = 0x1p62;

static uint64_t at_speed(const struct replay *replay, uint64_t due_ns)
{
	const double ns = (double)due_ns / replay->speed;

	return ns < last_due_ns ? (uint64_t)ns : (uint64_t)last_due_ns;
}

/* Read the next entries. False: the capture has ended. */
static bool read_burst(struct replay *replay, struct mr_worker *worker,
		       struct mr_rxq *rxq)
{
	struct mr_meta meta[MR_BURST_MAX];
	uint64_t due_ns = 0;

	replay->at = 0;
	replay->n = mr_rx_burst_meta(rxq, worker->cache, replay->frames, meta,
				     replay->options.plane.burst);
	if (replay->n == 0)
		return mr_queue_arm(&rxq->queue) != 0;
	counter_add(&replay->n_bursts, 1);
	counter_add(&replay->n_entries, replay->n);
	/* Times do not tell passes apart. A burst belongs to one pass. */
	if (replay->pass > 0 && replay->pass != replay_n_passes(replay))
		timing_begin_again(&replay->timing);
	replay->pass = replay_n_passes(replay);
	for (uint32_t i = 0; i < replay->n; i++) {
		const bool is_first = i == 0 || !(replay->frames[i - 1].flags &
						  MR_FRAME_MORE);

		if (is_first)
			due_ns = timing_due(&replay->timing, meta[i].rx_ns);
		replay->due_ns[i] =
			replay->speed == 0 ? 0 : at_speed(replay, due_ns);
	}
	return true;
}

/* How many entries from replay->at on are due. Frames stay whole. */
static uint32_t n_due(const struct replay *replay, uint64_t now_ns)
{
	uint32_t i = replay->at;

	while (i < replay->n && replay->due_ns[i] <= now_ns)
		i++;
	return i - replay->at;
}

/* Wait for the next frame; sleep if it is not due soon. */
static void wait_for_next(struct replay *replay, uint64_t now_ns)
{
	const uint64_t left_ns = replay->due_ns[replay->at] - now_ns;
	struct timespec pause = { 0 };

	if (left_ns < 2 * SPIN_NS)
		return;
	if (left_ns > far_ns)
		__atomic_store_n(&replay->far_ns, replay->due_ns[replay->at],
				 __ATOMIC_RELAXED);
	pause.tv_nsec = left_ns - SPIN_NS < SLEEP_NS ?
				(long)(left_ns - SPIN_NS) :
				SLEEP_NS;
	nanosleep(&pause, NULL);
}

static void drop_frames(struct replay *replay, struct mr_worker *worker,
			const struct mr_frame *frames, uint32_t n,
			enum replay_drop why)
{
	counter_add(&replay->drops[why], mr_frame_n_frames(frames, n));
	mr_frame_free_bulk(worker->cache, frames, n);
}

static void give_up_late(struct replay *replay, struct mr_worker *worker,
			 uint64_t now_ns)
{
	uint32_t i = replay->at;

	while (i < replay->n && replay->due_ns[i] + replay->max_lag_ns < now_ns)
		i++;
	drop_frames(replay, worker, replay->frames + replay->at, i - replay->at,
		    DROP_LATE);
	replay->at = i;
}

static void send_due(struct replay *replay, struct mr_worker *worker)
{
	const uint64_t now_ns = clock_now(&replay->clock);
	uint64_t sent_ns;
	uint32_t n, n_sent;

	if (replay->speed != 0)
		give_up_late(replay, worker, now_ns);
	n = n_due(replay, now_ns);
	if (n == 0) {
		if (replay->at < replay->n)
			wait_for_next(replay, now_ns);
		return;
	}
	n_sent =
		mr_worker_send(worker, TO_PORT, replay->frames + replay->at, n);
	/* Like in the tester: copying the frames takes time. */
	sent_ns = clock_now(&replay->clock);
	for (uint32_t i = 0; i < n_sent && replay->speed != 0; i++)
		if (!(replay->frames[replay->at + i].flags & MR_FRAME_MORE))
			hist_add(&replay->lateness,
				 sent_ns - replay->due_ns[replay->at + i]);
	if (n_sent > 0)
		replay->last_ns = sent_ns;
	counter_add(&replay->n_sent,
		    mr_frame_n_frames(replay->frames + replay->at, n_sent));
	counter_add(&replay->n_sent_bytes,
		    mr_frame_n_bytes(replay->frames + replay->at, n_sent));
	replay->at += n_sent;
}

int replay_run(struct mr_worker *worker, void *opaque)
{
	struct replay *replay = opaque;
	struct mr_rxq *rxq = mr_port_rxq(replay->plane.ports[CAPTURE_PORT], 0);
	const uint64_t one = 1;
	bool goes_on = true;

	clock_start(&replay->clock);
	/* 1: no round counts as empty, because it waits for the clock. */
	do {
		if (replay->at == replay->n)
			goes_on = read_burst(replay, worker, rxq);
		else
			send_due(replay, worker);
	} while (mr_worker_wait(worker, 1) && goes_on);
	replay->is_whole = !goes_on || replay->n_loops == 0;
	drop_frames(replay, worker, replay->frames + replay->at,
		    replay->n - replay->at, DROP_SHUTDOWN);
	__atomic_store_n(&replay->has_ended, true, __ATOMIC_RELEASE);
	/* Fails only if it is readable already. */
	return write(replay->done_fd, &one, sizeof(one)) < 0 ? -errno : 0;
}

void replay_drop_at_end(struct mr_worker *worker,
			const struct mr_frame *frames, uint32_t n,
			void *opaque)
{
	drop_frames(opaque, worker, frames, n, DROP_SHUTDOWN);
}
