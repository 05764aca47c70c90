/* SPDX-License-Identifier: BSD-3-Clause */
/* The windows of all lanes. */
#include <errno.h>
#include <stdlib.h>

#include "net/tracker.h"

enum {
	/* 2^18 numbers: 26 ms at 10 million frames per second. */
	MOST_BITS = 13,
	/* 2^16 numbers: with fewer, a turn would not fit its 32 bits. */
	LEAST_BITS = 11,
	MANY_LANES = 64,
};

int tracker_open(struct tracker *tracker, uint32_t n_lanes, bool is_shared)
{
	*tracker = (struct tracker){
		.n_lanes = n_lanes,
		.window_bits = n_lanes > MANY_LANES ? LEAST_BITS : MOST_BITS,
		.is_shared = is_shared,
	};
	/* Pages of lanes that nothing comes on are never touched. */
	tracker->words = calloc((size_t)n_lanes << tracker->window_bits,
				sizeof(tracker->words[0]));
	return tracker->words == NULL ? -ENOMEM : 0;
}

void tracker_close(struct tracker *tracker)
{
	free(tracker->words);
	tracker->words = NULL;
}

uint64_t tracker_window(const struct tracker *tracker)
{
	return (uint64_t)TRACKER_NUMBERS << tracker->window_bits;
}
