/* SPDX-License-Identifier: BSD-3-Clause */
/* When the frames of a capture are due. */
#include "net/timing.h"
#include "support/counter.h"

/* After time 0, a larger time is the time of day, not a gap. */
static const uint64_t relative_ns = 86400 * 1000000000ull;

static void advance_due(struct timing *t, uint64_t gap_ns)
{
	if (t->max_gap_ns > 0 && gap_ns > t->max_gap_ns) {
		gap_ns = t->max_gap_ns;
		counter_add(&t->n_shortened, 1);
	}
	if (gap_ns > 0)
		t->gap_ns = gap_ns;
	t->due_ns = gap_ns < UINT64_MAX - t->due_ns ? t->due_ns + gap_ns :
						      UINT64_MAX;
}

static void begin_pass(struct timing *t, uint64_t time_ns)
{
	t->has_begun = true;
	t->latest_ns = time_ns;
	if (t->n_zero == 0 || time_ns > relative_ns)
		return;
	counter_sub(&t->n_untimed, t->n_zero);
	advance_due(t, time_ns);
}

uint64_t timing_due(struct timing *t, uint64_t time_ns)
{
	if (time_ns == 0) {
		counter_add(&t->n_untimed, 1);
		t->n_zero += !t->has_begun;
		return t->due_ns;
	}
	if (!t->has_begun) {
		begin_pass(t, time_ns);
	} else if (time_ns >= t->latest_ns) {
		advance_due(t, time_ns - t->latest_ns);
		t->latest_ns = time_ns;
		t->is_back = false;
	} else if (t->is_back && time_ns >= t->last_ns &&
		   t->latest_ns - time_ns > TIMING_REORDER_NS) {
		advance_due(t, time_ns - t->last_ns);
		t->latest_ns = time_ns;
		t->is_back = false;
		counter_add(&t->n_steps, 1);
	} else {
		t->is_back = true;
	}
	t->last_ns = time_ns;
	return t->due_ns;
}

void timing_begin_again(struct timing *t)
{
	t->has_begun = t->is_back = false;
	t->n_zero = 0;
	if (t->gap_ns > 0) {
		advance_due(t, t->gap_ns);
		return;
	}
	counter_add(&t->n_gapless, 1);
	t->due_ns += TIMING_PASS_NS;
}
