/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/version.c. */
#include "support/unit.h"

#include <millrace/millrace.h>

TEST(version_is_that_of_the_headers)
{
	char want[32];

	snprintf(want, sizeof(want), "%d.%d.%d", MR_VERSION_MAJOR,
		 MR_VERSION_MINOR, MR_VERSION_PATCH);
	assert_string_equal(mr_version(), want);
}
