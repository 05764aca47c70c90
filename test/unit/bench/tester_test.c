/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tester beside the simulated DUT, whose counters are the truth, under the
 * virtual clock: every figure is exact. What it is made of is tested with it:
 * device.c, sender.c, receiver.c, tester.c, tester_open.c, tester_run.c,
 * tester_loop.c, tester_count.c, trial.c.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/device.h"
#include "net/tester_parts.h"
#include "support/test.h"

#define SECOND 1000000000ull

static struct trial_result result;

static struct tester *open_with(const struct device_config *device,
				const char *tx, const char *rx,
				const char *const *streams, uint32_t n_streams)
{
	const struct tester_config config = {
		.tx = &tx,
		.n_tx = 1,
		.rx = &rx,
		.n_rx = 1,
		.device = device,
		.is_virtual = true,
		.streams = streams,
		.n_streams = n_streams,
		.plane = { .program = "tester-test",
			   .log_level = MR_LOG_ERROR },
	};
	struct tester *tester = NULL;
	struct mr_reason why;
	int status = tester_open(&config, &tester, &why);

	if (status != 0)
		print_error("%s\n", why.text);
	assert_int_equal(status, 0);
	return tester;
}

/* A trial of a tenth of a second at a million frames per second. */
static void run(struct tester *tester, double pps, enum pace pace)
{
	const struct trial_config config = {
		.pps = pps,
		.pace = pace,
		.duration_ns = SECOND / 10,
	};
	struct mr_reason why;

	assert_int_equal(tester_run(tester, &config, &result, &why), 0);
	assert_int_equal(result.due, result.sent + result.unsent);
	assert_int_equal(result.sent, result.unique + result.lost);
	assert_int_equal(result.received, result.foreign + result.unique +
						  result.duplicates +
						  result.too_old);
	assert_false(result.is_cut_short);
}

/* A trial through a device; its counters must balance. */
static struct device_counts run_device(const struct device_config *device,
				       double pps)
{
	struct tester *tester = open_with(device, "pair:a", "pair:b", NULL, 0);
	struct device_counts counts;

	run(tester, pps, PACE_CONSTANT);
	assert_true(tester_device_counts(tester, 0, &counts));
	assert_int_equal(counts.received, result.sent);
	assert_int_equal(counts.forwarded, result.received);
	assert_int_equal(counts.received + counts.duplicated,
			 counts.forwarded + counts.lost + counts.overrun);
	assert_int_equal(counts.held, 0);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
	return counts;
}

TEST(a_cable_loses_nothing_and_takes_no_time)
{
	struct tester *tester = open_with(NULL, "pair:a", "pair:a", NULL, 0);

	for (int i = 0; i < 3; i++) {
		run(tester, 1e6, PACE_CONSTANT);
		assert_int_equal(result.sent, 100000);
		assert_int_equal(result.unique, 100000);
		assert_int_equal(result.foreign + result.reordered, 0);
		assert_int_equal(result.tx_bytes, 60 * 100000);
		assert_int_equal(result.rx_bytes, 60 * 100000);
		assert_int_equal(result.lateness.n, 100000);
		assert_int_equal(result.lateness.max, 0);
		assert_int_equal(result.latency.n, 100000);
		assert_int_equal(result.latency.max, 0);
		assert_int_equal(result.n_drops, 0);
		assert_float_equal(result.tx_pps, 1e6, 1e-6);
		assert_float_equal(result.rx_pps, 1e6, 1e-3);
		trial_result_free(&result);
	}
	assert_int_equal(tester_close(tester), 0);
}

TEST(one_in_n_is_lost)
{
	struct device_counts counts;

	counts = run_device(&(struct device_config){ .loss_every = 1000 }, 1e6);
	assert_int_equal(counts.lost, 100);
	assert_int_equal(result.lost, 100);
	counts = run_device(&(struct device_config){ .loss_every = 7 }, 1e6);
	assert_int_equal(counts.lost, 14285);
	assert_int_equal(result.lost, 14285);
	assert_int_equal(result.reordered + result.duplicates, 0);
}

/* Every frame that is overtaken is seen, whatever else happens to it. */
TEST(duplicates_and_reordering_are_found_exactly)
{
	struct device_counts counts;

	counts = run_device(&(struct device_config){ .dup_every = 500 }, 1e6);
	assert_int_equal(counts.duplicated, 200);
	assert_int_equal(result.duplicates, 200);
	assert_int_equal(result.reordered + result.lost, 0);
	/* The last one that is set aside has nobody behind it. */
	counts = run_device(&(struct device_config){ .reorder_every = 300,
						     .reorder_by = 3 },
			    1e6);
	assert_int_equal(counts.reordered, 333);
	assert_int_equal(result.reordered, 333);
	assert_int_equal(result.lost + result.duplicates, 0);
	counts = run_device(&(struct device_config){ .loss_every = 100,
						     .dup_every = 77,
						     .reorder_every = 50,
						     .reorder_by = 2,
						     .delay_ns = 3000 },
			    1e6);
	assert_int_equal(counts.lost, 1000);
	assert_int_equal(result.lost, counts.lost);
	assert_int_equal(result.duplicates, counts.duplicated);
	assert_in_range(result.reordered, counts.reordered - 1,
			counts.reordered);
}

TEST(corruption_is_foreign_and_lost)
{
	struct device_counts counts;

	counts = run_device(&(struct device_config){ .corrupt_every = 400 },
			    1e6);
	assert_int_equal(counts.corrupted, 250);
	assert_int_equal(result.foreign, 250);
	assert_int_equal(result.lost, 250);
}

TEST(a_delay_is_the_latency)
{
	run_device(&(struct device_config){ .delay_ns = 50000 }, 1e6);
	assert_int_equal(result.latency.min, 50000);
	assert_int_equal(result.latency.max, 50000);
	assert_int_equal(result.latency.n, 100000);
	assert_int_equal(result.lost, 0);
}

/* Above its rate a device drops, and its queue is the latency. */
TEST(a_rate_is_what_gets_through)
{
	run_device(&(struct device_config){ .rate_pps = 800e3,
					    .queue_frames = 10 },
		   800e3);
	assert_int_equal(result.lost, 0);
	run_device(&(struct device_config){ .rate_pps = 800e3,
					    .queue_frames = 10 },
		   1e6);
	/* 800 000 a second for 100 ms, and what fits into the queue. */
	assert_in_range(result.unique, 80000, 80011);
	assert_true(result.latency.max <= 11 * 1250);
	assert_true(result.latency.max > 9 * 1250);
}

TEST(each_stream_has_its_own_figures)
{
	static const char *const streams[] = { "weight=3", "size=1000" };
	struct tester *tester =
		open_with(&(struct device_config){ .loss_every = 999 },
			  "pair:a", "pair:b", streams, 2);
	uint64_t lost = 0;

	run(tester, 1e6, PACE_POISSON);
	assert_int_equal(result.n_streams, 2);
	assert_true(result.streams[0].sent > 2 * result.streams[1].sent);
	assert_int_equal(result.streams[0].sent + result.streams[1].sent,
			 result.sent);
	for (uint32_t i = 0; i < 2; i++) {
		const struct trial_lane *lane = &result.streams[i];

		assert_int_equal(lane->stream, i);
		assert_int_equal(lane->received, lane->unique);
		assert_int_equal(lane->sent - lane->unique, lane->lost);
		assert_true(lane->longest_gap >= 1);
		lost += lane->lost;
	}
	assert_int_equal(lost, result.lost);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

/* The same run again is the same, to the last frame. */
TEST(a_run_can_be_repeated)
{
	static struct trial_result before;

	for (int i = 0; i < 2; i++) {
		struct tester *tester =
			open_with(&(struct device_config){ .loss_every = 13,
							   .delay_ns = 7000,
							   .rate_pps = 1e6,
							   .queue_frames = 3 },
				  "pair:a", "pair:b", NULL, 0);

		run(tester, 990e3, PACE_POISSON);
		trial_result_free(&result);
		assert_int_equal(tester_close(tester), 0);
		if (i == 0)
			before = result;
	}
	assert_true(result.lost > 1000);
	assert_int_equal(result.sent, before.sent);
	assert_int_equal(result.lost, before.lost);
	assert_memory_equal(&result.latency, &before.latency,
			    sizeof(result.latency));
}

/* 10 Gbit/s, of which a frame of 60 bytes takes 84 bytes' time. */
TEST(full_speed_is_that_of_the_virtual_cable)
{
	struct tester *tester = open_with(NULL, "pair:a", "pair:a", NULL, 0);
	const struct trial_config config = { .n_frames = 1000 };
	struct mr_reason why;

	assert_float_equal(tester_line_bps(tester), 10e9, 1);
	assert_int_equal(tester_run(tester, &config, &result, &why), 0);
	assert_int_equal(result.sent, 1000);
	assert_float_equal(result.asked_pps, 14880952.38, 0.01);
	/* Times are whole ns. */
	assert_float_equal(result.tx_pps, 14880952.38, 300);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

TEST(what_cannot_be_is_refused)
{
	static const struct device_config lossy = { .loss_every = 3 };
	static const struct {
		const char *tx, *rx;
		const struct device_config *device;
		const char *words;
		bool is_real;
		int status;
	} cases[] = {
		{ "null:", "null:", NULL, "only pair: ports", false, 2 },
		{ "pair:a", "pair:a", &lossy, "between two pair:", false, 2 },
		{ "pair:a", "pair:b", NULL, "nobody has its other end", true,
		  1 },
		{ "pair:a,queues=2", "pair:b,queues=2", &lossy, "one queue",
		  true, 2 },
		{ "nope:a", "pair:b", NULL, "nope", true, 2 },
		{ "live:g0", "pair:b", NULL, "a clock of its own", false, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tester_config config = {
			.tx = &cases[i].tx,
			.n_tx = 1,
			.rx = &cases[i].rx,
			.n_rx = 1,
			.device = cases[i].device,
			.is_virtual = !cases[i].is_real,
			.plane = { .program = "tester-test",
				   .log_level = MR_LOG_ERROR },
		};
		struct tester *tester = NULL;
		struct mr_reason why = { .text = "" };

		assert_int_equal(tester_open(&config, &tester, &why),
				 cases[i].status);
		if (strstr(why.text, cases[i].words) == NULL)
			print_error("%s\n", why.text);
		assert_non_null(strstr(why.text, cases[i].words));
		assert_null(tester);
	}
}

/* By the real clock, on threads; NULL: as on any, the ends of one cable. */
static struct tester *open_real(const struct device_config *device)
{
	const char *a = "pair:a", *b = device != NULL ? "pair:b" : a;
	const struct tester_config config = {
		.tx = &a,
		.n_tx = 1,
		.rx = &b,
		.n_rx = 1,
		.device = device,
		.plane = { .program = "tester-test",
			   .n_workers = 2,
			   .log_level = MR_LOG_ERROR },
	};
	struct tester *tester = NULL;
	struct mr_reason why;

	assert_int_equal(tester_open(&config, &tester, &why), 0);
	return tester;
}

/* Nothing is lost on the way, and what is not sent in time is counted. */
TEST(it_does_not_lose_frames_by_the_real_clock)
{
	const struct trial_config trial = {
		.pps = 200e3,
		.n_frames = 20000,
		.settle_ns = SECOND,
	};
	struct tester *tester = open_real(
		&(struct device_config){ .loss_every = 100, .dup_every = 300 });
	struct device_counts counts;
	struct mr_reason why;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
		assert_true(tester_device_counts(tester, 0, &counts));
		assert_int_equal(result.due, 20000);
		assert_int_equal(result.due, result.sent + result.unsent);
		assert_int_equal(result.sent, counts.received);
		assert_int_equal(counts.lost, result.sent / 100);
		assert_int_equal(result.lost, counts.lost);
		assert_int_equal(result.duplicates, counts.duplicated);
		assert_int_equal(result.lateness.n, result.sent);
		assert_int_equal(result.latency.n, counts.forwarded);
		trial_result_free(&result);
	}
	assert_int_equal(tester_close(tester), 0);
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
	struct tester *tester = open_real(NULL);
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

/* What is injected is found within the error that the result states. */
TEST(a_delay_is_found_by_the_real_clock)
{
	/* A few frames, and all the time to send them: machines are busy. */
	const struct trial_config trial = { .pps = 2e3,
					    .n_frames = 200,
					    .max_lag_ns = SECOND,
					    .settle_ns = SECOND };
	struct tester *tester =
		open_real(&(struct device_config){ .delay_ns = 2000000 });
	struct mr_reason why;

	assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
	assert_true(result.latency.n > 0);
	assert_in_range(result.clock_error_ns, 1, 1000000);
	/* What the machine does besides adds to it, nothing takes away. */
	assert_true(result.latency.min + result.clock_error_ns >= 2000000);
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
TEST(a_clock_that_drifts_says_so)
{
	const struct trial_config trial = { .pps = 1e3,
					    .duration_ns = SECOND / 4 };
	struct tester *tester =
		open_real(&(struct device_config){ .loss_every = 1000 });
	struct mr_reason why;

	if (!tester->clock.has_counter) {
		assert_int_equal(tester_close(tester), 0);
		skip();
	}
	tester_on_progress(tester, step_clock, tester);
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

/* A queue has one user: a port twice in a list would be two. */
TEST(a_port_is_in_a_list_but_once)
{
	static const char *const twice[] = { "null:", "pair:a", "null:" };
	static const char *const others[] = { "pair:a", "pair:b", "pair:c" };

	for (int i = 0; i < 2; i++) {
		const struct tester_config config = {
			.tx = i == 0 ? twice : others,
			.n_tx = 3,
			.rx = i == 0 ? others : twice,
			.n_rx = 3,
			.plane = { .program = "tester-test",
				   .log_level = MR_LOG_ERROR },
		};
		struct tester *tester = NULL;
		struct mr_reason why;

		assert_int_equal(tester_open(&config, &tester, &why), 2);
		assert_string_equal(why.text,
				    i == 0 ? "null: is named twice among the "
					     "ports that send" :
					     "null: is named twice among the "
					     "ports that receive");
	}
}

/* A rate is that of all ports, and so is what the links take. */
TEST(the_line_rate_is_that_of_all_links)
{
	static const char *const specs[] = { "pair:a", "pair:b" };
	const struct tester_config config = {
		.tx = specs,
		.n_tx = 2,
		.rx = specs,
		.n_rx = 2,
		.is_virtual = true,
		.plane = { .program = "tester-test",
			   .log_level = MR_LOG_ERROR },
	};
	const struct trial_config trial = {
		.duration_ns = SECOND / 1000,
	};
	struct tester *tester;
	struct mr_reason why;

	assert_int_equal(tester_open(&config, &tester, &why), 0);
	assert_float_equal(tester_line_bps(tester), 20e9, 1);
	assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
	assert_float_equal(result.asked_pps, 2 * 14880952.38, 0.01);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

static void end_soon(void *opaque, const struct trial_result *so_far)
{
	if (so_far->sent > 1000)
		tester_end(opaque);
}

/* As Ctrl-C: 20 ms of frames, 400, are in the device by then, and come still.
 */
TEST(what_is_on_its_way_at_the_end_is_waited_for)
{
	const struct trial_config trial = {
		.pps = 20e3,
		.settle_ns = SECOND / 2,
	};
	struct tester *tester =
		open_real(&(struct device_config){ .delay_ns = 20000000 });
	struct device_counts counts;
	struct mr_reason why;

	tester_on_progress(tester, end_soon, tester);
	assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
	assert_true(result.is_cut_short);
	assert_true(result.sent > 1000);
	assert_int_equal(result.due, result.sent + result.unsent);
	/* On a busy machine a late burst may not fit into the device. */
	assert_true(tester_device_counts(tester, 0, &counts));
	assert_int_equal(counts.received, result.sent);
	assert_int_equal(counts.held, 0);
	assert_int_equal(result.lost, counts.overrun);
	assert_int_equal(result.unique, counts.forwarded);
	assert_true(result.sending_ns < result.whole_ns);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

/* What the queue took stays in its ring, as nobody takes it out. */
TEST(what_does_not_leave_is_pending)
{
	struct tester *tester = open_with(NULL, "pair:a", "pair:a", NULL, 0);
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
