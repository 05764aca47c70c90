/* SPDX-License-Identifier: BSD-3-Clause */
/* main() of test programs that do not define their own. */
#include "test.h"

int main(void)
{
	return test_run(NULL, NULL, NULL);
}
