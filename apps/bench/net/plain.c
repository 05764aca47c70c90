/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of commands that forward. */
#include <stdio.h>
#include <string.h>

#include "net/plain.h"

enum { BURST = 64, PAGE_BYTES = 4096 };

static const struct option_row shared_rows[] = {
	{ "duration", 'd', "S", "end after S seconds, as 10 or 0.5" },
	{ "queues", OPTION_QUEUES, "N",
	  "queues per port (default: the port's own)" },
	{ "cores", OPTION_CORES, "LIST",
	  "cores to use, as 1,3-5, or auto (default)" },
	{ "burst", OPTION_BURST, "N",
	  "entries per burst, 1 to 256 (default 64)" },
	{ "ring", OPTION_RING, "N",
	  "entries of each device ring (default: the port's)" },
	{ "pool-pages", OPTION_POOL_PAGES, "N",
	  "pages in the pool (default: what is needed)" },
	{ "page-bytes", OPTION_PAGE_BYTES, "N",
	  "2048 to 32768 (default 4096)" },
	{ "safety", OPTION_SAFETY, "LEVEL",
	  "counts (default), states, poison or guard" },
	{ "promisc", OPTION_PROMISC, "auto|on|off", "promiscuous ports" },
	{ "json", 'j', NULL, "one JSON object per second on stdout" },
	{ "quiet", 'Q', NULL, "only errors and the summary at the end" },
	{ "verbose", 'v', NULL, "log what the library says; twice: all of it" },
	{ "help", OPTION_HELP, NULL, "print this" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

enum { N_SHARED = sizeof(shared_rows) / sizeof(shared_rows[0]) };

struct taker {
	const struct plain_command *command;
	struct plain_options *options;
};

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *opaque, struct mr_reason *error)
{
	const struct taker *taker = opaque;
	struct plain_options *o = taker->options;

	if (row->id >= PLAIN_OWN)
		return taker->command->take(row, arg, taker->command->own,
					    error);
	switch (row->id) {
	case 'd':
		return parse_seconds(row->name, arg, &o->duration_ms, error);
	case 'j':
		o->output = OUTPUT_JSON;
		return PARSE_RUN;
	case 'Q':
		o->is_quiet = true;
		return PARSE_RUN;
	case 'v':
		o->n_verbose++;
		return PARSE_RUN;
	default:
		return dataplane_take_option(row, arg, &o->plane, error);
	}
}

int plain_complain(const struct plain_command *command, int status,
		   const char *line)
{
	fprintf(stderr, "%s: %s\n", command->program, line);
	return status;
}

int plain_options_main(const struct plain_command *command, int argc,
		       char **argv, struct plain_options *ret, int *ret_first)
{
	struct option_row rows[MAX_OPTIONS];
	struct taker taker = { command, ret };
	const struct option_table table = { .program = command->program,
					    .usage = command->usage,
					    .rows = rows,
					    .n_rows =
						    command->n_rows + N_SHARED,
					    .take = take };
	struct mr_reason why;

	memcpy(rows, command->rows, command->n_rows * sizeof(rows[0]));
	memcpy(rows + command->n_rows, shared_rows, sizeof(shared_rows));
	*ret = (struct plain_options){
		.plane = { .program = command->program,
			   .burst = BURST,
			   .page_bytes = PAGE_BYTES },
	};
	switch (option_table_parse(&table, argc - 1, argv + 1, &taker,
				   ret_first, &why)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : 1;
	case PARSE_WRONG:
		return plain_complain(command, 2, why.text);
	case PARSE_RUN:
		break;
	}
	++*ret_first; /* in argv, where the command is in front */
	ret->plane.log_level = option_log_level(ret->n_verbose, ret->is_quiet);
	if (dataplane_check_options(&ret->plane, &why) != PARSE_RUN)
		return plain_complain(command, 2, why.text);
	return -1;
}
