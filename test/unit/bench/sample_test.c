/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/bench/sample.c: figures that can be worked out by hand. */
#include <math.h>

#include "support/unit.h"

#include "sample.h"

static int is_near(double a, double b)
{
	return a - b < 1e-9 && b - a < 1e-9;
}

TEST(the_median_is_the_middle_of_any_order)
{
	const double odd[] = { 5, 1, 9, 3, 7 };
	const double even[] = { 4, 1, 3, 2 };

	assert_true(is_near(sample_median(odd, 5), 5));
	assert_true(is_near(sample_median(even, 4), 2.5));
	assert_true(is_near(sample_median(odd, 1), 5));
	assert_true(is_near(sample_median(odd, 0), 0));
	assert_true(is_near(odd[0], 5)); /* the order stays */
}

TEST(a_summary_has_what_the_samples_have)
{
	const double values[] = { 10, 12, 11, 100, 9 };
	struct summary summary;

	sample_summary(values, 5, &summary);
	assert_int_equal(summary.n, 5);
	assert_true(is_near(summary.median, 11));
	assert_true(is_near(summary.min, 9));
	assert_true(is_near(summary.max, 100));
	assert_true(is_near(summary.mad, 1)); /* of 0 1 1 2 89 */
	assert_true(summary.low >= 9 && summary.low <= 11);
	assert_true(summary.high >= 11 && summary.high <= 100);
}

TEST(no_samples_are_no_figures)
{
	struct summary summary;

	sample_summary(NULL, 0, &summary);
	assert_int_equal(summary.n, 0);
	assert_true(is_near(sample_ratio(NULL, 0, NULL, 0).value, 0));
}

TEST(equal_samples_leave_no_doubt)
{
	const double twos[] = { 2, 2, 2, 2, 2, 2, 2 };
	const double fours[] = { 4, 4, 4, 4, 4, 4, 4 };
	const struct ratio ratio = sample_ratio(fours, 7, twos, 7);

	assert_true(is_near(ratio.value, 2));
	assert_true(is_near(ratio.low, 2));
	assert_true(is_near(ratio.high, 2));
}

/* 31 values around 100 and 31 around 150: 1.5, and 1 far outside. */
TEST(the_interval_holds_the_ratio_and_no_more)
{
	double a[31], b[31];
	struct ratio ratio;

	for (int i = 0; i < 31; i++) {
		a[i] = 150 + i * 7 % 31 - 15;
		b[i] = 100 + i * 11 % 31 - 15;
	}
	ratio = sample_ratio(a, 31, b, 31);
	assert_true(is_near(ratio.value, 1.5));
	assert_true(ratio.low > 1.3 && ratio.low < 1.5);
	assert_true(ratio.high > 1.5 && ratio.high < 1.7);
}

/* Where a resample of the divisor is 0, the ratio has no end. */
TEST(a_divisor_that_may_be_zero_leaves_the_ratio_open)
{
	const double ones[] = { 1, 1, 1, 1, 1 };
	const double twos[] = { 0, 0, 2, 2, 2 };
	const struct ratio ratio = sample_ratio(ones, 5, twos, 5);

	assert_true(is_near(ratio.value, 0.5));
	assert_true(is_near(ratio.low, 0.5));
	assert_true(isinf(ratio.high));
}

/* A wider spread makes a wider interval: it is not a constant. */
TEST(the_interval_follows_the_spread)
{
	double narrow[31], wide[31];
	struct summary a, b;

	for (int i = 0; i < 31; i++) {
		narrow[i] = 100 + i * 7 % 31 - 15;
		wide[i] = 100 + 4 * (i * 7 % 31 - 15);
	}
	sample_summary(narrow, 31, &a);
	sample_summary(wide, 31, &b);
	assert_true(a.high > a.low);
	assert_true(b.high - b.low > 2 * (a.high - a.low));
}
