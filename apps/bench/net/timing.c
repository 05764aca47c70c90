/* SPDX-License-Identifier: BSD-3-Clause */
/* When the frames of a capture are due. */
#include "net/timing.h"

uint64_t timing_due(struct timing *t, uint64_t time_ns)
{
	if (!t->has_begun) {
		t->has_begun = true;
		t->first_ns = t->last_ns = time_ns;
		return 0;
	}
	if (time_ns == t->first_ns && t->last_ns > t->first_ns) {
		t->due_ns += t->gap_ns;
		t->last_ns = time_ns;
	} else if (time_ns > t->last_ns) {
		t->gap_ns = time_ns - t->last_ns;
		t->due_ns += t->gap_ns;
		t->last_ns = time_ns;
	}
	return t->due_ns;
}
