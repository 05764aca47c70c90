/* SPDX-License-Identifier: BSD-3-Clause */
/* The parsed command line. */
#ifndef NAT_OPTIONS_H
#define NAT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "support/offloading.h"
#include "support/options.h"
#include "support/run.h"

#include "config/config.h"

enum nat_command {
	NAT_RUN,
	NAT_SESSIONS, /* this and the rest are requests to a running instance */
	NAT_CLEAR,
	NAT_STATS,
};

struct options {
	struct dataplane_config plane; /* specs come from the configuration */
	struct run_options run;
	enum nat_command command;
	struct nat_config sides; /* of --inside and --outside: no --config */
	bool has_side[NAT_SIDES];
	const char *filter; /* NULL: none */
	bool is_now;        /* clear also empties hold-down */
	enum offload_choice offload;
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

/* Number of forwarding threads. */
uint32_t options_n_workers(const struct options *options);

/*
 * Get the complete, checked configuration: 0, or an exit status with errors.
 * Free it with nat_config_free().
 */
int options_config(const struct options *options, struct nat_config *ret_config,
		   struct yaml_errors *ret_errors);

#endif
