/* SPDX-License-Identifier: BSD-3-Clause */
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "latency.h"

uint64_t latency_now(void)
{
#if defined(__x86_64__)
	unsigned int core;

	/* Wait for earlier instructions; the fence holds back later ones. */
	const uint64_t now = __rdtscp(&core);

	_mm_lfence();
	return now;
#else
	return clock_ns();
#endif
}

static double ns_per_cycle(void)
{
	const uint64_t ns = clock_ns(), cycles = latency_now();
	uint64_t ns_later;

	do {
		ns_later = clock_ns();
	} while (ns_later - ns < 2000000);
	return (double)(ns_later - ns) / (double)(latency_now() - cycles);
}

/* The upper end of the bin that this share of all calls does not exceed. */
static uint64_t percentile(const struct latency *all, double share)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < LATENCY_BINS; i++) {
		const uint32_t shift =
			i < 2 * LATENCY_STEPS ? 0 : i / LATENCY_STEPS - 1;

		sum += all->bins[i];
		if ((double)sum >= share * (double)all->n)
			return ((uint64_t)(i - shift * LATENCY_STEPS) + 1)
			       << shift;
	}
	return all->max;
}

void latency_count(const struct latency *latencies, uint32_t n,
		   struct counts *counts)
{
	const double ns = ns_per_cycle();
	static struct latency all;

	all = (struct latency){ 0 };
	for (uint32_t t = 0; t < n; t++) {
		for (uint32_t i = 0; i < LATENCY_BINS; i++)
			all.bins[i] += latencies[t].bins[i];
		all.n += latencies[t].n;
		if (latencies[t].max > all.max)
			all.max = latencies[t].max;
	}
	if (all.n == 0)
		return;
	count_add(counts, "p50_ns", (double)percentile(&all, 0.5) * ns);
	count_add(counts, "p99_ns", (double)percentile(&all, 0.99) * ns);
	count_add(counts, "p99.9_ns", (double)percentile(&all, 0.999) * ns);
	count_add(counts, "p99.99_ns", (double)percentile(&all, 0.9999) * ns);
	count_add(counts, "max_ns", (double)all.max * ns);
}
