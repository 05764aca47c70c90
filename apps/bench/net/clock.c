/* SPDX-License-Identifier: BSD-3-Clause */
/* The run's clock, and its errors. */
#include "net/clock.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

enum {
	CALIBRATE_MS = 20,
	N_READINGS = 64,
	/* How far two clocks that run evenly may differ: NTP corrects by 500
	 * millionths at most. */
	MAX_SLEW_PPM = 500,
	MAX_STEP_NS = 100000,
};

/* Whether the counter runs evenly in all states of the processor and alike on
 * all cores: "invariant TSC", CPUID 80000007h, EDX bit 8 (Intel SDM 18.17.1,
 * AMD APM volume 3). It is not used if a hypervisor does not promise it. */
static bool has_invariant_counter(void)
{
#ifdef __x86_64__
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
	return false;
#endif
}

/* Both clocks at one moment. */
struct pair {
	uint64_t ns, ticks;
	uint64_t width_ns; /* how far it may be off */
};

/* The counter between two readings of the clock: the closest of some. */
static struct pair read_pair(void)
{
	struct pair best = { .width_ns = UINT64_MAX };

	for (uint32_t i = 0; i < N_READINGS; i++) {
		const uint64_t before = clock_monotonic_ns();
		const uint64_t ticks = clock_ticks();
		const uint64_t width = clock_monotonic_ns() - before;

		if (width < best.width_ns)
			best = (struct pair){ before + width / 2, ticks,
					      width };
	}
	return best;
}

void clock_open(struct clock *clock, bool is_virtual)
{
	const struct timespec wait = { .tv_nsec = CALIBRATE_MS * 1000000 };
	struct pair first;

	*clock = (struct clock){ .is_virtual = is_virtual };
	if (is_virtual)
		return;
	first = read_pair();
	clock->first_ns = first.ns;
	clock->first_ticks = first.ticks;
	clock->has_counter = has_invariant_counter();
	if (clock->has_counter)
		nanosleep(&wait, NULL);
	clock_start(clock);
}

void clock_use_kernel(struct clock *clock)
{
	clock->has_counter = false;
}

void clock_start(struct clock *clock)
{
	struct pair start;

	clock->virtual_ns = 0;
	if (clock->is_virtual)
		return;
	start = read_pair();
	clock->start_ns = start.ns;
	clock->start_ticks = start.ticks;
	clock->error_ns = start.width_ns;
	if (clock->has_counter)
		clock->ns_per_tick =
			(uint64_t)(((unsigned __int128)(clock->start_ns -
							clock->first_ns)
				    << 32) /
				   (clock->start_ticks - clock->first_ticks));
}

const char *clock_source(const struct clock *clock)
{
	if (clock->is_virtual)
		return "virtual";
	return clock->has_counter ? "tsc" : "CLOCK_MONOTONIC";
}

uint64_t clock_drift_ns(const struct clock *clock)
{
	struct pair now;
	uint64_t ns, by_counter;

	if (!clock->has_counter)
		return 0;
	now = read_pair();
	ns = now.ns - clock->start_ns;
	by_counter = clock_ns_of_ticks(clock, now.ticks);
	return by_counter > ns ? by_counter - ns : ns - by_counter;
}

bool clock_is_stable(const struct clock *clock, uint64_t run_ns,
		     uint64_t drift_ns)
{
	return drift_ns <=
	       clock->error_ns + MAX_STEP_NS + run_ns / 1000000 * MAX_SLEW_PPM;
}

void clock_move(struct clock *clock, uint64_t to_ns)
{
	if (to_ns > clock->virtual_ns)
		clock->virtual_ns = to_ns;
}
