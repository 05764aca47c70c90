/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench plan: a series from a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/child.h"
#include "plan/plan_main.h"
#include "plan/series.h"
#include "support/options.h"
#include "support/text.h"
#include "support/yaml_keys.h"

struct options {
	const char *file, *folder;
	uint32_t repeat; /* 0: the plan's */
	bool is_dry, is_quiet;
};

static const struct option_row rows[] = {
	{ "dry-run", 'n', NULL, "list the steps and their time, do none" },
	{ "folder", 'd', "DIR", "for results, in place of the plan's" },
	{ "repeat", 'r', "N", "rounds, in place of the plan's" },
	{ "quiet", 'Q', NULL, "no progress on stderr" },
	{ "help", OPTION_HELP, NULL, "print this" },
};

static const char usage[] =
	"usage: mr-bench plan [options] FILE\n"
	"Do all measurements of a plan, with the devices under test that it\n"
	"starts and stops. What has a result already is not done again, so a\n"
	"series that was interrupted goes on. The manual page has the keys "
	"of\n"
	"the file.\n";

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *opaque, struct mr_reason *error)
{
	struct options *options = opaque;

	if (row->id == 'r')
		return parse_u32(row->name, arg, 1, PLAN_MAX_REPEAT,
				 &options->repeat, error);
	if (row->id == 'n')
		options->is_dry = true;
	else if (row->id == 'd')
		options->folder = arg;
	else
		options->is_quiet = true;
	return PARSE_RUN;
}

static const struct option_table table = {
	.program = "mr-bench plan",
	.usage = usage,
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take,
};

static int complain(const struct mr_reason *why)
{
	print_error("mr-bench: %s", why->text);
	return 1;
}

static int read_plan(const char *file, struct plan *ret, struct mr_reason *why)
{
	char *bytes = malloc(YAML_MAX_BYTES + 1);
	FILE *from = fopen(file, "re");
	size_t n_bytes = 0;
	int err = 0;

	if (from == NULL) {
		snprintf(why->text, sizeof(why->text), "%.300s: %s", file,
			 strerror(errno));
		err = -errno;
	} else if (bytes == NULL) {
		snprintf(why->text, sizeof(why->text), "%.300s: no memory",
			 file);
		err = -ENOMEM;
	} else {
		n_bytes = fread(bytes, 1, YAML_MAX_BYTES + 1, from);
		err = plan_parse(file, bytes, n_bytes, ret, why);
	}
	if (from != NULL)
		fclose(from);
	free(bytes);
	return err;
}

/* Devices and prefixes may run it, too: tests of a build that is not
 * installed. */
static void tell_children(const struct plan *plan)
{
	char self[4096];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	setenv("MR_BENCH", n > 0 ? self : "mr-bench", 1);
	setenv("MR_FOLDER", plan->folder, 1);
}

/* Another build of mr-bench is another program; what a file system says of it
 * tells them apart. */
static void print_program(char *ret, size_t n_bytes)
{
	struct stat found = { .st_size = 0 };

	(void)stat("/proc/self/exe", &found);
	snprintf(ret, n_bytes, "%s, %lld bytes of %lld.%09ld", mr_version(),
		 (long long)found.st_size, (long long)found.st_mtim.tv_sec,
		 found.st_mtim.tv_nsec);
}

static int say_end(const struct series *series, const struct series_end *end)
{
	const uint32_t n_left =
		series->n_steps - end->n_before - end->n_done - end->n_failed;
	const uint32_t n_others = journal_count_others(
		series->journal, series->steps, series->n_steps);

	if (!series->is_quiet || end->n_failed > 0)
		fprintf(stderr,
			"plan: %u steps done, %u were already, %u failed, %u "
			"left%s\n",
			end->n_done, end->n_before, end->n_failed, n_left,
			n_left > 0 ? "; the same command goes on" : "");
	if (!series->is_quiet && n_left == 0 && end->n_failed == 0)
		fprintf(stderr,
			"plan: mr-bench report %s/*.json -o report.html\n",
			series->journal->folder);
	if (!series->is_quiet && n_others > 0)
		fprintf(stderr,
			"plan: %u results there are of steps that this plan "
			"does not have\n",
			n_others);
	return end->n_failed > 0 || n_left > 0 ? 1 : 0;
}

/* The exit status. */
static int do_plan(const struct plan *plan, const struct series *series)
{
	struct series_end end;
	struct mr_reason why;

	child_catch_signals();
	tell_children(plan);
	if (series_run(series, &end, &why) < 0)
		return complain(&why);
	return say_end(series, &end);
}

static int run_plan(const struct options *options, struct plan *plan)
{
	char program[80];
	struct series series = { .plan = plan,
				 .program = program,
				 .is_quiet = options->is_quiet };
	struct mr_reason why = { .text = "no memory" };
	struct journal journal;
	struct step *steps;
	int status = 0;

	print_program(program, sizeof(program));
	if (options->folder != NULL)
		snprintf(plan->folder, sizeof(plan->folder), "%s",
			 options->folder);
	if (options->repeat != 0)
		plan->repeat = options->repeat;
	if (plan_count_steps(plan) > PLAN_MAX_STEPS) {
		snprintf(why.text, sizeof(why.text),
			 "--repeat %u: more than %d steps", plan->repeat,
			 PLAN_MAX_STEPS);
		return complain(&why);
	}
	if (journal_open(plan->folder, !options->is_dry, &journal, &why) < 0)
		return complain(&why);
	if (steps_make(plan, &steps, &series.n_steps) < 0) {
		journal_close(&journal);
		return complain(&why);
	}
	series.journal = &journal;
	series.steps = steps;
	if (options->is_dry)
		series_list(&series);
	else
		status = do_plan(plan, &series);
	free(steps);
	journal_close(&journal);
	return status;
}

int plan_main(int argc, char **argv)
{
	struct options options = { .file = NULL };
	struct mr_reason why = { .text = "" };
	struct plan plan;
	int first, status;

	argv++; /* the command's own name stands for the program's */
	argc--;
	switch (option_table_parse(&table, argc, argv, &options, &first,
				   &why)) {
	case PARSE_DONE:
		return 0;
	case PARSE_WRONG:
		(void)complain(&why);
		return 2;
	case PARSE_RUN:
		break;
	}
	if (argc - first != 1) {
		fprintf(stderr, "mr-bench: plan: one FILE is wanted; see "
				"mr-bench plan --help\n");
		return 2;
	}
	if (options.folder != NULL &&
	    strlen(options.folder) >= PLAN_PATH_CHARS) {
		fprintf(stderr, "mr-bench: --folder: longer than %d bytes\n",
			PLAN_PATH_CHARS - 1);
		return 2;
	}
	options.file = argv[first];
	if (read_plan(options.file, &plan, &why) < 0) {
		(void)complain(&why);
		return 2;
	}
	status = run_plan(&options, &plan);
	plan_free(&plan);
	return status;
}
