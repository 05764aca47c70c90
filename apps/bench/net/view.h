/* SPDX-License-Identifier: BSD-3-Clause */
/* What tx, rx and loop show: a line each second, and a summary at the end. */
#ifndef NET_VIEW_H
#define NET_VIEW_H

#include <stdio.h>

#include "net/tester.h"

struct view {
	FILE *to; /* NULL: silent */
	bool has_tx, has_rx;
	double mean_bytes;    /* of the frames */
	uint64_t duration_ns; /* of sending; 0: no end */
	uint64_t next_ns;     /* when the next line is due */
	uint64_t then_ns;     /* counters of the last line */
	uint64_t sent, unsent, unique, foreign, received;
	uint32_t n_runs;
};

/* A tester_progress_fn: opaque is the view. */
void view_progress(void *view, const struct trial_result *so_far);

/* Whether a line can be written without waiting for its reader. */
bool view_can_write(FILE *to);

/* "1.234 M" of 1234000. In a buffer of the caller. */
const char *view_scaled(double value, char *text, size_t n_bytes);

/* "12.3 us" of 12300. */
const char *view_time(double ns, char *text, size_t n_bytes);

void view_summary(const struct view *view, const struct tester *tester,
		  const struct trial_result *result);

#endif
