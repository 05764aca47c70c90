/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line asks for. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "support/offloading.h"
#include "support/options.h"
#include "support/run.h"

enum mode { MODE_PATCH, MODE_MACSWAP, MODE_LEARN, MODE_DROP };

struct options {
	struct dataplane_config plane;
	struct run_options run;
	enum mode mode;
	enum offload_choice offload;
	uint32_t age_s, fdb_limit;
	uint64_t n_frames; /* 0: no end */
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

#endif
