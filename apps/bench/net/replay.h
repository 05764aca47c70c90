/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of mr-bench replay; for its own files. */
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

enum { MAX_REPLAY_ROWS = 256 }; /* loss counters of both ports */

struct replay {
	struct relay_options options;
	double speed; /* 0: as fast as the port takes them */
	uint32_t n_loops;
	uint64_t max_lag_ns;
	struct dataplane plane;
	int done_fd;
	struct clock clock;
	/* Entries that were read and not sent; due_ns: when the frame of each
	 * is due. */
	struct mr_frame frames[MR_BURST_MAX];
	uint64_t due_ns[MR_BURST_MAX];
	uint32_t n, at;
	struct timing timing;
	uint64_t pass;   /* of these frames, from 1 on */
	uint64_t far_ns; /* when the next frame is due, if that is far off */
	uint64_t n_bursts, n_entries;
	uint64_t n_sent, n_sent_bytes, last_ns; /* frames; the last one's */
	uint64_t drops[N_DROPS];
	struct hist lateness;
	bool has_ended;    /* set by the worker: lateness is final */
	uint64_t n_unread; /* records that are not whole frames */
	bool is_whole; /* the whole capture was read, or it repeats forever */
	uint64_t opened_ns;
	struct trial_drop drops_before[MAX_REPLAY_ROWS];
	struct mr_reason why_failed; /* "": all frames left */
	json_t *document;
	const char *path;       /* of the capture */
	const char *out, *csv; /* NULL: none */
	/* Of the reporting thread: which warnings it has printed. */
	uint64_t told_far_ns;
	bool has_told_steps, has_told_untimed, has_told_gapless;
	/* Of the reporting thread: copies of lateness during the run. */
	struct hist seen, before;
};

/* replay_send.c: the worker's loop; drop what is left at the end. */
int replay_run(struct mr_worker *worker, void *opaque);
void replay_drop_at_end(struct mr_worker *worker,
			const struct mr_frame *frames, uint32_t n,
			void *opaque);

/* replay_trial.c: counters and the result. */
uint64_t replay_n_passes(const struct replay *replay);
/* Warn of odd times in the capture, once of each kind. */
void replay_warn(void *app);
extern const struct app_counters replay_counters;
void replay_count_before(struct replay *replay);
/* After the worker has ended: add the replay as one trial. */
void replay_add_trial(void *app);

#endif
