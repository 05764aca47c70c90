/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of a histogram of times. */
#include <math.h>

#include "net/hist.h"

uint64_t hist_low(uint32_t i)
{
	const uint32_t sub = 1u << HIST_SUB_BITS;
	uint32_t shift;

	if (i < 2 * sub)
		return i;
	shift = (i >> HIST_SUB_BITS) - 1;
	return (uint64_t)(sub + (i & (sub - 1))) << shift;
}

void hist_merge(struct hist *hist, const struct hist *other)
{
	if (other->n == 0)
		return;
	if (hist->n == 0 || other->min < hist->min)
		hist->min = other->min;
	if (other->max > hist->max)
		hist->max = other->max;
	hist->n += other->n;
	hist->n_over += other->n_over;
	hist->sum += other->sum;
	hist->sum_sq += other->sum_sq;
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		hist->counts[i] += other->counts[i];
}

void hist_since(const struct hist *now, struct hist *before, struct hist *ret)
{
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		const uint64_t n = counter_get(&now->counts[i]);
		const uint64_t n_new = n - before->counts[i];

		if (n_new == 0)
			continue;
		before->counts[i] = n;
		if (ret->n == 0 || hist_low(i) < ret->min)
			ret->min = hist_low(i);
		if (hist_low(i + 1) - 1 > ret->max)
			ret->max = hist_low(i + 1) - 1;
		ret->counts[i] += n_new;
		ret->n += n_new;
		ret->sum += (double)n_new *
			    ((double)hist_low(i) + (double)hist_low(i + 1)) / 2;
	}
}

uint64_t hist_at(const struct hist *hist, double percentile)
{
	/* 99.9 % of 1000 are 999, whatever 0.999 is in binary. */
	const double wanted =
		ceil(percentile / 100 * (double)hist->n * (1 - 1e-12));
	uint64_t n = 0, high;

	if (hist->n == 0)
		return 0;
	if (percentile <= 0)
		return hist->min;
	for (uint32_t i = 0; i < HIST_BUCKETS - 1; i++) {
		n += hist->counts[i];
		if (n == 0 || (double)n < wanted)
			continue;
		high = hist_low(i + 1) - 1;
		return high < hist->max ? high : hist->max;
	}
	return hist->max;
}

double hist_mean(const struct hist *hist)
{
	return hist->n > 0 ? hist->sum / (double)hist->n : 0;
}
