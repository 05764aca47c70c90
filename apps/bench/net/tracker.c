/* SPDX-License-Identifier: BSD-3-Clause */
/* The windows of all lanes. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "net/tracker.h"

enum {
	/* 2^18 numbers: 26 ms at 10 million frames per second. */
	MOST_BITS = 13,
	/* 2^16 numbers: with fewer, a turn would not fit its 32 bits. */
	LEAST_BITS = 11,
	MANY_LANES = 64,
};

static size_t bytes_of(const struct tracker *tracker)
{
	return ((size_t)tracker->n_lanes << tracker->window_bits) *
	       sizeof(tracker->words[0]);
}

int tracker_open(struct tracker *tracker, uint32_t n_lanes, bool is_shared)
{
	*tracker = (struct tracker){
		.n_lanes = n_lanes,
		.window_bits = n_lanes > MANY_LANES ? LEAST_BITS : MOST_BITS,
		.is_shared = is_shared,
	};
	/* The window of all possible lanes has 1 GiB; pages of unused lanes are
	 * never touched and need no memory. */
	tracker->words =
		mmap(NULL, bytes_of(tracker), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tracker->words == MAP_FAILED) {
		tracker->words = NULL;
		return -ENOMEM;
	}
	return 0;
}

void tracker_close(struct tracker *tracker)
{
	if (tracker->words != NULL)
		munmap(tracker->words, bytes_of(tracker));
	tracker->words = NULL;
}
