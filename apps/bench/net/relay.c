/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of commands that forward. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/relay.h"
#include "support/dataplane_keys.h"
#include "support/json_text.h"
#include "support/text.h"

enum { BURST = 64, PAGE_BYTES = 4096 };

/* Of keys, with another help, or none. */
static const struct option_row shared_rows[] = {
	{ "cores", OPTION_KEY, "LIST",
	  "cores to use, as 1,3-5, or auto (default)" },
	{ "burst", OPTION_KEY, "N",
	  "entries per burst, 1 to 256 (default 64)" },
	{ "promisc", OPTION_KEY, "auto|on|off", "promiscuous ports" },
	{ "json", OPTION_KEY, NULL, "one JSON object per second on stdout" },
	{ "idle", OPTION_KEY, NULL, NULL },
};

enum { N_SHARED = sizeof(shared_rows) / sizeof(shared_rows[0]) };

static const struct option_keys sets[] = {
	{ dataplane_keys, offsetof(struct relay_options, plane), false },
	{ run_keys, offsetof(struct relay_options, run), false },
};

static enum parse_result take_option(const struct option_row *row,
				     const char *arg, void *options,
				     struct mr_reason *error)
{
	const struct relay_command *command =
		((const struct relay_options *)options)->command;

	return command->take(row, arg, command->own, error);
}

int relay_complain(const struct relay_command *command, int status,
		   const char *line)
{
	print_error("%s: %s", command->program, line);
	return status;
}

int relay_options_main(const struct relay_command *command, int argc,
		       char **argv, struct relay_options *ret, int *ret_first)
{
	struct option_row rows[MAX_OPTIONS];
	const struct option_table table = {
		.program = command->program,
		.usage = command->usage,
		.rows = rows,
		.n_rows = command->n_rows + N_SHARED,
		.take = take_option,
		.sets = sets,
		.n_sets = sizeof(sets) / sizeof(sets[0]),
	};
	struct mr_reason why;

	memcpy(rows, command->rows, command->n_rows * sizeof(rows[0]));
	memcpy(rows + command->n_rows, shared_rows, sizeof(shared_rows));
	*ret = (struct relay_options){
		.command = command,
		.plane = { .program = command->program,
			   .burst = BURST,
			   .page_bytes = PAGE_BYTES },
	};
	ret->document_fd = (int)strtol(argc > 2 ? argv[2] : "", NULL, 10);
	if (ret->document_fd <= STDERR_FILENO)
		return relay_complain(command, 2, "run mr-bench");
	switch (option_table_parse(&table, argc - 2, argv + 2, ret, ret_first,
				   NULL, &why)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : 1;
	case PARSE_WRONG:
		return relay_complain(command, 2, why.text);
	case PARSE_RUN:
		break;
	}
	*ret_first += 2; /* in argv, after command and fd */
	if (run_complete_options(&ret->run, &ret->plane, &why) != PARSE_RUN)
		return relay_complain(command, 2, why.text);
	return -1;
}

json_t *relay_ask(const struct relay_options *options, json_t *question)
{
	const int fd = options->document_fd;
	json_t *answer = NULL;

	if (json_dumpfd(question, fd, JSON_REAL_PRECISION(17)) == 0 &&
	    write(fd, "\n", 1) == 1)
		answer = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
	json_decref(question);
	return answer;
}

json_t *relay_found(const struct relay_options *options,
		    const struct dataplane *plane, uint32_t sends,
		    uint32_t receives, json_t *config)
{
	json_t *found = document_begin(&options->plane);
	uint32_t cores[MR_WORKERS_MAX];

	for (uint32_t w = 0; w < plane->n_workers; w++)
		cores[w] = mr_workers_get(plane->workers, w)->core;
	document_plane(found, plane, cores, plane->n_workers, sends, receives);
	json_object_set_new(found, "label", json_text(options->label));
	json_object_set_new(config, "duration_s",
			    json_real((double)options->run.duration_ms / 1e3));
	json_object_update_new(json_object_get(found, "config"), config);
	return found;
}

json_t *relay_path(const char *path)
{
	const size_t n = path != NULL ? strlen(path) : 0;
	char *text = calloc(1, 2 * n + 1);
	json_t *string;

	/* As everywhere in an application: no memory is the end. */
	if (text == NULL)
		abort();
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", (uint8_t)path[i]);
	string = json_string(text);
	free(text);
	return string;
}
