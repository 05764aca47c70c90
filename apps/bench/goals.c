/* SPDX-License-Identifier: BSD-3-Clause */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "goals.h"

/* By founding document; then rte_mempool's own workload. */
static const struct goal goals[] = {
	{ "frag over a ring, one at a time", "B09/* threads=2 hop=1 *",
	  "frag cache*", GOAL_NS, NULL, 8 },
	{ "frag over a ring, in bursts", "B09/* threads=2 hop=32 *",
	  "frag cache*", GOAL_NS, NULL, 8 },
	{ "aligned frag by unaligned", "B09/*", "frag cache, aligned",
	  GOAL_RATIO, NULL, 1 },
	{ "single from the cache", "B06/from=cache bulk=1", "single", GOAL_NS,
	  NULL, 2 },
	{ "single from the backing store", "B06/from=pages bulk=1", "single",
	  GOAL_NS, NULL, 10 },
	{ "array of 64 from the depot", "B06/from=depot bulk=64", "array",
	  GOAL_NS, NULL, 1 },
	{ "array of 64 from a fresh segment", "B06/from=fresh bulk=64", "array",
	  GOAL_NS, NULL, 5 },
	{ "drop of 64: DPDK's best by ours", "B08/drop burst=64", NULL,
	  GOAL_DPDK, NULL, 1.2 },
	{ "drop of 64 frames: DPDK's by ours", "B08/frames burst=64", NULL,
	  GOAL_DPDK, NULL, 1.2 },
	{ "no recycling by recycling", "B08/ladder*", "*no recycling",
	  GOAL_GAIN, NULL, 1 },
	{ "failed CAS by 1000 pages", "B17/*", NULL, GOAL_COUNT,
	  "cas_failed_per_1000", 1 },
	{ "depot operations by 32 pages", "B17/*", NULL, GOAL_COUNT,
	  "depot_ops_per_32", 1 },
	{ "objects: malloc by ours", "B12/*", "malloc", GOAL_GAIN, NULL, 1 },
	{ "burst of 32 by address", "B06/from=cache bulk=32", "array", GOAL_NS,
	  NULL, 0.6 },
	{ "22.11's test by address, 32", "B13/22.11 keep=32 get=32 put=32 *=1",
	  "addresses", GOAL_NS, NULL, 0.6 },
	{ "the same, frames of 2 pools", "B13/22.11 keep=32 get=32 put=32 *=1",
	  "frames of 2 pools", GOAL_NS, NULL, 1 },
	{ "pipeline: DPDK's best by ours", "B14/pages=32768 touch=header", NULL,
	  GOAL_DPDK, NULL, 1.5 },
	{ "bulk lookup of 1 M: rte_hash by ours",
	  "F01/uniform burst=32 records=1000000", NULL, GOAL_DPDK, NULL, 1.5 },
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

/* Keep it if it is worse than what is there. */
static void worst_of(const struct row_result *row,
		     const struct player_result *player,
		     struct goal_result *result)
{
	struct goal_result now = *result;

	if (player == NULL || !figure(result->goal, player, &now))
		return;
	now.row = row;
	now.player = player;
	if (result->row == NULL ||
	    (goal_is_at_most(result->goal) ? now.measured > result->measured :
					     now.measured < result->measured))
		*result = now;
}

static void look_at_row(const struct row_result *row,
			struct goal_result *result)
{
	const struct goal *goal = result->goal;

	if (goal->kind == GOAL_DPDK) {
		worst_of(row, goals_best_of_dpdk(row), result);
	} else if (goal->player == NULL) {
		worst_of(row, first_of_ours(row), result);
	} else {
		for (uint32_t i = 0; i < row->n_players; i++)
			if (fnmatch(goal->player, row->players[i].name, 0) == 0)
				worst_of(row, &row->players[i], result);
	}
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
		look_at_row(row, result);
	}
	if (result->row == NULL)
		return false;
	result->is_reached = goal_is_at_most(goal) ?
				     result->measured <= goal->limit :
				     result->measured >= goal->limit;
	result->is_close = result->low < result->high &&
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
