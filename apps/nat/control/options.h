/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line asks for. */
#ifndef NAT_OPTIONS_H
#define NAT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "support/options.h"
#include "support/run.h"

#include "config/config.h"

enum nat_command {
	NAT_RUN,
	NAT_CHECK,    /* read the configuration, say whether it is good */
	NAT_SESSIONS, /* the others are asked of a running instance */
	NAT_CLEAR,
	NAT_STATS,
};

struct options {
	struct dataplane_config plane; /* specs are the configuration's */
	struct run_options run;
	enum nat_command command;
	const char *config_path; /* NULL: the sides are below */
	struct nat_config sides; /* what --inside and --outside set */
	bool has_side[NAT_SIDES];
	const char *instance;
	const char *filter; /* NULL: none */
	bool is_now;        /* clear empties hold-down, too */
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

void options_print_help(FILE *to);

/* Threads that will forward. */
uint32_t options_n_workers(const struct options *options);

/*
 * The configuration that is asked for, complete and checked: 0, or the exit
 * status with a line. nat_config_free() it.
 */
int options_config(const struct options *options, struct nat_config *ret_config,
		   struct mr_reason *ret_error);

#endif
