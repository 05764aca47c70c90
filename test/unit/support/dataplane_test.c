/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/support/dataplane_stop.c. l2fwd/cli_test.py tests what
 * dataplane.c, dataplane_keys.c and run_options.c refuse, l2fwd/options_test.c
 * what the latter two accept, test/unit/dataplane what dataplane.c opens.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "support/unit.h"

#include "support/dataplane.h"

static bool is_over; /* atomic */

static void *spin_until_end(void *opaque)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		;
	return opaque;
}

static void *sleep_long(void *opaque)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		poll(NULL, 0, 200);
	return opaque;
}

/* Ask until one of two answers comes: a thread may not have started yet. */
static bool is_told(const char *words, const char *or_words)
{
	char why[200] = "";
	bool is_it = false;

	for (uint32_t k = 0; k < 200 && !is_it; k++) {
		dataplane_why_stuck(63, why, sizeof(why));
		is_it = strstr(why, words) != NULL ||
			strstr(why, or_words) != NULL;
	}
	return is_it;
}

TEST(the_reason_why_a_worker_hangs_is_reported)
{
	enum { MAX_THREADS = 4 };
	static const struct {
		void *(*work)(void *);
		uint32_t n_threads;
		const char *words, *or_words;
	} cases[] = {
		{ spin_until_end, 1, "it is still running",
		  "another thread uses" },
		{ spin_until_end, MAX_THREADS, "another thread uses",
		  "its core" },
		{ sleep_long, 1, "waits in the kernel", "does not respond" },
	};
	pthread_t threads[MAX_THREADS];
	cpu_set_t before, one;
	char why[200];

	dataplane_why_stuck(63, why, sizeof(why));
	assert_string_equal(why, "");
	/* On one core, where three of four that spin wait at any time. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_getaffinity(0, sizeof(before), &before);
	sched_setaffinity(0, sizeof(one), &one);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		__atomic_store_n(&is_over, false, __ATOMIC_RELAXED);
		for (uint32_t k = 0; k < cases[i].n_threads; k++)
			pthread_create(&threads[k], NULL, cases[i].work, NULL);
		pthread_setname_np(threads[0], "mr-worker-63");
		assert_true(is_told(cases[i].words, cases[i].or_words));
		__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
		for (uint32_t k = 0; k < cases[i].n_threads; k++)
			pthread_join(threads[k], NULL);
	}
	sched_setaffinity(0, sizeof(before), &before);
}
