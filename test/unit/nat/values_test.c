/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/values.c. */
#include "support/unit.h"

#include "values.h"

static void test_durations_have_units(void **state)
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

	(void)state;
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

static void test_numbers_have_a_range(void **state)
{
	static const char *const bad[] = {
		"", "-1", "4294967296", "1x", "0", "11", "99999999999999999999"
	};
	struct mr_reason why;
	uint32_t n = 7;

	(void)state;
	assert_true(value_number("10", 1, 10, &n, &why));
	assert_int_equal(n, 10);
	assert_true(value_number("4294967295", 0, UINT32_MAX, &n, &why));
	assert_int_equal(n, UINT32_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(value_number(bad[i], 1, 10, &n, &why));
	assert_int_equal(n, UINT32_MAX);
}

static void test_a_prefix_has_no_host_bits(void **state)
{
	struct nat_prefix prefix;
	struct mr_reason why;

	(void)state;
	assert_true(value_prefix("10.0.0.0/8", &prefix, &why));
	assert_int_equal(prefix.addr, 0x0a000000);
	assert_int_equal(prefix.mask, 0xff000000);
	assert_true(value_prefix("0.0.0.0/0", &prefix, &why));
	assert_int_equal(prefix.mask, 0);
	assert_true(value_prefix("10.0.0.1/32", &prefix, &why));
	assert_int_equal(prefix.mask, UINT32_MAX);
	assert_false(value_prefix("10.0.0.1/8", &prefix, &why));
	assert_non_null(strstr(why.text, "the network is 10.0.0.0/8"));
	assert_false(value_prefix("10.0.0.0", &prefix, &why));
	assert_false(value_prefix("10.0.0.0/33", &prefix, &why));
	assert_false(value_prefix("10.0.0.0/", &prefix, &why));
	assert_false(value_prefix("10.0.0/8", &prefix, &why));
}

static void test_a_host_has_an_address_and_a_network(void **state)
{
	struct nat_prefix net;
	struct mr_reason why;
	uint32_t addr;

	(void)state;
	assert_true(value_host("10.0.0.1/24", &addr, &net, &why));
	assert_int_equal(addr, 0x0a000001);
	assert_int_equal(net.addr, 0x0a000000);
	assert_int_equal(net.mask, 0xffffff00);
	assert_false(value_host("10.0.0.1/0", &addr, &net, &why));
	assert_false(value_host("10.0.0.1", &addr, &net, &why));
	assert_non_null(strstr(why.text, "as 10.0.0.1/24"));
}

static void test_ranges_come_in_three_forms(void **state)
{
	struct nat_range range;
	struct mr_reason why;

	(void)state;
	assert_true(value_range("192.0.2.1", &range, &why));
	assert_int_equal(nat_range_n(&range), 1);
	assert_true(value_range("192.0.2.1-192.0.2.9", &range, &why));
	assert_int_equal(nat_range_n(&range), 9);
	assert_true(value_range("192.0.2.16/28", &range, &why));
	assert_int_equal(range.first, 0xc0000210);
	assert_int_equal(range.last, 0xc000021f);
	assert_false(value_range("192.0.2.9-192.0.2.1", &range, &why));
	assert_non_null(strstr(why.text, "smaller address first"));
	assert_false(value_range("192.0.2.1-9", &range, &why));
	assert_false(value_range("192.0.2.17/28", &range, &why));
}

static void test_ends_have_ports(void **state)
{
	struct mr_reason why;
	uint16_t first, last;
	uint32_t addr;

	(void)state;
	assert_true(value_end("192.0.2.1:80", &addr, &first, &last, &why));
	assert_int_equal(first, 80);
	assert_int_equal(last, 80);
	assert_true(value_end("192.0.2.1:80-89", &addr, &first, &last, &why));
	assert_int_equal(last, 89);
	assert_false(value_end("192.0.2.1", &addr, &first, &last, &why));
	assert_false(value_end("192.0.2.1:0", &addr, &first, &last, &why));
	assert_false(value_end("192.0.2.1:65536", &addr, &first, &last, &why));
	assert_false(value_end("192.0.2.1:9-8", &addr, &first, &last, &why));
	assert_false(value_end(":80", &addr, &first, &last, &why));
}

static void test_mac_addresses(void **state)
{
	static const char *const bad[] = {
		"02:00:00:00:00",    "02:00:00:00:00:01:02", "2:0:0:0:0:1",
		"02-00-00-00-00-01", "02:00:00:00:00:0g",    ""
	};
	uint8_t mac[6];
	struct mr_reason why;

	(void)state;
	assert_true(value_mac("02:00:5e:00:00:Ff", mac, &why));
	assert_memory_equal(mac, "\x02\x00\x5e\x00\x00\xff", 6);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(value_mac(bad[i], mac, &why));
	assert_memory_equal(mac, "\x02\x00\x5e\x00\x00\xff", 6);
}

static void test_the_nearest_word(void **state)
{
	static const char *const words[] = { "gateway", "addresses", "mtu",
					     NULL };

	(void)state;
	assert_string_equal(value_nearest("gatewax", words), "gateway");
	assert_string_equal(value_nearest("address", words), "addresses");
	assert_string_equal(value_nearest("mut", words), "mtu");
	assert_null(value_nearest("subscribers", words));
	assert_null(value_nearest("x", words));
	assert_null(value_nearest(
		"a word that is much longer than any of them is", words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations_have_units),
		cmocka_unit_test(test_numbers_have_a_range),
		cmocka_unit_test(test_a_prefix_has_no_host_bits),
		cmocka_unit_test(test_a_host_has_an_address_and_a_network),
		cmocka_unit_test(test_ranges_come_in_three_forms),
		cmocka_unit_test(test_ends_have_ports),
		cmocka_unit_test(test_mac_addresses),
		cmocka_unit_test(test_the_nearest_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
