/* SPDX-License-Identifier: BSD-3-Clause */
/* Where values stand on the axes of a chart, and what is written there. */
#ifndef PLOT_AXIS_H
#define PLOT_AXIS_H

#include "plot.h"

enum { PLOT_MAX_VALUES = 32, PLOT_MAX_TICKS = 32 };

struct axis {
	double min, max;
	enum plot_scale scale; /* not PLOT_AUTO */
	const char *unit;
	double values[PLOT_MAX_VALUES]; /* PLOT_EVEN: in order */
	uint32_t n_values;
	bool has_zero; /* points at a y of 0 have a place; of both axes */
};

struct tick {
	double value;
	char text[32];
};

/* The axis that has room for all points of all series. */
void axis_of(const struct plot *plot, bool is_x, struct axis *axis);

/* 0 to 1 along the axis. */
double axis_place(const struct axis *axis, double value);

/* Whether a point with this y is drawn. */
bool axis_shows(const struct axis *axis, double y);

/* Returns how many there are, PLOT_MAX_TICKS at most. */
uint32_t axis_ticks(const struct axis *axis, bool is_x, struct tick *ticks);

#endif
