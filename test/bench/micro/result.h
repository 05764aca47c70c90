/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured, for the reports. */
#ifndef RESULT_H
#define RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "bench.h"
#include "sample.h"

struct player_result {
	char name[64];
	enum side side;
	char why_not[160]; /* it did not take part; "" if it did */
	uint32_t n_samples, n_disturbed; /* taken; of those not clean */
	bool is_noisy;                   /* disturbed samples had to be used */
	struct summary ns;               /* per operation */
	double cycles;                   /* median, of the TSC, per operation */
	struct ratio to_ours; /* its time by that of the first of ours */
	uint64_t n_done;
	struct counts counts;
};

struct row_result {
	const struct workload *workload;
	char name[96], unit[24];
	char plot[64], x_name[48]; /* "" if none */
	char plot_count[32];       /* "": its plot is of the time only */
	double x;
	uint32_t n_threads, n_players;
	bool is_per_thread;
	struct player_result *players;
};

struct results {
	struct row_result *rows;
	uint32_t n_rows, n_room;
	bool is_cut_short;   /* by a signal, or the limit of --goals */
	bool has_all_goals;  /* to be listed, those not run, too */
	const char *command; /* "mem" */
};

const char *side_name(enum side side);

#endif
