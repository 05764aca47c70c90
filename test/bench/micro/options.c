/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mr-bench. */
#include <string.h>

#include "options.h"
#include "sample.h"

enum { SAMPLES = 31, QUICK_SAMPLES = 7, GOALS_SAMPLES = 15 };
enum { SAMPLE_MS = 50, QUICK_MS = 5, GOALS_MS = 20 };

static const struct option_row rows[] = {
	{ "list", 'l', NULL, "say what could be run, and run nothing" },
	{ "samples", 's', "N", "per player and row (default 31)" },
	{ "sample-ms", 't', "MS", "length of one (default 50)" },
	{ "quick", 'q', NULL, "7 samples of 5 ms: a look, not a result" },
	{ "goals", 'g', NULL, "the rows of the goals, in 11 minutes at most" },
	{ "only", 'O', "SIDES",
	  "of ours,dpdk,kernel,plain,malloc; as ours,dpdk" },
	{ "only-ours", 'o', NULL, "the same as --only ours" },
	{ "cores", 'c', "LIST", "cores to use in that order, as 1,3-5" },
	{ "json", 'j', NULL, "one JSON object on stdout, and no table" },
	{ "out", 'd', "DIR", "write report.json, report.md and plots there" },
	{ "quiet", 'Q', NULL, "no progress on stderr" },
	{ "help", OPTION_HELP, NULL, "print this" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

static const char usage[] =
	"usage: mr-bench mem|flow|fwd [options] [NAME...]\n"
	"Measure the memory layer, or flow tables, beside their peers; or "
	"what\n"
	"frames cost that are forwarded, or built and sent, without a wire.\n"
	"\n"
	"NAME is a workload, as B06, or a part of a row's name, as\n"
	"B06/from=depot; without any, all are run.\n";

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *error)
{
	/* In the order of enum side. */
	static const char *const sides[] = { "ours", "dpdk", "kernel", "plain",
					     "malloc" };
	const char *const name = row->name;
	struct options *o = options;

	switch (row->id) {
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
	case 'g':
		o->is_goals = true;
		return PARSE_RUN;
	case 'O':
		return parse_words(name, arg, sides, 5, &o->sides, error);
	case 'o':
		o->sides = 1u << SIDE_OURS;
		return PARSE_RUN;
	case 'c':
		return parse_cores(name, arg, false, o->cores, &o->n_cores,
				   error);
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

static enum parse_result check_together(struct options *options, int n_words,
					char **words, struct mr_reason *error)
{
	if (n_words == 0)
		return parse_wrong(error,
				   "no command; there are: mem flow fwd");
	options->command = words[0];
	if (strcmp(options->command, "mem") != 0 &&
	    strcmp(options->command, "flow") != 0 &&
	    strcmp(options->command, "fwd") != 0)
		return parse_wrong(error,
				   "no command '%s'; there are: mem flow fwd",
				   options->command);
	options->names = words + 1;
	options->n_names = (uint32_t)(n_words - 1);
	if (options->n_samples == 0)
		options->n_samples = options->is_quick ? QUICK_SAMPLES :
				     options->is_goals ? GOALS_SAMPLES :
							 SAMPLES;
	if (options->sample_ms == 0)
		options->sample_ms = options->is_quick ? QUICK_MS :
				     options->is_goals ? GOALS_MS :
							 SAMPLE_MS;
	return PARSE_RUN;
}

static const struct option_table table = {
	.program = "mr-bench",
	.usage = usage,
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take,
};

void options_print_help(FILE *to)
{
	option_table_print_help(&table, to);
}

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	enum parse_result result;
	int first;

	*options = (struct options){ .sides = UINT32_MAX };
	result = option_table_parse(&table, argc, argv, options, &first,
				    ret_error);
	if (result != PARSE_RUN)
		return result;
	return check_together(options, argc - first, argv + first, ret_error);
}
