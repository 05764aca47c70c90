/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/values.c and text.c. test/nat/test_settings.py tests
 * what yaml_keys.c reports about a file. */
#include "support/unit.h"

#include "support/text.h"
#include "support/values.h"

TEST(test_durations_have_units)
{
	static const struct {
		const char *text;
		uint32_t s;
	} good[] = { { "90", 90 },          { "90s", 90 },
		     { "5m", 300 },         { "2h4m", 7440 },
		     { "1d1h1m1s", 90061 }, { "365d", 31536000 } };
	static const char *const bad[] = {
		"",    "0",    "m",  "5x",  "1m1h", "5m3",
		"1mm", "366d", "-1", "5 m", "1s1",  "99999999999999999999s"
	};
	struct mr_reason why;
	uint32_t s;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(value_duration(good[i].text, &s, &why));
		assert_int_equal(s, good[i].s);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		s = 7;
		assert_false(value_duration(bad[i], &s, &why));
		assert_int_equal(s, 7);
		assert_non_null(strstr(why.text, "as 90s, 5m or 2h4m"));
	}
}

TEST(test_numbers_have_a_range)
{
	static const char *const bad[] = {
		"",   "-1", "4294967296", "1x", "0x1", " 1",
		"+1", "0",  "11",         "99999999999999999999"
	};
	struct mr_reason why;
	uint32_t n = 7;

	assert_true(value_number("10", 1, 10, &n, &why));
	assert_int_equal(n, 10);
	assert_true(value_number("4294967295", 0, UINT32_MAX, &n, &why));
	assert_int_equal(n, UINT32_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(value_number(bad[i], 1, 10, &n, &why));
	assert_int_equal(n, UINT32_MAX);
}

TEST(seconds_are_read_to_the_millisecond)
{
	static const char *const bad[] = {
		"", "0", "-1", "nan", "1s", "1e10"
	};
	struct mr_reason why;
	uint64_t ms = 5;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(value_seconds(bad[i], &ms, &why));
	assert_int_equal(ms, 5);
	assert_true(value_seconds("0.0015", &ms, &why));
	assert_int_equal(ms, 2);
	assert_true(value_seconds("300", &ms, &why));
	assert_int_equal(ms, 300000);
}

TEST(words_must_be_whole)
{
	static const char *const words[] = { "on", "off", "auto", NULL };
	struct mr_reason why;
	uint32_t n = 9;

	assert_false(value_word("of", words, &n, &why));
	assert_string_equal(why.text, "'of' is not one of: on, off, auto");
	assert_false(value_word("on,off", words, &n, &why));
	assert_int_equal(n, 9);
	assert_true(value_word("auto", words, &n, &why));
	assert_int_equal(n, 2);
}

TEST(test_the_nearest_word_is_suggested)
{
	static const char *const words[] = { "gateway", "addresses", "mtu",
					     NULL };

	assert_string_equal(value_nearest("gatewax", words), "gateway");
	assert_string_equal(value_nearest("address", words), "addresses");
	assert_string_equal(value_nearest("mut", words), "mtu");
	assert_null(value_nearest("subscribers", words));
	assert_null(value_nearest("x", words));
	assert_null(value_nearest(
		"a word that is much longer than any of them is", words));
}

TEST(durations_are_written_as_they_are_read)
{
	static const struct {
		uint32_t s;
		const char *text;
	} cases[] = { { 1, "1s" },           { 60, "1m" },
		      { 7440, "2h4m" },      { 86400, "1d" },
		      { 90061, "1d1h1m1s" }, { 31536000, "365d" } };
	struct mr_reason why;
	uint32_t s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[24];

		value_write_duration(cases[i].s, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		assert_true(value_duration(text, &s, &why));
		assert_int_equal(s, cases[i].s);
	}
}

TEST(cores_are_numbers_and_ranges)
{
	static const char *const none[] = { "",    ",",    "1,",   "1-",
					    "3-1", "1024", "1;2",  "-1",
					    "a",   "1--2", "1-2-3" };
	uint32_t cores[MR_WORKERS_MAX], n = 9;
	struct mr_reason why;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(value_cores(none[i], cores, &n, &why));
		assert_reason_has(&why, "is not a list of cores such as 1,3-5");
	}
	assert_false(value_cores("0-64", cores, &n, &why));
	assert_reason_has(&why, "more than 64");
	assert_int_equal(n, 9);
	assert_true(value_cores("7,1-3,1023", cores, &n, &why));
	assert_int_equal(n, 5);
	assert_int_equal(cores[0], 7);
	assert_int_equal(cores[1], 1);
	assert_int_equal(cores[3], 3);
	assert_int_equal(cores[4], 1023);
	assert_true(value_cores("auto", cores, &n, &why));
	assert_int_equal(n, 0);
}

TEST(test_control_characters_are_escaped)
{
	static const char *const cases[][2] = {
		{ "plain \xc3\xa4", "plain \xc3\xa4" },
		{ "a\nb\tc", "a\\nb\\tc" },
		{ "\x1b[31m\x7f", "\\x1b[31m\\x7f" },
		{ "\xc2\x9b"
		  "2J\xc2\xa0\xc2",
		  "\\xc2\\x9b"
		  "2J\xc2\xa0\\xc2" },
		{ "\x9b"
		  "2J\xc0\xaf\xed\xa0\x80",
		  "\\x9b"
		  "2J\\xc0\\xaf\\xed\\xa0\\x80" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x82",
		  "\xe2\x82\xac\xf0\x9f\x98\x80\\xe2\\x82" },
	};
	char escaped[40];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(
			text_escape(cases[i][0], escaped, sizeof(escaped)),
			cases[i][1]);
	/* Neither an escape nor a character is cut in two. */
	assert_string_equal(text_escape("ab\x1b", escaped, 6), "ab");
	assert_string_equal(text_escape("ab\xe2\x82\xac", escaped, 5), "ab");
}
