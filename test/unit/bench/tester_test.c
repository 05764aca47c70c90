/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tester where a request cannot reach: a thread that does not start, a
 * clock that is set, a queue that nobody empties. trial_test.py has its
 * figures.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "net/tester.h"
#include "support/test.h"

#define SECOND 1000000000ull

static struct trial_result result;

/* A cable, by the real clock on two threads, or by the virtual one. */
static struct tester *opened(bool is_virtual)
{
	static const char *const port = "pair:a";
	const struct tester_config config = {
		.tx = &port,
		.n_tx = 1,
		.rx = &port,
		.n_rx = 1,
		.is_virtual = is_virtual,
		.plane = { .program = "tester-test",
			   .n_workers = 2,
			   .log_level = MR_LOG_ERROR },
	};
	struct tester *tester = NULL;
	struct mr_reason why;

	assert_int_equal(tester_open(&config, &tester, &why), 0);
	return tester;
}

/* How many threads may still be started; INT_MAX: any number. */
static int n_startable = INT_MAX;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*start)(void *), void *arg)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
		      void *);

	if (n_startable-- <= 0)
		return EAGAIN;
	*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	return create(thread, attr, start, arg);
}

/* The first one must have ended when it is told: it uses what is freed. */
TEST(a_thread_that_cannot_start_ends_the_others)
{
	const struct trial_config trial = {
		.pps = 20e3,
		.n_frames = 100,
	};
	struct tester *tester = opened(false);
	struct timespec then, now;
	struct mr_reason why;

	clock_gettime(CLOCK_MONOTONIC, &then);
	n_startable = 1;
	assert_int_equal(tester_run(tester, &trial, &result, &why), 1);
	n_startable = INT_MAX;
	clock_gettime(CLOCK_MONOTONIC, &now);
	assert_non_null(strstr(why.text, "worker 1 cannot start"));
	assert_true(now.tv_sec - then.tv_sec < 5);
	assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
	assert_int_equal(result.due, 100);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

static uint64_t step_ns;

/* As if CLOCK_MONOTONIC had been set forward meanwhile. */
static void step_clock(void *opaque, const struct trial_result *so_far)
{
	struct tester *tester = opaque;

	(void)so_far;
	tester->clock.start_ns -= step_ns;
	step_ns = 0;
}

/* Drift is part of the error, up to where the clock is none to measure by. */
TEST(a_drifting_clock_is_reported)
{
	const struct trial_config trial = { .pps = 1e3,
					    .duration_ns = SECOND / 4 };
	struct tester *tester = opened(false);
	struct mr_reason why;

	if (!tester->clock.has_counter) {
		assert_int_equal(tester_close(tester), 0);
		skip();
	}
	tester->progress = step_clock;
	tester->progress_opaque = tester;
	step_ns = 80000;
	assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
	assert_int_equal(step_ns, 0);
	assert_false(result.is_cut_short);
	/* Less the rest of what the counter came away by itself. */
	assert_in_range(result.clock_error_ns, 50000, 1000000);
	trial_result_free(&result);
	step_ns = SECOND;
	assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
	assert_true(result.is_cut_short);
	assert_non_null(
		strstr(result.why_stopped, "clock unstable: the tsc came "));
	assert_true(result.clock_error_ns > SECOND - SECOND / 100);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

/* What the queue took stays in its ring, as nobody takes it out. */
TEST(frames_in_the_ring_are_pending)
{
	struct tester *tester = opened(true);
	struct mr_cache *cache = tester->senders[0].config.cache;
	struct mr_frame frame = { .len = 60 };

	assert_int_equal(mr_frag_alloc_bulk(cache, &frame.addr, 1, 256), 1);
	frame.addr += 128;
	memset((uint8_t *)tester->base + frame.addr, 0, 60);
	assert_int_equal(
		mr_tx_burst(tester->senders[0].config.txq, cache, &frame, 1),
		1);
	assert_int_equal(tester_n_pending(tester), 1);
	assert_int_equal(
		mr_rx_burst(tester->receivers[0].rxq, cache, &frame, 1), 1);
	assert_int_equal(tester_n_pending(tester), 0);
	mr_frame_free_bulk(cache, &frame, 1);
	assert_int_equal(tester_close(tester), 0);
}
