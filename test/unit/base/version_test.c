/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/version.c. */
#include "support/unit.h"

#include <millrace/millrace.h>

static void version_is_that_of_the_headers(void **state)
{
	char want[32];

	(void)state;
	snprintf(want, sizeof(want), "%d.%d.%d", MR_VERSION_MAJOR,
		 MR_VERSION_MINOR, MR_VERSION_PATCH);
	assert_string_equal(mr_version(), want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_is_that_of_the_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
