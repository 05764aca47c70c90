/* SPDX-License-Identifier: BSD-3-Clause */
/* The histogram: its buckets, and what it tells of values it was given. */
#include <stdlib.h>

#include "net/hist.h"
#include "support/test.h"

static struct hist hist, other;

static int clear_hist(void **state)
{
	(void)state;
	hist = other = (struct hist){ 0 };
	return 0;
}

/* Three digits: a bucket is narrower than a thousandth of its values. */
TEST_WITH(clear_hist, NULL, buckets_are_narrow_and_without_gaps)
{
	for (uint32_t b = 0; b < HIST_BUCKETS; b++) {
		const uint64_t low = hist_low(b), next = hist_low(b + 1);

		assert_true(next > low);
		assert_true(next - low == 1 || (next - low) * 1000 < low);
		assert_int_equal(hist_bucket(low), b);
		assert_int_equal(hist_bucket(next - 1), b);
	}
	assert_int_equal(hist_low(HIST_BUCKETS), 1ull << HIST_VALUE_BITS);
}

TEST_WITH(clear_hist, NULL, percentiles_are_those_of_the_values)
{
	for (uint64_t v = 1; v <= 1000; v++)
		hist_add(&hist, v);
	assert_int_equal(hist_at(&hist, 0), 1);
	assert_int_equal(hist_at(&hist, 50), 500);
	assert_int_equal(hist_at(&hist, 99.9), 999);
	assert_int_equal(hist_at(&hist, 99.99), 1000);
	assert_int_equal(hist_at(&hist, 100), 1000);
	assert_float_equal(hist_mean(&hist), 500.5, 1e-9);
	assert_int_equal(hist.n, 1000);
	assert_int_equal(hist.min, 1);
	assert_int_equal(hist.max, 1000);
}

TEST_WITH(clear_hist, NULL, empty_histogram_is_all_zero)
{
	assert_int_equal(hist_at(&hist, 50), 0);
	assert_float_equal(hist_mean(&hist), 0, 0);
}

TEST_WITH(clear_hist, NULL, values_above_the_range_are_counted)
{
	hist_add(&hist, 5);
	hist_add(&hist, 1ull << 50);
	assert_int_equal(hist.n, 2);
	assert_int_equal(hist.n_over, 1);
	assert_int_equal(hist.counts[HIST_BUCKETS - 1], 1);
	assert_int_equal(hist_at(&hist, 100), 1ull << 50);
}

TEST_WITH(clear_hist, NULL, merged_histograms_equal_one_of_all_values)
{
	static struct hist both;

	both = (struct hist){ 0 };
	srand(1);
	for (int i = 0; i < 20000; i++) {
		const uint64_t v = (uint64_t)rand() >> (rand() % 31);

		hist_add(i % 3 == 0 ? &hist : &other, v);
		hist_add(&both, v);
	}
	hist_merge(&hist, &other);
	assert_memory_equal(hist.counts, both.counts, sizeof(both.counts));
	assert_int_equal(hist.n, both.n);
	assert_int_equal(hist.min, both.min);
	assert_int_equal(hist.max, both.max);
	assert_float_equal(hist_mean(&hist), hist_mean(&both), 1e-3);
	other = (struct hist){ 0 };
	hist_merge(&hist, &other); /* nothing changes */
	assert_int_equal(hist.min, both.min);
}

TEST_WITH(clear_hist, NULL, difference_has_the_values_since_the_copy)
{
	static struct hist before, between;

	before = between = (struct hist){ 0 };
	for (uint64_t v = 1; v <= 100; v++)
		hist_add(&hist, v);
	hist_since(&hist, &before, &between);
	assert_int_equal(between.n, 100);
	between = (struct hist){ 0 };
	for (uint64_t v = 5001; v <= 5010; v++)
		hist_add(&hist, v);
	hist_since(&hist, &before, &between);
	assert_int_equal(between.n, 10);
	assert_in_range(between.min, 4996, 5001);
	assert_in_range(between.max, 5010, 5015);
	assert_in_range(hist_at(&between, 50), 5003, 5007);
	between = (struct hist){ 0 };
	hist_since(&hist, &before, &between);
	assert_int_equal(between.n, 0);
}
