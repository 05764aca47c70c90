/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom rx hears: runs of tx, one after the other or at once, by the number that
 * each has in its stamps (stamp.h), and where their lanes are in the tracker.
 * All runs share its lanes, which are given away in blocks as they are seen.
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
	/* Of each run's blocks, which one it is: from 1 on; 0: not seen. */
	uint16_t block_of[RUNS_MAX][RUNS_BLOCKS];
	struct {
		uint16_t run, first_lane;
	} blocks[RUNS_BLOCKS];
};

/* NULL: no memory. */
struct runs *runs_new(void);
void runs_free(struct runs *runs); /* NULL is allowed */

/*
 * The tracker's lane of a run's; UINT32_MAX: there are no more. *run_at is the
 * calling thread's, 0 at first: which run it saw last. Any thread.
 */
uint32_t runs_lane(struct runs *runs, uint32_t *run_at, uint32_t number,
		   uint32_t lane);

/* Any thread: how many there are, and which lane of which is the tracker's. */
uint32_t runs_n(const struct runs *runs);
void runs_find(const struct runs *runs, uint32_t lane, uint32_t *ret_run,
	       uint32_t *ret_lane);

#endif
