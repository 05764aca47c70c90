/* SPDX-License-Identifier: BSD-3-Clause */
/* What is injected, and the error that the tester states for it. */
#include <math.h>

#include "search/known.h"

static double lost(const struct trial_result *r)
{
	return (double)r->lost;
}

static double duplicates(const struct trial_result *r)
{
	return (double)r->duplicates;
}

static double reordered(const struct trial_result *r)
{
	return (double)r->reordered;
}

static double median_us(const struct trial_result *r)
{
	return (double)hist_at(&r->latency, 50) / 1e3;
}

static double received_kpps(const struct trial_result *r)
{
	return r->rx_pps / 1e3;
}

/*
 * Counts are exact. A time is off by the width of a bucket of the histogram,
 * one part in 1024, and by the 1 us between two frames, which is how far the
 * clock may move before the device looks again.
 */
static const struct known_case cases[] = {
	{ "loss=1000", "lost", "frames", "frames", 1, 1e6, KNOWN_FRAMES / 1000,
	  0, lost },
	{ "dup=500", "duplicates", "frames", "frames", 1, 1e6,
	  KNOWN_FRAMES / 500, 0, duplicates },
	{ "reorder=200", "reordered", "frames", "frames", 1, 1e6,
	  KNOWN_FRAMES / 200, 0, reordered },
	{ "delay=50us", "latency, median", "us", "ns", 1000, 1e6, 50, 1.1,
	  median_us },
	{ "delay=2ms", "latency, median", "us", "ns", 1000, 1e6, 2000, 3,
	  median_us },
	{ "rate=400k", "received", "kframes/s", "frames/s", 1000, 1e6, 400, 2,
	  received_kpps },
};

const struct known_case *known_cases(uint32_t *ret_n)
{
	*ret_n = sizeof(cases) / sizeof(cases[0]);
	return cases;
}

bool known_agrees(const struct known_case *c, double found)
{
	return fabs(found - c->injected) <= c->error;
}
