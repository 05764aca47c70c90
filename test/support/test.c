/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of a program: see test.h. */
#include "test.h"

#include <stdlib.h>

static struct CMUnitTest tests[256];
static size_t n_tests;

void test_register(struct CMUnitTest test)
{
	if (n_tests == sizeof(tests) / sizeof(tests[0]))
		abort();
	tests[n_tests++] = test;
}

int test_run(const char *name, CMFixtureFunction set_up,
	     CMFixtureFunction tear_down)
{
	return _cmocka_run_group_tests(name != NULL ? name : "tests", tests,
				       n_tests, set_up, tear_down);
}
