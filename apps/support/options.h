/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of an application: one table makes the parser and the help.
 *
 * The application defines the struct that the options fill in. An option is a
 * key with a help text, of the same type as those of configuration files.
 */
#ifndef SUPPORT_OPTIONS_H
#define SUPPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <millrace/millrace.h>

#include "text.h"
#include "yaml_keys.h"

enum parse_result {
	PARSE_RUN,
	PARSE_DONE,  /* printed help or version */
	PARSE_WRONG, /* ret_error has a line with cause and cure */
};

enum {
	OPTION_HELP = 'h',    /* ids that the parser itself handles, */
	OPTION_VERSION = 'V', /* of options that all tables have */
	OPTION_LONG = 256, /* from here on: no short option */
	MAX_OPTIONS = 64,
};

/* Keys that are options. */
struct option_keys {
	const struct yaml_key *keys;
	size_t offset; /* of the struct that they fill in, in the options */
	bool is_noted; /* in struct option_given */
	uint32_t groups;
};

/* The options given, each once with its last value. */
struct option_given {
	uint32_t n;
	struct {
		const char *name, *value;
	} list[MAX_OPTIONS];
};

struct option_table {
	const char *program; /* "mr-l2fwd" */
	const char *usage;   /* of the help, before the options */
	const struct option_keys *sets;
	uint32_t n_sets;
};

/*
 * Read the command line. An option that is given twice is read twice, so that
 * it can add to a list. Words that are not options move to the end of argv,
 * from *ret_first on. ret_given: NULL, or initially all zeros. Only one thread
 * at a time, due to getopt().
 */
enum parse_result option_table_parse(const struct option_table *table, int argc,
				     char **argv, void *options, int *ret_first,
				     struct option_given *ret_given,
				     struct mr_reason *ret_error);

/* For keys that are options only. */
yaml_take_fn option_take_string; /* const char *, of argv */
yaml_take_fn option_take_count;  /* uint32_t: how often it is given */

void option_table_print_help(const struct option_table *table, FILE *to);

/* Set the message; PARSE_WRONG. */
#define parse_wrong(ret_error, ...)                                            \
	((enum parse_result)fail_with(ret_error, PARSE_WRONG, __VA_ARGS__))

/* Log verbosity (-v, -v -v) overrides quiet. */
enum mr_log_level option_log_level(uint32_t n_verbose, bool is_quiet);

#endif
