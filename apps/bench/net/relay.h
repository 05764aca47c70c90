/* SPDX-License-Identifier: BSD-3-Clause */
/* What reflect and replay share: they forward frames and report like a
 * forwarder, over support/run.h. */
#ifndef NET_RELAY_H
#define NET_RELAY_H

#include "result/document.h"
#include "support/run.h"

/* argv[1] is the command. */
int reflect_main(int argc, char **argv);
int replay_main(int argc, char **argv);

struct relay_command {
	const char *program; /* "mr-bench reflect" */
	const char *usage;   /* of the help, in front of the options */
	const struct yaml_key *keys; /* its own options, which come first */
	uint32_t groups;             /* of dataplane_keys */
};

/* The first member of a command's own struct. */
struct relay_options {
	const struct relay_command *command;
	struct dataplane_config plane;
	struct run_options run;
	const char *label; /* of the document; NULL: none */
	int document_fd;   /* of the front end, which completes the document */
};

/*
 * Read the command line: the command, the front end's fd, and the words that
 * the user typed after the command. Those after the options start at
 * argv[*ret_first]. Returns -1 to continue, or the exit status; an error prints
 * a line on stderr.
 */
int relay_options_main(const struct relay_command *command, int argc,
		       char **argv, struct relay_options *options,
		       int *ret_first);

/* The answer of the front end; NULL: it has gone. Owner: the caller. Takes
 * ownership of question. */
json_t *relay_ask(const struct relay_options *options, json_t *question);

/* A path of any bytes, in hex; NULL: "". */
json_t *relay_path(const char *path);

/*
 * Describes an open plane: the first question, whose answer is the document.
 * sends and receives have a bit per port. config has the options of the
 * command; takes ownership of it.
 */
json_t *relay_found(const struct relay_options *options,
		    const struct dataplane *plane, uint32_t sends,
		    uint32_t receives, json_t *config);

/* Print the line, and return the status. */
int relay_complain(const struct relay_command *command, int status,
		   const char *line);

#endif
