/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/run_options.c and dataplane_options.c. */
#include "support/unit.h"
#include "support/words.h"

#include "support/run.h"

struct options {
	struct run_options run;
	struct dataplane_config plane;
};

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *opaque, struct mr_reason *error)
{
	struct options *o = opaque;

	return run_take_option(row, arg, &o->run, &o->plane, error);
}

static const struct option_row rows[] = {
	{ "workers", OPTION_WORKERS, "N", "threads" },
	{ "cores", OPTION_CORES, "LIST", "cores for them" },
	{ "json", OPTION_JSON, NULL, "JSON" },
	{ "csv", OPTION_CSV, NULL, "CSV" },
};

static enum parse_result parse(const char *line, struct options *ret,
			       struct mr_reason *error)
{
	static const struct option_table table = {
		.program = "mr-test",
		.usage = "usage: mr-test\n",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.take = take,
		.shared_rows = run_option_rows,
		.n_shared_rows = N_RUN_OPTION_ROWS,
	};
	struct words words;
	enum parse_result result;
	int first;

	words_cut(&words, "mr-test", line);
	*ret = (struct options){ .plane = { .page_bytes = 4096 } };
	memset(error, 0, sizeof(*error));
	result = option_table_parse(&table, words.n, words.argv, ret, &first,
				    error);
	return result == PARSE_RUN ?
		       run_complete_options(&ret->run, &ret->plane, error) :
		       result;
}

TEST(every_option_arrives)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(parse("--queues 2 --ring 512 --pool-pages 99 "
			       "--page-bytes 8192 --safety guard -d 1.5 -j "
			       "-q -w 3",
			       &o, &error),
			 PARSE_RUN);
	assert_int_equal(o.plane.port.n_queues, 2);
	assert_int_equal(o.plane.port.n_ring, 512);
	assert_int_equal(o.plane.n_pages, 99);
	assert_int_equal(o.plane.page_bytes, 8192);
	assert_int_equal(o.plane.safety, MR_SAFETY_GUARD);
	assert_int_equal(o.plane.n_workers, 3);
	assert_int_equal(o.run.duration_ms, 1500);
	assert_int_equal(o.run.output, OUTPUT_JSON);
	assert_true(o.run.is_quiet);
	assert_int_equal(parse("--csv", &o, &error), PARSE_RUN);
	assert_int_equal(o.run.output, OUTPUT_CSV);
	assert_int_equal(parse("", &o, &error), PARSE_RUN);
	assert_int_equal(o.run.output, OUTPUT_AUTO);
	assert_false(o.run.is_quiet);
}

TEST(the_level_of_the_log_is_what_was_asked_for)
{
	static const struct {
		const char *line;
		enum mr_log_level level;
	} cases[] = {
		{ "", MR_LOG_WARNING },
		{ "-q", MR_LOG_ERROR },
		{ "-v", MR_LOG_INFO },
		{ "-v -q --verbose", MR_LOG_DEBUG },
	};
	struct mr_reason error;
	struct options o;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].line, &o, &error), PARSE_RUN);
		assert_int_equal(o.plane.log_level, cases[i].level);
	}
}

TEST(options_that_contradict_are_refused)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ "--page-bytes 5000",
		  "--page-bytes: 5000 is not a power of two" },
		{ "--ring 1000", "--ring: 1000 is not a power of two" },
		{ "-w 3 -c 1,2", "--workers 3: --cores has 2; one for each" },
		{ "-d 0", "--duration: '0' is not a number of seconds" },
	};
	struct mr_reason error;
	struct options o;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].line, &o, &error), PARSE_WRONG);
		assert_reason_has(&error, cases[i].says);
	}
}
