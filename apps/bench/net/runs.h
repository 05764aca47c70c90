/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of tx that rx receives, one after another or at the same time, by the
 * number in their stamps (stamp.h), and the lanes of the tracker that they use.
 * Runs share its lanes, which are assigned in blocks when they are first seen.
 */
#ifndef NET_RUNS_H
#define NET_RUNS_H

#include <pthread.h>
#include <stdint.h>

#include "stream/stamp.h"

enum {
	RUNS_BLOCK_BITS = 6,
	RUNS_BLOCK_LANES = 1 << RUNS_BLOCK_BITS,
	RUNS_BLOCKS = STAMP_LANES / RUNS_BLOCK_LANES,
	RUNS_MAX = RUNS_BLOCKS, /* each has one at least */
};

struct runs {
	pthread_mutex_t lock; /* of what is added */
	uint32_t n, n_blocks;
	uint16_t numbers[RUNS_MAX]; /* never 0 */
	/* Which block of the tracker each block of a run is, from 1 on; 0: not
	 * seen. */
	uint16_t block_of[RUNS_MAX][RUNS_BLOCKS];
	struct {
		uint16_t run, first_lane;
	} blocks[RUNS_BLOCKS];
};

/* NULL: no memory. */
struct runs *runs_new(void);
void runs_free(struct runs *runs); /* NULL is allowed */

/*
 * The tracker's lane for a lane of a run; UINT32_MAX: there are no more.
 * *run_at belongs to the calling thread and is 0 at first: the run that it saw
 * last. Any thread.
 */
uint32_t runs_lane(struct runs *runs, uint32_t *run_at, uint32_t number,
		   uint32_t lane);

/* Any thread: the number of runs, and the run and lane of a lane of the
 * tracker. */
uint32_t runs_n(const struct runs *runs);
void runs_find(const struct runs *runs, uint32_t lane, uint32_t *ret_run,
	       uint32_t *ret_lane);

#endif
