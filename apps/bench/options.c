/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: one table makes the parser and the help. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "sample.h"

enum { SAMPLES = 31, QUICK_SAMPLES = 7, SAMPLE_MS = 50, QUICK_MS = 5 };

struct option_row {
	const char *name;
	char id;         /* also the short option, if it is a letter */
	const char *arg; /* NULL: none */
	const char *help;
};

static const struct option_row rows[] = {
	{ "list", 'l', NULL, "say what could be run, and run nothing" },
	{ "samples", 's', "N", "per player and row (default 31)" },
	{ "sample-ms", 't', "MS", "length of one (default 50)" },
	{ "quick", 'q', NULL, "7 samples of 5 ms: a look, not a result" },
	{ "only", 'O', "SIDES",
	  "of ours,dpdk,kernel,plain,malloc; as ours,dpdk" },
	{ "only-ours", 'o', NULL, "the same as --only ours" },
	{ "cores", 'c', "LIST", "cores to use in that order, as 1,3-5" },
	{ "json", 'j', NULL, "one JSON object on stdout, and no table" },
	{ "out", 'd', "DIR", "write report.json, report.md and plots there" },
	{ "quiet", 'Q', NULL, "no progress on stderr" },
	{ "help", 'h', NULL, "print this" },
	{ "version", 'V', NULL, "print the version" },
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

void options_print_help(FILE *to)
{
	fprintf(to,
		"usage: mr-bench mem [options] [NAME...]\n"
		"Measure the memory layer beside its peers.\n"
		"\n"
		"NAME is a workload, as B06, or a part of a row's name, as\n"
		"B06/from=depot; without any, all are run.\n"
		"\n");
	for (uint32_t i = 0; i < N_ROWS; i++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
			 rows[i].arg != NULL ? " " : "",
			 rows[i].arg != NULL ? rows[i].arg : "");
		fprintf(to, "  -%c, %-18s %s\n", rows[i].id, left,
			rows[i].help);
	}
	fprintf(to, "\nExit status: 0; 1 on failure; 2 if the command line is "
		    "wrong.\n");
}

__attribute__((format(printf, 2, 3))) static enum parse_result
wrong(struct mr_reason *ret_error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ret_error->text, sizeof(ret_error->text), format, args);
	va_end(args);
	return PARSE_WRONG;
}

static enum parse_result parse_u32(const char *name, const char *text,
				   uint32_t min, uint32_t max, uint32_t *ret,
				   struct mr_reason *ret_error)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0')
		return wrong(ret_error, "--%s: '%s' is not a whole number",
			     name, text);
	if (errno != 0 || value < min || value > max)
		return wrong(ret_error, "--%s: %s is out of range, %u to %u",
			     name, text, min, max);
	*ret = (uint32_t)value;
	return PARSE_RUN;
}

/* "1,3-5" */
static enum parse_result parse_cores(const char *text, struct options *options,
				     struct mr_reason *ret_error)
{
	const char *at = text;

	options->n_cores = 0;
	for (;;) {
		unsigned long first, last;
		char *end;

		if (*at < '0' || *at > '9')
			break;
		first = last = strtoul(at, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last >= 1024)
			break;
		for (unsigned long core = first; core <= last; core++) {
			if (options->n_cores == MAX_THREADS)
				return wrong(ret_error, "--cores: more than %d",
					     MAX_THREADS);
			options->cores[options->n_cores++] = (uint32_t)core;
		}
		if (*end == '\0')
			return PARSE_RUN;
		if (*end != ',')
			break;
		at = end + 1;
	}
	return wrong(ret_error, "--cores: '%s' is no list of cores, as 1,3-5",
		     text);
}

static enum parse_result parse_sides(const char *text, struct options *options,
				     struct mr_reason *ret_error)
{
	static const char *const names[] = { "ours", "dpdk", "kernel", "plain",
					     "malloc" };
	const char *at = text;

	options->sides = 0;
	for (;;) {
		const size_t n = strcspn(at, ",");
		uint32_t i;

		for (i = 0; i < 5; i++)
			if (strlen(names[i]) == n &&
			    strncmp(names[i], at, n) == 0)
				break;
		if (i == 5)
			return wrong(ret_error,
				     "--only: no '%.*s'; there are: ours dpdk "
				     "kernel plain malloc",
				     (int)n, at);
		options->sides |= 1u << i;
		if (at[n] == '\0')
			return PARSE_RUN;
		at += n + 1;
	}
}

static enum parse_result parse_one(char id, const char *name, const char *arg,
				   struct options *o, struct mr_reason *error)
{
	switch (id) {
	case 'l':
		o->is_list = true;
		return PARSE_RUN;
	case 's':
		return parse_u32(name, arg, 1, MAX_SAMPLES, &o->n_samples,
				 error);
	case 't':
		return parse_u32(name, arg, 1, 10000, &o->sample_ms, error);
	case 'q':
		o->is_quick = true;
		return PARSE_RUN;
	case 'O':
		return parse_sides(arg, o, error);
	case 'o':
		o->sides = 1u << SIDE_OURS;
		return PARSE_RUN;
	case 'c':
		return parse_cores(arg, o, error);
	case 'j':
		o->is_json = true;
		return PARSE_RUN;
	case 'd':
		o->out = arg;
		return PARSE_RUN;
	default: /* 'Q' */
		o->is_quiet = true;
		return PARSE_RUN;
	}
}

static enum parse_result check_together(struct options *options, int argc,
					char **argv, struct mr_reason *error)
{
	if (optind == argc)
		return wrong(error, "no command; there is: mem");
	options->command = argv[optind];
	if (strcmp(options->command, "mem") != 0)
		return wrong(error, "no command '%s'; there is: mem",
			     options->command);
	options->names = argv + optind + 1;
	options->n_names = (uint32_t)(argc - optind - 1);
	if (options->n_samples == 0)
		options->n_samples =
			options->is_quick ? QUICK_SAMPLES : SAMPLES;
	if (options->sample_ms == 0)
		options->sample_ms = options->is_quick ? QUICK_MS : SAMPLE_MS;
	return PARSE_RUN;
}

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	struct option table[N_ROWS + 1] = { 0 };
	char letters[2 * N_ROWS + 2] = ":";
	size_t n_letters = 1;
	int id;

	*options = (struct options){ .sides = UINT32_MAX };
	for (uint32_t i = 0; i < N_ROWS; i++) {
		table[i] = (struct option){ .name = rows[i].name,
					    .has_arg = rows[i].arg != NULL,
					    .val = rows[i].id };
		letters[n_letters++] = rows[i].id;
		if (rows[i].arg != NULL)
			letters[n_letters++] = ':';
	}
	optind = 0; /* GNU: begin afresh, for tests that parse twice */
	opterr = 0;
	while ((id = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		const char *name = "";
		enum parse_result result;

		if (id == '?')
			return wrong(ret_error,
				     "no option '%s'; mr-bench --help lists "
				     "them",
				     argv[optind > 1 ? optind - 1 : 1]);
		if (id == ':')
			return wrong(ret_error, "option '%s' needs a value",
				     argv[optind - 1]);
		if (id == 'h') {
			options_print_help(stdout);
			return PARSE_DONE;
		}
		if (id == 'V') {
			printf("mr-bench %s\n", mr_version());
			return PARSE_DONE;
		}
		for (uint32_t i = 0; i < N_ROWS; i++)
			if (rows[i].id == id)
				name = rows[i].name;
		result = parse_one((char)id, name, optarg, options, ret_error);
		if (result != PARSE_RUN)
			return result;
	}
	return check_together(options, argc, argv, ret_error);
}
