/* SPDX-License-Identifier: BSD-3-Clause */
/* The run's clock beside CLOCK_MONOTONIC, and the virtual one. */

#include "net/clock.h"
#include "support/test.h"

static void sleep_ns(long ns)
{
	const struct timespec t = { .tv_nsec = ns };

	nanosleep(&t, NULL);
}

/* A reading lies between two of CLOCK_MONOTONIC, give or take its error. */
TEST(clock_agrees_with_the_monotonic_clock)
{
	struct clock clock;

	clock_open(&clock, false);
	for (int i = 0; i < 5; i++) {
		const uint64_t slack = clock.error_ns + 20000 + 500 * 20;
		const uint64_t before = clock_monotonic_ns() - clock.start_ns;
		const uint64_t now = clock_now(&clock);
		const uint64_t after = clock_monotonic_ns() - clock.start_ns;

		assert_true(now + slack >= before);
		assert_true(now <= after + slack);
		sleep_ns(4000000);
	}
	assert_true(clock.error_ns > 0);
	assert_true(clock_is_stable(&clock, 20000000, clock_drift_ns(&clock)));
}

/* Then there is nothing between them. */
TEST(clock_can_be_the_kernels)
{
	struct clock clock;

	clock_open(&clock, false);
	clock_use_kernel(&clock);
	clock_start(&clock);
	assert_string_equal(clock_source(&clock), "CLOCK_MONOTONIC");
	for (int i = 0; i < 100; i++) {
		const uint64_t before = clock_monotonic_ns() - clock.start_ns;
		const uint64_t now = clock_now(&clock);

		assert_true(now >= before);
		assert_true(now <= clock_monotonic_ns() - clock.start_ns);
	}
	assert_int_equal(clock_drift_ns(&clock), 0);
}

TEST(a_run_begins_at_zero)
{
	struct clock clock;
	uint64_t first;

	clock_open(&clock, false);
	sleep_ns(30000000);
	assert_true(clock_now(&clock) >= 30000000);
	clock_start(&clock);
	first = clock_now(&clock);
	assert_true(first < 30000000);
	assert_true(clock_now(&clock) >= first);
}

TEST(a_clock_that_jumps_is_not_stable)
{
	struct clock clock;

	clock_open(&clock, false);
	if (!clock.has_counter)
		skip();
	assert_true(clock_is_stable(&clock, 0, clock_drift_ns(&clock)));
	/* As if the counter had run a hundredth too fast for a second. */
	clock.start_ns -= 1000000000;
	clock.start_ticks -= (uint64_t)(1.01 * (double)(1ull << 32) /
					(double)clock.ns_per_tick * 1e9);
	assert_true(clock_drift_ns(&clock) > 9000000);
	assert_false(
		clock_is_stable(&clock, 1000000000, clock_drift_ns(&clock)));
}

TEST(virtual_clock_moves_only_when_told)
{
	struct clock clock;

	clock_open(&clock, true);
	assert_string_equal(clock_source(&clock), "virtual");
	assert_int_equal(clock_now(&clock), 0);
	clock_move(&clock, 700);
	clock_move(&clock, 300);
	assert_int_equal(clock_now(&clock), 700);
	assert_int_equal(clock.error_ns, 0);
	clock_start(&clock);
	assert_int_equal(clock_now(&clock), 0);
}
