/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests that register themselves: a test program is its TEST()s, in the order
 * of the file; test_main.c has its main(), unless it needs one of its own.
 */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A test: TEST(name) { ... }. Its body may use `state`. */
#define TEST(name) TEST_WITH(NULL, NULL, name)

/* The same with functions of cmocka's kind to run before and after it. */
#define TEST_WITH(set_up, tear_down, name)                                     \
	static void name(void **state);                                        \
	__attribute__((constructor)) static void register_##name(void)         \
	{                                                                      \
		test_register((struct CMUnitTest){ #name, name, set_up,        \
						   tear_down, NULL });         \
	}                                                                      \
	static void name(__attribute__((unused)) void **state)

/* A program has 256 tests at most. */
void test_register(struct CMUnitTest test);

/*
 * Run all tests, as cmocka_run_group_tests_name() does; returns the number of
 * those that failed. The name may be NULL; both functions may be.
 */
int test_run(const char *name, CMFixtureFunction set_up,
	     CMFixtureFunction tear_down);

/*
 * The same, each test in a process of its own; of one name only, unless that is
 * NULL.
 */
int test_run_apart(const char *name, CMFixtureFunction set_up,
		   CMFixtureFunction tear_down);

#endif
