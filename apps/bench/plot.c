/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The legend stands in the order of the lines' right ends, and repeats colour,
 * dashes and marks: a chart must be readable without seeing colours.
 */
#include <math.h>
#include <string.h>

#include "plot_axis.h"
#include "result/units.h"

enum {
	WIDTH = 940,
	LEFT = 70,
	TOP = 68,
	PART_TOP = 24, /* of a page, which has the title */
	MAX_MARKS = 40,
	PLOT_WIDTH = 510,
	PLOT_HEIGHT = 380,
	BAR_HEIGHT = 18,
	BAR_LEFT = 230,
	LEGEND_LEFT = LEFT + PLOT_WIDTH + 46,
	/* Of a letter, at most on average. Names of people have any length. */
	LETTER_WIDTH = 7,
	TEXT_BYTES = 192, /* of the legend */
};

/* By group. Okabe and Ito's, which colour-blind readers can tell apart. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73",
				       "#555555", "#cc79a7", "#e69f00" };
static const char *const dashes[] = { "", "6 3", "2 3", "8 3 2 3" };

enum { N_COLOURS = 6, N_DASHES = 4 };

static void text(FILE *to, const char *string)
{
	for (; *string != '\0'; string++) {
		if (*string == '<')
			fputs("&lt;", to);
		else if (*string == '>')
			fputs("&gt;", to);
		else if (*string == '&')
			fputs("&amp;", to);
		else if ((unsigned char)*string < ' ')
			fputc('?', to); /* XML has no place for them */
		else
			fputc(*string, to);
	}
}

static void label(FILE *to, double x, double y, const char *attributes,
		  const char *string)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
	text(to, string);
	fputs("</text>\n", to);
}

/* About how wide that is. */
static int width_of(const char *string)
{
	int n = 0;

	for (; *string != '\0'; string++)
		n += ((unsigned char)*string & 0xc0) != 0x80;
	return n * LETTER_WIDTH;
}

/* A page's own styles go by classes, and win against what is said here. */
static void head(const struct plot *plot, int width, int height, FILE *to)
{
	const bool is_part = plot->id != NULL;
	const int top = is_part ? TOP - PART_TOP : 0;

	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 %d %d %d\" "
		"font-family=\"sans-serif\" font-size=\"12\"",
		width, height - top, top, width, height - top);
	if (is_part) {
		fprintf(to,
			" class=\"plot\" role=\"img\" "
			"aria-labelledby=\"%s-t %s-d\">\n"
			"<title id=\"%s-t\">",
			plot->id, plot->id, plot->id);
		text(to, plot->title);
		fprintf(to, "</title>\n<desc id=\"%s-d\">", plot->id);
		text(to, plot->desc);
		fputs("</desc>\n", to);
		return;
	}
	fputs(">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
	      to);
	label(to, 12, 22, "font-size=\"16\" font-weight=\"bold\"", plot->title);
	label(to, 12, 40, "fill=\"#555555\"", plot->subtitle);
}

/* How many series of the same colour stand before it: its dashes. */
static uint32_t rank(const struct plot *plot, uint32_t i)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < i; k++)
		n += plot->series[k].group == plot->series[i].group;
	return n;
}

static const char *colour(const struct plot_series *series)
{
	return colours[series->group % N_COLOURS];
}

static void ticks(const struct axis *axis, bool is_x, FILE *to)
{
	struct tick of[PLOT_MAX_TICKS];
	const uint32_t n = axis_ticks(axis, is_x, of);

	for (uint32_t i = 0; i < n; i++) {
		const double at = axis_place(axis, of[i].value);
		const double x = LEFT + at * PLOT_WIDTH;
		const double y = TOP + (1 - at) * PLOT_HEIGHT;

		if (is_x) {
			fprintf(to,
				"<path d=\"M%.1f %d v%d\" class=\"grid\" "
				"stroke=\"#e4e4e4\"/>\n",
				x, TOP, PLOT_HEIGHT);
			label(to, x, TOP + PLOT_HEIGHT + 16,
			      "text-anchor=\"middle\"", of[i].text);
		} else {
			fprintf(to,
				"<path d=\"M%d %.1f h%d\" class=\"grid\" "
				"stroke=\"#e4e4e4\"/>\n",
				LEFT, y, PLOT_WIDTH);
			label(to, LEFT - 6, y + 4, "text-anchor=\"end\"",
			      of[i].text);
		}
	}
}

static void mark(const struct plot_series *s, double x, double y, FILE *to)
{
	fprintf(to,
		"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\" "
		"class=\"f%u\" opacity=\"%s\"/>\n",
		x, y, s->group == 0 ? "3.5" : "2.2", colour(s),
		s->group % N_COLOURS, s->is_pale ? "0.3" : "1");
}

static void stroke(const struct plot *plot, uint32_t i, FILE *to)
{
	const struct plot_series *s = &plot->series[i];
	const bool is_limit = s->look == PLOT_LIMIT;

	fprintf(to,
		" fill=\"none\" stroke=\"%s\" class=\"c%u\" "
		"stroke-width=\"%s\" opacity=\"%s\" "
		"stroke-dasharray=\"%s\"/>\n",
		colour(s), s->group % N_COLOURS,
		is_limit      ? "1.1" :
		s->group == 0 ? "2.6" :
				"1.6",
		s->is_pale ? "0.3" : "1",
		is_limit ? "10 3 2 3" : dashes[rank(plot, i) % N_DASHES]);
}

/* Marks would hide a curve of so many points, and a limit has none. */
static bool has_marks(const struct plot_series *s)
{
	return s->look == PLOT_LINE && s->n <= MAX_MARKS;
}

static double down(const struct axis *y, double value)
{
	return TOP + (1 - axis_place(y, value)) * PLOT_HEIGHT;
}

static double across(const struct axis *x, double value)
{
	return LEFT + axis_place(x, value) * PLOT_WIDTH;
}

static void bounds(const struct plot_series *s, uint32_t k,
		   const struct axis *x, const struct axis *y, FILE *to)
{
	if (s->low == NULL || s->high == NULL || s->high[k] <= s->low[k] ||
	    !axis_shows(y, s->low[k]))
		return;
	fprintf(to,
		"<path d=\"M%.1f %.1f V%.1f\" stroke=\"%s\" class=\"c%u\" "
		"stroke-width=\"5\" opacity=\"0.35\"/>\n",
		across(x, s->x[k]), down(y, s->low[k]), down(y, s->high[k]),
		colour(s), s->group % N_COLOURS);
}

/* One outline, which comes down to the bottom where steps do not touch. */
static void steps(const struct plot_series *s, const struct axis *x,
		  const struct axis *y, FILE *to)
{
	const int bottom = TOP + PLOT_HEIGHT;
	double end = -1;

	for (uint32_t k = 0; k < s->n; k++) {
		if (!axis_shows(y, s->y[k]))
			continue;
		if (end >= 0 && end != s->x[k])
			fprintf(to, " V%d", bottom);
		if (end != s->x[k])
			fprintf(to, "%sM%.1f %d", end >= 0 ? " " : "",
				across(x, s->x[k]), bottom);
		end = s->x_to[k];
		fprintf(to, " V%.1f H%.1f", down(y, s->y[k]), across(x, end));
	}
	fprintf(to, end >= 0 ? " V%d\"" : "M0 %d\"", bottom);
}

static void curve(const struct plot_series *s, const struct axis *x,
		  const struct axis *y, FILE *to)
{
	bool is_first = true;

	for (uint32_t k = 0; k < s->n; k++) {
		if (!axis_shows(y, s->y[k]))
			continue;
		fprintf(to, "%s%.1f %.1f", is_first ? "M" : " L",
			across(x, s->x[k]), down(y, s->y[k]));
		is_first = false;
	}
	fputs(is_first ? "M0 0\"" : "\"", to);
}

static void line(const struct plot *plot, uint32_t i, const struct axis *x,
		 const struct axis *y, FILE *to)
{
	const struct plot_series *s = &plot->series[i];

	fputs("<path d=\"", to);
	if (s->look == PLOT_STEPS)
		steps(s, x, y, to);
	else
		curve(s, x, y, to);
	stroke(plot, i, to);
	for (uint32_t k = 0; k < s->n; k++) {
		if (!axis_shows(y, s->y[k]))
			continue;
		bounds(s, k, x, y, to);
		if (has_marks(s))
			mark(s, across(x, s->x[k]), down(y, s->y[k]), to);
	}
}

static double last(const struct plot_series *s)
{
	return s->n == 0 ? 0 : s->y[s->n - 1];
}

/* Its name, and its value: of a chart of its own, where it ends. */
static void legend_text(const struct plot *plot, const struct plot_series *s,
			char *ret, size_t n)
{
	char value[32];

	/* On a page, where a line ends is not all that there is of it. */
	if (s->look == PLOT_STEPS || (plot->id != NULL && s->n > 1)) {
		snprintf(ret, n, "%s", s->name);
		return;
	}
	if (plot->y_unit != NULL)
		unit_print_short(last(s), plot->y_unit, value, sizeof(value));
	else
		snprintf(value, sizeof(value), "%.4g", last(s));
	snprintf(ret, n, "%s: %s%s", s->name, value,
		 plot->y_unit != NULL && strcmp(plot->y_unit, "ratio") == 0 ?
			 " %" :
			 "");
}

/* Of the whole chart: the longest text beside it has room. */
static int chart_width(const struct plot *plot)
{
	char line_text[TEXT_BYTES];
	int width = WIDTH;

	for (uint32_t i = 0; i < plot->n_series; i++) {
		legend_text(plot, &plot->series[i], line_text,
			    sizeof(line_text));
		if (LEGEND_LEFT + width_of(line_text) > width)
			width = LEGEND_LEFT + width_of(line_text);
	}
	return width;
}

/* Slowest first, as the lines end from top to bottom. */
static void legend(const struct plot *plot, FILE *to)
{
	bool is_done[PLOT_MAX_SERIES] = { false };

	for (uint32_t row = 0; row < plot->n_series; row++) {
		const double y = TOP + 10 + row * 17;
		uint32_t best = UINT32_MAX;
		char line_text[TEXT_BYTES];

		for (uint32_t i = 0; i < plot->n_series; i++)
			if (!is_done[i] && (best == UINT32_MAX ||
					    last(&plot->series[i]) >
						    last(&plot->series[best])))
				best = i;
		is_done[best] = true;
		fprintf(to, "<path d=\"M%d %.1f h26\"", LEGEND_LEFT - 32,
			y - 4);
		stroke(plot, best, to);
		if (has_marks(&plot->series[best]))
			mark(&plot->series[best], LEGEND_LEFT - 19, y - 4, to);
		legend_text(plot, &plot->series[best], line_text,
			    sizeof(line_text));
		label(to, LEGEND_LEFT, y,
		      plot->series[best].group == 0 ? "font-weight=\"bold\"" :
						      "",
		      line_text);
	}
}

static void lower(struct plot_series *lowest, double x, double y)
{
	for (uint32_t i = 0; i < lowest->n; i++) {
		if (lowest->x[i] != x)
			continue;
		if (y < lowest->y[i])
			lowest->y[i] = y;
		return;
	}
	if (lowest->n < PLOT_MAX_POINTS) {
		lowest->x[lowest->n] = x;
		lowest->y[lowest->n++] = y;
	}
}

void plot_sum_up(struct plot_series *series, uint32_t *n, uint32_t group,
		 const char *name)
{
	struct plot_series lowest = { .name = name, .group = group };
	uint32_t n_group = 0;

	for (uint32_t i = 0; i < *n; i++)
		n_group += series[i].group == group;
	for (uint32_t i = 0; i < *n && n_group > 1; i++) {
		if (series[i].group != group)
			continue;
		series[i].is_pale = true;
		for (uint32_t k = 0; k < series[i].n; k++)
			lower(&lowest, series[i].x[k], series[i].y[k]);
	}
	if (n_group > 1 && name != NULL && *n < PLOT_MAX_SERIES)
		series[(*n)++] = lowest;
}

static const char *scale_words(const struct axis *axis)
{
	return axis->scale == PLOT_LOG ? " (logarithmic)" : "";
}

static void frame(const struct plot *plot, const struct axis *x,
		  const struct axis *y, FILE *to)
{
	char name[96];

	ticks(x, true, to);
	ticks(y, false, to);
	fprintf(to,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		"fill=\"none\" class=\"frame\" stroke=\"#888888\"/>\n",
		LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT);
	snprintf(name, sizeof(name), "%.70s%s", plot->x_name, scale_words(x));
	label(to, LEFT + PLOT_WIDTH / 2, TOP + PLOT_HEIGHT + 36,
	      "text-anchor=\"middle\"", name);
	snprintf(name, sizeof(name), "%.70s%s", plot->y_name, scale_words(y));
	label(to, LEFT, TOP - 6, "fill=\"#555555\"", name);
}

bool plot_lines(const struct plot *plot, FILE *to)
{
	const int legend_height = TOP + 20 + 17 * (int)plot->n_series;
	const int height = TOP + PLOT_HEIGHT + 50;
	struct axis x, y;

	if (plot->n_series == 0 || plot->n_series > PLOT_MAX_SERIES)
		return false;
	axis_of(plot, true, &x);
	axis_of(plot, false, &y);
	head(plot, chart_width(plot),
	     legend_height > height ? legend_height : height, to);
	frame(plot, &x, &y, to);
	/* Ours last: above the others. */
	for (uint32_t i = 0; i < plot->n_series; i++)
		if (plot->series[i].group != 0)
			line(plot, i, &x, &y, to);
	for (uint32_t i = 0; i < plot->n_series; i++)
		if (plot->series[i].group == 0)
			line(plot, i, &x, &y, to);
	legend(plot, to);
	fputs("</svg>\n", to);
	return fflush(to) == 0;
}

bool plot_bars(const struct plot *plot, FILE *to)
{
	double max = 0;
	int left = BAR_LEFT, width;

	if (plot->n_series == 0 || plot->n_series > PLOT_MAX_SERIES)
		return false;
	for (uint32_t i = 0; i < plot->n_series; i++) {
		const struct plot_series *s = &plot->series[i];

		if (s->n > 0)
			max = fmax(max, s->y[0]);
		if (width_of(s->name) + 8 > left)
			left = width_of(s->name) + 8;
	}
	width = WIDTH - left - 80;
	head(plot, WIDTH, TOP + 20 + (int)plot->n_series * (BAR_HEIGHT + 6),
	     to);
	for (uint32_t i = 0; i < plot->n_series; i++) {
		const struct plot_series *s = &plot->series[i];
		const double y = TOP + i * (double)(BAR_HEIGHT + 6);
		const double value = s->n > 0 ? s->y[0] : 0;
		const double n = max > 0 ? value / max * width : 0;
		char number[48];

		label(to, left - 8, y + 13, "text-anchor=\"end\"", s->name);
		fprintf(to,
			"<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
			"height=\"%d\" fill=\"%s\" class=\"f%u\"/>\n",
			left, y, n > 0 ? n : 0, BAR_HEIGHT, colour(s),
			s->group % N_COLOURS);
		if (plot->y_unit != NULL)
			unit_print_short(value, plot->y_unit, number,
					 sizeof(number));
		else
			snprintf(number, sizeof(number), "%.4g", value);
		label(to, left + n + 6, y + 13, "", number);
	}
	label(to, left, TOP - 6, "fill=\"#555555\"", plot->y_name);
	fputs("</svg>\n", to);
	return fflush(to) == 0;
}
