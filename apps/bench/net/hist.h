/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram of times: HdrHistogram's layout with three significant digits, 0
 * to 2^40 ns (18 minutes). A value is off by less than 1/1024. */
#ifndef NET_HIST_H
#define NET_HIST_H

#include <stdint.h>

#include "support/counter.h"

enum {
	HIST_SUB_BITS = 10, /* buckets of the upper half of each power of two */
	HIST_VALUE_BITS = 40,
	HIST_BUCKETS = (HIST_VALUE_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS,
};

/* One thread writes; another may call hist_since() meanwhile. */
struct hist {
	uint64_t n;        /* values */
	uint64_t n_over;   /* of them, above the range: in the top bucket */
	uint64_t min, max; /* exact; 0 without values */
	double sum, sum_sq;
	uint64_t counts[HIST_BUCKETS];
};

/* The bucket of a value: below 2048 the value itself. */
static inline uint32_t hist_bucket(uint64_t ns)
{
	uint32_t shift;

	if (ns >= 1ull << HIST_VALUE_BITS)
		return HIST_BUCKETS - 1;
	shift = (uint32_t)(63 - __builtin_clzll(ns | 2047)) - HIST_SUB_BITS;
	return (shift << HIST_SUB_BITS) + (uint32_t)(ns >> shift);
}

static inline void hist_add(struct hist *hist, uint64_t ns)
{
	const double value = (double)ns;

	counter_add(&hist->counts[hist_bucket(ns)], 1);
	hist->n_over += ns >= 1ull << HIST_VALUE_BITS;
	hist->min = hist->n == 0 || ns < hist->min ? ns : hist->min;
	hist->max = ns > hist->max ? ns : hist->max;
	hist->sum += value;
	hist->sum_sq += value * value;
	hist->n++;
}

/* Bucket i covers [hist_low(i), hist_low(i + 1)); i is at most HIST_BUCKETS. */
uint64_t hist_low(uint32_t i);

void hist_merge(struct hist *hist, const struct hist *other);

/*
 * Add the values that another thread added to now since the last call to ret,
 * and bring before up to date. Minimum and maximum of ret are those of buckets;
 * sum_sq is not set.
 */
void hist_since(const struct hist *now, struct hist *before, struct hist *ret);

/*
 * The value that percentile (0 to 100) of all values do not exceed: the highest
 * one of its bucket, as in HdrHistogram, but at most the maximum. 0 without
 * values.
 */
uint64_t hist_at(const struct hist *hist, double percentile);

double hist_mean(const struct hist *hist);

#endif
