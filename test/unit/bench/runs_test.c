/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of tx: each has its lanes, and keeps them. */
#include <pthread.h>
#include <stdlib.h>

#include "net/runs.h"
#include "support/test.h"

TEST(each_run_has_its_own_lanes)
{
	static const struct {
		uint32_t number, lane, want;
	} cases[] = {
		{ 7, 0, 0 },       { 7, 63, 63 }, { 9, 0, 64 },
		{ 7, 130, 130 }, /* its third block is the third that is seen */
		{ 9, 70, 198 },    { 7, 0, 0 },   { 9, 63, 127 },
		{ 8, 65535, 319 },
	};
	struct runs *runs = runs_new();
	uint32_t run_at = 0, run, lane;

	assert_int_equal(runs_n(runs), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(runs_lane(runs, &run_at, cases[i].number,
					   cases[i].lane),
				 cases[i].want);
		runs_find(runs, cases[i].want, &run, &lane);
		assert_int_equal(runs->numbers[run], cases[i].number);
		assert_int_equal(lane, cases[i].lane);
	}
	assert_int_equal(runs_n(runs), 3);
	/* A sender without a number is none. */
	assert_int_equal(runs_lane(runs, &run_at, 0, 0), UINT32_MAX);
	runs_free(runs);
}

TEST(lanes_of_too_many_runs_are_refused)
{
	struct runs *runs = runs_new();
	uint32_t run_at = 0;

	for (uint32_t i = 0; i < RUNS_MAX; i++)
		assert_int_equal(runs_lane(runs, &run_at, 1 + i, 5),
				 i * RUNS_BLOCK_LANES + 5);
	assert_int_equal(runs_lane(runs, &run_at, 1, 64), UINT32_MAX);
	assert_int_equal(runs_lane(runs, &run_at, RUNS_MAX + 1, 5), UINT32_MAX);
	assert_int_equal(runs_lane(runs, &run_at, 3, 6),
			 2 * RUNS_BLOCK_LANES + 6);
	assert_int_equal(runs_n(runs), RUNS_MAX);
	runs_free(runs);
}

enum { N_NUMBERS = 900 };

struct looker {
	struct runs *runs;
	uint32_t lanes[N_NUMBERS];
};

static void *read_runs(void *opaque)
{
	struct looker *looker = opaque;
	uint32_t run_at = 0;

	for (uint32_t i = 0; i < N_NUMBERS; i++)
		looker->lanes[i] = runs_lane(looker->runs, &run_at, 1 + i, 3);
	return NULL;
}

TEST(threads_agree)
{
	static struct looker lookers[2];
	struct runs *runs = runs_new();
	pthread_t threads[2];

	for (uint32_t t = 0; t < 2; t++) {
		lookers[t].runs = runs;
		assert_int_equal(pthread_create(&threads[t], NULL, read_runs,
						&lookers[t]),
				 0);
	}
	for (uint32_t t = 0; t < 2; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(runs_n(runs), N_NUMBERS);
	for (uint32_t i = 0; i < N_NUMBERS; i++)
		assert_int_equal(lookers[0].lanes[i], lookers[1].lanes[i]);
	runs_free(runs);
}
