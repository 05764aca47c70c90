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

int relay_complain(const struct relay_command *command, int status,
		   const char *line)
{
	print_error("%s: %s", command->program, line);
	return status;
}

int relay_options_main(const struct relay_command *command, int argc,
		       char **argv, struct relay_options *options,
		       int *ret_first)
{
	const struct option_keys sets[] = {
		{ command->keys, 0, false, 0 },
		{ dataplane_keys, offsetof(struct relay_options, plane), false,
		  command->groups },
		{ run_keys, offsetof(struct relay_options, run), false, 0 },
	};
	const struct option_table table = {
		.program = command->program,
		.usage = command->usage,
		.sets = sets,
		.n_sets = sizeof(sets) / sizeof(sets[0]),
	};
	struct mr_reason why;

	*options = (struct relay_options){
		.command = command,
		.plane = { .program = command->program,
			   .burst = BURST,
			   .page_bytes = PAGE_BYTES },
	};
	options->document_fd = (int)strtol(argc > 2 ? argv[2] : "", NULL, 10);
	if (options->document_fd <= STDERR_FILENO)
		return relay_complain(command, 2, "run mr-bench");
	switch (option_table_parse(&table, argc - 2, argv + 2, options,
				   ret_first, NULL, &why)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : 1;
	case PARSE_WRONG:
		return relay_complain(command, 2, why.text);
	case PARSE_RUN:
		break;
	}
	*ret_first += 2; /* in argv, after command and fd */
	if (run_complete_options(&options->run, &options->plane, &why) !=
	    PARSE_RUN)
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

	/* Applications end when memory runs out. */
	if (text == NULL)
		abort();
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", (uint8_t)path[i]);
	string = json_string(text);
	free(text);
	return string;
}
