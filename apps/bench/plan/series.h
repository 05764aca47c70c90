/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a plan, done one after the other. */
#ifndef PLAN_SERIES_H
#define PLAN_SERIES_H

#include "plan/journal.h"
#include "plan/plan.h"

struct series {
	const struct plan *plan;
	const char *program; /* which build this is, for the journal */
	struct journal *journal;
	const struct step *steps;
	uint32_t n_steps;
	bool is_quiet;
};

struct series_end {
	uint32_t n_done, n_failed; /* now */
	uint32_t n_before;         /* that had their results already */
	bool is_cut_short;         /* by a signal */
};

/*
 * Do what is not done. Devices are started for their steps and stopped behind
 * them, also when a signal comes; a step that fails is noted, and the others go
 * on. 0, or -errno with a line: nothing more could be done.
 */
int series_run(const struct series *series, struct series_end *ret,
	       struct mr_reason *why);

/* What would be done, and how long that takes. */
void series_list(const struct series *series);

/* Seconds, as "12 s", "4 min" or "1 h 5 min". */
void print_time(double seconds, char *ret, size_t n_bytes);

#endif
