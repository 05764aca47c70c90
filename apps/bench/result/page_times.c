/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency, and the pacing error: percentiles and histograms of trials. */
#include <math.h>
#include <string.h>

#include "net/rate.h"
#include "result/page.h"
#include "result/units.h"

enum { MAX_PICKS = 64, MAX_CURVES = 5 /* of a chart */ };

/* Of the histogram's axis. */
#define STEP 1.03

/* By how much a sender may miss its rate. */
static const double missed_share = 0.01;

/* A trial that is shown, of a document. */
struct pick {
	uint32_t document;
	const json_t *trial;
	char name[176];
};

struct picks {
	struct pick of[MAX_PICKS];
	uint32_t n, n_left_out;
};

/* Whether the sender missed its rate: then it is a trial of another rate. */
static bool is_missed(const json_t *trial)
{
	const double asked = json_number_of(trial, "asked_pps");
	const double sent = json_number_of(json_object_get(trial, "tx"), "pps");

	return asked > 0 && sent < (1 - missed_share) * asked;
}

static void pick(struct picks *picks, const struct page *page, uint32_t d,
		 const json_t *trial, const char *key)
{
	const double size = json_number_of(trial, "frame_bytes");
	struct pick *p = &picks->of[picks->n];
	char load[32] = "full speed", length[16] = "mix";

	if (!json_is_object(json_object_get(trial, key)))
		return;
	if (picks->n == MAX_PICKS) {
		picks->n_left_out++;
		return;
	}
	if (json_number_of(trial, "asked_pps") > 0)
		unit_print(json_number_of(trial, "asked_pps"), "frames/s", load,
			   sizeof(load));
	if (size > 0)
		snprintf(length, sizeof(length), "%.0f B", size + FCS_BYTES);
	p->document = d;
	p->trial = trial;
	snprintf(p->name, sizeof(p->name), "%s%s%s, %s%s",
		 page->n_documents > 1 ? page->names[d] : "",
		 page->n_documents > 1 ? " " : "", length, load,
		 is_missed(trial) ? " (missed)" : "");
	picks->n++;
}

/* The last trial that a row rests on, which is what a search is for; -1: it
 * rests on none. */
static json_int_t last_trial(const json_t *row)
{
	const json_t *of = json_object_get(row, "trials");
	const size_t n = json_array_size(of);

	return n > 0 ? json_integer_value(json_array_get(of, n - 1)) : -1;
}

/* Whether a row before row i has the same one: a goal more, or a percentile. */
static bool is_shown_before(const json_t *rows, size_t i)
{
	const json_int_t last = last_trial(json_array_get(rows, i));

	for (size_t k = 0; k < i; k++)
		if (last_trial(json_array_get(rows, k)) == last)
			return true;
	return false;
}

/* The k-th trial that a document shows; NULL: there are no more. Where there
 * are rows it is one of theirs: others look for the path and the highest rate,
 * or were taken again. */
static const json_t *nth_trial(const json_t *root, size_t k)
{
	const json_t *rows = json_object_get(root, "rows"), *row;
	const json_t *trials = json_object_get(root, "trials");
	size_t i;

	if (json_array_size(rows) == 0)
		return json_array_get(trials, k);
	json_array_foreach(rows, i, row)
	{
		const json_int_t last = last_trial(row);

		if (last >= 0 && !is_shown_before(rows, i) && k-- == 0)
			return json_array_get(trials, (size_t)last);
	}
	return NULL;
}

/* In turns, so that each document has a part where there is no room for all. */
static void pick_all(const struct page *page, const char *key,
		     struct picks *picks)
{
	bool has_more = true;

	*picks = (struct picks){ 0 };
	for (size_t k = 0; has_more; k++) {
		has_more = false;
		for (uint32_t d = 0; d < page->n_documents; d++) {
			const json_t *trial =
				nth_trial(page->documents[d].root, k);

			has_more |= trial != NULL;
			pick(picks, page, d, trial, key);
		}
	}
}

static uint32_t colour_of(const struct page *page, const struct picks *picks,
			  uint32_t i)
{
	return page->n_documents > 1 ? page->colours[picks->of[i].document] : i;
}

/* 100 would be without end: the last value is half a value before it. */
static void add_percentiles(struct page *page, const struct picks *picks,
			    uint32_t i, const char *key)
{
	const json_t *trial = picks->of[i].trial;
	const json_t *points =
		json_object_get(json_object_get(trial, "percentiles"), key);
	const double n = json_number_of(json_object_get(trial, key), "n");
	struct plot_series *line = page_line(page, colour_of(page, picks, i),
					     "%s", picks->of[i].name);
	const json_t *point;
	size_t k;

	if (line != NULL)
		line->look = PLOT_CURVE;
	json_array_foreach(points, k, point)
	{
		double p = json_number_value(json_array_get(point, 0));

		if (p >= 100 && n > 0)
			p = 100 * (1 - 0.5 / n);
		if (p >= 0 && p < 100)
			page_point(line, p,
				   json_number_value(json_array_get(point, 1)));
	}
	if (line != NULL && line->n == 0)
		page->n_series--;
}

/* Trials of all documents at one load are neighbours: they share a chart. */
static uint32_t curves_per_chart(const struct page *page)
{
	const uint32_t n = page->n_documents;

	return n >= MAX_CURVES ? MAX_CURVES : MAX_CURVES / n * n;
}

static void percentile_charts(struct page *page, const struct picks *picks,
			      const char *key, const char *what)
{
	const uint32_t n_each = curves_per_chart(page);
	char title[80];

	for (uint32_t from = 0; from < picks->n; from += n_each) {
		const uint32_t to =
			picks->n - from < n_each ? picks->n : from + n_each;

		snprintf(title, sizeof(title),
			 picks->n > n_each ? "%s (%u of %u)" : "%s", what,
			 from / n_each + 1, (picks->n + n_each - 1) / n_each);
		page_chart_begin(page);
		for (uint32_t i = from; i < to; i++)
			add_percentiles(page, picks, i, key);
		page_chart(page, &(struct page_chart){
					 .title = title,
					 .what = "A curve for each trial. The "
						 "table below has the figures.",
					 .x_name = "of all frames",
					 .y_name = "no more than",
					 .y_unit = "ns",
					 .x_scale = PLOT_PERCENTILE });
	}
}

/* Buckets double their width with each power of two, and the axis does not:
 * shares are those of steps that are equal on it. */
static void add_histogram(struct page *page, const struct picks *picks,
			  uint32_t i)
{
	const json_t *trial = picks->of[i].trial;
	const json_t *buckets =
		json_object_get(json_object_get(trial, "histogram"), "latency");
	const double n = json_number_of(json_object_get(trial, "latency"), "n");
	const uint32_t place = page->n_series;
	struct plot_series *line = page_line(page, colour_of(page, picks, i),
					     "%s", picks->of[i].name);
	const json_t *bucket;
	size_t k;

	if (line == NULL)
		return;
	line->look = PLOT_STEPS;
	line->x_to = page->high[place];
	json_array_foreach(buckets, k, bucket)
	{
		const double low = json_number_value(json_array_get(bucket, 0));
		double end;

		/* 0 has no place on the axis. */
		if (low < 1 || line->n == PLOT_MAX_POINTS || n <= 0)
			continue;
		end = json_number_value(json_array_get(bucket, 1));
		if (!(end > low))
			continue;
		page->high[place][line->n] = end;
		page_point(line, low,
			   json_number_value(json_array_get(bucket, 2)) / n *
				   log(STEP) / log(end / low));
	}
	if (line->n == 0)
		page->n_series--;
}

static void histogram_chart(struct page *page, const struct picks *picks)
{
	page_chart_begin(page);
	for (uint32_t i = 0; i < picks->n && page->n_series < MAX_CURVES; i++)
		add_histogram(page, picks, i);
	page_chart(
		page,
		&(struct page_chart){
			.title = "Latency: how often",
			.what = "A histogram for each of the first "
				"trials. The table "
				"above has the percentiles.",
			.x_name = "latency",
			.y_name = "% of the frames, per step of 3 % of latency",
			.x_unit = "ns",
			.y_unit = "ratio",
			.x_scale = PLOT_LOG,
			.y_scale = PLOT_LINEAR });
}

static void left_out(struct page *page, const struct picks *picks)
{
	if (picks->n_left_out > 0)
		fprintf(page->to,
			"<p class=\"soft\">%u more trials are in the documents "
			"alone.</p>\n",
			picks->n_left_out);
}

/* What it was to send, and what it sent. */
static void rate_cells(struct page *page, const json_t *trial)
{
	const double asked = json_number_of(trial, "asked_pps");
	const double sent = json_number_of(json_object_get(trial, "tx"), "pps");
	char text[32] = "\u2013";

	if (asked > 0)
		unit_print(asked, "frames/s", text, sizeof(text));
	page_cell(page, "%s", text);
	unit_print(sent, "frames/s", text, sizeof(text));
	page_cell(page, "%s%s", text, is_missed(trial) ? ", missed" : "");
}

static void latency_table(struct page *page, const struct picks *picks)
{
	static const char *const keys[] = { "min",  "p50",   "p90", "p99",
					    "p999", "p9999", "max" };

	page_table(page, "Latency: no more than, for that share of the frames");
	fputs("<tr><th>Trial</th><th>Asked</th><th>Sent</th><th>Frames</th>"
	      "<th>Lowest</th><th>50 %</th>"
	      "<th>90 %</th><th>99 %</th><th>99.9 %</th><th>99.99 %</th>"
	      "<th>Highest</th><th>Mean</th></tr>\n",
	      page->to);
	for (uint32_t i = 0; i < picks->n; i++) {
		const json_t *times =
			json_object_get(picks->of[i].trial, "latency");

		page_row(page);
		page_head(page, "%s", picks->of[i].name);
		rate_cells(page, picks->of[i].trial);
		page_cell(page, "%.0f", json_number_of(times, "n"));
		for (uint32_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			page_value(page, json_number_of(times, keys[k]), "ns");
		page_value(page, json_number_of(times, "mean"), "ns");
		fputs("</tr>\n", page->to);
	}
	page_table_end(page);
}

static void pacing_table(struct page *page, const struct picks *picks)
{
	page_table(page, "How late frames left, and how many could not");
	fputs("<tr><th>Trial</th><th>Due</th><th>Not sent</th><th>50 %</th>"
	      "<th>99 %</th><th>99.9 %</th><th>Latest</th></tr>\n",
	      page->to);
	for (uint32_t i = 0; i < picks->n; i++) {
		const json_t *trial = picks->of[i].trial;
		const json_t *times = json_object_get(trial, "lateness");
		const json_t *tx = json_object_get(trial, "tx");

		page_row(page);
		page_head(page, "%s", picks->of[i].name);
		page_cell(page, "%.0f", json_number_of(tx, "due"));
		page_cell(page, "%.0f", json_number_of(tx, "unsent"));
		page_value(page, json_number_of(times, "p50"), "ns");
		page_value(page, json_number_of(times, "p99"), "ns");
		page_value(page, json_number_of(times, "p999"), "ns");
		page_value(page, json_number_of(times, "max"), "ns");
		fputs("</tr>\n", page->to);
	}
	page_table_end(page);
}

/* Times of frames that trials have, and how the page shows them. */
struct times {
	const char *key, *id, *title, *what, *chart_title;
	void (*table)(struct page *page, const struct picks *picks);
	bool has_histogram;
};

static void show(struct page *page, const struct times *times)
{
	struct picks picks;

	pick_all(page, times->key, &picks);
	if (picks.n == 0)
		return;
	page_section(page, times->id, times->title, times->what);
	percentile_charts(page, &picks, times->key, times->chart_title);
	left_out(page, &picks);
	times->table(page, &picks);
	if (times->has_histogram)
		histogram_chart(page, &picks);
}

void page_latency(struct page *page)
{
	show(page, &(struct times){
			   .key = "latency",
			   .id = "latency",
			   .title = "Latency",
			   .what = "From when a frame was due, not from when "
				   "it left: what waited for a slow sender "
				   "counts. Where the sender missed its rate, "
				   "the figures are of the rate sent.",
			   .chart_title = "Latency by percentile",
			   .table = latency_table,
			   .has_histogram = true });
}

void page_pacing(struct page *page)
{
	show(page,
	     &(struct times){ .key = "lateness",
			      .id = "pacing",
			      .title = "Pacing error",
			      .what = "The tester's own: how long after it was "
				      "due a frame left. It is part of each "
				      "latency above.",
			      .chart_title = "Lateness by percentile",
			      .table = pacing_table });
}
