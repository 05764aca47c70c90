/* SPDX-License-Identifier: BSD-3-Clause */
/* What the memory layer is to reach, and what of it a run has shown. */
#ifndef GOALS_H
#define GOALS_H

#include "result.h"

/* What is compared with the limit. */
enum goal_kind {
	GOAL_NS,     /* a player's time; at most */
	GOAL_COUNT,  /* a figure beside the time; at most */
	GOAL_RATIO,  /* a player's time by that of the first of ours; at most */
	GOAL_GAIN,   /* the same; at least */
	GOAL_DPDK,   /* the time of DPDK's best by that of the first of ours; at
		      * least */
	GOAL_GROWTH, /* a player's time by its own on one thread, in the row of
		      * the same plot; at most */
};

struct goal {
	const char *what;
	const char *rows;   /* "B06/from=depot bulk=64"; may have wildcards */
	const char *player; /* likewise; NULL: the first of ours */
	enum goal_kind kind;
	const char *count; /* GOAL_COUNT: its name */
	double limit;      /* 0: none is set, the figure is to be reported */
};

/* One goal in the row that is the worst for it. */
struct goal_result {
	const struct goal *goal;
	const struct row_result *row;       /* NULL: none was run */
	const struct player_result *player; /* whose figure it is */
	uint32_t n_rows;                    /* that were looked at */
	double measured, low, high; /* and its 95 % confidence interval */
	bool is_reached;
	bool is_close; /* the limit is within the interval */
};

enum { MAX_GOALS = 48 };

/*
 * Those that rows of this run can tell of; after --goals, all of its command.
 * Return how many.
 */
uint32_t goals_look(const struct results *results,
		    struct goal_result ret[MAX_GOALS]);

/* Whether less is better. */
bool goal_is_at_most(const struct goal *goal);

/* "reached", "missed", "reported" where there is no limit, or "not run". */
const char *goal_state(const struct goal_result *result);

/* Whether --goals is to run a row, and a player in it. */
bool goals_want_row(const char *workload, const char *row);
bool goals_want_player(const char *name);

/* "ns", "x", or what is counted. */
const char *goal_unit(const struct goal *goal);

/*
 * The fastest player of DPDK in a row that has a player of ours, too; NULL if
 * there is none. Its ratio below 1: the first of ours is slower.
 */
const struct player_result *goals_best_of_dpdk(const struct row_result *row);

/* The fastest player of ours, which need not be the first; or NULL. */
const struct player_result *goals_best_of_ours(const struct row_result *row);

/* Rows with such a player, and of those the rows in which ours is slower. */
void goals_count_slower(const struct results *results, uint32_t *ret_n_rows,
			uint32_t *ret_n_slower);

#endif
