/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates as people write them. */
#include <string.h>

#include "net/rate.h"
#include "support/test.h"

TEST(all_units_are_read)
{
	static const struct {
		const char *text;
		enum rate_unit unit;
		double value;
		const char *printed;
	} cases[] = {
		{ "max", RATE_FULL, 0, "max" },
		{ "1000", RATE_PPS, 1000, "1kpps" },
		{ "1.2M", RATE_PPS, 1.2e6, "1.2Mpps" },
		{ "14.88Mpps", RATE_PPS, 14.88e6, "14.88Mpps" },
		{ "10Gbit", RATE_L1_BPS, 10e9, "10Gbit" },
		{ "10Gbit-l1", RATE_L1_BPS, 10e9, "10Gbit" },
		{ "100Mbit-l2", RATE_L2_BPS, 100e6, "100Mbit-l2" },
		{ "25%", RATE_PERCENT, 25, "25%" },
		{ "7pps", RATE_PPS, 7, "7pps" },
	};
	struct mr_reason why;
	char text[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rate rate;

		assert_int_equal(rate_parse("rate", cases[i].text, &rate, &why),
				 PARSE_RUN);
		assert_int_equal(rate.unit, cases[i].unit);
		assert_float_equal(rate.value, cases[i].value, 1e-3);
		rate_print(&rate, text, sizeof(text));
		assert_string_equal(text, cases[i].printed);
	}
}

TEST(what_is_no_rate_is_refused)
{
	static const char *const texts[] = { "",      "M",   "-1",  "0",
					     "nan",   "inf", "1x",  "10Gbyte",
					     "1.2Mb", "5%%", "1kk", "maxi",
					     "100G",  "101%" };
	struct mr_reason why;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rate rate = { RATE_PPS, 42 };

		why.text[0] = '\0';
		assert_int_equal(rate_parse("rate", texts[i], &rate, &why),
				 PARSE_WRONG);
		assert_non_null(strstr(why.text, "--rate: "));
		assert_float_equal(rate.value, 42, 0);
	}
}

/* 10 Gbit/s are 14.88 million frames of 64 bytes, 812743 of 1518. */
TEST(rates_of_a_wire_are_those_of_ethernet)
{
	const struct rate l1 = { RATE_L1_BPS, 10e9 },
			  l2 = { RATE_L2_BPS, 10e9 };
	const struct rate quarter = { RATE_PERCENT, 25 };
	const struct rate full = { RATE_FULL, 0 };

	assert_float_equal(rate_pps(&l1, 60, 0), 14880952.38, 0.01);
	assert_float_equal(rate_pps(&l1, 1514, 0), 812743.82, 0.01);
	assert_float_equal(rate_pps(&l2, 60, 0), 19531250, 0.01);
	assert_float_equal(rate_pps(&quarter, 60, 4e6), 1e6, 1e-6);
	assert_true(rate_pps(&quarter, 60, 0) < 0);
	assert_float_equal(rate_pps(&full, 60, 4e6), 0, 0);
	assert_float_equal(rate_l1_bps(14880952.381, 60), 10e9, 1);
}
