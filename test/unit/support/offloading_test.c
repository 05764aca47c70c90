/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/offloading.c. */
#include "support/unit.h"

#include <errno.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>

#include "support/offloading.h"

static const struct mr_driver none = { .name = "x" };

static int report_caps(const struct mr_port *port, struct mr_offload_caps *caps,
		       struct mr_reason *reterr_reason)
{
	(void)port, (void)reterr_reason;
	caps->matches = 1u << MR_RULE_ANY | 1u << MR_RULE_STATION;
	caps->is_advised = 0;
	return 0;
}

static const struct mr_rules_ops slow_ops = { .caps = report_caps };
static const struct mr_driver slow = { .rules = &slow_ops };

/* Rules that are not advised, such as slow ones, need --offload on. */
TEST(ports_decide_whether_there_are_rules)
{
	static const struct {
		const struct mr_driver *driver;
		enum offload_choice choice;
		enum mr_rule_match match;
		int result;
		const char *says; /* NULL: nothing */
	} cases[] = {
		{ &none, OFFLOAD_AUTO, MR_RULE_ANY, 0, NULL },
		{ &none, OFFLOAD_ON, MR_RULE_ANY, -ENOTSUP,
		  "--offload on: x:: driver x has no rules: frames go through "
		  "user space" },
		{ &slow, OFFLOAD_AUTO, MR_RULE_ANY, 0, NULL },
		{ &slow, OFFLOAD_ON, MR_RULE_ANY, 1, NULL },
		{ &slow, OFFLOAD_ON, MR_RULE_FLOW, -ENOTSUP,
		  "--offload on: x:: no rules for flows" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_port_info info = { .name = "x:" };
		struct mr_port port = { .driver = cases[i].driver,
					.info = &info };
		struct mr_port *ports[] = { &port };
		struct mr_reason why;

		assert_int_equal(offload_check_ports("test", cases[i].choice,
						     ports, 1, cases[i].match,
						     true, &why),
				 cases[i].result);
		if (cases[i].says != NULL)
			assert_string_equal(why.text, cases[i].says);
	}
}
