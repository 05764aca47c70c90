/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss by load, and long runs over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net/rate.h"
#include "result/page.h"
#include "result/units.h"

enum { MAX_LOADS = 256, MAX_TIMES = 480 };

/* A goal has six digits of its share. */
#define SAME_LOAD 1e-5

/* A trial of a frame loss test. */
struct load {
	uint32_t document;
	double size, pps, line_share, loss, n_lost, n_unsent;
};

struct loads {
	struct load of[MAX_LOADS];
	uint32_t n;
	bool has_line; /* each one's share of the line is known */
};

static int by_load(const void *a, const void *b)
{
	const struct load *x = a, *y = b;

	if (x->document != y->document)
		return x->document < y->document ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return (x->pps > y->pps) - (x->pps < y->pps);
}

static void add_load(struct loads *loads, uint32_t d, double line_bps,
		     const json_t *trial)
{
	const json_t *tx = json_object_get(trial, "tx");
	const json_t *rx = json_object_get(trial, "rx");
	const double size = json_number_of(trial, "frame_bytes");
	const double n_sent = json_number_of(tx, "sent");
	const double pps = json_number_of(tx, "pps");

	if (n_sent <= 0 || loads->n == MAX_LOADS)
		return;
	loads->has_line &= line_bps > 0 && size > 0;
	loads->of[loads->n++] = (struct load){
		.document = d,
		.size = size,
		.pps = pps,
		.line_share = line_bps > 0 && size > 0 ?
				      rate_l1_bps(pps, size) / line_bps :
				      0,
		.loss = json_number_of(rx, "lost") / n_sent,
		.n_lost = json_number_of(rx, "lost"),
		.n_unsent = json_number_of(tx, "unsent"),
	};
}

/* The share in "loss-at-90%"; 0: the row is of something else. */
static double share_of(const json_t *row)
{
	double percent;

	if (sscanf(json_text_of(row, "goal"), "loss-at-%lf%%", &percent) != 1)
		return 0;
	return percent / 100;
}

/* The k-th trial that a row rests on; NULL: there are no more. */
static const json_t *trial_of(const json_t *root, const json_t *row, size_t k)
{
	const json_t *number =
		json_array_get(json_object_get(row, "trials"), k);

	return number == NULL ?
		       NULL :
		       json_array_get(json_object_get(root, "trials"),
				      (size_t)json_integer_value(number));
}

/* What a share of 1 is: rows of a length begin with the highest load, and no
 * trial of theirs asked for more. */
static double whole_pps(const json_t *root, const json_t *row)
{
	const json_t *trial;
	double most = 0;

	for (size_t k = 0; (trial = trial_of(root, row, k)) != NULL; k++)
		most = fmax(most, json_number_of(trial, "asked_pps"));
	return most / share_of(row);
}

/* The last trial at a row's load: those before it were taken again, for the
 * sender did not keep up, and others look for the path and the highest rate. */
static const json_t *trial_at(const json_t *root, const json_t *row, double pps)
{
	const json_t *found = NULL, *trial;

	for (size_t k = 0; (trial = trial_of(root, row, k)) != NULL; k++)
		if (fabs(json_number_of(trial, "asked_pps") - pps) <=
		    SAME_LOAD * pps)
			found = trial;
	return found;
}

static void look_at_rows(const json_t *root, uint32_t d, struct loads *loads)
{
	const double line_bps = json_number_of(root, "line_bps");
	double size = -1, whole = 0;
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "rows"), i, row)
	{
		const double share = share_of(row);
		const json_t *trial;

		if (share <= 0)
			continue;
		if (json_number_of(row, "frame_bytes") != size)
			whole = whole_pps(root, row);
		size = json_number_of(row, "frame_bytes");
		trial = trial_at(root, row, share * whole);
		if (trial != NULL)
			add_load(loads, d, line_bps, trial);
	}
}

static void look(const struct page *page, struct loads *loads)
{
	loads->n = 0;
	loads->has_line = true;
	for (uint32_t d = 0; d < page->n_documents; d++) {
		const json_t *root = page->documents[d].root;

		if (strcmp(json_text_of(root, "kind"), "frameloss") == 0)
			look_at_rows(root, d, loads);
	}
	qsort(loads->of, loads->n, sizeof(*loads->of), by_load);
}

/* "64 B", with the FCS; a mix has no length of its own. */
static void print_length(const struct load *load, char *ret, size_t n)
{
	if (load->size > 0)
		snprintf(ret, n, "%.0f B", load->size + FCS_BYTES);
	else
		snprintf(ret, n, "mix");
}

static bool is_same_line(const struct load *a, const struct load *b)
{
	return a->document == b->document && a->size == b->size;
}

static void loss_chart(struct page *page, const struct loads *loads)
{
	struct plot_series *line = NULL;
	uint32_t n_lines = 0;

	page_chart_begin(page);
	for (uint32_t i = 0; i < loads->n; i++) {
		const struct load *load = &loads->of[i];
		char length[16];

		if (i == 0 || !is_same_line(load, &loads->of[i - 1])) {
			n_lines++;
			if (page->n_series == PAGE_MAX_LINES)
				break;
			print_length(load, length, sizeof(length));
			line = page_line(page, page->n_series, "%s %s",
					 page->names[load->document], length);
		}
		page_point(line,
			   loads->has_line ? 100 * load->line_share : load->pps,
			   load->loss);
	}
	page_chart(page,
		   &(struct page_chart){
			   .title = "Frame loss by load",
			   .what = "A line for each size. The table below has "
				   "the figures.",
			   .x_name = loads->has_line ? "load, % of the line" :
						       "load, frames/s",
			   .y_name = "loss, % of the frames sent",
			   .x_unit = loads->has_line ? NULL : "frames/s",
			   .y_unit = "ratio",
			   .x_scale = PLOT_LINEAR,
			   .y_scale = PLOT_LINEAR });
	page_cut(page, n_lines);
}

static void loss_table(struct page *page, const struct loads *loads)
{
	page_table(page, "Frame loss by load");
	fputs("<tr><th>Name</th><th>Frame</th><th>Load</th><th>Of the line"
	      "</th><th>Loss</th><th>Lost</th><th>Not sent</th></tr>\n",
	      page->to);
	for (uint32_t i = 0; i < loads->n; i++) {
		const struct load *load = &loads->of[i];
		char length[16];

		print_length(load, length, sizeof(length));
		page_row(page);
		page_head(page, "%s", page->names[load->document]);
		page_cell(page, "%s", length);
		page_value(page, load->pps, "frames/s");
		if (load->line_share > 0)
			page_cell(page, "%.1f %%", 100 * load->line_share);
		else
			page_cell(page, "\u2013");
		page_value(page, load->loss, "ratio");
		page_cell(page, "%.0f", load->n_lost);
		page_cell(page, "%.0f", load->n_unsent);
		fputs("</tr>\n", page->to);
	}
	page_table_end(page);
}

void page_loss(struct page *page)
{
	struct loads *loads = malloc(sizeof(*loads));

	if (loads == NULL)
		return;
	look(page, loads);
	if (loads->n > 0) {
		page_section(page, "loss", "Frame loss",
			     "The share of the frames sent that never came "
			     "back, by load.");
		loss_chart(page, loads);
		loss_table(page, loads);
	}
	free(loads);
}

/* A figure of an interval, as "latency.p99". */
static double value_of(const json_t *interval, const char *path)
{
	const char *dot = strchr(path, '.');
	char part[32];

	if (dot == NULL)
		return json_number_of(interval, path);
	snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
	return json_number_of(json_object_get(interval, part), dot + 1);
}

/* Of so many intervals the highest one: a disturbance must not be lost. */
static void add_times(struct page *page, const json_t *series, uint32_t colour,
		      const char *name, const char *path, bool is_lowest)
{
	const size_t n = json_array_size(series);
	const size_t n_each = (n + MAX_TIMES - 1) / MAX_TIMES;
	struct plot_series *line = page_line(page, colour, "%s", name);

	if (line != NULL)
		line->look = PLOT_CURVE;
	for (size_t i = 0; i < n; i += n_each) {
		const json_t *first = json_array_get(series, i);
		double value = value_of(first, path);

		for (size_t k = i + 1; k < i + n_each && k < n; k++) {
			const double next =
				value_of(json_array_get(series, k), path);

			value = is_lowest ? fmin(value, next) :
					    fmax(value, next);
		}
		page_point(line, json_number_of(first, "start_s"), value);
	}
}

static void time_charts(struct page *page, uint32_t d, const json_t *series)
{
	char title[128];
	struct page_chart chart = { .title = title,
				    .what = "Over the time of the run. The "
					    "table below has the extremes.",
				    .x_name = "seconds",
				    .x_scale = PLOT_LINEAR,
				    .y_scale = PLOT_LINEAR };

	page_chart_begin(page);
	add_times(page, series, 1, "sent", "tx_pps", true);
	add_times(page, series, 0, "received", "rx_pps", true);
	snprintf(title, sizeof(title), "%s: frames per second over time",
		 page->names[d]);
	chart.y_name = chart.y_unit = "frames/s";
	page_chart(page, &chart);

	page_chart_begin(page);
	add_times(page, series, 1, "lost", "lost", false);
	add_times(page, series, 2, "not sent", "unsent", false);
	snprintf(title, sizeof(title), "%s: losses over time", page->names[d]);
	chart.y_name = "frames in an interval";
	chart.y_unit = "frames";
	page_chart(page, &chart);

	page_chart_begin(page);
	add_times(page, series, 1, "highest", "latency.max", false);
	add_times(page, series, 4, "99 %", "latency.p99", false);
	add_times(page, series, 0, "50 %", "latency.p50", false);
	snprintf(title, sizeof(title), "%s: latency over time", page->names[d]);
	chart.y_name = "no more than";
	chart.y_unit = "ns";
	chart.y_scale = PLOT_LOG;
	page_chart(page, &chart);
}

static void time_row(struct page *page, const json_t *series, const char *name,
		     const char *path, const char *unit)
{
	double low = INFINITY, high = 0, sum = 0;
	const json_t *interval;
	size_t i;

	json_array_foreach(series, i, interval)
	{
		const double value = value_of(interval, path);

		low = fmin(low, value);
		high = fmax(high, value);
		sum += value;
	}
	page_row(page);
	page_head(page, "%s", name);
	page_value(page, low, unit);
	page_value(page, sum / (double)json_array_size(series), unit);
	page_value(page, high, unit);
	fputs("</tr>\n", page->to);
}

void page_series(struct page *page)
{
	bool is_begun = false;

	for (uint32_t d = 0; d < page->n_documents; d++) {
		const json_t *series =
			json_object_get(page->documents[d].root, "series");
		char caption[128];

		if (json_array_size(series) < 2)
			continue;
		if (!is_begun)
			page_section(page, "time", "Over time",
				     "Long runs, interval by interval; where "
				     "they are many, the worst of each few.");
		is_begun = true;
		time_charts(page, d, series);
		snprintf(caption, sizeof(caption), "%s: %zu intervals",
			 page->names[d], json_array_size(series));
		page_table(page, caption);
		fputs("<tr><th>Of an interval</th><th>Lowest</th><th>Mean</th>"
		      "<th>Highest</th></tr>\n",
		      page->to);
		time_row(page, series, "sent", "tx_pps", "frames/s");
		time_row(page, series, "received", "rx_pps", "frames/s");
		time_row(page, series, "lost", "lost", "frames");
		time_row(page, series, "not sent", "unsent", "frames");
		time_row(page, series, "latency 50 %", "latency.p50", "ns");
		time_row(page, series, "latency 99 %", "latency.p99", "ns");
		time_row(page, series, "latency highest", "latency.max", "ns");
		page_table_end(page);
	}
}
