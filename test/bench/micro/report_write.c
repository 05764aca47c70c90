/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of --out: report.json, report.md, and charts. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plot.h"
#include "report.h"

static int fail(struct mr_reason *why, const char *path)
{
	snprintf(why->text, sizeof(why->text), "--out: %.200s: %m", path);
	return -1;
}

static FILE *open_in(const char *folder, const char *name,
		     struct mr_reason *why)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	if (file == NULL)
		fail(why, path);
	return file;
}

static int close_good(FILE *file, bool is_good, const char *name,
		      struct mr_reason *why)
{
	if (fclose(file) != 0 || !is_good)
		return fail(why, name);
	return 0;
}

/* "B06-from-depot.svg" */
static void file_name(const char *workload, const char *words, char *ret,
		      size_t n_bytes)
{
	char *to;

	snprintf(ret, n_bytes, "%s-%.90s.svg", workload, words);
	for (to = ret; *to != '\0'; to++)
		if (!isalnum((unsigned char)*to) && *to != '.')
			*to = '-';
}

static struct plot_series *series_of(struct plot_series *series, uint32_t *n,
				     const struct player_result *player)
{
	for (uint32_t i = 0; i < *n; i++)
		if (strcmp(series[i].name, player->name) == 0)
			return &series[i];
	if (*n == PLOT_MAX_SERIES)
		return NULL;
	series[*n] = (struct plot_series){ .name = player->name,
					   .group = player->side };
	return &series[(*n)++];
}

/* The time, or a figure beside it. 0, which no chart shows: there is none. */
static double value_of(const struct player_result *player, const char *count)
{
	if (count == NULL)
		return player->ns.median;
	for (uint32_t i = 0; i < player->counts.n; i++)
		if (strcmp(player->counts.of[i].name, count) == 0)
			return player->counts.of[i].value;
	return 0;
}

static void add_row(struct plot_series *series, uint32_t *n,
		    const struct row_result *row, const char *count)
{
	for (uint32_t i = 0; i < row->n_players; i++) {
		const struct player_result *player = &row->players[i];
		struct plot_series *s;

		if (player->ns.n == 0)
			continue;
		s = series_of(series, n, player);
		if (s == NULL || s->n == PLOT_MAX_POINTS)
			continue;
		s->x[s->n] = row->x;
		s->y[s->n++] = value_of(player, count);
	}
}

static bool is_same_plot(const struct row_result *a, const struct row_result *b)
{
	return a->workload == b->workload && strcmp(a->plot, b->plot) == 0;
}

/*
 * The chart that begins at row r: of all rows of its plot, or of it alone. Of
 * the time, or of the figure count.
 */
static int write_plot(const struct results *results, uint32_t r,
		      const char *count, const struct machine *machine,
		      const char *folder, struct mr_reason *why)
{
	const struct row_result *row = &results->rows[r];
	const bool is_lines = row->plot[0] != '\0';
	static struct plot_series series[PLOT_MAX_SERIES];
	struct plot plot = { .series = series, .x_name = row->x_name };
	char name[192], title[256], subtitle[256], y_name[64], words[128];
	FILE *file;
	bool is_good;

	for (uint32_t i = r; i < results->n_rows; i++)
		if (i == r ||
		    (is_lines && is_same_plot(row, &results->rows[i])))
			add_row(series, &plot.n_series, &results->rows[i],
				count);
	if (plot.n_series == 0)
		return 0;
	if (is_lines)
		plot_sum_up(series, &plot.n_series, SIDE_DPDK,
			    count == NULL ? "best of DPDK" : NULL);
	snprintf(words, sizeof(words), "%s%s%s",
		 is_lines ? row->plot : row->name, count != NULL ? " " : "",
		 count != NULL ? count : "");
	snprintf(title, sizeof(title), "%s %s: %s", row->workload->name,
		 row->workload->title, words);
	snprintf(subtitle, sizeof(subtitle), "%s; %s, %u cores; %.10s",
		 row->workload->what, machine->cpu, machine->n_cores,
		 machine->date);
	snprintf(y_name, sizeof(y_name), "ns by %s", row->unit);
	if (count != NULL)
		snprintf(y_name, sizeof(y_name), "%ss %s", row->unit,
			 strcmp(count, "in_flight") == 0 ? "in flight" : count);
	plot.title = title;
	plot.subtitle = subtitle;
	plot.y_name = y_name;
	file_name(row->workload->name, words, name, sizeof(name));
	file = open_in(folder, name, why);
	if (file == NULL)
		return -1;
	is_good = is_lines ? plot_lines(&plot, file) : plot_bars(&plot, file);
	return close_good(file, is_good, name, why);
}

static int write_plots(const struct results *results,
		       const struct machine *machine, const char *folder,
		       struct mr_reason *why)
{
	for (uint32_t r = 0; r < results->n_rows; r++) {
		const struct row_result *row = &results->rows[r];
		bool is_first = true;

		for (uint32_t i = 0; i < r && row->plot[0] != '\0'; i++)
			if (is_same_plot(&results->rows[i], row))
				is_first = false;
		if (!is_first)
			continue;
		if (write_plot(results, r, NULL, machine, folder, why) < 0)
			return -1;
		if (row->plot_count[0] != '\0' &&
		    write_plot(results, r, row->plot_count, machine, folder,
			       why) < 0)
			return -1;
	}
	return 0;
}

int report_write(const struct results *results, const struct machine *machine,
		 uint32_t n_cores, const char *why_no_dpdk, const char *folder,
		 struct mr_reason *why)
{
	FILE *file;
	bool is_good;

	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return fail(why, folder);
	file = open_in(folder, "report.json", why);
	if (file == NULL)
		return -1;
	is_good =
		report_print_json(results, machine, n_cores, why_no_dpdk, file);
	if (close_good(file, is_good, "report.json", why) < 0)
		return -1;
	file = open_in(folder, "report.md", why);
	if (file == NULL)
		return -1;
	is_good = report_md(results, machine, n_cores, why_no_dpdk, file);
	if (close_good(file, is_good, "report.md", why) < 0)
		return -1;
	return write_plots(results, machine, folder, why);
}
