/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/rate.h"
#include "result/figure.h"

/* Fewer runs than that say too little for a bootstrap interval, which cannot
 * be wider than what was seen. */
enum { LEAST_FOR_BOOTSTRAP = 5, LEAST_FOR_VERDICT = 2 };

static struct figure *figure_of(struct figures *figures, const char *name,
				const char *unit)
{
	struct figure **more;

	for (uint32_t i = 0; i < figures->n; i++)
		if (strcmp(figures->of[i]->name, name) == 0 &&
		    strcmp(figures->of[i]->unit, unit) == 0)
			return figures->of[i];
	more = realloc(figures->of, (figures->n + 1) * sizeof(*more));
	if (more == NULL)
		abort();
	figures->of = more;
	more[figures->n] = calloc(1, sizeof(**more));
	if (more[figures->n] == NULL)
		abort();
	snprintf(more[figures->n]->name, sizeof(more[0]->name), "%s", name);
	snprintf(more[figures->n]->unit, sizeof(more[0]->unit), "%s", unit);
	return more[figures->n++];
}

/* low and high 0: nobody knows, and the value stands for itself. */
static void add(struct figure_side *side, double value, double low, double high)
{
	const bool is_bounded = low != 0 || high != 0;

	if (side->n == MAX_RUNS)
		return;
	side->values[side->n] = value;
	side->lows[side->n] = is_bounded ? fmin(low, value) : value;
	side->highs[side->n++] = is_bounded ? fmax(high, value) : value;
}

/* "64 B", as people count, with the FCS; "mix". */
static void print_size(double frame_bytes, char *ret, size_t n)
{
	if (frame_bytes > 0)
		snprintf(ret, n, "%.0f B", frame_bytes + FCS_BYTES);
	else
		snprintf(ret, n, "mix");
}

/* Frames that a row's figure is of: its last trial's, or the series'. */
static double sent_of_row(const json_t *root, const json_t *row)
{
	const json_t *ids = json_object_get(row, "trials");
	const size_t n = json_array_size(ids);
	const json_t *interval;
	double n_sent = 0;
	size_t i;

	if (n > 0) {
		const json_int_t last =
			json_integer_value(json_array_get(ids, n - 1));
		const json_t *trial = json_array_get(
			json_object_get(root, "trials"), (size_t)last);

		return json_number_of(json_object_get(trial, "tx"), "sent");
	}
	json_array_foreach(json_object_get(root, "series"), i, interval)
		n_sent += json_number_of(interval, "sent");
	return n_sent;
}

/* A share of frames that were lost changes by whole frames. */
static void raise_floor(struct figure *figure, double n_sent)
{
	if (strcmp(figure->unit, "ratio") == 0 && n_sent > 0)
		figure->floor = fmax(figure->floor, FLOOR_FRAMES / n_sent);
}

/* 0 is what a row has whose rate was refused, or not confirmed in time, and
 * whose latency is of no frame at all. No rate that keeps a goal is 0, too, and
 * it is the device's. */
static bool is_figure(const json_t *row)
{
	if (json_number_of(row, "value") != 0)
		return true;
	if (strcmp(json_text_of(row, "unit"), "ns") == 0)
		return strncmp(json_text_of(row, "goal"), "latency", 7) != 0;
	return unit_direction(json_text_of(row, "unit")) < 0 ||
	       !json_is_true(json_object_get(row, "is_limited_by_tester"));
}

static void add_rows(struct figures *figures, const json_t *root,
		     const json_t *rows, uint32_t side)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		struct figure *figure;
		char size[16], name[224];

		if (!is_figure(row))
			continue;
		print_size(json_number_of(row, "frame_bytes"), size,
			   sizeof(size));
		snprintf(name, sizeof(name), "%s %.200s", size,
			 json_text_of(row, "goal"));
		figure = figure_of(figures, name, json_text_of(row, "unit"));
		add(&figure->sides[side], json_number_of(row, "value"),
		    json_number_of(row, "low"), json_number_of(row, "high"));
		raise_floor(figure, sent_of_row(root, row));
		figure->sides[side].is_limited_by_tester |= json_is_true(
			json_object_get(row, "is_limited_by_tester"));
	}
}

/* Trials of the same load are samples of the same figures. */
static void add_trial(struct figures *figures, const json_t *trial,
		      uint32_t side)
{
	const json_t *tx = json_object_get(trial, "tx");
	const json_t *rx = json_object_get(trial, "rx");
	const json_t *times = json_object_get(trial, "latency");
	const json_t *late = json_object_get(trial, "lateness");
	/* Who receives has it in the latency. */
	const bool is_late = json_is_object(late) && !json_is_object(times);
	const double asked = json_number_of(trial, "asked_pps");
	const double sent = json_number_of(tx, "sent");
	char size[16], load[64], name[224];
	const struct {
		const char *what, *unit;
		double value;
		bool is_there;
	} parts[] = {
		{ "sent", "frames/s", json_number_of(tx, "pps"), sent > 0 },
		{ "received", "frames/s", json_number_of(rx, "pps"),
		  json_number_of(rx, "received") > 0 },
		{ "loss", "ratio",
		  sent > 0 ? json_number_of(rx, "lost") / sent : 0,
		  sent > 0 && json_number_of(rx, "received") > 0 },
		{ "latency p50", "ns", json_number_of(times, "p50"),
		  json_is_object(times) },
		{ "latency p99", "ns", json_number_of(times, "p99"),
		  json_is_object(times) },
		{ "late p50", "ns", json_number_of(late, "p50"), is_late },
		{ "late p99", "ns", json_number_of(late, "p99"), is_late },
	};

	print_size(json_number_of(trial, "frame_bytes"), size, sizeof(size));
	if (asked > 0)
		snprintf(load, sizeof(load), "%.6g frames/s", asked);
	else
		snprintf(load, sizeof(load), "full speed");
	for (uint32_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct figure *figure;

		if (!parts[i].is_there)
			continue;
		snprintf(name, sizeof(name), "%s at %s: %s", size, load,
			 parts[i].what);
		figure = figure_of(figures, name, parts[i].unit);
		raise_floor(figure, sent);
		add(&figure->sides[side], parts[i].value, 0, 0);
	}
}

/* A row of mem has a figure for each player: its time. */
static void add_players(struct figures *figures, const json_t *row,
			uint32_t side)
{
	const json_t *player;
	size_t i;

	json_array_foreach(json_object_get(row, "players"), i, player)
	{
		const json_t *ns = json_object_get(player, "ns");
		char name[224];

		if (!json_is_object(ns))
			continue;
		snprintf(name, sizeof(name), "%.20s/%.100s: %.90s",
			 json_text_of(row, "workload"),
			 json_text_of(row, "name"),
			 json_text_of(player, "name"));
		add(&figure_of(figures, name, "ns")->sides[side],
		    json_number_of(ns, "median"), json_number_of(ns, "low"),
		    json_number_of(ns, "high"));
	}
}

void figures_add(struct figures *figures, const struct read_document *document,
		 uint32_t side)
{
	const json_t *rows = json_object_get(document->root, "rows");
	const json_t *entry;
	size_t i;

	if (document->schema == SCHEMA_MEM)
		json_array_foreach(rows, i, entry)
			add_players(figures, entry, side);
	else if (json_array_size(rows) > 0)
		add_rows(figures, document->root, rows, side);
	else
		json_array_foreach(json_object_get(document->root, "trials"), i,
				   entry) add_trial(figures, entry, side);
}

void figures_free(struct figures *figures)
{
	for (uint32_t i = 0; i < figures->n; i++)
		free(figures->of[i]);
	free(figures->of);
	*figures = (struct figures){ 0 };
}

/*
 * Two sides with the same distribution do not overlap, by chance, in 1 of 3
 * comparisons of 2 runs each, in 1 of 10 of 3 runs, and in 3 % of 4. Adding
 * these shares of the runs' spread at both ends makes it 3 to 4 % for all.
 */
static double margin(const struct figure_side *side)
{
	static const double shares[] = { 0, 0, 1.5, 0.25 };
	double low = side->values[0], high = low;

	if (side->n >= sizeof(shares) / sizeof(*shares))
		return 0;
	for (uint32_t i = 1; i < side->n; i++) {
		low = fmin(low, side->values[i]);
		high = fmax(high, side->values[i]);
	}
	return shares[side->n] * (high - low);
}

static double lowest(const struct figure_side *side)
{
	double low = side->lows[0];

	for (uint32_t i = 1; i < side->n; i++)
		low = fmin(low, side->lows[i]);
	return fmax(low - margin(side), 0);
}

static double highest(const struct figure_side *side)
{
	double high = side->highs[0];

	for (uint32_t i = 1; i < side->n; i++)
		high = fmax(high, side->highs[i]);
	return high + margin(side);
}

/* Of 0 there is no share: a change is certain if the sides are apart. */
static bool is_certain(const struct figure *figure, const struct comparison *c,
		       bool is_more)
{
	const struct figure_side *a = &figure->sides[0];
	const struct figure_side *b = &figure->sides[1];

	if (c->medians[0] <= 0)
		return is_more ? lowest(b) > highest(a) :
				 highest(b) < lowest(a);
	return is_more ? c->ratio.low > 1 : c->ratio.high < 1;
}

/* A rate that the tester limited is the least that the device does. Of other
 * figures nobody knows which way they would go. */
static bool is_hidden(const struct figure *figure, int direction,
		      enum verdict verdict)
{
	const bool is_first = figure->sides[0].is_limited_by_tester;
	const bool is_second = figure->sides[1].is_limited_by_tester;

	if (direction < 0)
		return is_first || is_second;
	return verdict == VERDICT_BETTER ? is_first : is_second;
}

static enum verdict judge(const struct figure *figure,
			  const struct comparison *c, double threshold)
{
	const bool is_more = c->medians[1] > c->medians[0];
	const int direction = unit_direction(figure->unit);
	const double floor = fmax(figure->floor, unit_floor(figure->unit));
	enum verdict verdict;

	if (c->has_few_runs)
		return VERDICT_UNCLEAR;
	if (fabs(c->medians[1] - c->medians[0]) <=
	    fmax(floor, threshold * c->medians[0]))
		return VERDICT_SAME;
	verdict = (direction > 0) == is_more ? VERDICT_BETTER : VERDICT_WORSE;
	if (!is_certain(figure, c, is_more) ||
	    is_hidden(figure, direction, verdict))
		return VERDICT_UNCLEAR;
	return verdict;
}

void figure_compare(const struct figure *figure, double threshold,
		    struct comparison *ret)
{
	const struct figure_side *a = &figure->sides[0];
	const struct figure_side *b = &figure->sides[1];

	*ret = (struct comparison){
		.medians = { sample_median(a->values, a->n),
			     sample_median(b->values, b->n) },
	};
	if (a->n == 0 || b->n == 0) {
		ret->verdict = VERDICT_ALONE;
		return;
	}
	ret->has_few_runs =
		a->n < LEAST_FOR_VERDICT || b->n < LEAST_FOR_VERDICT;
	ret->is_bootstrap =
		a->n >= LEAST_FOR_BOOTSTRAP && b->n >= LEAST_FOR_BOOTSTRAP;
	if (ret->is_bootstrap) {
		ret->ratio = sample_ratio(b->values, b->n, a->values, a->n);
	} else if (ret->medians[0] > 0) {
		ret->ratio.value = ret->medians[1] / ret->medians[0];
		ret->ratio.low = lowest(b) / highest(a);
		ret->ratio.high =
			lowest(a) > 0 ? highest(b) / lowest(a) : INFINITY;
	}
	ret->verdict = judge(figure, ret, threshold);
}

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = { "no difference", "better", "worse",
					     "unclear", "on one side only" };

	return names[verdict];
}
