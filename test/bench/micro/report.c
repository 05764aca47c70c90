/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for people, on stdout, row by row as they are done. */
#include <stdio.h>

#include "goals.h"
#include "report.h"

const char *side_name(enum side side)
{
	static const char *const names[] = { "ours", "dpdk", "kernel", "plain",
					     "malloc" };

	return names[side];
}

const char *report_limits(uint32_t n_cores)
{
	if (n_cores < 2)
		return "One core: rows of several threads show what taking "
		       "turns costs, not what sharing costs.";
	if (n_cores < 8)
		return "So few cores show the first points of the curves over "
		       "cores (B05, B12, B13, B19), one pipeline alone in B14, "
		       "and in B16 beyond as many threads as cores only what "
		       "taking turns costs: nothing of many threads or "
		       "pipelines at once on one depot, of several last-level "
		       "caches, or of NUMA nodes.";
	return "";
}

const char *report_builds(void)
{
	return "Millrace is used through its shared library, which looks for "
	       "AVX2 at run time; rte_mempool is inlined, compiled for the "
	       "-march among the flags. ./mr bench mem --native compiles both "
	       "for this machine.";
}

void report_text_head(const struct machine *machine, uint32_t n_cores,
		      const char *why_no_dpdk)
{
	printf("mr-bench %s, %s\n", machine->millrace, machine->date);
	printf("%s, %u of %u cores, governor %s, load %s\n", machine->cpu,
	       n_cores, machine->n_cores, machine->governor, machine->load);
	printf("%s, huge pages of 2 MiB: %llu, free %llu\n", machine->kernel,
	       (unsigned long long)machine->n_huge_pages,
	       (unsigned long long)machine->n_huge_free);
	printf("compiler %s, flags %s\n", machine->compiler, machine->flags);
	printf("%s\n", report_builds());
	if (why_no_dpdk[0] != '\0')
		printf("no DPDK rows: %s\n", why_no_dpdk);
	else
		printf("%s\n", machine->dpdk);
	if (report_limits(n_cores)[0] != '\0')
		printf("%s\n", report_limits(n_cores));
	printf("\nns: median by operation; +-: median distance to it; the "
	       "ratio, with its 95 %%\nconfidence interval, is a player's time "
	       "by that of the first of ours; 7/9: 7 samples of 9\ncount, the "
	       "others were disturbed. Counts are of all runs, warm-up "
	       "included.\n");
}

static void print_counts(const struct player_result *player)
{
	int column = 0;

	for (uint32_t i = 0; i < player->counts.n; i++) {
		char text[80];
		const int n = snprintf(text, sizeof(text), "%s %.10g",
				       player->counts.of[i].name,
				       player->counts.of[i].value);

		if (column + n > 66 || i == 0) {
			printf("%s%11s", i == 0 ? "" : "\n", "");
			column = 0;
		}
		printf(" %s", text);
		column += n + 1;
	}
	if (player->counts.n > 0)
		printf("\n");
}

static void print_player(const struct player_result *player)
{
	printf("  %-34s ", player->name);
	if (player->why_not[0] != '\0') {
		printf("not run: %s\n", player->why_not);
		return;
	}
	if (player->ns.n == 0) {
		printf("no sample\n");
		return;
	}
	printf("%9.3f ns +-%-7.3f", player->ns.median, player->ns.mad);
	if (player->to_ours.value > 0)
		printf(" x%-6.2f (%.2f..%.2f)", player->to_ours.value,
		       player->to_ours.low, player->to_ours.high);
	printf("  min %.3f  %u/%u%s\n", player->ns.min, player->ns.n,
	       player->n_samples, player->is_noisy ? " noisy" : "");
	print_counts(player);
}

void report_text_row(const struct row_result *row)
{
	printf("\n%s %s: %s  [by %s, %u thread%s]\n", row->workload->name,
	       row->workload->title, row->name, row->unit, row->n_threads,
	       row->n_threads == 1 ? "" : "s");
	for (uint32_t i = 0; i < row->n_players; i++)
		print_player(&row->players[i]);
	fflush(stdout);
}

static void print_goal(const struct goal_result *g)
{
	const struct goal *goal = g->goal;

	printf("  %-38s ", goal->what);
	if (goal->limit > 0)
		printf("%s %4g %-2s",
		       goal_is_at_most(goal) ? "<=" : ">=", goal->limit,
		       goal_unit(goal));
	else
		printf("        %-2s", goal_unit(goal));
	if (g->row == NULL) {
		printf("  %s\n", goal_state(g));
		return;
	}
	printf("  %8.3f", g->measured);
	if (g->low < g->high)
		printf(" (%.2f..%.2f)", g->low, g->high);
	printf("  %s%s\n%42s%s/%s: %s\n",
	       goal->limit > 0 && !g->is_reached ? "MISSED" : goal_state(g),
	       g->is_close ? ", within noise" : "", "", g->row->workload->name,
	       g->row->name, g->player->name);
}

static void print_goals(const struct results *results)
{
	struct goal_result goals[MAX_GOALS];
	const uint32_t n = goals_look(results, goals);

	if (n > 0)
		printf("\nGoals%s, each in the row that is the worst for it:\n",
		       results->has_all_goals ? "" : " that this run covers");
	for (uint32_t i = 0; i < n; i++)
		print_goal(&goals[i]);
}

static void print_slower(const struct results *results)
{
	uint32_t n_rows, n_slower;

	goals_count_slower(results, &n_rows, &n_slower);
	if (n_rows == 0)
		return;
	printf("\nRows in which the best of DPDK is faster than the first of "
	       "ours: %u of %u\n",
	       n_slower, n_rows);
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *row = &results->rows[r];
		const struct player_result *best = goals_best_of_dpdk(row);
		const struct player_result *ours = goals_best_of_ours(row);

		if (best == NULL || best->to_ours.value >= 1)
			continue;
		printf("  %s/%s: x%.2f (%.2f..%.2f)%s\n%6s%s %.3f ns; our "
		       "best is %s with %.3f\n",
		       row->workload->name, row->name, best->to_ours.value,
		       best->to_ours.low, best->to_ours.high,
		       best->to_ours.high >= 1 ? ", within noise" : "", "",
		       best->name, best->ns.median, ours->name,
		       ours->ns.median);
	}
}

void report_text_end(const struct results *results)
{
	uint32_t n_noisy = 0, n_samples = 0, n_disturbed = 0;

	print_goals(results);
	print_slower(results);
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *row = &results->rows[r];

		for (uint32_t i = 0; i < row->n_players; i++) {
			n_noisy += row->players[i].is_noisy;
			n_samples += row->players[i].n_samples;
			n_disturbed += row->players[i].n_disturbed;
		}
	}
	printf("\n%u rows; %u of %u samples put aside as disturbed",
	       results->n_rows, n_disturbed, n_samples);
	if (n_noisy > 0)
		printf("; %u figures are noisy: too few clean samples were to "
		       "be had, all count",
		       n_noisy);
	printf("%s\n", results->is_cut_short ? "; ended early" : "");
}
