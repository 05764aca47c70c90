/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/bench/result: figure.c, read.c, units.c. */
#include "support/unit.h"

#include "result/figure.h"
#include "result/read.h"
#include "result/units.h"

static struct figure figure;

static void side(uint32_t i, uint32_t n, const double *values, double bound)
{
	struct figure_side *s = &figure.sides[i];

	s->n = n;
	for (uint32_t k = 0; k < n; k++) {
		s->values[k] = values[k];
		s->lows[k] = values[k] * (1 - bound);
		s->highs[k] = values[k] * (1 + bound);
	}
}

/* Each run is known to 1 % of itself; changes up to 2 % are none. */
static enum verdict judged_runs(const char *unit, uint32_t n_a, const double *a,
				uint32_t n_b, const double *b)
{
	struct comparison c;

	snprintf(figure.unit, sizeof(figure.unit), "%s", unit);
	side(0, n_a, a, 0.01);
	side(1, n_b, b, 0.01);
	figure_compare(&figure, 0.02, &c);
	assert_false(c.is_bootstrap);
	return c.verdict;
}

/* Two equal runs a side. */
static enum verdict judged(const char *unit, double a, double b)
{
	return judged_runs(unit, 2, (double[]){ a, a }, 2, (double[]){ b, b });
}

TEST(more_is_better_of_rates_and_worse_of_times)
{
	assert_int_equal(judged("frames/s", 100, 110), VERDICT_BETTER);
	assert_int_equal(judged("frames/s", 100, 90), VERDICT_WORSE);
	assert_int_equal(judged("ns", 100, 110), VERDICT_WORSE);
	assert_int_equal(judged("ns", 100, 90), VERDICT_BETTER);
	assert_int_equal(judged("frames lost", 50, 65), VERDICT_WORSE);
}

/* 1.9 %: below the threshold. 2.01 %: above, but 100..102 is about what one
 * run may be wrong by, so bounds decide. */
TEST(what_runs_differ_by_is_no_verdict)
{
	assert_int_equal(judged("frames/s", 100, 101.9), VERDICT_SAME);
	assert_int_equal(judged("frames/s", 100, 102.01), VERDICT_UNCLEAR);
	assert_int_equal(judged("frames/s", 100, 102.1), VERDICT_BETTER);
	assert_int_equal(judged("frames/s", 100, 98.01), VERDICT_SAME);
}

TEST(one_run_a_side_is_unclear)
{
	const double a[] = { 100, 100 }, b[] = { 200, 200 };

	assert_int_equal(judged_runs("ns", 1, a, 1, b), VERDICT_UNCLEAR);
	assert_int_equal(judged_runs("ns", 1, a, 1, a), VERDICT_UNCLEAR);
	assert_int_equal(judged_runs("ns", 1, a, 2, b), VERDICT_UNCLEAR);
	assert_int_equal(judged_runs("ns", 2, a, 1, b), VERDICT_UNCLEAR);
	assert_int_equal(judged_runs("ns", 2, a, 2, b), VERDICT_WORSE);
}

/* By chance, all runs of one side are above those of the other in 1 of 6. */
TEST(two_runs_a_side_must_be_further_apart_than_runs_are)
{
	const double a[] = { 100, 110 }, near[] = { 120, 130 };
	const double far[] = { 200, 210 };

	assert_int_equal(judged_runs("ns", 2, a, 2, near), VERDICT_UNCLEAR);
	assert_int_equal(judged_runs("ns", 2, a, 2, far), VERDICT_WORSE);
}

TEST(of_zero_a_change_must_exceed_the_floor)
{
	figure.floor = 1e-5; /* of 1,000,000 frames */
	assert_int_equal(judged("ratio", 0, 0), VERDICT_SAME);
	assert_int_equal(judged("ratio", 0, 1e-6), VERDICT_SAME);
	assert_int_equal(judged("ratio", 1e-6, 2e-6), VERDICT_SAME);
	assert_int_equal(judged("ratio", 0, 2e-5), VERDICT_WORSE);
	assert_int_equal(judged("ratio", 2e-5, 0), VERDICT_BETTER);
	figure.floor = 0;
	assert_int_equal(judged("frames lost", 0, 1), VERDICT_SAME);
	assert_int_equal(judged("frames lost", 0, 20), VERDICT_WORSE);
	assert_int_equal(judged("frames/s", 0, 100), VERDICT_BETTER);
	assert_int_equal(judged("frames/s", 100, 0), VERDICT_WORSE);
}

/* Most runs of both sides lose nothing: a median of a bit more is no verdict.
 */
TEST(of_zero_the_sides_must_be_apart)
{
	const double a[] = { 0, 0, 0, 0, 1e-5 };
	const double b[] = { 0, 0, 1e-7, 1e-7, 1e-7 };
	const double more[] = { 1e-4, 2e-5, 2e-5, 2e-5, 2e-5 };
	struct comparison c;

	snprintf(figure.unit, sizeof(figure.unit), "ratio");
	side(0, 5, a, 0);
	side(1, 5, b, 0);
	figure_compare(&figure, 0.01, &c);
	assert_int_equal(c.verdict, VERDICT_UNCLEAR);
	side(1, 5, more, 0);
	figure_compare(&figure, 0.01, &c);
	assert_int_equal(c.verdict, VERDICT_WORSE);
}

TEST(five_runs_a_side_make_a_bootstrap_interval)
{
	const double a[] = { 100, 101, 99, 100.5, 99.5 };
	const double b[] = { 105, 106, 104, 105.5, 104.5 };
	struct comparison c;

	snprintf(figure.unit, sizeof(figure.unit), "frames/s");
	side(0, 5, a, 0);
	side(1, 5, b, 0);
	figure_compare(&figure, 0.01, &c);
	assert_true(c.is_bootstrap);
	assert_true(c.ratio.value == 1.05);
	assert_true(c.ratio.low > 1.03 && c.ratio.high < 1.07);
	assert_int_equal(c.verdict, VERDICT_BETTER);
	side(0, 4, a, 0);
	figure_compare(&figure, 0.01, &c);
	assert_false(c.is_bootstrap);
	assert_true(c.ratio.low == 104.0 / 101 && c.ratio.high == 106.0 / 99);
	side(0, 0, a, 0);
	figure_compare(&figure, 0.01, &c);
	assert_int_equal(c.verdict, VERDICT_ALONE);
}

/* A document with rows and trials as given. */
static char *text_of(const char *rows, const char *trials)
{
	static char text[4096];

	snprintf(text, sizeof(text),
		 "{\"schema\": \"mr-bench-net\", \"v\": 1, \"machine\": {}, "
		 "\"ports\": [], \"series\": [], \"selftest\": [], "
		 "\"rows\": [%s], \"trials\": [%s]}",
		 rows, trials);
	return text;
}

static int read_text(const char *text, struct read_document *ret,
		     struct mr_reason *why)
{
	return document_read_bytes("x.json", text, strlen(text), ret, why);
}

#define TRIAL(PPS)                                                             \
	"{\"frame_bytes\": 60, \"asked_pps\": 1e6, \"start_s\": 0, "           \
	"\"duration_s\": 1, \"tx\": {\"sent\": 1000, \"pps\": " PPS "}, "      \
	"\"rx\": {\"received\": 900, \"lost\": 100, \"pps\": 9e5}, "           \
	"\"percentiles\": {}, \"histogram\": {}, \"latency\": null}"

TEST(rows_are_figures_or_else_trials_are)
{
	static const char row[] =
		"{\"goal\": \"ndr\", \"unit\": \"frames/s\", \"value\": 7, "
		"\"frame_bytes\": 1514, \"low\": 6, \"high\": 8}";
	struct figures figures = { 0 };
	struct read_document document;
	struct mr_reason why;

	assert_int_equal(read_text(text_of(row, TRIAL("5")), &document, &why),
			 0);
	figures_add(&figures, &document, 0);
	figures_add(&figures, &document, 1);
	assert_int_equal(figures.n, 1);
	assert_string_equal(figures.of[0]->name, "1518 B ndr");
	assert_true(figures.of[0]->sides[1].lows[0] == 6);
	figures_free(&figures);
	read_document_free(&document);

	/* Two trials of one load are two samples. */
	assert_int_equal(read_text(text_of("", TRIAL("5") "," TRIAL("6")),
				   &document, &why),
			 0);
	figures_add(&figures, &document, 0);
	assert_int_equal(figures.n, 3);
	assert_string_equal(figures.of[0]->name,
			    "64 B at 1e+06 frames/s: sent");
	assert_int_equal(figures.of[0]->sides[0].n, 2);
	assert_true(figures.of[0]->sides[0].values[1] == 6);
	assert_string_equal(figures.of[2]->unit, "ratio");
	assert_true(figures.of[2]->sides[0].values[0] == 0.1);
	assert_true(figures.of[2]->floor == 0.01); /* 10 of 1,000 frames */
	figures_free(&figures);
	read_document_free(&document);
}

TEST(what_is_no_document_is_one_line_with_a_cure)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "truncated" },
		{ "{\"schema\": \"mr-bench-net\", \"v\": 1", "truncated" },
		{ "[]", "no document of mr-bench" },
		{ "{\"schema\": \"other\"}", "no document of mr-bench" },
		{ "{\"schema\": \"mr-bench-net\", \"v\": 2}",
		  "version 2 of the schema" },
		{ "{\"schema\": \"mr-bench-net\", \"v\": 1}",
		  "no \"machine\"; measure again" },
		{ "{\"schema\": \"mr-bench-net\", \"v\": 1, \"machine\": {}}",
		  "no \"rows\"; measure again" },
	};
	static const char *const rows[][2] = {
		{ "7", "rows[0] is no object" },
		{ "{}", "rows[0].goal is no text" },
		{ "{\"goal\": \"a\", \"unit\": \"ns\", \"frame_bytes\": 1, "
		  "\"value\": \"7\"}",
		  "rows[0].value is no number" },
		{ "{\"goal\": \"a\", \"unit\": \"miles\", \"frame_bytes\": 1, "
		  "\"value\": 7, \"low\": 0, \"high\": 0}",
		  "rows[0].unit \"miles\" is unknown" },
	};
	struct read_document document;
	struct mr_reason why;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(read_text(cases[i].text, &document, &why) < 0);
		assert_int_equal(strncmp(why.text, "x.json: ", 8), 0);
		assert_non_null(strstr(why.text, cases[i].words));
		assert_null(strchr(why.text, '\n'));
	}
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_true(read_text(text_of(rows[i][0], ""), &document,
				      &why) < 0);
		assert_non_null(strstr(why.text, rows[i][1]));
	}
	assert_int_equal(document_read("/nowhere/x", &document, &why), -ENOENT);
	assert_non_null(strstr(why.text, "/nowhere/x: No such file"));
	assert_int_equal(document_read("/", &document, &why), -EISDIR);
}

TEST(values_are_as_people_read_them)
{
	static const struct {
		double value;
		const char *unit, *text;
	} cases[] = {
		{ 1234567.5, "frames/s", "1.235 Mframes/s" },
		{ 999.9, "frames/s", "999.9 frames/s" },
		{ 999999, "bit/s", "1.000 Mbit/s" },
		{ 25e9, "bit/s", "25.00 Gbit/s" },
		{ 0, "frames/s", "0 frames/s" },
		{ 3.7, "ns/frame", "3.700 ns/frame" },
		{ 1500, "ns", "1.500 us" },
		{ 0.25, "s", "250.0 ms" },
		{ 0.005, "ratio", "0.5 %" },
		{ 12, "frames lost", "12.00 frames lost" },
	};
	char text[48];

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unit_print(cases[i].value, cases[i].unit, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}
