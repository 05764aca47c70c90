/* SPDX-License-Identifier: BSD-3-Clause */
/* When frames are due: the pace that was ordered, however often one looks. */
#include <math.h>
#include <stdlib.h>

#include "net/pacer.h"
#include "support/test.h"

enum { MAX_DUE = 100000 };

static uint64_t due[MAX_DUE];

static struct send_orders orders_of(double pps)
{
	return (struct send_orders){
		.pace = PACE_CONSTANT,
		.pps = pps,
		.burst_frames = 32,
		.start_ns = 1000,
		.end_ns = UINT64_MAX,
		.n_frames = UINT64_MAX,
		.n_senders = 1,
		.seed = 7,
	};
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* All that is due until end, from all senders, in order. */
static uint32_t take_all(const struct send_orders *orders, uint64_t step_ns,
			 uint64_t end_ns)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < orders->n_senders; s++) {
		struct send_orders own = *orders;
		struct pacer pacer;

		own.sender = s;
		pacer_begin(&pacer, &own);
		for (uint64_t now = 0; now <= end_ns; now += step_ns)
			n += pacer_take(&pacer, now, due + n, MAX_DUE - n);
	}
	qsort(due, n, sizeof(due[0]), compare);
	return n;
}

TEST(constant_frames_are_a_period_apart)
{
	const struct send_orders orders = orders_of(3e6);
	uint32_t n;

	n = take_all(&orders, 777, 1000 + 10000000);
	/* The first one at once, and one at the very end. */
	assert_in_range(n, 29999, 30001);
	for (uint32_t i = 0; i < n; i++)
		assert_true(fabs((double)due[i] - 1000 - i * 1e9 / 3e6) < 1.01);
}

/* 3 senders of a third each are as one, the frames evenly apart. */
TEST(senders_share_a_rate)
{
	struct send_orders orders = orders_of(1e6);
	uint32_t n;

	orders.n_senders = 3;
	n = take_all(&orders, 5000, 1000 + 9999999);
	assert_int_equal(n, 10000);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(due[i], 1000 + 1000 * i);
}

TEST(nothing_is_due_at_the_end_or_above_the_number)
{
	struct send_orders orders = orders_of(1e6);
	uint32_t n;

	orders.end_ns = 1000 + 50000;
	assert_int_equal(take_all(&orders, 100, 200000), 50);
	orders.end_ns = UINT64_MAX;
	for (uint32_t senders = 1; senders < 5; senders++) {
		orders.n_senders = senders;
		orders.n_frames = 42;
		n = take_all(&orders, 100, 200000);
		assert_int_equal(n, 42);
		assert_int_equal(due[n - 1], 1000 + 41 * 1000);
	}
}

TEST(bursts_are_due_at_once)
{
	struct send_orders orders = orders_of(1e6);
	uint32_t n;

	orders.pace = PACE_BURSTS;
	orders.burst_frames = 10;
	orders.n_senders = 2;
	n = take_all(&orders, 333, 1000 + 999999);
	assert_int_equal(n, 1000);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(due[i], 1000 + i / 10 * 10000);
}

/* Gaps have the mean, and the spread, of an exponential distribution. */
TEST(poisson_has_its_mean_and_spread)
{
	struct send_orders orders = orders_of(1e6);
	double sum = 0, sum_sq = 0;
	uint32_t n;

	orders.pace = PACE_POISSON;
	orders.n_senders = 2;
	n = take_all(&orders, 5000, 50000000);
	assert_in_range(n, 49000, 51000);
	for (uint32_t i = 1; i < n; i++) {
		const double gap = (double)(due[i] - due[i - 1]);

		sum += gap;
		sum_sq += gap * gap;
	}
	sum /= n - 1;
	assert_true(fabs(sum - 1000) < 20);
	assert_true(fabs(sqrt(sum_sq / (n - 1) - sum * sum) - 1000) < 30);
	orders.n_frames = 1000;
	assert_int_equal(take_all(&orders, 5000, 50000000), 1000);
}

TEST(full_speed_is_due_now)
{
	struct send_orders orders = orders_of(0);
	struct pacer pacer;

	orders.end_ns = 5000;
	orders.n_frames = 100;
	pacer_begin(&pacer, &orders);
	assert_int_equal(pacer_take(&pacer, 999, due, 64), 0);
	assert_int_equal(pacer_take(&pacer, 1000, due, 64), 64);
	assert_int_equal(due[63], 1000);
	assert_false(pacer_is_done(&pacer, 2000));
	assert_int_equal(pacer_take(&pacer, 2000, due, 64), 36);
	assert_true(pacer_is_done(&pacer, 2000));
	orders.n_frames = UINT64_MAX;
	pacer_begin(&pacer, &orders);
	assert_int_equal(pacer_take(&pacer, 4999, due, 64), 64);
	assert_false(pacer_is_done(&pacer, 4999));
	assert_int_equal(pacer_take(&pacer, 5000, due, 64), 0);
	assert_true(pacer_is_done(&pacer, 5000));
}

TEST(skipped_frames_are_counted)
{
	struct send_orders orders = orders_of(1e6);
	struct pacer pacer;

	orders.n_frames = 100;
	pacer_begin(&pacer, &orders);
	assert_int_equal(pacer_skip(&pacer, 1000), 0);
	assert_int_equal(pacer_skip(&pacer, 11000), 10);
	assert_int_equal(pacer_take(&pacer, 11000, due, 64), 1);
	assert_int_equal(due[0], 11000);
	assert_int_equal(pacer_skip(&pacer, UINT64_MAX), 89);
	assert_true(pacer_is_done(&pacer, 0));
}

/* However many they are, the rest is as if each had been walked. */
TEST(skipping_many_takes_no_time)
{
	struct send_orders orders = orders_of(1e12);
	struct pacer pacer, walked;

	orders.end_ns = 1000 + 10000000000;
	pacer_begin(&pacer, &orders);
	assert_int_equal(pacer_skip(&pacer, UINT64_MAX), 10000000000000);
	assert_true(pacer_is_done(&pacer, 0));
	for (int is_bursts = 0; is_bursts < 2; is_bursts++) {
		orders = orders_of(3e6);
		orders.pace = is_bursts ? PACE_BURSTS : PACE_CONSTANT;
		orders.n_senders = 3;
		orders.sender = 1;
		orders.n_frames = 100000;
		pacer_begin(&pacer, &orders);
		pacer_begin(&walked, &orders);
		assert_int_equal(pacer_take(&walked, 17777777, due, MAX_DUE),
				 pacer_skip(&pacer, 17777778));
		assert_memory_equal(&pacer, &walked, sizeof(pacer));
	}
}
