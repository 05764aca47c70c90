/* SPDX-License-Identifier: BSD-3-Clause */
/* Charts as SVG files that need nothing else. */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PLOT_MAX_POINTS = 512, PLOT_MAX_SERIES = 48 };

enum plot_scale {
	PLOT_AUTO,   /* logarithmic for values of different magnitudes */
	PLOT_LINEAR, /* from 0 on */
	PLOT_LOG,
	PLOT_EVEN,       /* x: one step for each value that there is */
	PLOT_PERCENTILE, /* x: 0 to below 100; a step per nine */
};

enum plot_look {
	PLOT_LINE,
	PLOT_CURVE, /* a line without marks */
	PLOT_LIMIT, /* a thin line without marks: what cannot be passed */
	PLOT_STEPS, /* a histogram: y holds from x to x_to */
};

struct plot_series {
	const char *name;
	uint32_t group; /* series of a group share a colour */
	bool is_pale;   /* one of many, which another series sums up */
	enum plot_look look;
	uint32_t n;
	double x[PLOT_MAX_POINTS], y[PLOT_MAX_POINTS];
	/* Each n of them, or NULL: bounds of y; ends of steps. */
	const double *low, *high, *x_to;
};

struct plot {
	const char *title, *subtitle, *x_name, *y_name;
	/*
	 * Part of a page, which has the title and the colours: id is unlike
	 * that of any other, desc is for those who do not see it. NULL: a file
	 * of its own.
	 */
	const char *id, *desc;
	enum plot_scale x_scale, y_scale;
	const char *x_unit, *y_unit; /* of units.h, for ticks; NULL: none */
	const struct plot_series *series;
	uint32_t n_series;
};

/*
 * A dozen lines of one group tell nobody anything: from two on they become
 * pale, and one more, if it has a name, is the lowest of them at each point.
 */
void plot_sum_up(struct plot_series *series, uint32_t *n, uint32_t group,
		 const char *name);

/*
 * A line per series. A logarithmic axis says that it is; values of 0 and below
 * have no place there, nor on one that is PLOT_AUTO, and are left out.
 */
bool plot_lines(const struct plot *plot, FILE *to);

/* A bar per series, by its first y. */
bool plot_bars(const struct plot *plot, FILE *to);

#endif
