/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run's clock: nanoseconds since the run began. Sender and receiver of a
 * program read the same clock, so the difference is a latency.
 *
 * The real clock is CLOCK_MONOTONIC, read through the processor's counter if
 * that is invariant (about 10 ns less per reading). The virtual clock stands
 * still until it is moved, so that each run has the same result.
 */
#ifndef NET_CLOCK_H
#define NET_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

struct clock {
	bool is_virtual;
	bool has_counter;
	uint64_t virtual_ns;
	uint64_t start_ns;    /* CLOCK_MONOTONIC when the run began */
	uint64_t start_ticks; /* the counter at that moment */
	uint64_t ns_per_tick; /* fixed point: 32 bits of fraction */
	uint64_t error_ns;    /* of a reading, measured; 0: virtual */
	/* The first pair of readings, to measure the counter's speed. */
	uint64_t first_ns, first_ticks;
};

/* Measures the counter's speed, for 20 ms. */
void clock_open(struct clock *clock, bool is_virtual);

/* Read CLOCK_MONOTONIC itself, to compare it with times of the kernel. */
void clock_use_kernel(struct clock *clock);

/* Begin a run: now is 0. Measures the speed of the counter again, each time
 * over a longer time. Nobody may read the clock meanwhile. */
void clock_start(struct clock *clock);

/* "tsc", "CLOCK_MONOTONIC" or "virtual". */
const char *clock_source(const struct clock *clock);

/* How far it has drifted from CLOCK_MONOTONIC since the run began. A clock that
 * runs evenly differs by its error and some millionths of the time. */
uint64_t clock_drift_ns(const struct clock *clock);

/* False: the clock drifted too far to measure with. */
bool clock_is_stable(const struct clock *clock, uint64_t run_ns,
		     uint64_t drift_ns);

/* Move the virtual clock, never back. */
void clock_move(struct clock *clock, uint64_t to_ns);

static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ticks(void)
{
#ifdef __x86_64__
	return __rdtsc();
#else
	return 0;
#endif
}

static inline uint64_t clock_ns_of_ticks(const struct clock *clock,
					 uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)(ticks - clock->start_ticks) *
			   clock->ns_per_tick) >>
			  32);
}

static inline uint64_t clock_now(const struct clock *clock)
{
	if (clock->has_counter)
		return clock_ns_of_ticks(clock, clock_ticks());
	if (clock->is_virtual)
		return clock->virtual_ns;
	return clock_monotonic_ns() - clock->start_ns;
}

#endif
