/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all commands that send or receive have in common on the command line.
 * A command's own options stand in front of these in one table.
 */
#ifndef NET_OPTIONS_H
#define NET_OPTIONS_H

#include "net/tester.h"
#include "support/options.h"

enum {
	TRAFFIC_MAX_STREAMS = 1024,
	/* Ids of a command's own options: from here on, or capital letters that
	 * the shared ones do not have (see options.c). */
	TRAFFIC_OWN = 512,
};

struct traffic_options {
	struct tester_config tester;
	struct trial_config trial;
	bool is_json;          /* on stdout: no text there */
	bool is_quiet;         /* no progress, no live view */
	bool is_bidirectional; /* each of a pair of ports does both */
	const char *json_out;  /* files; NULL: none */
	const char *csv, *hdr;
	const char *label; /* of the document */
	uint32_t n_verbose;
	/* What tester points into. */
	const char *tx[MAX_PORTS], *rx[MAX_PORTS];
	const char *streams[TRAFFIC_MAX_STREAMS];
};

extern const char *const pace_names[]; /* by enum pace */

/* What the words behind the options are. */
enum traffic_ports {
	TRAFFIC_SENDS,    /* each port sends */
	TRAFFIC_RECEIVES, /* each port receives */
	TRAFFIC_PAIRS,    /* the 1st, 3rd, ... send, the others receive */
	TRAFFIC_PAIRS_OR_NONE,
};

struct traffic_command {
	const char *name;  /* "tx" */
	const char *usage; /* in front of the options */
	enum traffic_ports ports;
	/* Names of shared options that it has not, and NULL; NULL: has all. */
	const char *const *without;
	/* Options of its own, with ids from TRAFFIC_OWN on; take() gets own. */
	const struct option_row *rows;
	uint32_t n_rows;
	option_fn *take;
	void *own;
};

/*
 * Read the command line, behind whose argv[0] is the command. Prints the line
 * if something is wrong, and returns the exit status, or -1: go on. *ret may
 * not move: it points into itself.
 */
int traffic_options_main(const struct traffic_command *command, int argc,
			 char **argv, struct traffic_options *ret);

#endif
