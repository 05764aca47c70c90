/* SPDX-License-Identifier: BSD-3-Clause */
/* net/trial.c: what makes a trial complete, and net/drops.c: what ports drop. */
#include <string.h>

#include "net/drops.h"
#include "support/test.h"

static struct trial_drop too_long = {
	.port = "xdp:a",
	.side = "tx",
	.name = "too_long",
	.n = 60,
	.is_departure = true,
};

static struct trial_result of(uint64_t n_accepted, uint64_t n_unsent)
{
	return (struct trial_result){
		.sent = n_accepted,
		.unsent = n_unsent,
		.tx_bytes = 60 * n_accepted,
		.drops = &too_long,
		.n_drops = 1,
	};
}

TEST(what_the_port_drops_was_not_sent)
{
	struct trial_result r = of(100, 0);

	trial_judge(&r, 60, 0, true);
	assert_int_equal(r.sent, 40);
	assert_int_equal(r.unsent, 60);
	assert_int_equal(r.due, 100);
	assert_int_equal(r.n_dropped, 60);
	assert_int_equal(r.tx_bytes, 60 * 40);
	assert_string_equal(r.why_incomplete,
			    "60 of 100 frames did not leave: xdp:a dropped 60 "
			    "(too_long)");
}

TEST(what_is_late_is_missing_from_what_was_asked_for)
{
	struct trial_result r = of(100, 500);

	trial_judge(&r, 0, 0, true);
	assert_int_equal(r.due, 600);
	/* A counter that has little of it is no cause. */
	assert_string_equal(r.why_incomplete,
			    "500 of 600 frames did not leave: the sender was "
			    "late by more than --max-lag");
	r = of(100, 500);
	trial_judge(&r, 0, 0, false);
	assert_string_equal(r.why_incomplete, "");
}

TEST(a_complete_trial_has_no_reason)
{
	struct trial_result r = of(100, 0);

	trial_judge(&r, 0, 0, true);
	assert_string_equal(r.why_incomplete, "");
	assert_int_equal(r.sent, 100);
}

TEST(at_full_speed_what_there_is_no_room_for_was_never_due)
{
	struct trial_result r = of(100, 0);

	trial_judge(&r, 60, 60, true);
	assert_int_equal(r.sent, 40);
	assert_int_equal(r.due, 40);
	assert_string_equal(r.why_incomplete, "");
}

TEST(others_frames_in_a_counter_are_not_ours)
{
	struct trial_result r = of(5, 0);

	trial_judge(&r, 60, 0, true);
	assert_int_equal(r.sent, 0);
	assert_int_equal(r.unsent, 5);
}

TEST(an_early_end_has_its_own_reason)
{
	struct trial_result r = of(100, 0);

	r.is_cut_short = true;
	trial_judge(&r, 0, 0, true);
	assert_string_equal(r.why_incomplete, "ended by a signal");
	strcpy(r.why_stopped, "xdp:a has lost its link");
	trial_judge(&r, 60, 0, true);
	assert_string_equal(r.why_incomplete, "xdp:a has lost its link");
}

/* Rows are differences, of the port's own sides. */
TEST(counters_of_a_port_tell_what_left)
{
	struct trial_drop before[2] = { { .n = 7 }, { .n = 3 } };
	struct trial_drop rows[2] = { too_long, too_long };
	struct drop_rows moved = { rows, 2, 2 };

	rows[0].n = 10;
	rows[1].n = 2; /* it was reset */
	drops_since(&moved, before);
	assert_int_equal(moved.n, 1);
	assert_int_equal(rows[0].n, 3);
	assert_int_equal(drops_received(&moved, NULL), 0);
}
