/* SPDX-License-Identifier: BSD-3-Clause */
/* When the frames of a capture are due. */
#ifndef NET_TIMING_H
#define NET_TIMING_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Records of several queues may be out of order by this much. */
	TIMING_REORDER_NS = 10000000,
	/* Pause between passes over a capture without gaps. */
	TIMING_PASS_NS = 1000000,
};

/* All in ns of the capture's own time. */
struct timing {
	uint64_t max_gap_ns; /* longer ones are shortened; 0: none is */
	uint64_t due_ns;     /* of the last frame */
	/* The latest and the last captured time of this pass. */
	bool has_begun, is_back; /* the last is older than the latest */
	uint64_t n_zero;         /* records of time 0 at its begin */
	uint64_t latest_ns, last_ns;
	uint64_t gap_ns; /* the last one that was not 0 */
	/* Records without a time, steps back of the clock, shortened gaps, and
	 * passes over a capture without gaps. */
	uint64_t n_untimed, n_steps, n_shortened, n_gapless;
};

/*
 * When the frame that was captured at time_ns is due. Time 0 is unknown, unless
 * a capture with relative times begins with it; such a frame is due right after
 * its predecessor. So is a frame that is older than its predecessor. If the
 * next frame is older, too, and these two are in order, the clock of the
 * capturing host was set back, and times count from there.
 */
uint64_t timing_due(struct timing *timing, uint64_t time_ns);

/* Begin the next pass over the capture, after a gap as long as the last one. */
void timing_begin_again(struct timing *timing);

#endif
