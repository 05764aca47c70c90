/* SPDX-License-Identifier: BSD-3-Clause */
/* net/timing.c: when the frames of a capture are due. Times are in ms. */
#include "net/timing.h"
#include "support/test.h"

#define MS 1000000ull
#define DAY (1700000000000ull * MS) /* some time of day */

static struct timing timing;

static int begin_timing(void **state)
{
	(void)state;
	timing = (struct timing){ .due_ns = 0 };
	return 0;
}

static uint64_t due(uint64_t time_ns)
{
	return timing_due(&timing, time_ns) / MS;
}

static void check_rows(const int64_t (*rows)[2], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(due(DAY + (uint64_t)(rows[i][0] * (int64_t)MS)),
				 rows[i][1]);
}

TEST_WITH(begin_timing, NULL, gaps_between_frames_equal_the_captures)
{
	static const int64_t rows[][2] = { { 0, 0 }, { 7, 7 }, { 7, 7 },
					   { 100, 100 } };

	check_rows(rows, 4);
}

TEST_WITH(begin_timing, NULL, a_frame_out_of_order_follows_at_once)
{
	/* Some have the time of the first, some are older than all. */
	static const int64_t rows[][2] = { { 0, 0 },	  { 1000, 1000 },
					   { 0, 1000 },	  { 1100, 1100 },
					   { -50, 1100 }, { 1200, 1200 },
					   { 1195, 1200 }, { 1197, 1200 },
					   { 1201, 1201 } };

	check_rows(rows, 9);
	assert_int_equal(timing.n_steps, 0);
}

TEST_WITH(begin_timing, NULL, gaps_continue_after_a_step_back)
{
	static const int64_t rows[][2] = { { 0, 0 },	     { 100, 100 },
					   { -3600000, 100 }, { -3599900, 200 },
					   { -3599800, 300 }, { -3599000, 1100 } };

	check_rows(rows, 6);
	assert_int_equal(timing.n_steps, 1);
}

TEST_WITH(begin_timing, NULL, a_record_without_a_time_follows_at_once)
{
	assert_int_equal(due(0), 0);
	assert_int_equal(due(DAY), 0);
	assert_int_equal(due(DAY + 5 * MS), 5);
	assert_int_equal(due(0), 5);
	assert_int_equal(due(DAY + 9 * MS), 9);
	assert_int_equal(timing.n_untimed, 2);
}

TEST_WITH(begin_timing, NULL, times_may_begin_at_0)
{
	for (uint32_t pass = 0; pass < 2; pass++) {
		assert_int_equal(due(0), pass * 17);
		assert_int_equal(due(7 * MS), pass * 17 + 7);
		assert_int_equal(due(12 * MS), pass * 17 + 12);
		timing_begin_again(&timing);
	}
	assert_int_equal(timing.n_untimed, 0);
}

TEST_WITH(begin_timing, NULL, long_gaps_are_shortened)
{
	timing.max_gap_ns = 50 * MS;
	due(DAY);
	assert_int_equal(due(DAY + 40 * MS), 40);
	assert_int_equal(due(DAY + 40 * MS + DAY), 90);
	assert_int_equal(due(DAY + 41 * MS), 90);
	assert_int_equal(due(DAY + 43 * MS), 92);
	assert_int_equal(timing.n_shortened, 1);
}

TEST_WITH(begin_timing, NULL, passes_are_the_last_gap_apart)
{
	for (uint64_t pass = 0; pass < 3; pass++) {
		assert_int_equal(due(DAY), pass * 40);
		assert_int_equal(due(DAY + 20 * MS), pass * 40 + 20);
		timing_begin_again(&timing);
	}
}

TEST_WITH(begin_timing, NULL, a_pass_without_a_gap_takes_a_millisecond)
{
	for (uint64_t pass = 0; pass < 3; pass++) {
		assert_int_equal(due(DAY), pass);
		assert_int_equal(due(DAY), pass);
		timing_begin_again(&timing);
	}
	assert_int_equal(timing.n_gapless, 3);
	/* Time must not overflow. */
	timing.due_ns = UINT64_MAX - 5;
	due(1);
	assert_true(timing_due(&timing, DAY) == UINT64_MAX);
}
