/* SPDX-License-Identifier: BSD-3-Clause */
/* What mr-bench replay is made of: for its own files. */
#ifndef NET_REPLAY_H
#define NET_REPLAY_H

#include "net/clock.h"
#include "net/drops.h"
#include "net/hist.h"
#include "net/relay.h"
#include "net/timing.h"
#include "net/trial.h"

enum { CAPTURE_PORT, TO_PORT, N_PORTS };

enum replay_drop { DROP_LATE, DROP_SHUTDOWN, N_DROPS };

enum { MAX_REPLAY_ROWS = 256 }; /* counters of losses of both ports */

struct replay {
	double speed; /* 0: as fast as the port takes them */
	uint32_t n_loops;
	uint64_t max_lag_ns;
	struct dataplane plane;
	int done_fd;
	struct clock clock;
	/* Entries read and not sent; due_ns is that of each one's frame. */
	struct mr_frame frames[MR_BURST_MAX];
	uint64_t due_ns[MR_BURST_MAX];
	uint32_t n, at, n_burst;
	struct timing timing;
	uint64_t pass;   /* of the frames at hand, from 1 on */
	uint64_t far_ns; /* when the next frame is due, if that is far off */
	uint64_t n_bursts, n_entries;
	uint64_t n_sent, n_sent_bytes, last_ns; /* frames; the last one's */
	uint64_t drops[N_DROPS];
	struct hist lateness;
	bool has_ended;    /* the worker says so: lateness is at rest */
	uint64_t n_unread; /* records that are no whole frames */
	bool is_whole; /* it read the capture's end; of no end, any part is */
	uint64_t opened_ns;
	struct trial_drop drops_before[MAX_REPLAY_ROWS];
	struct mr_reason why_failed; /* "": all left that was to */
	json_t *document;
	const struct relay_options *options;
	const char *path;              /* of the capture */
	const char *out, *csv, *label; /* NULL: none */
	/* Of the thread that reports: what it has said of the times. */
	uint64_t told_far_ns;
	bool has_told_steps, has_told_untimed, has_told_gapless;
	/* Of the thread that reports: copies of lateness meanwhile. */
	struct hist seen, before;
};

/* replay_send.c: the worker's loop, and what it still had at its end. */
int replay_run(struct mr_worker *worker, void *opaque);
void replay_drop_at_end(void *opaque, struct mr_worker *worker,
			const struct mr_frame *frames, uint32_t n);

/* replay_trial.c: what it counts, and what came of it. */
uint64_t replay_n_passes(const struct replay *replay);
/* Print what is odd about the capture's times, each once. */
void replay_warn(void *app);
extern const struct app_counters replay_counters;
void replay_count_before(struct replay *replay);
/* The worker has ended: all of it is one trial. */
void replay_add_trial(void *app);

#endif
