/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/bench: plot.c, plot_axis.c. cli_test.py reads charts as XML,
 * and a browser looks at them in test/gen. */
#include "support/unit.h"

#include "plot_axis.h"

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

TEST(lines_have_their_points_and_say_their_scale)
{
	char *text = drawn(plot_lines, true);

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

TEST(many_lines_of_a_group_are_summed_up)
{
	struct plot_series many[4] = {
		{ .group = 1, .n = 2, .x = { 1, 2 }, .y = { 5, 3 } },
		{ .group = 0, .n = 2, .x = { 1, 2 }, .y = { 1, 1 } },
		{ .group = 1, .n = 3, .x = { 1, 2, 4 }, .y = { 4, 6, 7 } },
	};
	uint32_t n = 3;

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

TEST(bars_have_their_values)
{
	char *text = drawn(plot_bars, true);

	assert_int_equal(n_of(text, "<rect"), 1 + 2); /* the paper, and bars */
	assert_non_null(strstr(text, ">50</text>"));
	assert_non_null(strstr(text, ">1</text>"));
	free(text);
}

static struct axis x_of(enum plot_scale scale, struct plot_series *s)
{
	const struct plot plot = { .series = s,
				   .n_series = 1,
				   .x_scale = scale,
				   .y_scale = PLOT_LINEAR };
	struct axis axis;

	axis_of(&plot, true, &axis);
	return axis;
}

TEST(percentiles_have_a_step_for_each_nine)
{
	struct plot_series s = { .n = 3,
				 .x = { 0, 50, 99.99 },
				 .y = { 1, 2, 3 } };
	const struct axis axis = x_of(PLOT_PERCENTILE, &s);
	struct tick ticks[PLOT_MAX_TICKS];
	const uint32_t n = axis_ticks(&axis, true, ticks);

	assert_true(axis_place(&axis, 0) == 0);
	assert_float_equal(axis_place(&axis, 90), 0.25, 1e-6);
	assert_float_equal(axis_place(&axis, 99), 0.5, 1e-6);
	assert_float_equal(axis_place(&axis, 99.99), 1, 1e-6);
	/* Without 0: 50 stands close to it. */
	assert_int_equal(n, 5);
	assert_string_equal(ticks[0].text, "50 %");
	assert_string_equal(ticks[4].text, "99.99 %");
}

TEST(values_of_an_even_axis_have_equal_steps)
{
	struct plot_series s = { .n = 4,
				 .x = { 1518, 64, 1280, 64 },
				 .y = { 1, 2, 3, 4 } };
	const struct axis axis = x_of(PLOT_EVEN, &s);
	struct tick ticks[PLOT_MAX_TICKS];

	assert_int_equal(axis.n_values, 3);
	assert_float_equal(axis_place(&axis, 64), 0.5 / 3, 1e-6);
	assert_float_equal(axis_place(&axis, 1280), 1.5 / 3, 1e-6);
	assert_float_equal(axis_place(&axis, 1518), 2.5 / 3, 1e-6);
	assert_int_equal(axis_ticks(&axis, true, ticks), 3);
	assert_string_equal(ticks[2].text, "1518");
}

/* 0 % of loss is a figure; on a logarithmic axis it has no place. */
TEST(zero_is_shown_where_it_has_a_place)
{
	struct plot_series s = { .n = 3, .x = { 1, 2, 3 }, .y = { 0, 0, 5 } };
	struct plot plot = { .series = &s, .n_series = 1 };
	struct axis axis;

	plot.y_scale = PLOT_LINEAR;
	axis_of(&plot, false, &axis);
	assert_true(axis_shows(&axis, 0));
	assert_true(axis.min == 0 && axis.max > 5);
	axis_of(&plot, true, &axis);
	assert_true(axis.min == 1 && axis.max == 3);
	plot.y_scale = PLOT_LOG;
	axis_of(&plot, false, &axis);
	assert_false(axis_shows(&axis, 0));
	assert_true(axis.min > 0);
}

TEST(ticks_have_the_unit)
{
	struct plot_series s = { .n = 2, .x = { 1, 2 }, .y = { 1e3, 1e6 } };
	struct plot plot = { .series = &s, .n_series = 1, .y_unit = "ns" };
	struct tick ticks[PLOT_MAX_TICKS];
	struct axis axis;
	uint32_t n, n_found = 0;

	axis_of(&plot, false, &axis);
	assert_int_equal(axis.scale, PLOT_LOG);
	n = axis_ticks(&axis, false, ticks);
	for (uint32_t i = 0; i < n; i++)
		n_found += strcmp(ticks[i].text, "20 us") == 0 ||
			   strcmp(ticks[i].text, "1 ms") == 0;
	assert_int_equal(n_found, 2);
}

/* Steps that touch share an edge; a gap goes down to the bottom. */
TEST(steps_and_bounds_are_drawn)
{
	const double to[] = { 2, 3, 9 }, low[] = { 1, 2, 3 };
	const double high[] = { 3, 4, 5 };
	struct plot_series many[] = {
		{ .name = "steps",
		  .look = PLOT_STEPS,
		  .n = 3,
		  .x = { 1, 2, 8 },
		  .y = { 5, 6, 7 },
		  .x_to = to },
		{ .name = "line",
		  .n = 3,
		  .x = { 1, 2, 3 },
		  .y = { 2, 3, 4 },
		  .low = low,
		  .high = high },
		{ .name = "limit",
		  .look = PLOT_LIMIT,
		  .group = 3,
		  .n = 2,
		  .x = { 1, 3 },
		  .y = { 9, 9 } },
	};
	char *text;

	two = (struct plot){ .title = "a<b",
			     .desc = "c&d",
			     .id = "x7",
			     .x_name = "x",
			     .y_name = "y",
			     .x_scale = PLOT_LINEAR,
			     .y_scale = PLOT_LINEAR,
			     .series = many,
			     .n_series = 3 };
	text = drawn(plot_lines, true);
	assert_non_null(strstr(text, "<title id=\"x7-t\">a&lt;b</title>"));
	assert_non_null(strstr(text, "<desc id=\"x7-d\">c&amp;d</desc>"));
	assert_null(strstr(text, "fill=\"#ffffff\"")); /* the page's paper */
	/* The first two steps, one outline; the third, another one. */
	assert_int_equal(n_of(text, " H"), 3);
	assert_int_equal(n_of(text, "stroke-width=\"5\""), 3);
	/* Marks of the line alone, and of its line in the legend. */
	assert_int_equal(n_of(text, "<circle"), 3 + 1);
	free(text);
}

TEST(nothing_is_no_chart)
{
	two.n_series = 0;
	free(drawn(plot_lines, false));
	free(drawn(plot_bars, false));
	two.n_series = 2;
}
