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

struct options {
	struct dataplane_config plane; /* of the command line */
	struct option_given given;     /* those of dataplane_keys */
	struct run_options run;
	struct nat_config sides; /* of --inside and --outside: no --config */
	bool has_side[NAT_SIDES];
	enum offload_choice offload;
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

/* Read a configuration like nat_settings_parse(); options override its section
 * "dataplane". run is options->run or a copy of it. */
int options_parse_file(const struct options *options, struct run_options *run,
		       const char *name, const char *bytes, size_t n_bytes,
		       struct nat_config *ret_config,
		       struct yaml_errors *ret_errors);

/*
 * Get the complete, checked configuration: 0, or an exit status with errors.
 * Free it with nat_config_free(). It must stay where it is while the options
 * are used.
 */
int options_config(struct options *options, struct nat_config *ret_config,
		   struct yaml_errors *ret_errors);

#endif
