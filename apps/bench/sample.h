/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of samples. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdint.h>

enum { MAX_SAMPLES = 512 };

struct summary {
	uint32_t n;
	double median, min, max;
	double mad;       /* median of the distances to the median */
	double low, high; /* bootstrap 95 % confidence interval of the median */
};

/* Order of n values does not matter, and stays. n is at most MAX_SAMPLES. */
double sample_median(const double *values, uint32_t n);

void sample_summary(const double *values, uint32_t n, struct summary *ret);

/* Median of a by median of b, with its bootstrap 95 % confidence interval. */
struct ratio {
	double value, low, high;
};

struct ratio sample_ratio(const double *a, uint32_t n_a, const double *b,
			  uint32_t n_b);

#endif
