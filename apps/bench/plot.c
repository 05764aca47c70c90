/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The legend stands in the order of the lines' right ends, and repeats colour,
 * dashes and marks: a chart must be readable without seeing colours.
 */
#include <math.h>
#include <string.h>

#include "plot.h"

enum {
	WIDTH = 940,
	LEFT = 70,
	TOP = 68,
	PLOT_WIDTH = 510,
	PLOT_HEIGHT = 380,
	BAR_HEIGHT = 18,
	BAR_LEFT = 230,
};

/* By group. Okabe and Ito's, which colour-blind readers can tell apart. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73",
				       "#555555", "#cc79a7", "#e69f00" };
static const char *const dashes[] = { "", "6 3", "2 3", "8 3 2 3" };

enum { N_COLOURS = 6, N_DASHES = 4 };

struct axis {
	double min, max;
	bool is_log;
};

static double place(const struct axis *axis, double value)
{
	if (axis->is_log)
		return log(value / axis->min) / log(axis->max / axis->min);
	return (value - axis->min) / (axis->max - axis->min);
}

static void text(FILE *to, const char *string)
{
	for (; *string != '\0'; string++) {
		if (*string == '<')
			fputs("&lt;", to);
		else if (*string == '&')
			fputs("&amp;", to);
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

static void head(const struct plot *plot, int height, FILE *to)
{
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		WIDTH, height, WIDTH, height);
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

static void scale(const struct plot *plot, bool is_x, struct axis *axis)
{
	double min = INFINITY, max = 0;

	for (uint32_t i = 0; i < plot->n_series; i++) {
		const struct plot_series *s = &plot->series[i];

		for (uint32_t k = 0; k < s->n; k++) {
			const double value = is_x ? s->x[k] : s->y[k];

			if (s->y[k] <= 0)
				continue;
			min = fmin(min, value);
			max = fmax(max, value);
		}
	}
	if (!(min <= max)) {
		min = 0;
		max = 1;
	}
	axis->is_log = min > 0 && max / min >= (is_x ? 8 : 20);
	if (axis->is_log) {
		axis->min = is_x ? min : min / 1.15;
		axis->max = is_x ? max : max * 1.15;
	} else {
		axis->min = is_x ? min : 0;
		axis->max = is_x ? max : max * 1.08;
	}
	if (axis->max <= axis->min)
		axis->max = axis->min + 1;
}

static void tick(const struct axis *axis, bool is_x, double value, FILE *to)
{
	const double at = place(axis, value);
	char number[32];

	if (at < -0.001 || at > 1.001)
		return;
	snprintf(number, sizeof(number), "%.5g", value);
	if (is_x) {
		const double x = LEFT + at * PLOT_WIDTH;

		fprintf(to, "<path d=\"M%.1f %d v%d\" stroke=\"#e4e4e4\"/>\n",
			x, TOP, PLOT_HEIGHT);
		label(to, x, TOP + PLOT_HEIGHT + 16, "text-anchor=\"middle\"",
		      number);
	} else {
		const double y = TOP + (1 - at) * PLOT_HEIGHT;

		fprintf(to, "<path d=\"M%d %.1f h%d\" stroke=\"#e4e4e4\"/>\n",
			LEFT, y, PLOT_WIDTH);
		label(to, LEFT - 6, y + 4, "text-anchor=\"end\"", number);
	}
}

/* Powers of two along x, 1-2-5 along y; a round step on a linear axis. */
static void ticks(const struct axis *axis, bool is_x, FILE *to)
{
	const double span = axis->max - axis->min;
	double step;

	if (axis->is_log && is_x) {
		const double octaves = log2(axis->max / axis->min);

		step = octaves > 12 ? 4 : 2;
		for (double v = exp2(floor(log2(axis->min)));
		     v <= axis->max * 1.001; v *= step)
			tick(axis, is_x, v, to);
		return;
	}
	if (axis->is_log) {
		static const double digits[] = { 1, 2, 5 };

		for (double decade = pow(10, floor(log10(axis->min)));
		     decade <= axis->max; decade *= 10)
			for (uint32_t i = 0; i < 3; i++)
				tick(axis, is_x, decade * digits[i], to);
		return;
	}
	step = pow(10, floor(log10(span)));
	if (span / step < 2)
		step /= 5;
	else if (span / step < 5)
		step /= 2;
	for (double v = ceil(axis->min / step) * step; v <= axis->max;
	     v += step)
		tick(axis, is_x, v, to);
}

static void mark(const struct plot_series *s, double x, double y, FILE *to)
{
	fprintf(to,
		"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\" "
		"opacity=\"%s\"/>\n",
		x, y, s->group == 0 ? "3.5" : "2.2", colour(s),
		s->is_pale ? "0.3" : "1");
}

static void stroke(const struct plot *plot, uint32_t i, FILE *to)
{
	fprintf(to,
		" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" "
		"opacity=\"%s\" stroke-dasharray=\"%s\"/>\n",
		colour(&plot->series[i]),
		plot->series[i].group == 0 ? "2.6" : "1.3",
		plot->series[i].is_pale ? "0.3" : "1",
		dashes[rank(plot, i) % N_DASHES]);
}

static void line(const struct plot *plot, uint32_t i, const struct axis *x,
		 const struct axis *y, FILE *to)
{
	const struct plot_series *s = &plot->series[i];
	bool is_first = true;

	fputs("<path d=\"", to);
	for (uint32_t k = 0; k < s->n; k++) {
		if (s->y[k] <= 0)
			continue;
		fprintf(to, "%s%.1f %.1f", is_first ? "M" : " L",
			LEFT + place(x, s->x[k]) * PLOT_WIDTH,
			TOP + (1 - place(y, s->y[k])) * PLOT_HEIGHT);
		is_first = false;
	}
	fputs(is_first ? "M0 0\"" : "\"", to);
	stroke(plot, i, to);
	for (uint32_t k = 0; k < s->n; k++)
		if (s->y[k] > 0)
			mark(s, LEFT + place(x, s->x[k]) * PLOT_WIDTH,
			     TOP + (1 - place(y, s->y[k])) * PLOT_HEIGHT, to);
}

static double last(const struct plot_series *s)
{
	return s->n == 0 ? 0 : s->y[s->n - 1];
}

/* Slowest first, as the lines end from top to bottom. */
static void legend(const struct plot *plot, FILE *to)
{
	bool is_done[PLOT_MAX_SERIES] = { false };
	const int x = LEFT + PLOT_WIDTH + 14;

	for (uint32_t row = 0; row < plot->n_series; row++) {
		const double y = TOP + 10 + row * 17;
		uint32_t best = UINT32_MAX;
		char line_text[96];

		for (uint32_t i = 0; i < plot->n_series; i++)
			if (!is_done[i] && (best == UINT32_MAX ||
					    last(&plot->series[i]) >
						    last(&plot->series[best])))
				best = i;
		is_done[best] = true;
		fprintf(to, "<path d=\"M%d %.1f h26\"", x, y - 4);
		stroke(plot, best, to);
		mark(&plot->series[best], x + 13, y - 4, to);
		snprintf(line_text, sizeof(line_text), "%.60s  %.4g",
			 plot->series[best].name, last(&plot->series[best]));
		label(to, x + 32, y,
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

bool plot_lines(const struct plot *plot, FILE *to)
{
	const int legend_height = TOP + 20 + 17 * (int)plot->n_series;
	const int height = TOP + PLOT_HEIGHT + 50;
	struct axis x, y;
	char name[96];

	if (plot->n_series == 0 || plot->n_series > PLOT_MAX_SERIES)
		return false;
	scale(plot, true, &x);
	scale(plot, false, &y);
	head(plot, legend_height > height ? legend_height : height, to);
	ticks(&x, true, to);
	ticks(&y, false, to);
	fprintf(to,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		"fill=\"none\" stroke=\"#888888\"/>\n",
		LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT);
	snprintf(name, sizeof(name), "%.70s%s", plot->x_name,
		 x.is_log ? " (logarithmic)" : "");
	label(to, LEFT + PLOT_WIDTH / 2, TOP + PLOT_HEIGHT + 36,
	      "text-anchor=\"middle\"", name);
	snprintf(name, sizeof(name), "%.70s%s", plot->y_name,
		 y.is_log ? " (logarithmic)" : "");
	label(to, LEFT, TOP - 6, "fill=\"#555555\"", name);
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
	const int width = WIDTH - BAR_LEFT - 80;
	double max = 0;

	if (plot->n_series == 0 || plot->n_series > PLOT_MAX_SERIES)
		return false;
	for (uint32_t i = 0; i < plot->n_series; i++)
		if (plot->series[i].n > 0)
			max = fmax(max, plot->series[i].y[0]);
	head(plot, TOP + 20 + (int)plot->n_series * (BAR_HEIGHT + 6), to);
	for (uint32_t i = 0; i < plot->n_series; i++) {
		const struct plot_series *s = &plot->series[i];
		const double y = TOP + i * (double)(BAR_HEIGHT + 6);
		const double value = s->n > 0 ? s->y[0] : 0;
		const double n = max > 0 ? value / max * width : 0;
		char number[48];

		label(to, BAR_LEFT - 8, y + 13, "text-anchor=\"end\"", s->name);
		fprintf(to,
			"<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
			"height=\"%d\" fill=\"%s\"/>\n",
			BAR_LEFT, y, n > 0 ? n : 0, BAR_HEIGHT, colour(s));
		snprintf(number, sizeof(number), "%.4g", value);
		label(to, BAR_LEFT + n + 6, y + 13, "", number);
	}
	label(to, BAR_LEFT, TOP - 6, "fill=\"#555555\"", plot->y_name);
	fputs("</svg>\n", to);
	return fflush(to) == 0;
}
