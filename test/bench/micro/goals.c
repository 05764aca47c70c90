/* SPDX-License-Identifier: BSD-3-Clause */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "goals.h"

/*
 * Each figure of the memory layer's task, by founding document; then
 * rte_mempool's own workload; then flow tables, and frames. No limit: to be
 * reported.
 */
static const struct goal goals[] = {
	{ "1: frag over a ring, one at a time", "B09/* threads=2 hop=1 *",
	  "frag cache*", GOAL_NS, NULL, 8 },
	{ "1: frag over a ring, in bursts", "B09/* threads=2 hop=32 *",
	  "frag cache*", GOAL_NS, NULL, 8 },
	{ "1: aligned frag by unaligned", "B09/*", "frag cache, aligned",
	  GOAL_RATIO, NULL, 1 },
	{ "2: single from the cache", "B06/from=cache bulk=1", "single",
	  GOAL_NS, NULL, 2 },
	{ "2: single from the page allocator", "B06/from=pages bulk=1",
	  "single", GOAL_NS, NULL, 10 },
	{ "2: array of 64 from the depot", "B06/from=depot bulk=64", "array",
	  GOAL_NS, NULL, 1 },
	{ "2: array of 64 from a fresh segment", "B06/from=fresh bulk=64",
	  "array", GOAL_NS, NULL, 5 },
	{ "2: single by array of 64, allocator", "B06/from=pages bulk=64",
	  "single", GOAL_GAIN, NULL, 0 },
	{ "2: list by array of 64, allocator", "B06/from=pages bulk=64", "list",
	  GOAL_GAIN, NULL, 0 },
	{ "2: single by array, SUNRPC", "B07/*", "single", GOAL_GAIN, NULL, 0 },
	{ "2: drop of 64: DPDK's best by ours", "B08/drop burst=64", NULL,
	  GOAL_DPDK, NULL, 1.2 },
	{ "2: drop of 64 frames: DPDK's by ours", "B08/frames burst=64", NULL,
	  GOAL_DPDK, NULL, 1.2 },
	{ "3: no recycling by recycling", "B08/ladder*", "*no recycling",
	  GOAL_GAIN, NULL, 1 },
	{ "3: through the depot by direct", "B08/ladder*",
	  "recycling through the depot", GOAL_GAIN, NULL, 0 },
	{ "3: outlined by inlined", "B08/ladder*", "recycling, outlined",
	  GOAL_GAIN, NULL, 0 },
	{ "3: in bursts by one by one", "B08/ladder*",
	  "recycling, 32 at a time", GOAL_RATIO, NULL, 0 },
	{ "3: cross-core return, one by one", "B05/* bulk=1", NULL, GOAL_NS,
	  NULL, 0 },
	{ "3: cross-core return, 32 in bulk", "B05/* bulk=32", NULL, GOAL_NS,
	  NULL, 0 },
	{ "4: failed CAS by 1000 pages", "B17/*", NULL, GOAL_COUNT,
	  "cas_failed_per_1000", 1 },
	{ "4: depot operations by 32 pages", "B17/*", NULL, GOAL_COUNT,
	  "depot_ops_per_32", 1 },
	{ "4: p99.9 of a completion", "B17/*threads_per_core=1", NULL,
	  GOAL_COUNT, "p99.9_ns", 0 },
	{ "4: the same, 4 threads per core", "B17/*threads_per_core=4", NULL,
	  GOAL_COUNT, "p99.9_ns", 0 },
	{ "4: p99.9 of take and return", "B19/threads_per_core=1", NULL,
	  GOAL_COUNT, "p99.9_ns", 0 },
	{ "4: the same, 4 threads per core", "B19/threads_per_core=4", NULL,
	  GOAL_COUNT, "p99.9_ns", 0 },
	{ "4: pages in flight, ring of 64", "B14/ring=64 *", NULL, GOAL_COUNT,
	  "in_flight", 0 },
	{ "4: pages in flight, ring of 4096", "B14/ring=4096 *", NULL,
	  GOAL_COUNT, "in_flight", 0 },
	{ "5: objects: malloc by ours", "B12/*", "malloc", GOAL_GAIN, NULL, 1 },
	{ "5: objects: more threads by one", "B12/*", "millrace objects*",
	  GOAL_GROWTH, NULL, 1.25 },
	{ "burst of 32 by address", "B06/from=cache bulk=32", "array", GOAL_NS,
	  NULL, 0.6 },
	{ "22.11's test by address, 32", "B13/22.11 keep=32 get=32 put=32 *=1",
	  "addresses", GOAL_NS, NULL, 0.6 },
	{ "the same, owners on", "B13/22.11 keep=32 get=32 put=32 *=1",
	  "addresses, owners on", GOAL_NS, NULL, 0.6 },
	{ "the same, mixed frames of 2 pools",
	  "B13/22.11 keep=32 get=32 put=32 *=1", "frames of 2 pools, owners on",
	  GOAL_NS, NULL, 1 },
	{ "its rows: DPDK's best by ours", "B13/*", NULL, GOAL_DPDK, NULL, 1 },
	{ "pipeline: DPDK's best by ours", "B14/pages=32768 touch=header", NULL,
	  GOAL_DPDK, NULL, 1.5 },
	{ "bulk lookup of 1 M: rte_hash by ours",
	  "F01/uniform burst=32 records=1000000", NULL, GOAL_DPDK, NULL, 1.5 },
	{ "6: frame built and sent, one field", "W02/fields=1", "*", GOAL_NS,
	  NULL, 10 },
	{ "6: the same, four fields", "W02/fields=4", "*", GOAL_NS, NULL, 25 },
};

/*
 * What --goals runs. Of rows by the dozen those that a goal names, or of the
 * middle; what is drawn in docs/performance.md whole.
 */
static const char *const wanted_rows[] = {
	"B05/*",
	"B06/from=cache *",
	"B06/from=depot *",
	"B06/from=pages bulk=1",
	"B06/from=pages bulk=64",
	"B06/from=fresh bulk=64",
	"B07/*",
	"B08/*",
	"B09/* threads=2 hop=1 alloc",
	"B09/* threads=2 hop=32 alloc",
	"B12/*",
	"B13/22.11 keep=* get=32 put=32 *",
	"B13/22.11 keep=* constant=32 *",
	"B13/26.11 keep=32768 *=32 *",
	"B14/pages=32768 touch=header",
	"B14/ring=*",
	"B17/burst=32 *",
	"B19/threads_per_core=[14]",
	"F01/uniform burst=32 records=1000000",
	"W01/*",
	"W02/*",
};

/* Left out for time's sake: others of their kind stay. */
static const char *const unwanted_players[] = {
	"rte_mempool * c0*",
	"rte_mempool bucket c256*",
	"rte_mempool lf_stack c256*",
	"*, magazines of 64",
};

enum { N_GOALS = sizeof(goals) / sizeof(goals[0]) };

_Static_assert((int)N_GOALS <= (int)MAX_GOALS, "MAX_GOALS is too small");

bool goal_is_at_most(const struct goal *goal)
{
	return goal->kind != GOAL_GAIN && goal->kind != GOAL_DPDK;
}

const char *goal_unit(const struct goal *goal)
{
	switch (goal->kind) {
	case GOAL_NS:
		return "ns";
	case GOAL_COUNT:
		return "";
	default:
		return "x";
	}
}

const char *goal_state(const struct goal_result *result)
{
	if (result->row == NULL)
		return "not run";
	if (result->goal->limit == 0)
		return "reported";
	return result->is_reached ? "reached" : "missed";
}

bool goals_want_row(const char *workload, const char *row)
{
	const uint32_t n = sizeof(wanted_rows) / sizeof(wanted_rows[0]);
	char full[160];

	snprintf(full, sizeof(full), "%s/%s", workload, row);
	for (uint32_t i = 0; i < n; i++)
		if (fnmatch(wanted_rows[i], full, 0) == 0)
			return true;
	return false;
}

bool goals_want_player(const char *name)
{
	const uint32_t n =
		sizeof(unwanted_players) / sizeof(unwanted_players[0]);

	for (uint32_t i = 0; i < n; i++)
		if (fnmatch(unwanted_players[i], name, 0) == 0)
			return false;
	return true;
}

static const struct player_result *first_of_ours(const struct row_result *row)
{
	for (uint32_t i = 0; i < row->n_players; i++)
		if (row->players[i].side == SIDE_OURS &&
		    row->players[i].ns.n > 0)
			return &row->players[i];
	return NULL;
}

static const struct player_result *best_of(const struct row_result *row,
					   enum side side)
{
	const struct player_result *best = NULL;

	for (uint32_t i = 0; i < row->n_players; i++) {
		const struct player_result *player = &row->players[i];

		if (player->side != side || player->ns.n == 0)
			continue;
		if (best == NULL || player->ns.median < best->ns.median)
			best = player;
	}
	return best;
}

const struct player_result *goals_best_of_dpdk(const struct row_result *row)
{
	return first_of_ours(row) != NULL ? best_of(row, SIDE_DPDK) : NULL;
}

const struct player_result *goals_best_of_ours(const struct row_result *row)
{
	return best_of(row, SIDE_OURS);
}

static bool is_among(const struct row_result *row, const char *pattern)
{
	char full[128];

	snprintf(full, sizeof(full), "%s/%s", row->workload->name, row->name);
	return fnmatch(pattern, full, 0) == 0;
}

static void take_ns(const struct player_result *player,
		    struct goal_result *result)
{
	result->measured = player->ns.median;
	result->low = player->ns.low;
	result->high = player->ns.high;
}

/* The figure of one player; false if it has none. */
static bool figure(const struct goal *goal, const struct player_result *player,
		   struct goal_result *result)
{
	if (player->ns.n == 0)
		return false;
	if (goal->kind == GOAL_NS) {
		take_ns(player, result);
		return true;
	}
	if (goal->kind != GOAL_COUNT) {
		result->measured = player->to_ours.value;
		result->low = player->to_ours.low;
		result->high = player->to_ours.high;
		return result->measured > 0;
	}
	for (uint32_t i = 0; i < player->counts.n; i++) {
		if (strcmp(player->counts.of[i].name, goal->count) != 0)
			continue;
		result->measured = result->low = result->high =
			player->counts.of[i].value;
		return true;
	}
	return false;
}

/* The same player on one thread, in a row that is a point of the same plot. */
static const struct player_result *on_one_thread(const struct results *results,
						 const struct row_result *row,
						 const char *player)
{
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *one = &results->rows[r];

		if (one->workload != row->workload || one->n_threads != 1 ||
		    strcmp(one->plot, row->plot) != 0)
			continue;
		for (uint32_t i = 0; i < one->n_players; i++)
			if (strcmp(one->players[i].name, player) == 0)
				return &one->players[i];
	}
	return NULL;
}

/* The interval is the widest that both intervals allow. */
static bool growth(const struct results *results, const struct row_result *row,
		   const struct player_result *player,
		   struct goal_result *result)
{
	const struct player_result *one =
		on_one_thread(results, row, player->name);

	if (row->n_threads < 2 || player->ns.n == 0 || one == NULL ||
	    one->ns.n == 0 || one->ns.low <= 0)
		return false;
	result->measured = player->ns.median / one->ns.median;
	result->low = player->ns.low / one->ns.high;
	result->high = player->ns.high / one->ns.low;
	return true;
}

/* Keep it if it is worse than what is there. */
static void worst_of(const struct results *results,
		     const struct row_result *row,
		     const struct player_result *player,
		     struct goal_result *result)
{
	struct goal_result now = *result;

	if (player == NULL)
		return;
	if (result->goal->kind == GOAL_GROWTH ?
		    !growth(results, row, player, &now) :
		    !figure(result->goal, player, &now))
		return;
	now.row = row;
	now.player = player;
	if (result->row == NULL ||
	    (goal_is_at_most(result->goal) ? now.measured > result->measured :
					     now.measured < result->measured))
		*result = now;
}

static void look_at_row(const struct results *results,
			const struct row_result *row,
			struct goal_result *result)
{
	const struct goal *goal = result->goal;

	if (goal->kind == GOAL_DPDK) {
		worst_of(results, row, goals_best_of_dpdk(row), result);
	} else if (goal->player == NULL) {
		worst_of(results, row, first_of_ours(row), result);
	} else {
		for (uint32_t i = 0; i < row->n_players; i++)
			if (fnmatch(goal->player, row->players[i].name, 0) == 0)
				worst_of(results, row, &row->players[i],
					 result);
	}
}

/* Workloads of a command begin with a letter of its own. */
static bool is_of(const struct results *results, const struct goal *goal)
{
	const char letter = strcmp(results->command, "flow") == 0 ? 'F' :
			    strcmp(results->command, "fwd") == 0  ? 'W' :
								    'B';

	return goal->rows[0] == letter;
}

static bool look(const struct results *results, const struct goal *goal,
		 struct goal_result *result)
{
	*result = (struct goal_result){ .goal = goal };
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *row = &results->rows[r];

		if (!is_among(row, goal->rows))
			continue;
		result->n_rows++;
		look_at_row(results, row, result);
	}
	if (result->row == NULL)
		return results->has_all_goals && is_of(results, goal);
	result->is_reached = goal_is_at_most(goal) ?
				     result->measured <= goal->limit :
				     result->measured >= goal->limit;
	result->is_close = goal->limit > 0 && result->low < result->high &&
			   result->low <= goal->limit &&
			   goal->limit <= result->high;
	return true;
}

uint32_t goals_look(const struct results *results,
		    struct goal_result ret[MAX_GOALS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_GOALS; i++)
		n += look(results, &goals[i], &ret[n]);
	return n;
}

void goals_count_slower(const struct results *results, uint32_t *ret_n_rows,
			uint32_t *ret_n_slower)
{
	*ret_n_rows = *ret_n_slower = 0;
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct player_result *best =
			goals_best_of_dpdk(&results->rows[r]);

		*ret_n_rows += best != NULL;
		*ret_n_slower += best != NULL && best->to_ours.value < 1;
	}
}
