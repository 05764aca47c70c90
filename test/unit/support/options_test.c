/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/options.c, with a table of their own. */
#include "support/unit.h"

#include "support/options.h"
#include "support/run.h"
#include "support/values.h"
#include "support/words.h"

enum { MAX_SIDES = 3, GROUP_OURS = 1, GROUP_OTHER = 2 };

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

static bool read_inside(const char *text, void *to, struct mr_reason *why)
{
	struct options *options = to;

	if (options->n_sides == MAX_SIDES)
		return value_wrong(why, "more than %d", MAX_SIDES);
	options->sides[options->n_sides++] = text;
	return true;
}

static const struct yaml_key own_keys[] = {
	YAML_NUMBER("burst", options, burst, 1, 256, .letter = 'b',
		    YAML_OPTION("N", "entries")),
	{ .name = "inside",
	  .take = yaml_take_value,
	  .read = read_inside,
	  YAML_OPTION("PORT=ADDR", "may be given again") },
	YAML_BOOL("check", options, is_check, YAML_OPTION(NULL, "look only")),
	YAML_END,
};

static const struct yaml_key keys[] = {
	YAML_NUMBER("n_ring", settings, n_ring, 1, 99, .letter = 'r',
		    .group = GROUP_OURS,
		    YAML_OPTION("N", "entries of a ring")),
	YAML_BOOL("file_only", settings, is_quiet),
	YAML_BOOL("hidden", settings, is_quiet, .group = GROUP_OTHER,
		  YAML_OPTION(NULL, "of other programs")),
	YAML_BOOL("quiet", settings, is_quiet, .letter = 'q',
		  YAML_OPTION(NULL, "print less")),
	YAML_ROW("verbose", option_take_count, settings, n_verbose,
		 .letter = 'v', YAML_OPTION(NULL, "print more")),
	YAML_ROW("path", option_take_string, settings, path,
		 YAML_OPTION("FILE", "read it")),
	YAML_END,
};

static const struct option_keys sets[] = {
	{ own_keys, 0, false, 0 },
	{ keys, offsetof(struct options, settings), true, GROUP_OURS },
};

static const struct option_table table = {
	.program = "mr-test",
	.usage = "usage: mr-test PORT\n",
	.sets = sets,
	.n_sets = 2,
};

struct run {
	struct words words;
	int first;
	struct options options;
	struct option_given given;
	struct mr_reason error;
};

static enum parse_result parse_line(struct run *run, const char *line)
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

	assert_int_equal(parse_line(&run, "eth0 -b 7 --check eth1"), PARSE_RUN);
	assert_int_equal(run.options.burst, 7);
	assert_true(run.options.is_check);
	assert_int_equal(run.words.n - run.first, 2);
	assert_string_equal(run.words.argv[run.first], "eth0");
	assert_string_equal(run.words.argv[run.first + 1], "eth1");
	assert_int_equal(parse_line(&run, "--burst=9 -- --check"), PARSE_RUN);
	assert_int_equal(run.options.burst, 9);
	assert_false(run.options.is_check);
	assert_string_equal(run.words.argv[run.first], "--check");
}

/* As mr-nat --inside eth0=10.0.0.1/24 --inside eth1=10.0.1.1/24 */
TEST(an_option_may_be_repeated_up_to_its_limit)
{
	struct run run;

	assert_int_equal(
		parse_line(&run, "--inside a=1 -b 2 --inside=b=3,gw=4"),
		PARSE_RUN);
	assert_int_equal(run.options.n_sides, 2);
	assert_string_equal(run.options.sides[0], "a=1");
	assert_string_equal(run.options.sides[1], "b=3,gw=4");
	assert_int_equal(parse_line(&run, "--inside a --inside b --inside c "
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
		{ "-b 257", "--burst: '257' is not a whole number "
			     "from 1 to 256" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run run;

		if (parse_line(&run, cases[i].line) != PARSE_WRONG)
			fail_msg("'%s' was taken", cases[i].line);
		assert_reason_has(&run.error, cases[i].says);
	}
}

TEST(keys_with_a_help_are_options)
{
	struct run run;

	assert_int_equal(
		parse_line(&run, "-vq --verbose --path a --n-ring 7 -r 8"),
		PARSE_RUN);
	assert_int_equal(run.options.settings.n_verbose, 2);
	assert_int_equal(run.options.settings.n_ring, 8);
	assert_true(run.options.settings.is_quiet);
	assert_string_equal(run.options.settings.path, "a");
	/* Each once, with its last value. */
	assert_int_equal(run.given.n, 4);
	assert_string_equal(run.given.list[3].name, "n_ring");
	assert_string_equal(run.given.list[3].value, "8");
	assert_int_equal(parse_line(&run, "--n-ring 100"), PARSE_WRONG);
	assert_reason_has(&run.error, "--n-ring: '100' is not a whole number "
				      "from 1 to 99");
	assert_int_equal(parse_line(&run, "--file-only"), PARSE_WRONG);
	assert_int_equal(parse_line(&run, "--hidden"), PARSE_WRONG);
}

TEST(no_key_of_a_program_has_a_dash)
{
	static const struct yaml_key *const tables[] = { run_keys,
							 run_control_keys };

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
