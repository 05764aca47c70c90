/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram of the time of single calls, with 16 steps per power of two:
 * figures are at most 6 % too large. There is one per thread. The clock is the
 * TSC, and all figures include the time to read it.
 */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>

#include "bench.h"

enum { LATENCY_STEPS = 16, LATENCY_BINS = 40 * LATENCY_STEPS };

struct latency {
	uint64_t bins[LATENCY_BINS];
	uint64_t n, max;
};

/* In cycles of the TSC; not reordered with earlier or later calls. */
uint64_t latency_now(void);

static inline void latency_add(struct latency *latency, uint64_t cycles)
{
	const uint32_t shift = cycles < LATENCY_STEPS ?
				       0 :
				       59 - (uint32_t)__builtin_clzll(cycles);
	uint32_t bin = shift * LATENCY_STEPS + (uint32_t)(cycles >> shift);

	if (bin >= LATENCY_BINS)
		bin = LATENCY_BINS - 1;
	latency->bins[bin]++;
	latency->n++;
	if (cycles > latency->max)
		latency->max = cycles;
}

/* Add p50_ns, p99_ns, p99.9_ns, p99.99_ns and max_ns of all threads. */
void latency_count(const struct latency *latencies, uint32_t n,
		   struct counts *counts);

#endif
