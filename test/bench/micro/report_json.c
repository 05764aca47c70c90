/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON, version 1: one object. mr-micro.schema.json describes it. */
#include <stdio.h>

#include <jansson.h>

#include "goals.h"
#include "report.h"

static json_t *integer(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *ratio_object(const struct ratio *ratio)
{
	return json_pack("{s:f, s:f, s:f}", "value", ratio->value, "low",
			 ratio->low, "high", ratio->high);
}

static json_t *player_object(const struct player_result *player)
{
	json_t *object = json_object(), *counts = json_object(), *ns;

	json_object_set_new(object, "name", json_string(player->name));
	json_object_set_new(object, "side",
			    json_string(side_name(player->side)));
	if (player->why_not[0] != '\0')
		json_object_set_new(object, "why_not",
				    json_string(player->why_not));
	json_object_set_new(object, "samples", integer(player->n_samples));
	json_object_set_new(object, "disturbed", integer(player->n_disturbed));
	json_object_set_new(object, "noisy", json_boolean(player->is_noisy));
	json_object_set_new(object, "operations", integer(player->n_done));
	for (uint32_t i = 0; i < player->counts.n; i++)
		json_object_set_new(counts, player->counts.of[i].name,
				    json_real(player->counts.of[i].value));
	json_object_set_new(object, "counts", counts);
	if (player->ns.n == 0)
		return object;
	ns = json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "n",
		       (int)player->ns.n, "median", player->ns.median, "min",
		       player->ns.min, "max", player->ns.max, "mad",
		       player->ns.mad, "low", player->ns.low, "high",
		       player->ns.high);
	json_object_set_new(object, "ns", ns);
	json_object_set_new(object, "cycles", json_real(player->cycles));
	if (player->to_ours.value <= 0)
		return object;
	json_object_set_new(object, "ratio_to_ours",
			    ratio_object(&player->to_ours));
	return object;
}

static json_t *row_object(const struct row_result *row)
{
	json_t *object = json_object(), *players = json_array();

	json_object_set_new(object, "workload",
			    json_string(row->workload->name));
	json_object_set_new(object, "title", json_string(row->workload->title));
	json_object_set_new(object, "name", json_string(row->name));
	json_object_set_new(object, "unit", json_string(row->unit));
	json_object_set_new(object, "threads", integer(row->n_threads));
	json_object_set_new(object, "per_thread",
			    json_boolean(row->is_per_thread));
	if (row->plot[0] != '\0') {
		json_object_set_new(object, "plot", json_string(row->plot));
		json_object_set_new(object, "x_name", json_string(row->x_name));
		json_object_set_new(object, "x", json_real(row->x));
	}
	for (uint32_t i = 0; i < row->n_players; i++)
		json_array_append_new(players, player_object(&row->players[i]));
	json_object_set_new(object, "players", players);
	return object;
}

static json_t *goal_object(const struct goal_result *g)
{
	const struct ratio measured = { g->measured, g->low, g->high };
	json_t *object =
		json_pack("{s:s, s:s, s:s, s:i}", "goal", g->goal->what, "unit",
			  goal_unit(g->goal), "state", goal_state(g), "rows",
			  (int)g->n_rows);
	json_t *more;

	if (g->goal->limit > 0) {
		more = json_pack("{s:s, s:f}", "limit_is",
				 goal_is_at_most(g->goal) ? "most" : "least",
				 "limit", g->goal->limit);
		json_object_update(object, more);
		json_decref(more);
	}
	if (g->row == NULL)
		return object;
	more = json_pack("{s:o, s:b, s:s, s:s, s:s}", "measured",
			 ratio_object(&measured), "within_noise", g->is_close,
			 "workload", g->row->workload->name, "row",
			 g->row->name, "player", g->player->name);
	json_object_update(object, more);
	json_decref(more);
	return object;
}

static json_t *goals_array(const struct results *results)
{
	struct goal_result goals[MAX_GOALS];
	const uint32_t n = goals_look(results, goals);
	json_t *array = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(array, goal_object(&goals[i]));
	return array;
}

static json_t *slower_object(const struct results *results)
{
	json_t *array = json_array();
	uint32_t n_rows, n_slower;

	goals_count_slower(results, &n_rows, &n_slower);
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *row = &results->rows[r];
		const struct player_result *best = goals_best_of_dpdk(row);

		if (best == NULL || best->to_ours.value >= 1)
			continue;
		json_array_append_new(
			array,
			json_pack("{s:s, s:s, s:s, s:o, s:s}", "workload",
				  row->workload->name, "row", row->name,
				  "player", best->name, "ratio_to_ours",
				  ratio_object(&best->to_ours), "best_of_ours",
				  goals_best_of_ours(row)->name));
	}
	return json_pack("{s:i, s:o}", "rows", (int)n_rows, "slower", array);
}

bool report_print_json(const struct results *results,
		       const struct machine *machine, uint32_t n_cores,
		       const char *why_no_dpdk, FILE *to)
{
	json_t *object = json_object(), *rows = json_array();
	bool is_written;

	json_object_set_new(object, "v", integer(1));
	json_object_set_new(object, "command", json_string(results->command));
	json_object_set_new(object, "machine", machine_json(machine));
	json_object_set_new(object, "cores_used", integer(n_cores));
	json_object_set_new(object, "limits",
			    json_string(report_limits(n_cores)));
	json_object_set_new(object, "why_no_dpdk", json_string(why_no_dpdk));
	json_object_set_new(object, "complete",
			    json_boolean(!results->is_cut_short));
	for (uint32_t i = 0; i < results->n_rows; i++)
		json_array_append_new(rows, row_object(&results->rows[i]));
	json_object_set_new(object, "rows", rows);
	json_object_set_new(object, "goals", goals_array(results));
	json_object_set_new(object, "best_of_dpdk", slower_object(results));
	is_written = json_dumpf(object, to,
				JSON_INDENT(1) | JSON_REAL_PRECISION(8)) == 0;
	json_decref(object);
	fputc('\n', to);
	return is_written && fflush(to) == 0;
}
