/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the tester itself adds to latencies: when its threads did not poll, and
 * how much of the latency of late frames that explains.
 *
 * A thread is away between two rounds that are too far apart. It waited for its
 * core (counted in /proc/PID/task/TID/schedstat), was stopped while it had the
 * core and made no call (by the host or a signal), or was in calls that send
 * and receive. A sender that falls behind is away until it has caught up.
 */
#ifndef NET_AWAY_H
#define NET_AWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/trial.h"

enum {
	MAX_SPANS = 4096,
	AWAY_NS = 20000, /* a round without frames takes some 100 ns */
	AWAY_MOVING_NS = 100000,
	/* How often the kernel's count is read, which costs 1 us. A long round
	 * is charged with what the thread waited in short rounds before it. */
	AWAY_READ_NS = 10000000,
	LATE_NS = 20000, /* faster frames need no explanation */
};

struct span {
	uint64_t start_ns, end_ns;
	uint64_t waited_ns; /* of a thread: for its core */
	uint32_t lane;      /* of a frame */
	bool is_moving;     /* of a thread: it sent or received meanwhile */
};

/* Ordered by time. When there is no more room, the shortest spans are dropped;
 * if most are about equally long, the oldest ones. */
struct spans {
	uint64_t least_ns; /* all that are as long are there... */
	uint64_t since_ns; /* ...and began then, or later */
	uint32_t n;
	struct span all[MAX_SPANS];
};

void spans_add(struct spans *spans, const struct span *span);

/* Of one thread, which is the only one that writes it. */
struct away {
	struct spans spans;
	uint64_t longest_ns;          /* between two rounds */
	uint64_t waited_ns, still_ns; /* since the thread began */
	uint64_t waited_read_ns;      /* the kernel's count, last read */
	uint64_t read_due_ns;         /* when to read it again */
	int schedstat_fd;             /* -1: the kernel does not count */
};

/* Call it on the new thread. If the trial has already begun, the thread was
 * away. */
void away_begin(struct away *away, uint64_t start_ns, uint64_t now_ns);
void away_end(struct away *away);

/* The out-of-line part of away_round(). */
void away_note(struct away *away, uint64_t then_ns, uint64_t now_ns,
	       bool is_moving, bool is_behind);

/* A round began at then_ns and the next one at now_ns. is_behind: frames that
 * are due have not been sent. */
static inline void away_round(struct away *away, uint64_t then_ns,
			      uint64_t now_ns, bool is_moving, bool is_behind)
{
	if (now_ns - then_ns >= (is_moving ? AWAY_MOVING_NS : AWAY_NS) ||
	    is_behind || now_ns >= away->read_due_ns)
		away_note(away, then_ns, now_ns, is_moving, is_behind);
}

/* Add the parts of a late frame's latency; one of the threads may be NULL.
 * Frames that began before spans were dropped are left out. */
void tail_add(struct trial_tail *tail, const struct span *late,
	      const struct away *sender, const struct away *receiver);

#endif
