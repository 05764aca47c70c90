/* SPDX-License-Identifier: BSD-3-Clause */
/* When the frames of a capture are due. */
#ifndef NET_TIMING_H
#define NET_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/* In ns of the capture's own time. */
struct timing {
	bool has_begun;
	uint64_t first_ns, last_ns; /* of the capture */
	uint64_t gap_ns;            /* the last one that was one */
	uint64_t due_ns;
};

/*
 * When the frame that was captured at time_ns is due. One that is older than
 * its predecessor comes behind it at once. Where the capture begins anew its
 * last gap is repeated: it has none of its own there.
 */
uint64_t timing_due(struct timing *timing, uint64_t time_ns);

#endif
