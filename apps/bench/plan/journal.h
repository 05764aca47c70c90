/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a series is done: plan.journal in its folder, JSON that is written
 * anew after each step by rename(): it is whole whenever the series is cut off.
 */
#ifndef PLAN_JOURNAL_H
#define PLAN_JOURNAL_H

#include <jansson.h>

#include "plan/plan.h"

struct journal {
	int lock_fd; /* its folder; -1: only to be read */
	char folder[PLAN_PATH_CHARS];
	json_t *root; /* schema, v, steps by name: run, setup, program, status,
		       * seconds */
};

/* What a result belongs to; of anything else it is not the result. */
struct journal_key {
	const char *run;     /* step_words() */
	const char *setup;   /* step_setup() */
	const char *program; /* which build of mr-bench */
};

/*
 * Read what is in a folder. To write it, too, the folder is made, and is this
 * one's until it is closed: -EWOULDBLOCK if another one has it. 0 or -errno
 * with a line; a file that is none of ours is refused, not overwritten.
 */
int journal_open(const char *folder, bool is_to_write, struct journal *ret,
		 struct mr_reason *why);
void journal_close(struct journal *journal);

/*
 * Whether a step has its result: done without fault by the same words, setup
 * and program, and its file is there.
 */
bool journal_has(const struct journal *journal, const char *name,
		 const struct journal_key *key);

/* Results in the folder whose steps are none of these. */
uint32_t journal_count_others(const struct journal *journal,
			      const struct step *steps, uint32_t n);

/* Note how a step ended, and write it all. 0 or -errno with a line. */
int journal_note(struct journal *journal, const char *name,
		 const struct journal_key *key, double seconds, int status,
		 struct mr_reason *why);

/* The file of a step's result, or with another end than ".json". */
void journal_path(const struct journal *journal, const char *name,
		  const char *end, char *ret, size_t n_bytes);

#endif
