/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/options.c, with a table of their own. */
#include "support/unit.h"

#include "support/options.h"
#include "support/run.h"
#include "support/words.h"

enum { MAX_SIDES = 3, ID_INSIDE = OPTION_LONG, ID_CHECK };

struct options {
	uint32_t burst;
	bool is_check;
	const char *sides[MAX_SIDES];
	uint32_t n_sides;
	struct settings {
		uint32_t n_ring, n_verbose;
		bool is_quiet;
		const char *path;
	} settings;
};

static const struct option_row rows[] = {
	{ "burst", 'b', "N", "entries" },
	{ "inside", ID_INSIDE, "PORT=ADDR", "may be given again" },
	{ "check", ID_CHECK, NULL, "look only" },
	{ "n-ring", OPTION_KEY, "N", "entries of a ring" },
	{ "hidden", OPTION_KEY, NULL, NULL },
};

#define SETTING(member) .offset = offsetof(struct settings, member)

static const struct yaml_key keys[] = {
	{ .name = "n_ring",
	  .take = yaml_take_number,
	  SETTING(n_ring),
	  .min = 1,
	  .max = 99,
	  .letter = 'r' },
	{ .name = "file_only", .take = yaml_take_bool, SETTING(is_quiet) },
	{ .name = "hidden",
	  .take = yaml_take_bool,
	  SETTING(is_quiet),
	  .help = "of other programs" },
	{ .name = "quiet",
	  .take = yaml_take_bool,
	  SETTING(is_quiet),
	  .letter = 'q',
	  .help = "print less" },
	{ .name = "verbose",
	  .take = option_take_count,
	  SETTING(n_verbose),
	  .letter = 'v',
	  .help = "print more" },
	{ .name = "path",
	  .take = option_take_string,
	  SETTING(path),
	  .arg = "FILE",
	  .help = "read it" },
	{ .name = NULL },
};

static const struct option_keys set = { keys,
					offsetof(struct options, settings),
					true };

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *opaque, struct mr_reason *ret_error)
{
	struct options *options = opaque;

	switch (row->id) {
	case 'b':
		return parse_u32(row->name, arg, 1, 256, &options->burst,
				 ret_error);
	case ID_INSIDE:
		if (options->n_sides == MAX_SIDES)
			return parse_wrong(ret_error, "--%s: more than %d",
					   row->name, MAX_SIDES);
		options->sides[options->n_sides++] = arg;
		return PARSE_RUN;
	default: /* ID_CHECK */
		options->is_check = true;
		return PARSE_RUN;
	}
}

static const struct option_table table = {
	.program = "mr-test",
	.usage = "usage: mr-test PORT\n",
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take,
	.sets = &set,
	.n_sets = 1,
};

struct run {
	struct words words;
	int first;
	struct options options;
	struct option_given given;
	struct mr_reason error;
};

static enum parse_result parse(struct run *run, const char *line)
{
	*run = (struct run){ 0 };
	words_cut(&run->words, "mr-test", line);
	return option_table_parse(&table, run->words.n, run->words.argv,
				  &run->options, &run->first, &run->given,
				  &run->error);
}

TEST(short_and_long_options_stand_anywhere)
{
	struct run run;

	assert_int_equal(parse(&run, "eth0 -b 7 --check eth1"), PARSE_RUN);
	assert_int_equal(run.options.burst, 7);
	assert_true(run.options.is_check);
	assert_int_equal(run.words.n - run.first, 2);
	assert_string_equal(run.words.argv[run.first], "eth0");
	assert_string_equal(run.words.argv[run.first + 1], "eth1");
	assert_int_equal(parse(&run, "--burst=9 -- --check"), PARSE_RUN);
	assert_int_equal(run.options.burst, 9);
	assert_false(run.options.is_check);
	assert_string_equal(run.words.argv[run.first], "--check");
}

/* As mr-nat --inside eth0=10.0.0.1/24 --inside eth1=10.0.1.1/24 */
TEST(an_option_may_be_repeated_up_to_its_limit)
{
	struct run run;

	assert_int_equal(parse(&run, "--inside a=1 -b 2 --inside=b=3,gw=4"),
			 PARSE_RUN);
	assert_int_equal(run.options.n_sides, 2);
	assert_string_equal(run.options.sides[0], "a=1");
	assert_string_equal(run.options.sides[1], "b=3,gw=4");
	assert_int_equal(parse(&run, "--inside a --inside b --inside c "
				     "--inside d"),
			 PARSE_WRONG);
	assert_reason_has(&run.error, "--inside: more than 3");
}

TEST(unknown_options_are_refused)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ "--nope", "unknown option '--nope'; see mr-test --help" },
		{ "a -x", "unknown option '-x'" },
		{ "a -xh", "unknown option '-x'" },
		{ "--check=1", "option '--check' takes no value" },
		{ "--che=1", "option '--check' takes no value" },
		{ "--burst", "option '--burst' needs a value" },
		{ "-b", "option '-b' needs a value" },
		{ "-b 257", "--burst: 257 is out of range, 1 to 256" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run run;

		if (parse(&run, cases[i].line) != PARSE_WRONG)
			fail_msg("'%s' was taken", cases[i].line);
		assert_reason_has(&run.error, cases[i].says);
	}
}

TEST(keys_with_a_help_are_options)
{
	struct run run;

	assert_int_equal(parse(&run, "-vq --verbose --path a --n-ring 7 -r 8"),
			 PARSE_RUN);
	assert_int_equal(run.options.settings.n_verbose, 2);
	assert_int_equal(run.options.settings.n_ring, 8);
	assert_true(run.options.settings.is_quiet);
	assert_string_equal(run.options.settings.path, "a");
	/* Each once, with its last value. */
	assert_int_equal(run.given.n, 4);
	assert_string_equal(run.given.list[3].name, "n_ring");
	assert_string_equal(run.given.list[3].value, "8");
	assert_int_equal(parse(&run, "--n-ring 100"), PARSE_WRONG);
	assert_reason_has(&run.error, "--n-ring: '100' is not a whole number "
				      "from 1 to 99");
	assert_int_equal(parse(&run, "--file-only"), PARSE_WRONG);
	assert_int_equal(parse(&run, "--hidden"), PARSE_WRONG);
}

/* A key has _ where its option has -. */
TEST(every_key_of_a_program_is_found_by_its_option)
{
	static const struct yaml_key *const tables[] = { run_keys,
							 run_control_keys };

	assert_non_null(yaml_find_option(run_keys, "exit-on-port-loss"));
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct yaml_key *key = tables[i]; key->name != NULL;
		     key++)
			assert_null(strchr(key->name, '-'));
}

TEST(help_lists_the_table)
{
	char *text = NULL;
	size_t n_bytes = 0;
	FILE *to = open_memstream(&text, &n_bytes);

	option_table_print_help(&table, to);
	fclose(to);
	assert_string_equal(
		text, "usage: mr-test PORT\n"
		      "\n"
		      "  -b, --burst N          entries\n"
		      "      --inside PORT=ADDR may be given again\n"
		      "      --check            look only\n"
		      "  -r, --n-ring N         entries of a ring\n"
		      "  -q, --quiet            print less\n"
		      "  -v, --verbose          print more\n"
		      "      --path FILE        read it\n"
		      "  -h, --help             print this help\n"
		      "  -V, --version          print the version\n"
		      "\n"
		      "Exit status: 0; 1 on failure; 2 on a usage error.\n");
	free(text);
}

/* Of the values that follow. */
static struct mr_reason error;

static void taken(enum parse_result result)
{
	assert_int_equal(result, PARSE_RUN);
}

static void refused(enum parse_result result, const char *says)
{
	assert_int_equal(result, PARSE_WRONG);
	assert_reason_has(&error, says);
}

TEST(numbers_have_a_range)
{
	static const char *const none[] = { "",   "x",  "1x",  "-1",
					    " 1", "+1", "0x1", "1.5" };
	uint64_t big = 5;
	uint32_t n = 5;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		refused(parse_u32("n", none[i], 0, 9, &n, &error),
			"is not a whole number");
	refused(parse_u32("n", "2", 3, 9, &n, &error),
		"--n: 2 is out of range, 3 to 9");
	refused(parse_u32("n", "10", 3, 9, &n, &error), "out of range");
	refused(parse_u64("n", "18446744073709551616", 0, UINT64_MAX, &big,
			  &error),
		"");
	assert_int_equal(n, 5);
	assert_int_equal(big, 5);
	taken(parse_u32("n", "3", 3, 9, &n, &error));
	assert_int_equal(n, 3);
	taken(parse_u32("n", "9", 3, 9, &n, &error));
	assert_int_equal(n, 9);
	taken(parse_u64("n", "18446744073709551615", 0, UINT64_MAX, &big,
			&error));
	assert_true(big == UINT64_MAX);
}

TEST(seconds_are_read_to_the_millisecond)
{
	static const char *const none[] = {
		"", "0", "-1", "nan", "1s", "1e10"
	};
	uint64_t ms = 5;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		refused(parse_seconds("age", none[i], &ms, &error), "--age: '");
	assert_int_equal(ms, 5);
	taken(parse_seconds("age", "0.0015", &ms, &error));
	assert_int_equal(ms, 2);
	taken(parse_seconds("age", "300", &ms, &error));
	assert_int_equal(ms, 300000);
}

TEST(words_must_be_whole)
{
	static const char *const words[] = { "on", "off", "auto", NULL };
	uint32_t n = 9;

	refused(parse_word("p", "of", words, &n, &error),
		"--p: 'of' is not one of: on, off, auto");
	refused(parse_word("p", "on,off", words, &n, &error), "");
	assert_int_equal(n, 9);
	taken(parse_word("p", "auto", words, &n, &error));
	assert_int_equal(n, 2);
}
