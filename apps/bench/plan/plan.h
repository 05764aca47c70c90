/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A series of measurements: what a plan file says, and the steps it comes to.
 *
 *     plan file --plan_parse()--> plan --steps_make()--> steps, in their order
 *
 * Every step is one mr-bench command with a file for its result, so that a
 * series that was interrupted goes on where it was.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

enum {
	PLAN_NAME_CHARS = 32,
	PLAN_COMMAND_CHARS = 1024,
	PLAN_SETUP_CHARS = 4 * PLAN_COMMAND_CHARS + 64,
	PLAN_PATH_CHARS = 256,
	PLAN_MAX_DEVICES = 64,
	PLAN_MAX_MEASURES = 64,
	PLAN_MAX_VALUES = 64, /* sizes, or rates, of a measure */
	PLAN_MAX_REPEAT = 100,
	PLAN_MAX_STEPS = 10000,
};

/* What is measured: commands of a shell. "" is none. */
struct plan_device {
	char name[PLAN_NAME_CHARS];
	char start[PLAN_COMMAND_CHARS]; /* runs until it is stopped, or ends
					 * with 0 and has set something up */
	char ready[PLAN_COMMAND_CHARS]; /* asked until it succeeds */
	char stop[PLAN_COMMAND_CHARS];  /* undoes what start did */
	uint32_t wait_s;                /* after ready; before it, if none */
	uint32_t line;
};

struct plan_rate {
	char text[PLAN_NAME_CHARS];
};

/* How it is measured: the words behind "mr-bench". */
struct plan_measure {
	char name[PLAN_NAME_CHARS];
	char run[PLAN_COMMAND_CHARS]; /* with {size} and {rate} in it */
	uint32_t *sizes;
	uint32_t n_sizes; /* 0: it has no sizes */
	struct plan_rate *rates;
	uint32_t n_rates;
	uint32_t time_s;  /* that a step takes, about */
	uint32_t limit_s; /* after which it is ended; 0: 10 x time_s + 60 */
	uint32_t line;
};

struct plan {
	char folder[PLAN_PATH_CHARS]; /* of results */
	char before[PLAN_COMMAND_CHARS], after[PLAN_COMMAND_CHARS];
	char prefix[PLAN_COMMAND_CHARS]; /* of each mr-bench command */
	uint32_t repeat;
	struct plan_device *devices;
	uint32_t n_devices; /* at least 1; an unnamed one if none is given */
	struct plan_measure *measures;
	uint32_t n_measures;
};

/*
 * Read a plan. 0, -ENOMEM, or -EINVAL with the line of what is wrong, and the
 * cure. file is its name, for that line and for the folder.
 */
int plan_parse(const char *file, const char *bytes, size_t n_bytes,
	       struct plan *ret, struct mr_reason *why);
void plan_free(struct plan *plan);

/* The number of steps, which may be more than PLAN_MAX_STEPS. */
uint64_t plan_count_steps(const struct plan *plan);

/* One command of a series. */
struct step {
	uint32_t device, measure;       /* of the plan's */
	uint32_t size;                  /* 0: none */
	const char *rate;               /* NULL: none */
	uint32_t round;                 /* 0 to repeat - 1 */
	char name[4 * PLAN_NAME_CHARS]; /* of its files, without the end */
};

/*
 * All steps in their order: rounds, in each all devices, there and back, so
 * that a drift of the machine is the same for all; in each all measures.
 * 0 or -ENOMEM; the list is the caller's to free.
 */
int steps_make(const struct plan *plan, struct step **ret, uint32_t *ret_n);

/* The words behind "mr-bench", with sizes and rates put in. */
void step_words(const struct plan *plan, const struct step *step, char *ret,
		size_t n_bytes);

/* What else its result hangs on: the commands around it, in one text. */
void step_setup(const struct plan *plan, const struct step *step, char *ret,
		size_t n_bytes);

/* For people: "mr-l2fwd, throughput, 60 bytes, round 1". */
void step_title(const struct plan *plan, const struct step *step, char *ret,
		size_t n_bytes);

#endif
