/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of an application: one table makes the parser and the help.
 *
 * The struct that the options end up in is the application's. An option is a
 * key with a help, as of a configuration file; or a row, for which the
 * application gives a function, and the parse_...() below read its value.
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
	OPTION_KEY = 0,
	OPTION_LONG = 256, /* from here on: no short option */
	MAX_OPTIONS = 64,
};

struct option_row {
	const char *name;
	/* Chosen by the table; a letter: the short option. OPTION_KEY: this is
	 * the help of the key of that name; NULL: it is no option here. */
	int id;
	const char *arg; /* name of the value in the help; NULL: none */
	const char *help;
};

/* Keys that are options. */
struct option_keys {
	const struct yaml_key *keys;
	size_t offset; /* of the struct that they fill in, in the options */
	bool is_noted; /* in struct option_given */
};

/* The options given, each once with its last value. */
struct option_given {
	uint32_t n;
	struct {
		const char *name, *value;
	} list[MAX_OPTIONS];
};

/*
 * Handle one option, given with arg. Called in command-line order, once per
 * occurrence: a repeatable option adds to a list.
 */
typedef enum parse_result option_fn(const struct option_row *row,
				    const char *arg, void *options,
				    struct mr_reason *ret_error);

struct option_table {
	const char *program; /* "mr-l2fwd" */
	const char *usage;   /* of the help, before the options */
	const struct option_row *rows;
	uint32_t n_rows;
	option_fn *take;
	/* Listed after the rows. */
	const struct option_keys *sets;
	uint32_t n_sets;
};

/*
 * Read the command line. Words that are not options move to the end of argv,
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

/*
 * Readers of values. name is the option's, for the error message. They set
 * results only on PARSE_RUN.
 */

/* A whole number from min to max. */
enum parse_result parse_u32(const char *name, const char *text, uint32_t min,
			    uint32_t max, uint32_t *ret,
			    struct mr_reason *ret_error);
enum parse_result parse_u64(const char *name, const char *text, uint64_t min,
			    uint64_t max, uint64_t *ret,
			    struct mr_reason *ret_error);

/* Seconds, 0.001 to 1e9, such as 10 or 0.5. */
enum parse_result parse_seconds(const char *name, const char *text,
				uint64_t *ret_ms, struct mr_reason *ret_error);

/* One of the words, which end with NULL; returns its index. */
enum parse_result parse_word(const char *name, const char *text,
			     const char *const *words, uint32_t *ret,
			     struct mr_reason *ret_error);

/* Log verbosity (-v, -v -v) overrides quiet. */
enum mr_log_level option_log_level(uint32_t n_verbose, bool is_quiet);

#endif
