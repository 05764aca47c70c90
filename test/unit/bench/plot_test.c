/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/bench/plot.c. cli_test.py reads charts as XML. */
#include "support/unit.h"

#include "plot.h"

static const struct plot_series series[] = {
	{ .name = "a<b & c",
	  .group = 0,
	  .n = 3,
	  .x = { 1, 8, 64 },
	  .y = { 1, 2, 3 } },
	{ .name = "dpdk",
	  .group = 1,
	  .n = 3,
	  .x = { 1, 8, 64 },
	  .y = { 50, 0, 90 } },
};

static struct plot two = { .title = "title",
			   .subtitle = "subtitle",
			   .x_name = "pages",
			   .y_name = "ns",
			   .series = series,
			   .n_series = 2 };

/* What it draws; to be freed. */
static char *drawn(bool (*draw)(const struct plot *, FILE *), bool is_good)
{
	char *text = NULL;
	size_t n_bytes = 0;
	FILE *file = open_memstream(&text, &n_bytes);

	assert_non_null(file);
	assert_int_equal(draw(&two, file), is_good);
	fclose(file);
	return text;
}

static uint32_t n_of(const char *text, const char *words)
{
	uint32_t n = 0;

	while ((text = strstr(text, words)) != NULL) {
		n++;
		text += strlen(words);
	}
	return n;
}

static void lines_have_their_points_and_say_their_scale(void **state)
{
	char *text = drawn(plot_lines, true);

	(void)state;
	assert_non_null(strstr(text, "<svg xmlns="));
	assert_non_null(strstr(text, "</svg>"));
	assert_non_null(strstr(text, "a&lt;b &amp; c"));
	assert_null(strstr(text, "a<b"));
	assert_int_equal(n_of(text, "(logarithmic)"), 2);
	/* 5 points (0 has no place there), and one in each legend line. */
	assert_int_equal(n_of(text, "<circle"), 5 + 2);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
}

static void many_lines_of_a_group_are_summed_up(void **state)
{
	struct plot_series many[4] = {
		{ .group = 1, .n = 2, .x = { 1, 2 }, .y = { 5, 3 } },
		{ .group = 0, .n = 2, .x = { 1, 2 }, .y = { 1, 1 } },
		{ .group = 1, .n = 3, .x = { 1, 2, 4 }, .y = { 4, 6, 7 } },
	};
	uint32_t n = 3;

	(void)state;
	plot_sum_up(many, &n, 0, "alone");
	assert_int_equal(n, 3);
	assert_false(many[1].is_pale);
	plot_sum_up(many, &n, 1, NULL);
	assert_int_equal(n, 3);
	plot_sum_up(many, &n, 1, "best");
	assert_int_equal(n, 4);
	assert_true(many[0].is_pale && many[2].is_pale);
	assert_false(many[1].is_pale || many[3].is_pale);
	assert_int_equal(many[3].n, 3);
	assert_true(many[3].y[0] == 4 && many[3].y[1] == 3 &&
		    many[3].y[2] == 7);
}

static void bars_have_their_values(void **state)
{
	char *text = drawn(plot_bars, true);

	(void)state;
	assert_int_equal(n_of(text, "<rect"), 1 + 2); /* the paper, and bars */
	assert_non_null(strstr(text, ">50</text>"));
	assert_non_null(strstr(text, ">1</text>"));
	free(text);
}

static void nothing_is_no_chart(void **state)
{
	(void)state;
	two.n_series = 0;
	free(drawn(plot_lines, false));
	free(drawn(plot_bars, false));
	two.n_series = 2;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_their_points_and_say_their_scale),
		cmocka_unit_test(many_lines_of_a_group_are_summed_up),
		cmocka_unit_test(bars_have_their_values),
		cmocka_unit_test(nothing_is_no_chart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
