/* SPDX-License-Identifier: BSD-3-Clause */
/* Charts as SVG files that need nothing else. */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PLOT_MAX_POINTS = 32, PLOT_MAX_SERIES = 48 };

struct plot_series {
	const char *name;
	uint32_t group; /* series of a group share a colour */
	bool is_pale;   /* one of many, which another series sums up */
	uint32_t n;
	double x[PLOT_MAX_POINTS], y[PLOT_MAX_POINTS];
};

struct plot {
	const char *title, *subtitle, *x_name, *y_name;
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
 * A line per series. An axis is logarithmic where its values are of different
 * magnitudes; it says so. Values of 0 and below are left out.
 */
bool plot_lines(const struct plot *plot, FILE *to);

/* A bar per series, by its first y. */
bool plot_bars(const struct plot *plot, FILE *to);

#endif
