/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/bench/options.c: what is taken, and what the refusal says. */
#include "support/unit.h"
#include "support/words.h"

#include "options.h"

/* What the options point to lives until the next call. */
static enum parse_result parse(const char *line, struct options *options,
			       struct mr_reason *error)
{
	static struct words words;

	words_cut(&words, "mr-bench", line);
	memset(error, 0, sizeof(*error));
	return options_parse(words.n, words.argv, options, error);
}

TEST(the_defaults_are_those_of_the_man_page)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(parse("mem", &o, &error), PARSE_RUN);
	assert_string_equal(o.command, "mem");
	assert_int_equal(o.n_names, 0);
	assert_int_equal(o.n_samples, 31);
	assert_int_equal(o.sample_ms, 50);
	assert_int_equal(o.n_cores, 0);
	assert_int_equal(o.sides, UINT32_MAX);
	assert_false(o.is_json || o.is_list || o.is_quiet || o.is_quick);
	assert_null(o.out);
	assert_int_equal(parse("flow", &o, &error), PARSE_RUN);
	assert_string_equal(o.command, "flow");
	assert_int_equal(parse("mem --goals", &o, &error), PARSE_RUN);
	assert_true(o.is_goals);
	assert_int_equal(o.n_samples, 15);
	assert_int_equal(o.sample_ms, 20);
	assert_int_equal(parse("mem --quick", &o, &error), PARSE_RUN);
	assert_int_equal(o.n_samples, 7);
	assert_int_equal(o.sample_ms, 5);
}

TEST(every_option_arrives)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(parse("--list --samples 9 mem --sample-ms 3 --quick "
			       "--only ours,plain --cores 2,4-5 --json --out d "
			       "--quiet B01 B06",
			       &o, &error),
			 PARSE_RUN);
	assert_true(o.is_list && o.is_json && o.is_quiet && o.is_quick);
	assert_int_equal(o.n_samples, 9);
	assert_int_equal(o.sample_ms, 3);
	assert_int_equal(o.sides, 1u << SIDE_OURS | 1u << SIDE_PLAIN);
	assert_int_equal(o.n_cores, 3);
	assert_int_equal(o.cores[0], 2);
	assert_int_equal(o.cores[2], 5);
	assert_string_equal(o.out, "d");
	assert_int_equal(o.n_names, 2);
	assert_string_equal(o.names[0], "B01");
	assert_string_equal(o.names[1], "B06");
	assert_int_equal(parse("mem --only-ours", &o, &error), PARSE_RUN);
	assert_int_equal(o.sides, 1u << SIDE_OURS);
}

TEST(what_is_wrong_is_said)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "", "no command; there are: mem flow" },
		{ "memory", "no command 'memory'" },
		{ "mem --nope", "no option '--nope'" },
		{ "mem --samples 0", "out of range, 1 to 512" },
		{ "mem --samples 513", "out of range, 1 to 512" },
		{ "mem --sample-ms 10001", "out of range, 1 to 10000" },
		{ "mem --only our", "--only: no 'our'; there are: ours dpdk "
				    "kernel plain malloc" },
		{ "mem --cores auto",
		  "--cores: 'auto' is no list of cores, as 1,3-5" },
	};
	struct mr_reason error;
	struct options o;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse(cases[i].line, &o, &error), PARSE_WRONG);
		if (strstr(error.text, cases[i].words) == NULL)
			fail_msg("%s: '%s'", cases[i].line, error.text);
	}
}
