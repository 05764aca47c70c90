/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/offloading.c, with ports that have no rules. */
#include "support/unit.h"

#include <errno.h>

#include "support/offloading.h"

TEST(words_are_the_three_choices)
{
	const struct option_row row = { "offload", OPTION_LONG, "W", "" };
	enum offload_choice choice = OFFLOAD_OFF;
	struct mr_reason why;

	assert_int_equal(offload_take(&row, "auto", &choice, &why), PARSE_RUN);
	assert_int_equal(choice, OFFLOAD_AUTO);
	assert_int_equal(offload_take(&row, "on", &choice, &why), PARSE_RUN);
	assert_int_equal(choice, OFFLOAD_ON);
	assert_int_equal(offload_take(&row, "off", &choice, &why), PARSE_RUN);
	assert_int_equal(choice, OFFLOAD_OFF);
	assert_int_equal(offload_take(&row, "yes", &choice, &why), PARSE_WRONG);
}

TEST(ports_without_rules_are_refused_or_left_alone)
{
	const struct mr_ctx_config config = { .size = sizeof(config) };
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 1024 };
	struct mr_port_config port_config = { .size = sizeof(port_config) };
	struct mr_port *port;
	struct mr_reason why;
	struct mr_pool *pool;
	struct mr_ctx *ctx;

	assert_int_equal(mr_ctx_create(&config, &ctx, &why), 0);
	assert_int_equal(mr_pool_create(ctx, &pool_config, &pool, &why), 0);
	port_config.pool = pool;
	assert_int_equal(mr_port_open(ctx, "null:", &port_config, &port, &why),
			 0);
	assert_int_equal(
		offload_check_ports("test", OFFLOAD_AUTO, &port, 1, true, &why),
		0);
	assert_int_equal(
		offload_check_ports("test", OFFLOAD_ON, &port, 1, true, &why),
		-ENOTSUP);
	assert_string_equal(why.text, "--offload on: null:: driver null has no "
				      "rules: frames go through user space");
	mr_port_close(port);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	mr_ctx_destroy(ctx);
}
