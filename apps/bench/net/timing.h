/* SPDX-License-Identifier: BSD-3-Clause */
/* When the frames of a capture are due. */
#ifndef NET_TIMING_H
#define NET_TIMING_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Records of several queues may be out of order by that much. */
	TIMING_REORDER_NS = 10000000,
	/* Between passes over a capture without a gap. */
	TIMING_PASS_NS = 1000000,
};

/* In ns of the capture's own time. */
struct timing {
	uint64_t max_gap_ns; /* longer ones are shortened; 0: none is */
	uint64_t due_ns;     /* of the last frame */
	/* Of the pass at hand, as captured: the latest, and the last. */
	bool has_begun, is_back; /* the last is older than the latest */
	uint64_t n_zero;         /* that it began with: of time 0 */
	uint64_t latest_ns, last_ns;
	uint64_t gap_ns; /* the last one that was one */
	/* Records without a time, steps back of the clock, gaps that were
	 * shortened, and passes of a capture without a gap. */
	uint64_t n_untimed, n_steps, n_shortened, n_gapless;
};

/*
 * When the frame that was captured at time_ns is due. 0 is no time, unless a
 * capture whose times are relative begins with it: the frame comes behind its
 * predecessor at once. So does one that is older; but if the one behind that is
 * older as well, and not out of order with it, the capturing host's clock was
 * set back, and times count from there.
 */
uint64_t timing_due(struct timing *timing, uint64_t time_ns);

/* The capture begins anew. It has no gap of its own there: the last one is
 * repeated. */
void timing_begin_again(struct timing *timing);

#endif
