/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "result/page.h"
#include "result/units.h"

void page_text(struct page *page, const char *text)
{
	static const char *const entities[] = { ['&'] = "&amp;",
						['<'] = "&lt;",
						['>'] = "&gt;",
						['"'] = "&quot;",
						['\''] = "&#39;" };

	for (; *text != '\0'; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c < sizeof(entities) / sizeof(*entities) &&
		    entities[c] != NULL)
			fputs(entities[c], page->to);
		else if (c < ' ' && c != '\n' && c != '\t')
			fputc('?', page->to); /* HTML has no place for them */
		else
			fputc(c, page->to);
	}
}

void page_section(struct page *page, const char *id, const char *title,
		  const char *what)
{
	fprintf(page->to, "<h2 id=\"%s\">", id);
	page_text(page, title);
	fputs("</h2>\n<p>", page->to);
	page_text(page, what);
	fputs("</p>\n", page->to);
}

/* A table wider than the screen scrolls in its own box, by keys, too. */
void page_table(struct page *page, const char *caption)
{
	fputs("<div class=\"wide\" role=\"region\" tabindex=\"0\" "
	      "aria-label=\"",
	      page->to);
	page_text(page, caption);
	fputs("\"><table><caption>", page->to);
	page_text(page, caption);
	fputs("</caption>\n", page->to);
}

void page_row(struct page *page)
{
	fputs("<tr>", page->to);
}

static void print_cell(struct page *page, const char *tag, const char *format,
		       va_list args)
{
	char text[1024];

	vsnprintf(text, sizeof(text), format, args);
	fprintf(page->to, "<%s>", tag);
	page_text(page, text);
	fprintf(page->to, "</%.2s>", tag);
}

void page_head(struct page *page, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_cell(page, "th", format, args);
	va_end(args);
}

void page_cell(struct page *page, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_cell(page, "td", format, args);
	va_end(args);
}

void page_value(struct page *page, double value, const char *unit)
{
	char text[64];

	unit_print(value, unit, text, sizeof(text));
	page_cell(page, "%s", text);
}

void page_table_end(struct page *page)
{
	fputs("</table></div>\n", page->to);
}

void page_chart_begin(struct page *page)
{
	page->n_series = 0;
}

static struct plot_series *next_line(struct page *page, const char *name,
				     uint32_t group, enum plot_look look)
{
	const uint32_t i = page->n_series;
	struct plot_series *series = &page->series[i];

	if (i == PLOT_MAX_SERIES)
		return NULL;
	page->n_series++;
	snprintf(page->series_names[i], sizeof(page->series_names[i]), "%s",
		 name);
	/* Points are written before they are read: no need to clear them. */
	series->name = page->series_names[i];
	series->group = group;
	series->is_pale = false;
	series->look = look;
	series->n = 0;
	series->low = series->high = series->x_to = NULL;
	return series;
}

struct plot_series *page_line(struct page *page, uint32_t colour,
			      const char *format, ...)
{
	/* Groups of plot.h; 0 would be bolder than others, 3 is for limits. */
	static const uint32_t groups[] = { 6, 1, 2, 4, 5 };
	char name[160];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	return next_line(page, name, groups[colour % 5], PLOT_LINE);
}

struct plot_series *page_limit(struct page *page, const char *name)
{
	return next_line(page, name, 3, PLOT_LIMIT);
}

void page_cut(struct page *page, uint32_t n_lines)
{
	if (n_lines > PAGE_MAX_LINES)
		fprintf(page->to,
			"<p class=\"soft\">The chart has the first %u lines; "
			"the table has all.</p>\n",
			PAGE_MAX_LINES);
}

void page_point(struct plot_series *series, double x, double y)
{
	if (series == NULL || series->n == PLOT_MAX_POINTS)
		return;
	series->x[series->n] = x;
	series->y[series->n++] = y;
}

/* A chart of zeros alone, or of nothing, shows nothing: its table says it. */
static bool has_points(const struct page *page)
{
	for (uint32_t i = 0; i < page->n_series; i++)
		for (uint32_t k = 0; k < page->series[i].n; k++)
			if (page->series[i].y[k] > 0)
				return true;
	return false;
}

void page_chart(struct page *page, const struct page_chart *chart)
{
	char id[16];
	struct plot plot = {
		.title = chart->title,
		.id = id,
		.desc = chart->what,
		.x_name = chart->x_name,
		.y_name = chart->y_name,
		.x_unit = chart->x_unit,
		.y_unit = chart->y_unit,
		.x_scale = chart->x_scale,
		.y_scale = chart->y_scale,
		.series = page->series,
		.n_series = page->n_series,
	};

	if (!has_points(page))
		return;
	snprintf(id, sizeof(id), "chart%u", ++page->n_charts);
	fputs("<h3>", page->to);
	page_text(page, chart->title);
	fputs("</h3>\n<figure class=\"wide\">\n", page->to);
	if (chart->is_bars)
		plot_bars(&plot, page->to);
	else
		plot_lines(&plot, page->to);
	fputs("</figure>\n", page->to);
}

static uint32_t n_with_name(const struct page *page, uint32_t n,
			    const char *name)
{
	uint32_t n_same = 0;

	for (uint32_t i = 0; i < n; i++)
		n_same += strcmp(page->names[i], name) == 0;
	return n_same;
}

/* As much as there is room for, and no part of a letter. */
static void shorten(const char *text, char *ret, size_t n_bytes)
{
	size_t n = strnlen(text, n_bytes);

	if (n == n_bytes)
		for (n--; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
			n--;
	snprintf(ret, n_bytes, "%.*s", (int)n, text);
}

/* The label, or the file's name; what tells it from others of that name: the
 * command, or else a number. */
static void name_documents(struct page *page)
{
	for (uint32_t i = 0; i < page->n_documents; i++) {
		const struct read_document *document = &page->documents[i];
		const char *label = json_text_of(document->root, "label");
		const char *slash = strrchr(document->name, '/');
		char *name = page->names[i], shorter[61];

		if (label[0] == '\0')
			label = slash != NULL ? slash + 1 : document->name;
		shorten(label, shorter, sizeof(shorter));
		snprintf(name, sizeof(page->names[i]), "%s", shorter);
		if (n_with_name(page, i, name) > 0)
			snprintf(name, sizeof(page->names[i]), "%s %.12s",
				 shorter, json_text_of(document->root, "kind"));
		for (uint32_t k = 2; n_with_name(page, i, name) > 0; k++)
			snprintf(name, sizeof(page->names[i]), "%s (%u)",
				 shorter, k);
	}
}

/* Without the round of a plan's step. */
static size_t step_length(const char *name)
{
	const char *round = strstr(name, ", round ");

	return round != NULL ? (size_t)(round - name) : strlen(name);
}

static void colour_documents(struct page *page)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < page->n_documents; i++) {
		const char *name = page->names[i];
		const size_t length = step_length(name);
		uint32_t k = 0;

		while (k < i && (step_length(page->names[k]) != length ||
				 strncmp(page->names[k], name, length) != 0))
			k++;
		page->colours[i] = k < i ? page->colours[k] : n++;
	}
}

static void write_head(struct page *page)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	      "<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, "
	      "initial-scale=1\">\n"
	      /* Nothing may be fetched, whatever a text has in it. */
	      "<meta http-equiv=\"Content-Security-Policy\" content=\""
	      "default-src 'none'; style-src 'unsafe-inline'\">\n<title>",
	      page->to);
	page_text(page, page->title);
	fputs("</title>\n<style>\n", page->to);
	fputs(page_style, page->to);
	fputs("</style>\n</head>\n<body>\n<header><h1>", page->to);
	page_text(page, page->title);
	fputs("</h1>\n", page->to);
}

static void write_documents(struct page *page)
{
	page_table(page, "What was measured");
	page_row(page);
	page_head(page, "Name");
	page_head(page, "Command");
	page_head(page, "Date");
	page_head(page, "Millrace");
	page_head(page, "Trials");
	fputs("</tr>\n", page->to);
	for (uint32_t i = 0; i < page->n_documents; i++) {
		const json_t *root = page->documents[i].root;

		page_row(page);
		page_head(page, "%s", page->names[i]);
		page_cell(page, "%s", json_text_of(root, "kind"));
		page_cell(page, "%s", json_text_of(root, "date"));
		page_cell(page, "%s", json_text_of(root, "millrace"));
		page_cell(page, "%zu",
			  json_array_size(json_object_get(root, "trials")));
		fputs("</tr>\n", page->to);
	}
	page_table_end(page);
}

static bool is_any_limited(const json_t *root)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "rows"), i, row) if (
		json_is_true(json_object_get(
			row, "is_limited_by_tester"))) return true;
	return false;
}

/* What a reader must know before the figures; "": nothing of that kind. */
static void print_note(const json_t *root, uint32_t kind, char *ret, size_t n)
{
	const json_t *clock = json_object_get(root, "clock");

	ret[0] = '\0';
	if (kind == 0 && json_is_false(json_object_get(root, "complete")))
		snprintf(ret, n, "not complete: %.200s",
			 json_text_of(root, "why_incomplete"));
	else if (kind == 1 && is_any_limited(root))
		snprintf(ret, n,
			 "values with \u2265 or \u2264 are where the tester's "
			 "own limit was; the device may do better");
	else if (kind == 2 &&
		 strcmp(json_text_of(clock, "source"), "virtual") == 0)
		snprintf(ret, n,
			 "a virtual clock: figures of a calculation, "
			 "not of a machine");
}

/* One line for all documents that it is true of. */
static void write_notes(struct page *page)
{
	enum { N_KINDS = 3 };
	char note[256], other[256];
	bool is_begun = false;

	for (uint32_t kind = 0; kind < N_KINDS; kind++) {
		bool is_done[PAGE_MAX_DOCUMENTS] = { false };

		for (uint32_t i = 0; i < page->n_documents; i++) {
			print_note(page->documents[i].root, kind, note,
				   sizeof(note));
			if (note[0] == '\0' || is_done[i])
				continue;
			fputs(is_begun ? "<li>" :
					 "<div class=\"note\" role=\"note\">"
					 "<ul>\n<li>",
			      page->to);
			is_begun = true;
			page_text(page, page->names[i]);
			for (uint32_t k = i + 1; k < page->n_documents; k++) {
				print_note(page->documents[k].root, kind, other,
					   sizeof(other));
				is_done[k] |= strcmp(note, other) == 0;
				if (strcmp(note, other) != 0)
					continue;
				fputs("; ", page->to);
				page_text(page, page->names[k]);
			}
			fputs(": ", page->to);
			page_text(page, note);
			fputs("</li>\n", page->to);
		}
	}
	if (is_begun)
		fputs("</ul></div>\n", page->to);
}

bool page_write(const struct read_document *documents, uint32_t n,
		const char *title, FILE *to)
{
	struct page *page = calloc(1, sizeof(*page));

	if (page == NULL)
		return false;
	page->to = to;
	page->title = title;
	page->documents = documents;
	page->n_documents = n;
	name_documents(page);
	colour_documents(page);
	write_head(page);
	write_documents(page);
	write_notes(page);
	fputs("</header>\n<main>\n", to);
	page_rates(page);
	page_loss(page);
	page_latency(page);
	page_other_rows(page);
	page_series(page);
	page_pacing(page);
	page_machines(page);
	fputs("</main>\n</body>\n</html>\n", to);
	free(page);
	return !ferror(to);
}
