/* SPDX-License-Identifier: BSD-3-Clause */
/* When the kernel's bursts are due, up to and past what 64 bits would hold. */

#include "live/live_due.h"
#include "support/test.h"

#define HOUR 3600000000000ull

enum { PART = 1 << 16 };

/* A third of a ns, three times, is no ns less for being whole in the end. */
TEST(fractions_add_up)
{
	struct live_due due = { .ns = 7 };

	for (int i = 0; i < PART; i++)
		live_due_add(&due, 100ull * PART + 3);
	assert_int_equal(due.ns, 7 + 100ull * PART + 3);
	assert_int_equal(due.part, 0);
}

TEST(times_beyond_a_week_do_not_overflow)
{
	const uint64_t gap = 1000ull * PART;
	struct live_due due = { .ns = 0 };

	for (uint64_t hour = 1; hour <= 200; hour++) {
		/* At most 39 of them at once. */
		assert_int_equal(live_due_before(&due, hour * HOUR, gap),
				 HOUR / 1000);
		live_due_add(&due, HOUR / 1000 * gap);
		assert_int_equal(due.ns, hour * HOUR);
	}
}

TEST(frames_due_before_a_time_are_counted)
{
	const struct live_due due = { .ns = 1000, .part = PART / 2 };
	static const struct {
		uint64_t until_ns, n;
	} cases[] = {
		{ 0, 0 },    { 999, 0 },  { 1000, 0 },
		{ 1001, 1 }, { 1010, 1 }, { 1011, 2 },
		{ 1020, 2 }, { 1021, 3 }, { 2001, 101 },
	};

	/* 1000.5, 1010.5, ... */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			live_due_before(&due, cases[i].until_ns, 10ull * PART),
			cases[i].n);
}
