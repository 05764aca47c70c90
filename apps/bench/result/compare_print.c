/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparisons, for people and for programs. */
#include <math.h>
#include <string.h>

#include "result/compare.h"
#include "result/document_parts.h"
#include "result/units.h"
#include "support/text.h"

static const char *const side_names[] = { "baseline", "compared" };

static void print_files(const struct compare *compare, FILE *to)
{
	char name[4096];

	for (uint32_t side = 0; side < 2; side++) {
		fprintf(to, "%s:", side_names[side]);
		for (uint32_t i = 0; i < compare->n_documents; i++)
			if (compare->sides[i] == side)
				fprintf(to, " %s",
					text_escape(compare->documents[i].name,
						    name, sizeof(name)));
		fputc('\n', to);
	}
}

static void print_differences(const struct compare *compare, FILE *to)
{
	if (compare->n_differences > 0)
		fprintf(to, "\nNot the same:\n");
	for (uint32_t i = 0; i < compare->n_differences; i++) {
		const struct difference *d = &compare->differences[i];
		char values[2][4 * sizeof(d->values[0])];

		for (uint32_t side = 0; side < 2; side++)
			text_escape(d->values[side][0] != '\0' ?
					    d->values[side] :
					    "(none)",
				    values[side], sizeof(values[side]));
		fprintf(to, "  %-24s %s\n  %24s %s\n", d->what, values[0], "",
			values[1]);
	}
}

static void print_change(const struct comparison *c, char *ret, size_t n)
{
	if (c->ratio.value > 0)
		snprintf(ret, n, "%+.2f %%", (c->ratio.value - 1) * 100);
	else
		snprintf(ret, n, "-");
}

static void print_interval(const struct comparison *c, char *ret, size_t n)
{
	if (c->ratio.value > 0 && isfinite(c->ratio.high))
		snprintf(ret, n, "%+.2f .. %+.2f %%", (c->ratio.low - 1) * 100,
			 (c->ratio.high - 1) * 100);
	else
		snprintf(ret, n, "-");
}

enum { NAME_CHARS = 4 * sizeof(((struct figure *)NULL)->name) };

static int longest_name(const struct figures *figures)
{
	char name[NAME_CHARS];
	size_t n = 6;

	for (uint32_t i = 0; i < figures->n; i++) {
		text_escape(figures->of[i]->name, name, sizeof(name));
		n = strlen(name) > n ? strlen(name) : n;
	}
	return (int)n;
}

static void print_row(const struct figure *figure, const struct comparison *c,
		      int width, FILE *to)
{
	char values[2][40] = { "-", "-" }, change[24], interval[48];
	char name[NAME_CHARS];
	const bool is_tester = figure->sides[0].is_limited_by_tester ||
			       figure->sides[1].is_limited_by_tester;

	for (uint32_t side = 0; side < 2; side++)
		if (figure->sides[side].n > 0)
			unit_print(c->medians[side], figure->unit, values[side],
				   sizeof(values[side]));
	print_change(c, change, sizeof(change));
	print_interval(c, interval, sizeof(interval));
	fprintf(to, "%-*s %18s %18s %10s %22s %3u:%-3u %s%s\n", width,
		text_escape(figure->name, name, sizeof(name)), values[0],
		values[1], change, interval, figure->sides[0].n,
		figure->sides[1].n, verdict_name(c->verdict),
		is_tester ? " (tester's limit)" : "");
}

static void print_figures(const struct compare *compare, FILE *to)
{
	const struct figures *figures = &compare->figures;
	const int width = longest_name(figures);
	bool has_few = false;

	fprintf(to, "\n%-*s %18s %18s %10s %22s %-7s %s\n", width, "figure",
		"baseline", "compared", "change", "interval", "runs",
		"verdict");
	for (uint32_t i = 0; i < figures->n; i++) {
		const struct comparison *c = &compare->comparisons[i];

		print_row(figures->of[i], c, width, to);
		has_few |= !c->is_bootstrap && c->verdict != VERDICT_ALONE;
	}
	fprintf(to, "\n");
	for (uint32_t v = 0; v <= VERDICT_ALONE; v++)
		if (compare->n_by_verdict[v] > 0)
			fprintf(to, "%u %s; ", compare->n_by_verdict[v],
				verdict_name((enum verdict)v));
	fprintf(to, "changes up to %g %% are no difference\n",
		compare->threshold * 100);
	if (has_few)
		fprintf(to, "Where a side has fewer than 5 runs, the interval "
			    "is from the lowest to the highest\nratio of any "
			    "two, and wider for 2 or 3 runs. With one run a "
			    "side, every figure is unclear.\n");
}

bool compare_print(const struct compare *compare, FILE *to)
{
	print_files(compare, to);
	print_differences(compare, to);
	if (!compare_is_refused(compare))
		print_figures(compare, to);
	return !ferror(to);
}

static json_t *real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *side_json(const struct figure_side *side, double median)
{
	json_t *values = json_array();

	for (uint32_t i = 0; i < side->n; i++)
		json_array_append_new(values, json_real(side->values[i]));
	return json_pack("{s:o, s:o, s:b}", "median",
			 side->n > 0 ? json_real(median) : json_null(),
			 "values", values, "is_limited_by_tester",
			 side->is_limited_by_tester);
}

static json_t *figure_json(const struct figure *figure,
			   const struct comparison *c)
{
	const bool has_ratio = c->ratio.value > 0;

	return json_pack(
		"{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:s}", "figure",
		figure->name, "unit", figure->unit, "baseline",
		side_json(&figure->sides[0], c->medians[0]), "compared",
		side_json(&figure->sides[1], c->medians[1]), "ratio",
		has_ratio ? json_real(c->ratio.value) : json_null(), "low",
		has_ratio ? real_or_null(c->ratio.low) : json_null(), "high",
		has_ratio ? real_or_null(c->ratio.high) : json_null(),
		"is_bootstrap", c->is_bootstrap, "verdict",
		verdict_name(c->verdict));
}

static json_t *files_json(const struct compare *compare, uint32_t side)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < compare->n_documents; i++)
		if (compare->sides[i] == side)
			json_array_append_new(
				array,
				json_text(compare->documents[i].name));
	return array;
}

bool compare_print_json(const struct compare *compare, FILE *to)
{
	json_t *differences = json_array(), *figures = json_array(), *object;
	bool is_written;

	for (uint32_t i = 0; i < compare->n_differences; i++) {
		const struct difference *d = &compare->differences[i];

		json_array_append_new(
			differences,
			json_pack("{s:s, s:o, s:o, s:b}", "what", d->what,
				  "baseline", json_text(d->values[0]),
				  "compared", json_text(d->values[1]),
				  "is_refused", d->is_refused));
	}
	for (uint32_t i = 0;
	     i < compare->figures.n && !compare_is_refused(compare); i++)
		json_array_append_new(figures,
				      figure_json(compare->figures.of[i],
						  &compare->comparisons[i]));
	object = json_pack(
		"{s:s, s:i, s:o, s:o, s:f, s:b, s:o, s:o}", "schema",
		"mr-bench-compare", "v", 1, "baseline", files_json(compare, 0),
		"compared", files_json(compare, 1), "threshold",
		compare->threshold, "refused", compare_is_refused(compare),
		"differences", differences, "figures", figures);
	is_written = json_dumpf(object, to,
				JSON_INDENT(1) | JSON_REAL_PRECISION(10)) == 0;
	json_decref(object);
	fputc('\n', to);
	return is_written && !ferror(to);
}
