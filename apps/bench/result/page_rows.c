/* SPDX-License-Identifier: BSD-3-Clause */
/* Results: rates by the length of frames, and all others as a table. */
#include <string.h>

#include "net/rate.h"
#include "result/page.h"
#include "result/units.h"

enum { MAX_SIZES = 24, MAX_GOALS = 16 };

/* What there is of results in frames per second. */
struct rates {
	double sizes[MAX_SIZES]; /* without FCS, in order; 0: a mix */
	uint32_t n_sizes;
	const char *goals[MAX_GOALS];
	uint32_t n_goals;
};

static void add_size(struct rates *rates, double size)
{
	uint32_t i = 0;

	while (i < rates->n_sizes && rates->sizes[i] < size)
		i++;
	if (rates->n_sizes == MAX_SIZES ||
	    (i < rates->n_sizes && rates->sizes[i] == size))
		return;
	memmove(&rates->sizes[i + 1], &rates->sizes[i],
		(rates->n_sizes - i) * sizeof(*rates->sizes));
	rates->sizes[i] = size;
	rates->n_sizes++;
}

static void add_goal(struct rates *rates, const char *goal)
{
	for (uint32_t i = 0; i < rates->n_goals; i++)
		if (strcmp(rates->goals[i], goal) == 0)
			return;
	if (rates->n_goals < MAX_GOALS)
		rates->goals[rates->n_goals++] = goal;
}

static bool is_rate(const json_t *row)
{
	return strcmp(json_text_of(row, "unit"), "frames/s") == 0;
}

static void look(const struct page *page, struct rates *rates)
{
	*rates = (struct rates){ 0 };
	for (uint32_t d = 0; d < page->n_documents; d++) {
		const json_t *row;
		size_t i;

		json_array_foreach(
			json_object_get(page->documents[d].root, "rows"), i,
			row)
		{
			if (!is_rate(row))
				continue;
			add_size(rates, json_number_of(row, "frame_bytes"));
			add_goal(rates, json_text_of(row, "goal"));
		}
	}
}

static const json_t *find_row(const json_t *root, double size, const char *goal)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "rows"), i,
			   row) if (is_rate(row) &&
				    json_number_of(row, "frame_bytes") ==
					    size &&
				    strcmp(json_text_of(row, "goal"), goal) ==
					    0) return row;
	return NULL;
}

static bool has_goal(const json_t *root, const char *goal)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "rows"), i,
			   row) if (is_rate(row) &&
				    strcmp(json_text_of(row, "goal"), goal) ==
					    0) return true;
	return false;
}

static double ceiling(const json_t *root, double size)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(
		json_object_get(root, "selftest"), i,
		entry) if (json_number_of(entry, "frame_bytes") ==
			   size) return json_number_of(entry, "ceiling_pps");
	return 0;
}

/* The first document that knows it; they are of one machine, or it is said. */
static double limit(const struct page *page, double size, bool is_line)
{
	for (uint32_t d = 0; d < page->n_documents; d++) {
		const json_t *root = page->documents[d].root;
		const double pps = !is_line ? ceiling(root, size) :
					      json_number_of(root, "line_bps") /
						      ((size + WIRE_BYTES) * 8);

		if (pps > 0)
			return pps;
	}
	return 0;
}

/* Of a chart: y as frames or as bits on the wire. */
static double scaled(double pps, double size, bool is_bits)
{
	return is_bits ? rate_l1_bps(pps, size) : pps;
}

static void add_line(struct page *page, const struct rates *rates, uint32_t d,
		     uint32_t goal, bool is_bits)
{
	const json_t *root = page->documents[d].root;
	const uint32_t i = page->n_series;
	const uint32_t colour = page->n_documents > 1 ? page->colours[d] : goal;
	struct plot_series *line = page_line(
		page, colour, "%s %s", page->names[d], rates->goals[goal]);

	for (uint32_t s = 0; s < rates->n_sizes && line != NULL; s++) {
		const double size = rates->sizes[s];
		const json_t *row = find_row(root, size, rates->goals[goal]);

		if (row == NULL || size <= 0)
			continue;
		page->low[i][line->n] =
			scaled(json_number_of(row, "low"), size, is_bits);
		page->high[i][line->n] =
			scaled(json_number_of(row, "high"), size, is_bits);
		page_point(line, size + FCS_BYTES,
			   scaled(json_number_of(row, "value"), size, is_bits));
	}
	if (line == NULL)
		return;
	line->low = page->low[i];
	line->high = page->high[i];
	if (line->n == 0)
		page->n_series--;
}

static void add_limit(struct page *page, const struct rates *rates,
		      const char *name, bool is_line, bool is_bits)
{
	struct plot_series *line = page_limit(page, name);

	for (uint32_t s = 0; s < rates->n_sizes && line != NULL; s++) {
		const double size = rates->sizes[s];
		const double pps = size > 0 ? limit(page, size, is_line) : 0;

		if (pps > 0)
			page_point(line, size + FCS_BYTES,
				   scaled(pps, size, is_bits));
	}
	if (line != NULL && line->n == 0)
		page->n_series--;
}

static void chart(struct page *page, const struct rates *rates, bool is_bits)
{
	uint32_t n_lengths = 0, n_lines = 0;

	page_chart_begin(page);
	for (uint32_t d = 0; d < page->n_documents; d++)
		for (uint32_t g = 0; g < rates->n_goals; g++) {
			if (!has_goal(page->documents[d].root, rates->goals[g]))
				continue;
			if (page->n_series < PAGE_MAX_LINES)
				add_line(page, rates, d, g, is_bits);
			n_lines++;
		}
	if (page->n_series == 0)
		return;
	for (uint32_t s = 0; s < rates->n_sizes; s++)
		n_lengths += rates->sizes[s] > 0;
	add_limit(page, rates, "line rate", true, is_bits);
	add_limit(page, rates, "tester alone", false, is_bits);
	page_chart(page,
		   &(struct page_chart){
			   .title = is_bits ? "Bits on the wire by frame size" :
					      "Frames per second by frame size",
			   .what = "A line for each result, and the limits of "
				   "link and tester. The table below has the "
				   "figures.",
			   .x_name = "bytes of a frame, with FCS",
			   .y_name = is_bits ? "bit/s, with preamble and gap" :
					       "frames/s",
			   .y_unit = is_bits ? "bit/s" : "frames/s",
			   .x_scale = PLOT_EVEN,
			   .is_bars = n_lengths == 1 });
	page_cut(page, n_lines);
}

static void rate_cell(struct page *page, const json_t *row)
{
	const double low = json_number_of(row, "low");
	const double high = json_number_of(row, "high");
	char value[32], a[32], b[32];

	if (row == NULL) {
		page_cell(page, "\u2013");
		return;
	}
	unit_print_number(json_number_of(row, "value"), "frames/s", value,
			  sizeof(value));
	unit_print_number(low, "frames/s", a, sizeof(a));
	unit_print_number(high, "frames/s", b, sizeof(b));
	fprintf(page->to, "<td>%s%s",
		json_is_true(json_object_get(row, "is_limited_by_tester")) ?
			"\u2265 " :
			"",
		value);
	if (high > low)
		fprintf(page->to, "<br><small>%s \u2013 %s</small>", a, b);
	fputs("</td>", page->to);
}

static void limit_cell(struct page *page, double pps)
{
	char text[32] = "\u2013";

	if (pps > 0)
		unit_print_number(pps, "frames/s", text, sizeof(text));
	page_cell(page, "%s", text);
}

static void rate_line(struct page *page, const struct rates *rates, double size)
{
	page_row(page);
	if (size > 0)
		page_head(page, "%.0f B", size + FCS_BYTES);
	else
		page_head(page, "mix");
	limit_cell(page, size > 0 ? limit(page, size, true) : 0);
	limit_cell(page, limit(page, size, false));
	for (uint32_t d = 0; d < page->n_documents; d++) {
		const json_t *root = page->documents[d].root;

		for (uint32_t g = 0; g < rates->n_goals; g++)
			if (has_goal(root, rates->goals[g]))
				rate_cell(page, find_row(root, size,
							 rates->goals[g]));
	}
	fputs("</tr>\n", page->to);
}

static void rate_table(struct page *page, const struct rates *rates)
{
	page_table(page, "Frames per second, and what the search left open");
	page_row(page);
	page_head(page, "Frame");
	page_head(page, "Line rate");
	page_head(page, "Tester alone");
	for (uint32_t d = 0; d < page->n_documents; d++)
		for (uint32_t g = 0; g < rates->n_goals; g++)
			if (has_goal(page->documents[d].root, rates->goals[g]))
				page_head(page, "%s %s", page->names[d],
					  rates->goals[g]);
	fputs("</tr>\n", page->to);
	for (uint32_t s = 0; s < rates->n_sizes; s++)
		rate_line(page, rates, rates->sizes[s]);
	page_table_end(page);
}

void page_rates(struct page *page)
{
	struct rates rates;

	look(page, &rates);
	if (rates.n_goals == 0)
		return;
	page_section(page, "rates", "Throughput",
		     "The highest rate that meets each goal. Bars show between "
		     "which rates the search left it open; \u2265 marks what "
		     "the tester itself limited.");
	chart(page, &rates, false);
	rate_table(page, &rates);
	if (rates.sizes[rates.n_sizes - 1] > rates.sizes[0])
		chart(page, &rates, true);
}

static bool is_in_charts(const json_t *row)
{
	/* Loss has its curve, rates have theirs. */
	return is_rate(row) ||
	       strncmp(json_text_of(row, "goal"), "loss-", 5) == 0;
}

/* A row of a goal and a length, in a document; NULL: there is none. */
static const json_t *find_other(const json_t *root, double size,
				const char *goal, const char *unit)
{
	const json_t *row;
	size_t i;

	json_array_foreach(
		json_object_get(root, "rows"), i,
		row) if (json_number_of(row, "frame_bytes") == size &&
			 strcmp(json_text_of(row, "goal"), goal) == 0 &&
			 strcmp(json_text_of(row, "unit"), unit) ==
				 0) return row;
	return NULL;
}

static void other_cell(struct page *page, const json_t *row)
{
	const double low = json_number_of(row, "low");
	const double high = json_number_of(row, "high");
	const char *unit = json_text_of(row, "unit");
	char value[48], a[48], b[48];

	if (row == NULL) {
		page_cell(page, "\u2013");
		return;
	}
	unit_print(json_number_of(row, "value"), unit, value, sizeof(value));
	unit_print(low, unit, a, sizeof(a));
	unit_print(high, unit, b, sizeof(b));
	fputs("<td>", page->to);
	if (json_is_true(json_object_get(row, "is_limited_by_tester")))
		fputs(unit_direction(unit) > 0 ? "\u2265 " : "\u2264 ",
		      page->to);
	page_text(page, value);
	if (high > low)
		fprintf(page->to, "<br><small>%s \u2013 %s</small>", a, b);
	fputs("</td>", page->to);
}

/* A goal, its values by length, and the notes on them. */
static void other_line(struct page *page, const json_t *root,
		       const struct rates *rates, const json_t *first)
{
	const char *const goal = json_text_of(first, "goal");
	const char *const unit = json_text_of(first, "unit");
	const char *last = "";

	page_row(page);
	page_head(page, "%s", goal);
	for (uint32_t s = 0; s < rates->n_sizes; s++)
		other_cell(page, find_other(root, rates->sizes[s], goal, unit));
	fputs("<td class=\"text\">", page->to);
	/* What holds for all lengths is said once. */
	for (uint32_t s = 0; s < rates->n_sizes; s++) {
		const char *note = json_text_of(
			find_other(root, rates->sizes[s], goal, unit), "note");

		if (note[0] == '\0' || strcmp(note, last) == 0)
			continue;
		if (last[0] != '\0')
			page_text(page, "; ");
		page_text(page, note);
		last = note;
	}
	fputs("</td></tr>\n", page->to);
}

/* Whether the same goal stands in a row before row i. */
static bool is_repeated(const json_t *rows, size_t i)
{
	const json_t *row = json_array_get(rows, i);

	for (size_t k = 0; k < i; k++) {
		const json_t *other = json_array_get(rows, k);

		if (strcmp(json_text_of(other, "goal"),
			   json_text_of(row, "goal")) == 0 &&
		    strcmp(json_text_of(other, "unit"),
			   json_text_of(row, "unit")) == 0)
			return true;
	}
	return false;
}

static void other_table(struct page *page, uint32_t d)
{
	const json_t *root = page->documents[d].root, *row;
	const json_t *rows = json_object_get(root, "rows");
	struct rates rates = { 0 };
	size_t i;

	json_array_foreach(rows, i, row) if (!is_in_charts(row))
		add_size(&rates, json_number_of(row, "frame_bytes"));
	page_table(page, page->names[d]);
	page_row(page);
	page_head(page, "Goal");
	for (uint32_t s = 0; s < rates.n_sizes; s++)
		if (rates.sizes[s] > 0)
			page_head(page, "%.0f B", rates.sizes[s] + FCS_BYTES);
		else
			page_head(page, "mix");
	fputs("<th class=\"text\">Note</th></tr>\n", page->to);
	json_array_foreach(rows, i,
			   row) if (!is_in_charts(row) && !is_repeated(rows, i))
		other_line(page, root, &rates, row);
	page_table_end(page);
}

static bool has_others(const json_t *root)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "rows"), i,
			   row) if (!is_in_charts(row)) return true;
	return false;
}

void page_other_rows(struct page *page)
{
	bool is_begun = false;

	for (uint32_t d = 0; d < page->n_documents; d++) {
		if (!has_others(page->documents[d].root))
			continue;
		if (!is_begun)
			page_section(page, "results", "Other results",
				     "By frame size; below a value, between "
				     "what it lies.");
		is_begun = true;
		other_table(page, d);
	}
}
