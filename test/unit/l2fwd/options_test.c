/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/l2fwd/options.c: what is taken. Refusals: cli_test.py. */
#include "support/unit.h"
#include "support/words.h"

#include "options.h"

/* What the options point to lives until the next call. */
static enum parse_result parse_line(const char *line, struct options *options,
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

	assert_int_equal(parse_line("eth0 eth1", &o, &error), PARSE_RUN);
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
	assert_false(o.run.is_json);
	assert_int_equal(o.plane.log_level, MR_LOG_WARNING);
}

TEST(every_option_is_read)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(
		parse_line(
			"--mode learn --queues 2 --workers 3 --cores 1,4-6 "
			"--burst 64 --ring 2048 --pool-pages 100 --page-bytes "
			"8192 --mtu 9000 --promisc off --idle interrupt "
			"--duration 1.5 --count 1000000000000 --age 10 "
			"--fdb-limit 99 --safety poison --json --quiet -v -v a "
			"b "
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
	assert_true(o.run.is_json);
	assert_true(o.run.is_quiet);
	assert_int_equal(o.plane.log_level, MR_LOG_DEBUG);
	assert_int_equal(o.plane.n_ports, 3);
}

TEST(options_may_follow_the_ports)
{
	struct mr_reason error;
	struct options o;

	assert_int_equal(parse_line("a --cores auto b --mode drop", &o, &error),
			 PARSE_RUN);
	assert_int_equal(o.plane.n_ports, 2);
	assert_string_equal(o.plane.specs[1], "b");
	assert_int_equal(o.mode, MODE_DROP);
	assert_int_equal(o.plane.n_cores, 0);
	assert_int_equal(parse_line("-q a b", &o, &error), PARSE_RUN);
	assert_int_equal(o.plane.log_level, MR_LOG_ERROR);
	assert_int_equal(parse_line("-v -q a b", &o, &error), PARSE_RUN);
	assert_int_equal(o.plane.log_level, MR_LOG_INFO);
}
