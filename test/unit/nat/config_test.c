/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/config/config.c and keys.c: defaults, advice, what may
 * change. What config_check.c refuses is in settings_test.c, with the line it
 * names. */
#include "support/unit.h"

#include "config/keys.h"

TEST(test_defaults_are_those_of_the_rfcs)
{
	struct nat_config config;
	struct mr_reason advice;

	nat_config_init(&config);
	config.sides[NAT_OUTSIDE].gateway = 0xc00002fe;
	assert_false(nat_config_advice(&config, 0, &advice));
	assert_int_equal(config.timeouts.udp_s, 300);
	assert_int_equal(config.timeouts.tcp_open_s, 2 * 3600 + 4 * 60);
	assert_int_equal(config.filtering[NAT_UDP], NAT_FILTER_NONE);
	assert_int_equal(config.ports.first, 1024);
	assert_true(config.is_paired && config.hairpins);
	assert_false(config.refreshes_inbound);
	nat_config_free(&config);
}

TEST(test_what_is_less_than_an_rfc_asks_is_said)
{
	struct nat_config config;
	struct mr_reason advice;

	nat_config_init(&config);
	config.timeouts.udp_s = 119;
	config.timeouts.hold_down_s = 1;
	config.hairpins = false;
	config.is_paired = false;
	assert_true(nat_config_advice(&config, 0, &advice));
	assert_non_null(strstr(advice.text, "RFC 4787 REQ-5"));
	assert_true(nat_config_advice(&config, 1, &advice));
	assert_non_null(strstr(advice.text, "quarantine"));
	assert_true(nat_config_advice(&config, 2, &advice));
	assert_non_null(strstr(advice.text, "hairpin"));
	assert_true(nat_config_advice(&config, 3, &advice));
	assert_non_null(strstr(advice.text, "pairing"));
	assert_true(nat_config_advice(&config, 4, &advice));
	assert_non_null(strstr(advice.text, "no gateway"));
	assert_false(nat_config_advice(&config, 5, &advice));
}

TEST(test_what_is_left_out_follows)
{
	struct nat_config config;
	struct nat_side_config *in, *out;

	nat_config_init(&config);
	in = &config.sides[NAT_INSIDE];
	out = &config.sides[NAT_OUTSIDE];
	in->n_addrs = 3;
	for (uint32_t i = 0; i < 3; i++) {
		/* Two of them in one network. */
		in->addrs[i] = 0x0a000001 + i / 2 * 256 + i % 2;
		in->nets[i].addr = in->addrs[i] & 0xffffff00;
		in->nets[i].mask = 0xffffff00;
	}
	out->n_addrs = 2;
	out->addrs[0] = 0xc0000201;
	out->addrs[1] = 0xc0000202;
	assert_int_equal(nat_config_complete(&config), 0);
	assert_int_equal(config.n_pool, 1);
	assert_int_equal(config.pool[0].first, 0xc0000201);
	assert_int_equal(config.pool[0].last, 0xc0000201);
	assert_int_equal(config.n_subscribers, 2);
	assert_int_equal(config.subscribers[1].addr, 0x0a000100);
	/* What is there stays. */
	config.pool[0].last++;
	assert_int_equal(nat_config_complete(&config), 0);
	assert_int_equal(config.pool[0].last, 0xc0000202);
	nat_config_free(&config);
	assert_null(config.pool);
}
