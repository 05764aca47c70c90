/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/offloading.c. */
#include "support/unit.h"

#include <errno.h>

#include <millrace/driver.h>

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

static int check(enum offload_choice choice, const struct mr_driver *driver,
		 struct mr_reason *why)
{
	struct mr_port port = { .driver = driver, .info.name = "x:" };
	struct mr_port *ports[] = { &port };

	return offload_check_ports("test", choice, ports, 1, MR_RULE_ANY, true,
				   why);
}

TEST(ports_without_rules_are_refused_or_left_alone)
{
	static const struct mr_driver none = { .name = "x" };
	struct mr_reason why;

	assert_int_equal(check(OFFLOAD_AUTO, &none, &why), 0);
	assert_int_equal(check(OFFLOAD_ON, &none, &why), -ENOTSUP);
	assert_string_equal(why.text, "--offload on: x:: driver x has no "
				      "rules: frames go through user space");
}

TEST(rules_that_are_not_advised_are_for_those_who_insist)
{
	static const struct mr_driver soft = { .has_soft_rules = 1 };
	struct mr_reason why;

	assert_int_equal(check(OFFLOAD_AUTO, &soft, &why), 0);
	assert_int_equal(check(OFFLOAD_ON, &soft, &why), 1);
}

TEST(rules_are_of_the_right_kind)
{
	static const struct mr_driver soft = { .has_soft_rules = 1 };
	struct mr_port port = { .driver = &soft, .info.name = "x:" };
	struct mr_port *ports[] = { &port };
	struct mr_reason why;

	assert_int_equal(offload_check_ports("test", OFFLOAD_ON, ports, 1,
					     MR_RULE_FLOW, true, &why),
			 -ENOTSUP);
	assert_string_equal(why.text, "--offload on: x:: no rules for flows");
}
