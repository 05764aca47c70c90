/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/filter.c. */
#include "support/unit.h"

#include <arpa/inet.h>

#include "mapping/filter.h"

/* 10.0.0.5:1234 <-> 192.0.2.1:5678 <-> 203.0.113.9:53, UDP */
static struct nat_session example(void)
{
	return (struct nat_session){
		.inside = { htonl(0x0a000005), htons(1234), 17, 0 },
		.outside = { htonl(0xc0000201), htons(5678) },
		.remote = { htonl(0xcb007109), htons(53) },
	};
}

static bool has(const char *text)
{
	const struct nat_session session = example();
	struct nat_filter filter;
	struct mr_reason why;

	if (!nat_filter_parse(text, &filter, &why))
		fail_msg("'%s': %s", text, why.text);
	return nat_filter_has(&filter, &session);
}

TEST(test_all_conditions_hold)
{
	static const char *const good[] = {
		NULL,
		"",
		"all",
		"inside=10.0.0.5",
		"inside=10.0.0.0/24",
		"outside=192.0.2.1",
		"remote=203.0.113.0/24",
		"port=1234",
		"port=5678",
		"port=53",
		"proto=udp",
		"proto=17",
		"inside=10.0.0.5,proto=udp,port=53,remote=203.0.113.9",
	};
	static const char *const bad[] = {
		"inside=10.0.0.6",   "inside=10.0.1.0/24",
		"outside=192.0.2.2", "remote=10.0.0.5",
		"port=54",           "proto=tcp",
		"proto=1",           "proto=udp,port=54",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(has(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(has(bad[i]));
}

TEST(test_what_is_no_filter_is_said)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "port", "'port' is not a condition" },
		{ "prot=udp", "'prot' is not one of: inside, outside, remote" },
		{ "port=0", "'0' is not a whole number from 1 to 65535" },
		{ "proto=sctpx", "'sctpx' is not one of udp, tcp, icmp, or a" },
		{ "inside=10.0.0.1/24",
		  "has bits set beyond its prefix length" },
		{ "port=53,", "'' is not a condition" },
		{ "inside=1111111111111111111111111111111111111111111111111111"
		  "1111111111111111",
		  "is too long" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct nat_filter filter;
		struct mr_reason why;

		assert_false(nat_filter_parse(wrong[i].text, &filter, &why));
		if (strstr(why.text, wrong[i].why) == NULL)
			fail_msg("'%s': %s", wrong[i].text, why.text);
	}
}
