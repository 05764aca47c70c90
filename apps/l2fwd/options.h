/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of the command line and the configuration file. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "support/dataplane_keys.h"
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
	/* Of the ports; plane.specs are they. */
	char specs[MAX_PORTS][MAX_SPEC_BYTES];
	const char *spec_list[MAX_PORTS];
};

/* *options must not move afterwards. */
enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

/* keys.c: the keys of a file, and the options with the same names. */
extern const struct yaml_key l2fwd_keys[];

/* Set the defaults. */
void options_init(struct options *options);

/* Add a port. False: the reason says why not. */
bool options_add_port(struct options *options, const char *spec,
		      struct mr_reason *ret_why);

/* Whether they are consistent: 0, or -EINVAL with objections added. */
int options_check(const struct options *options, struct objections *objections);

/* Read and check a text, or the file called name if text is NULL. 0; or
 * -EINVAL or -errno with errors. */
int options_read_text(const char *name, const char *text, size_t n_bytes,
		      struct options *options, struct yaml_errors *ret_errors);

#endif
