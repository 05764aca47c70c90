/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/config/values.c. */
#include "support/unit.h"

#include "config/values.h"

TEST(test_a_prefix_has_no_host_bits)
{
	struct nat_prefix prefix;
	struct mr_reason why;

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

TEST(test_a_host_has_an_address_and_a_network)
{
	struct nat_prefix net;
	struct mr_reason why;
	uint32_t addr;

	assert_true(value_host("10.0.0.1/24", &addr, &net, &why));
	assert_int_equal(addr, 0x0a000001);
	assert_int_equal(net.addr, 0x0a000000);
	assert_int_equal(net.mask, 0xffffff00);
	assert_false(value_host("10.0.0.1/0", &addr, &net, &why));
	assert_false(value_host("10.0.0.1", &addr, &net, &why));
	assert_non_null(strstr(why.text, "as 10.0.0.1/24"));
}

TEST(test_ranges_come_in_three_forms)
{
	struct nat_range range;
	struct mr_reason why;

	assert_true(value_range("192.0.2.1", &range, &why));
	assert_int_equal(nat_range_n(&range), 1);
	assert_true(value_range("192.0.2.1-192.0.2.9", &range, &why));
	assert_int_equal(nat_range_n(&range), 9);
	assert_true(value_range("192.0.2.16/28", &range, &why));
	assert_int_equal(range.first, 0xc0000210);
	assert_int_equal(range.last, 0xc000021f);
	assert_false(value_range("192.0.2.9-192.0.2.1", &range, &why));
	assert_non_null(strstr(why.text, "smaller address must come first"));
	assert_false(value_range("192.0.2.1-9", &range, &why));
	assert_false(value_range("192.0.2.17/28", &range, &why));
}

TEST(test_ends_have_ports)
{
	struct mr_reason why;
	uint16_t first, last;
	uint32_t addr;

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

TEST(test_mac_addresses)
{
	static const char *const bad[] = {
		"02:00:00:00:00",    "02:00:00:00:00:01:02", "2:0:0:0:0:1",
		"02-00-00-00-00-01", "02:00:00:00:00:0g",    ""
	};
	uint8_t mac[6];
	struct mr_reason why;

	assert_true(value_mac("02:00:5e:00:00:Ff", mac, &why));
	assert_memory_equal(mac, "\x02\x00\x5e\x00\x00\xff", 6);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(value_mac(bad[i], mac, &why));
	assert_memory_equal(mac, "\x02\x00\x5e\x00\x00\xff", 6);
}
