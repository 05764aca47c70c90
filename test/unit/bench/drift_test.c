/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/search: drift.c, on lines that are known, and known.c,
 * whose table has to tell a tester that is wrong.
 */
#include <math.h>

#include "support/unit.h"

#include "search/drift.h"
#include "search/known.h"

static int is_near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fabs(b) + 1e-9;
}

TEST(a_line_has_its_slope)
{
	struct drift d = { 0 };

	/* Far from 0, where sums of squares would cancel. */
	for (int i = 0; i < 100; i++)
		drift_add(&d, 1e6 + i, 1e9 - 3.0 * i);
	assert_true(is_near(drift_slope(&d), -3));
	assert_true(drift_is_real(&d));
	assert_true(is_near(d.first, 1e9) && is_near(d.last, 1e9 - 297));
	assert_true(is_near(d.min, d.last) && is_near(d.max, d.first));
}

TEST(noise_does_not_drift)
{
	struct drift noise = { 0 }, both = { 0 };
	uint32_t random = 1;

	for (int i = 0; i < 200; i++) {
		random = random * 1664525 + 1013904223;
		drift_add(&noise, i, (double)(random >> 16));
		drift_add(&both, i, (double)(random >> 16) + 1000.0 * i);
	}
	assert_false(drift_is_real(&noise));
	assert_true(drift_is_real(&both));
	assert_true(fabs(drift_slope(&both) - 1000) < 100);
}

TEST(few_values_say_nothing)
{
	struct drift d = { 0 };

	for (int i = 0; i < 4; i++) {
		assert_false(drift_is_real(&d));
		drift_add(&d, i, i);
	}
	assert_false(drift_is_real(&d));
	assert_true(is_near(drift_slope(&d), 1));
	assert_true(is_near(drift_slope(&(struct drift){ 0 }), 0));
	/* All at one time: no line. */
	d = (struct drift){ 0 };
	for (int i = 0; i < 9; i++)
		drift_add(&d, 7, i);
	assert_true(is_near(drift_slope(&d), 0));
}

/* Nothing found at all agrees with none of the cases. */
TEST(a_tester_that_finds_nothing_is_wrong)
{
	static struct trial_result none; /* large */
	const struct known_case *cases;
	uint32_t n;

	cases = known_cases(&n);
	assert_true(n >= 5);
	for (uint32_t i = 0; i < n; i++) {
		const struct known_case *c = &cases[i];

		assert_false(known_agrees(c, c->found(&none)));
		assert_true(known_agrees(c, c->injected));
		assert_true(known_agrees(c, c->injected - 0.9 * c->error));
		assert_false(known_agrees(c, c->injected + c->error + 1));
		assert_true(c->error <= 0.03 * c->injected);
	}
}
