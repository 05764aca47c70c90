/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/l2fwd/options.c: what is taken, and what the refusal says. */
#include "support/unit.h"
#include "support/words.h"

#include "options.h"

/* What the options point to lives until the next call. */
static enum parse_result parse(const char *line, struct options *options,
			       struct mr_reason *error)
{
	static struct words words;

	words_cut(&words, "mr-l2fwd", line);
	memset(error, 0, sizeof(*error));
	return options_parse(words.n, words.argv, options, error);
}

TEST(the_defaults_are_those_of_the_man_page)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(parse("eth0 eth1", &o, &error), PARSE_RUN);
	assert_int_equal(o.plane.n_ports, 2);
	assert_string_equal(o.plane.specs[0], "eth0");
	assert_string_equal(o.plane.specs[1], "eth1");
	assert_int_equal(o.mode, MODE_PATCH);
	assert_int_equal(o.plane.idle, MR_IDLE_ADAPTIVE);
	assert_int_equal(o.plane.burst, 256);
	assert_int_equal(o.plane.page_bytes, 4096);
	assert_int_equal(o.age_s, 300);
	assert_int_equal(o.fdb_limit, 8192);
	assert_int_equal(o.plane.n_workers + o.plane.n_cores +
				 o.plane.port.n_queues + o.plane.port.n_ring,
			 0);
	assert_int_equal(o.run.duration_ms, 0);
	assert_int_equal(o.n_frames, 0);
	assert_int_equal(o.run.output, OUTPUT_AUTO);
	assert_int_equal(o.plane.log_level, MR_LOG_WARNING);
}

TEST(every_option_arrives)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(
		parse("--mode learn --queues 2 --workers 3 --cores 1,4-6 "
		      "--burst 64 --ring 2048 --pool-pages 100 --page-bytes "
		      "8192 --mtu 9000 --promisc off --idle interrupt "
		      "--duration 1.5 --count 1000000000000 --age 10 "
		      "--fdb-limit 99 --safety poison --json --quiet -v -v a b "
		      "c",
		      &o, &error),
		PARSE_RUN);
	assert_int_equal(o.mode, MODE_LEARN);
	assert_int_equal(o.plane.port.n_queues, 2);
	assert_int_equal(o.plane.n_workers, 3);
	assert_int_equal(o.plane.n_cores, 4);
	assert_int_equal(o.plane.cores[0], 1);
	assert_int_equal(o.plane.cores[3], 6);
	assert_int_equal(o.plane.burst, 64);
	assert_int_equal(o.plane.port.n_ring, 2048);
	assert_int_equal(o.plane.n_pages, 100);
	assert_int_equal(o.plane.page_bytes, 8192);
	assert_int_equal(o.plane.port.mtu_bytes, 9000);
	assert_int_equal(o.plane.port.promisc, PROMISC_OFF);
	assert_int_equal(o.plane.idle, MR_IDLE_INTERRUPT);
	assert_int_equal(o.run.duration_ms, 1500);
	assert_int_equal(o.n_frames, 1000000000000);
	assert_int_equal(o.age_s, 10);
	assert_int_equal(o.fdb_limit, 99);
	assert_int_equal(o.plane.safety, MR_SAFETY_POISON);
	assert_int_equal(o.run.output, OUTPUT_JSON);
	assert_true(o.run.is_quiet);
	assert_int_equal(o.plane.log_level, MR_LOG_DEBUG);
	assert_int_equal(o.plane.n_ports, 3);
}

TEST(options_may_stand_behind_the_ports)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(
		parse("a --cores auto b --mode drop --csv", &o, &error),
		PARSE_RUN);
	assert_int_equal(o.plane.n_ports, 2);
	assert_string_equal(o.plane.specs[1], "b");
	assert_int_equal(o.mode, MODE_DROP);
	assert_int_equal(o.run.output, OUTPUT_CSV);
	assert_int_equal(o.plane.n_cores, 0);
	assert_int_equal(parse("-q a b", &o, &error), PARSE_RUN);
	assert_int_equal(o.plane.log_level, MR_LOG_ERROR);
	assert_int_equal(parse("-v -q a b", &o, &error), PARSE_RUN);
	assert_int_equal(o.plane.log_level, MR_LOG_INFO);
}

static const struct {
	const char *line;
	const char *says;
} wrong_lines[] = {
	{ "", "no ports: mode patch needs two" },
	{ "a", "too few ports: mode patch needs two" },
	{ "--mode drop", "no ports: mode drop needs one" },
	{ "a b c", "needs pairs" },
	{ "--mode macswap a b c", "needs pairs" },
	{ "a a", "a is given twice" },
	{ "-q 4 a b", "'4' is not a port: -q is now --quiet; use --que" },
	{ "--mode learn a -q 4 b", "use --queues" },
	{ "--mode bridge a b", "--mode: unknown word 'bridge'; valid: patch" },
	{ "--burst 0 a b", "--burst: 0 is out of range, 1 to 256" },
	{ "--page-bytes 3000 a b", "3000 is not a power of two" },
	{ "--ring 1000 a b", "--ring: 1000 is not a power of two" },
	{ "--safety most a b",
	  "--safety: unknown word 'most'; valid: counts states poison" },
	{ "--duration 0 a b", "--duration: '0' is not a number of seconds" },
	{ "--count 0 a b", "--count: 0 is out of range" },
	{ "--cores 0-64 a b", "--cores: more than 64" },
	{ "--cores 1 --workers 2 a b", "--workers 2: --cores lists only 1" },
	{ "--max-cpu 50 --idle poll a b", "--max-cpu requires --idle" },
	{ "--max-cpu 101 a b", "--max-cpu" },
	{ "--fdb-limit 0 a b", "--fdb-limit: 0 is out of range" },
	{ "--age 0 a b", "--age: 0 is out of range" },
	{ "--nonsense a b", "unknown option '--nonsense'; see mr-l2fwd" },
};

TEST(what_is_wrong_is_said_in_one_line)
{
	for (size_t i = 0; i < sizeof(wrong_lines) / sizeof(wrong_lines[0]);
	     i++) {
		struct mr_reason error;
		struct options o;

		if (parse(wrong_lines[i].line, &o, &error) != PARSE_WRONG)
			fail_msg("'%s' was taken", wrong_lines[i].line);
		assert_reason_has(&error, wrong_lines[i].says);
	}
}

TEST(help_fits_a_terminal)
{
	char *text = NULL;
	size_t n_bytes = 0;
	FILE *to = open_memstream(&text, &n_bytes);

	options_print_help(to);
	fclose(to);
	for (char *line = strtok(text, "\n"); line != NULL;
	     line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
	free(text);
}
