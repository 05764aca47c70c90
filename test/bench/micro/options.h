/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line asks for. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <millrace/millrace.h>

#include "support/options.h"

#include "bench.h"

struct options {
	const char *command; /* "mem" or "flow" */
	char *const *names;  /* what to run; none: everything */
	uint32_t n_names;
	bool is_list, is_json, is_quiet, is_quick, is_goals;
	uint32_t sides; /* bit by enum side */
	uint32_t n_samples;
	uint32_t sample_ms;
	uint32_t n_cores; /* 0: those that the process may use */
	uint32_t cores[MR_WORKERS_MAX];
	const char *out; /* folder for the report; NULL: none */
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

void options_print_help(FILE *to);

#endif
