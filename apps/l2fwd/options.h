/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line asks for. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <millrace/millrace.h>

#include "support/dataplane.h"
#include "support/options.h"
#include "support/report.h"

enum mode { MODE_PATCH, MODE_MACSWAP, MODE_LEARN, MODE_DROP };

struct options {
	struct dataplane_config plane;
	enum mode mode;
	enum output output;
	bool is_quiet;
	uint32_t n_verbose; /* times that -v was given */
	uint32_t age_s, fdb_limit;
	uint64_t n_frames;    /* 0: no end */
	uint64_t duration_ms; /* 0: no end */
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

void options_print_help(FILE *to);

#endif
