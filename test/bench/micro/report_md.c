/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables in Markdown: for docs/performance.md, and for a pull request. */
#include <stdio.h>

#include "goals.h"
#include "report.h"

static void head(const struct results *results, const struct machine *machine,
		 uint32_t n_cores, const char *why_no_dpdk, FILE *to)
{
	fprintf(to, "# mr-bench %s, %.10s\n\n", results->command,
		machine->date);
	fprintf(to, "`%s`\n\n", machine->command);
	fprintf(to, "- %s, %u of %u cores, governor %s, load %s\n",
		machine->cpu, n_cores, machine->n_cores, machine->governor,
		machine->load);
	fprintf(to, "- %s, huge pages of 2 MiB: %llu, %llu of them free\n",
		machine->kernel, (unsigned long long)machine->n_huge_pages,
		(unsigned long long)machine->n_huge_free);
	fprintf(to, "- Millrace %s, %s%s%s\n", machine->millrace, machine->dpdk,
		why_no_dpdk[0] != '\0' ? ": " : "", why_no_dpdk);
	fprintf(to, "- compiler %s, flags %s\n", machine->compiler,
		machine->flags);
	fprintf(to, "- %s\n", report_builds());
	if (report_limits(n_cores)[0] != '\0')
		fprintf(to, "- %s\n", report_limits(n_cores));
	if (results->is_cut_short)
		fprintf(to, "- **Ended early: not all rows were run.**\n");
	fprintf(to,
		"\nns by operation: median, its 95 %% confidence interval, "
		"minimum. Ratio: a player's time by that of the first of "
		"ours, with its 95 %% confidence interval. Clean: samples "
		"that nothing disturbed; with too few of them all are used, "
		"and the figure has a star.\n");
}

static void player_line(const struct player_result *player, FILE *to)
{
	const bool is_ours = player->side == SIDE_OURS;

	fprintf(to, "| %s%s%s |", is_ours ? "**" : "", player->name,
		is_ours ? "**" : "");
	if (player->why_not[0] != '\0' || player->ns.n == 0) {
		fprintf(to, " not run: %s | | | | |\n",
			player->why_not[0] != '\0' ? player->why_not :
						     "no sample");
		return;
	}
	fprintf(to, " %.3f%s | %.3f..%.3f | %.3f |", player->ns.median,
		player->is_noisy ? "*" : "", player->ns.low, player->ns.high,
		player->ns.min);
	if (player->to_ours.value > 0)
		fprintf(to, " %.2f (%.2f..%.2f) |", player->to_ours.value,
			player->to_ours.low, player->to_ours.high);
	else
		fprintf(to, " |");
	fprintf(to, " %u of %u |\n", player->n_samples - player->n_disturbed,
		player->n_samples);
}

static void goal_line(const struct goal_result *g, FILE *to)
{
	const struct goal *goal = g->goal;
	const bool is_missed =
		g->row != NULL && goal->limit > 0 && !g->is_reached;

	fprintf(to, "| %s |", goal->what);
	if (goal->limit > 0)
		fprintf(to, " %s %g %s",
			goal_is_at_most(goal) ? "at most" : "at least",
			goal->limit, goal_unit(goal));
	if (g->row == NULL) {
		fprintf(to, " | | | %s | |\n", goal_state(g));
		return;
	}
	fprintf(to, " | %.3f %s |", g->measured, goal_unit(goal));
	if (g->low < g->high)
		fprintf(to, " %.3f..%.3f", g->low, g->high);
	fprintf(to, " | %s%s | %s/%s: %s |\n",
		is_missed ? "**missed**" : goal_state(g),
		g->is_close ? ", within noise" : "", g->row->workload->name,
		g->row->name, g->player->name);
}

static void goals_table(const struct results *results, FILE *to)
{
	struct goal_result goals[MAX_GOALS];
	const uint32_t n = goals_look(results, goals);

	if (n == 0)
		return;
	fprintf(to,
		"\n## Goals\n\n%s, each in the row that is the worst for it; "
		"the number is that of the founding document.\n\n"
		"| goal | limit | measured | 95 %% | | where |\n"
		"|---|---|---|---|---|---|\n",
		results->has_all_goals ? "All" : "Those that this run covers");
	for (uint32_t i = 0; i < n; i++)
		goal_line(&goals[i], to);
}

static void slower_table(const struct results *results, FILE *to)
{
	uint32_t n_rows, n_slower;

	goals_count_slower(results, &n_rows, &n_slower);
	if (n_rows == 0)
		return;
	fprintf(to,
		"\n## Slower than DPDK's best\n\nThe first of ours is, in %u "
		"of %u rows; ns by operation.\n",
		n_slower, n_rows);
	if (n_slower > 0)
		fprintf(to,
			"\n| row | DPDK's best | its time by ours | 95 %% | "
			"our best | |\n|---|---|---|---|---|---|\n");
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *row = &results->rows[r];
		const struct player_result *best = goals_best_of_dpdk(row);
		const struct player_result *ours = goals_best_of_ours(row);

		if (best == NULL || best->to_ours.value >= 1)
			continue;
		fprintf(to,
			"| %s/%s | %s, %.3f | %.2f | %.2f..%.2f | %s, %.3f | "
			"%s |\n",
			row->workload->name, row->name, best->name,
			best->ns.median, best->to_ours.value, best->to_ours.low,
			best->to_ours.high, ours->name, ours->ns.median,
			best->to_ours.high >= 1 ? "within noise" : "");
	}
}

bool report_md(const struct results *results, const struct machine *machine,
	       uint32_t n_cores, const char *why_no_dpdk, FILE *to)
{
	const struct workload *before = NULL;

	head(results, machine, n_cores, why_no_dpdk, to);
	goals_table(results, to);
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *row = &results->rows[r];

		if (row->workload != before)
			fprintf(to, "\n## %s %s\n\n%s (%s).\n",
				row->workload->name, row->workload->title,
				row->workload->what, row->workload->source);
		before = row->workload;
		fprintf(to, "\n### %s\n\n", row->name);
		fprintf(to,
			"| ns by %s, %u thread%s | median | 95 %% | min | "
			"ratio | clean |\n|---|---|---|---|---|---|\n",
			row->unit, row->n_threads,
			row->n_threads == 1 ? "" : "s");
		for (uint32_t i = 0; i < row->n_players; i++)
			player_line(&row->players[i], to);
	}
	slower_table(results, to);
	return fflush(to) == 0;
}
