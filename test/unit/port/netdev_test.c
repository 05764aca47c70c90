/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/netdev.c; on real interfaces: test/netns/test_open.py. */
#include <net/if.h>

#include <millrace/port_device.h>

#include "support/unit.h"

static void loopback_is_in_use(void **state)
{
	struct mr_reason why;

	(void)state;
	assert_int_equal(mr_netdev_use(if_nametoindex("lo"), &why),
			 MR_NETDEV_IN_USE);
	assert_non_null(strstr(why.text, "loopback"));
	assert_int_equal(mr_netdev_use(if_nametoindex("lo"), NULL),
			 MR_NETDEV_IN_USE);
}

static void what_the_kernel_does_not_tell_is_in_use(void **state)
{
	struct mr_reason why;

	(void)state;
	assert_int_equal(mr_netdev_use(INT32_MAX, &why), MR_NETDEV_IN_USE);
	assert_non_null(strstr(why.text, "cannot tell"));
	assert_non_null(strstr(why.text, "No such device"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_is_in_use),
		cmocka_unit_test(what_the_kernel_does_not_tell_is_in_use),
	};

	return cmocka_run_group_tests_name("netdev", tests, NULL, NULL);
}
