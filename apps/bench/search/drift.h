/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a figure moves over a long run: a line through its values. */
#ifndef SEARCH_DRIFT_H
#define SEARCH_DRIFT_H

#include <stdint.h>

struct drift {
	uint32_t n;
	double mean_t, mean_v;         /* of times and of values */
	double sum_tt, sum_tv, sum_vv; /* about the means */
	double first, last, min, max;
};

void drift_add(struct drift *drift, double t, double value);

/* Least squares: how much the value changes per unit of time; 0 below 3. */
double drift_slope(const struct drift *drift);

/*
 * Whether the slope is more than chance: it is farther from 0 than three times
 * its standard error.
 */
int drift_is_real(const struct drift *drift);

#endif
