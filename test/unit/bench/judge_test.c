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

static struct trial_result make_result(uint64_t n_accepted, uint64_t n_unsent)
{
	return (struct trial_result){
		.sent = n_accepted,
		.unsent = n_unsent,
		.tx_bytes = 60 * n_accepted,
		.drops = &too_long,
		.n_drops = 1,
	};
}

TEST(frames_that_the_port_drops_are_unsent)
{
	struct trial_result r = make_result(100, 0);

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

TEST(late_frames_make_a_bounded_trial_incomplete)
{
	struct trial_result r = make_result(100, 500);

	trial_judge(&r, 0, 0, true);
	assert_int_equal(r.due, 600);
	/* A counter with a small part of them is not the cause. */
	assert_string_equal(r.why_incomplete,
			    "500 of 600 frames did not leave: the sender was "
			    "late by more than --max-lag");
	r = make_result(100, 500);
	trial_judge(&r, 0, 0, false);
	assert_string_equal(r.why_incomplete, "");
}

TEST(a_complete_trial_has_no_reason)
{
	struct trial_result r = make_result(100, 0);

	trial_judge(&r, 0, 0, true);
	assert_string_equal(r.why_incomplete, "");
	assert_int_equal(r.sent, 100);
}

TEST(at_full_speed_frames_without_room_were_never_due)
{
	struct trial_result r = make_result(100, 0);

	trial_judge(&r, 60, 60, true);
	assert_int_equal(r.sent, 40);
	assert_int_equal(r.due, 40);
	assert_string_equal(r.why_incomplete, "");
}

TEST(drops_are_limited_to_the_frames_of_the_trial)
{
	struct trial_result r = make_result(5, 0);

	trial_judge(&r, 60, 0, true);
	assert_int_equal(r.sent, 0);
	assert_int_equal(r.unsent, 5);
}

TEST(an_early_end_has_its_own_reason)
{
	struct trial_result r = make_result(100, 0);

	r.is_cut_short = true;
	trial_judge(&r, 0, 0, true);
	assert_string_equal(r.why_incomplete, "ended by a signal");
	strcpy(r.why_stopped, "xdp:a has lost its link");
	trial_judge(&r, 60, 0, true);
	assert_string_equal(r.why_incomplete, "xdp:a has lost its link");
}

TEST(only_increases_of_counters_are_kept)
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
