/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Self-registering tests: a test program consists of its TEST()s, in file
 * order; test_main.c provides main(), unless the program defines its own.
 */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A test: TEST(name) { ... }. Its body may use `state`. */
#define TEST(name) TEST_WITH(NULL, NULL, name)

/* The same, with cmocka setup and teardown functions. */
#define TEST_WITH(set_up, tear_down, name)                                     \
	TEST_AS(set_up, tear_down, name, false)

/* is_mt: it starts threads. If a program has such tests, its build under
 * ThreadSanitizer, which finds nothing in the others, has only these. */
#define TEST_AS(set_up, tear_down, name, is_mt)                                \
	static void name(void **state);                                        \
	static void run_##name(void **state)                                   \
	{                                                                      \
		test_show_crash();                                             \
		name(state);                                                   \
	}                                                                      \
	__attribute__((constructor)) static void register_##name(void)         \
	{                                                                      \
		test_register_as((struct CMUnitTest){ #name, run_##name,       \
						      set_up, tear_down,       \
						      NULL },                  \
				 is_mt);                                       \
	}                                                                      \
	static void name(__attribute__((unused)) void **state)

/* A program may have at most 256 tests. */
void test_register_as(struct CMUnitTest test, bool is_mt);
void test_register(struct CMUnitTest test);

/* Until the running test ends, print the call stack if the program crashes:
 * cmocka, which then fails the test, says only which signal came. */
void test_show_crash(void);

/*
 * Run all tests, as cmocka_run_group_tests_name() does; returns the number of
 * failed tests. The name and both functions may be NULL.
 */
int test_run(const char *name, CMFixtureFunction set_up,
	     CMFixtureFunction tear_down);

/*
 * The same, with each test in its own process. Unless name is NULL, run only
 * the test of that name.
 */
int test_run_apart(const char *name, CMFixtureFunction set_up,
		   CMFixtureFunction tear_down);

#endif
