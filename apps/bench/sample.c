/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Medians, because what disturbs a sample makes it longer and never shorter,
 * and bootstrap intervals, because nothing is known of how samples spread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

enum { N_RESAMPLES = 1000 };

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double sorted_median(const double *sorted, uint32_t n)
{
	if (n == 0)
		return 0;
	return n % 2 != 0 ? sorted[n / 2] :
			    (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double sample_median(const double *values, uint32_t n)
{
	double sorted[MAX_SAMPLES];

	if (n > MAX_SAMPLES)
		n = MAX_SAMPLES;
	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted_median(sorted, n);
}

/* xorshift64, from a fixed seed: the same samples give the same report. */
static uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)((*state >> 32) * n >> 32);
}

/* The median of n values drawn with replacement. */
static double resampled_median(const double *values, uint32_t n,
			       uint64_t *state)
{
	double drawn[MAX_SAMPLES];

	for (uint32_t i = 0; i < n; i++)
		drawn[i] = values[random_below(state, n)];
	return sample_median(drawn, n);
}

/* The 2.5 and 97.5 percentiles of resampled figures; sorts them. */
static void interval(double *figures, double *ret_low, double *ret_high)
{
	qsort(figures, N_RESAMPLES, sizeof(*figures), by_value);
	*ret_low = figures[N_RESAMPLES * 25 / 1000];
	*ret_high = figures[N_RESAMPLES * 975 / 1000 - 1];
}

void sample_summary(const double *values, uint32_t n, struct summary *ret)
{
	double distances[MAX_SAMPLES], medians[N_RESAMPLES];
	uint64_t state = 88172645463325252u;

	memset(ret, 0, sizeof(*ret));
	if (n > MAX_SAMPLES)
		n = MAX_SAMPLES;
	if (n == 0)
		return;
	ret->n = n;
	ret->median = sample_median(values, n);
	ret->min = ret->max = values[0];
	for (uint32_t i = 0; i < n; i++) {
		const double d = values[i] - ret->median;

		distances[i] = d < 0 ? -d : d;
		if (values[i] < ret->min)
			ret->min = values[i];
		if (values[i] > ret->max)
			ret->max = values[i];
	}
	ret->mad = sample_median(distances, n);
	for (uint32_t i = 0; i < N_RESAMPLES; i++)
		medians[i] = resampled_median(values, n, &state);
	interval(medians, &ret->low, &ret->high);
}

struct ratio sample_ratio(const double *a, uint32_t n_a, const double *b,
			  uint32_t n_b)
{
	double ratios[N_RESAMPLES];
	uint64_t state = 88172645463325252u;
	struct ratio ratio = { 0 };

	if (n_a > MAX_SAMPLES)
		n_a = MAX_SAMPLES;
	if (n_b > MAX_SAMPLES)
		n_b = MAX_SAMPLES;
	if (n_a == 0 || n_b == 0 || sample_median(b, n_b) <= 0)
		return ratio;
	ratio.value = sample_median(a, n_a) / sample_median(b, n_b);
	for (uint32_t i = 0; i < N_RESAMPLES; i++) {
		const double below = resampled_median(b, n_b, &state);
		const double above = resampled_median(a, n_a, &state);

		ratios[i] = below > 0 ? above / below :
			    above > 0 ? INFINITY :
					1;
	}
	interval(ratios, &ratio.low, &ratio.high);
	return ratio;
}
