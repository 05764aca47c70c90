/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of tx that rx receives. Entries that exist are read without a lock. */
#include <stdlib.h>

#include "net/runs.h"

struct runs *runs_new(void)
{
	struct runs *runs = calloc(1, sizeof(*runs));

	if (runs != NULL)
		pthread_mutex_init(&runs->lock, NULL);
	return runs;
}

void runs_free(struct runs *runs)
{
	if (runs != NULL)
		pthread_mutex_destroy(&runs->lock);
	free(runs);
}

uint32_t runs_n(const struct runs *runs)
{
	return __atomic_load_n(&runs->n, __ATOMIC_ACQUIRE);
}

/* The number of a run; 0 is possible for one that another thread is adding. */
static uint32_t number_of(const struct runs *runs, uint32_t run)
{
	return __atomic_load_n(&runs->numbers[run], __ATOMIC_RELAXED);
}

/* Search from the newest run. RUNS_MAX: not found. */
static uint32_t find_run(const struct runs *runs, uint32_t number)
{
	for (uint32_t i = runs_n(runs); i-- > 0;)
		if (number_of(runs, i) == number)
			return i;
	return RUNS_MAX;
}

/* Holds the lock. Another thread may have added it before. */
static uint32_t add_run(struct runs *runs, uint32_t number)
{
	uint32_t run = find_run(runs, number);

	if (run < RUNS_MAX || runs->n == RUNS_MAX)
		return run;
	run = runs->n;
	__atomic_store_n(&runs->numbers[run], (uint16_t)number,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&runs->n, run + 1, __ATOMIC_RELEASE);
	return run;
}

static uint32_t add_block(struct runs *runs, uint32_t run, uint32_t i)
{
	uint16_t *block = &runs->block_of[run][i];

	if (*block > 0 || runs->n_blocks == RUNS_BLOCKS)
		return *block;
	runs->blocks[runs->n_blocks].run = (uint16_t)run;
	runs->blocks[runs->n_blocks].first_lane =
		(uint16_t)(i << RUNS_BLOCK_BITS);
	runs->n_blocks++;
	__atomic_store_n(block, (uint16_t)runs->n_blocks, __ATOMIC_RELEASE);
	return *block;
}

uint32_t runs_lane(struct runs *runs, uint32_t *run_at, uint32_t number,
		   uint32_t lane)
{
	const uint32_t i = lane >> RUNS_BLOCK_BITS;
	uint32_t run = *run_at, block;

	if (number_of(runs, run) != number || number == 0) {
		run = find_run(runs, number);
		if (run == RUNS_MAX && number != 0) {
			pthread_mutex_lock(&runs->lock);
			run = add_run(runs, number);
			pthread_mutex_unlock(&runs->lock);
		}
		if (run == RUNS_MAX)
			return UINT32_MAX;
		*run_at = run;
	}
	block = __atomic_load_n(&runs->block_of[run][i], __ATOMIC_ACQUIRE);
	if (block == 0) {
		pthread_mutex_lock(&runs->lock);
		block = add_block(runs, run, i);
		pthread_mutex_unlock(&runs->lock);
	}
	if (block == 0)
		return UINT32_MAX;
	return (block - 1) << RUNS_BLOCK_BITS | (lane & (RUNS_BLOCK_LANES - 1));
}

void runs_find(const struct runs *runs, uint32_t lane, uint32_t *ret_run,
	       uint32_t *ret_lane)
{
	const uint32_t block = lane >> RUNS_BLOCK_BITS;

	*ret_run = runs->blocks[block].run;
	*ret_lane = runs->blocks[block].first_lane +
		    (lane & (RUNS_BLOCK_LANES - 1));
}
