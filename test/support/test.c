/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of a program: see test.h. */
#include "test.h"

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct CMUnitTest tests[256];
static size_t n_tests;

void test_register_as(struct CMUnitTest test, bool is_mt)
{
#ifdef __SANITIZE_THREAD__
	static bool has_mt;

	if (has_mt && !is_mt)
		return;
	if (is_mt && !has_mt)
		n_tests = 0;
	has_mt = is_mt;
#else
	(void)is_mt;
#endif
	if (n_tests == sizeof(tests) / sizeof(tests[0]))
		abort();
	tests[n_tests++] = test;
}

void test_register(struct CMUnitTest test)
{
	test_register_as(test, false);
}

/* As cmocka has set it. */
static struct sigaction fail_test;

static void print_stack(int signal_number)
{
	void *calls[64];

	backtrace_symbols_fd(calls, backtrace(calls, 64), STDERR_FILENO);
	fail_test.sa_handler(signal_number);
}

void test_show_crash(void)
{
	const struct sigaction action = { .sa_handler = print_stack,
					  .sa_flags = (int)SA_RESETHAND |
						      SA_NODEFER };
	void *call;

	(void)backtrace(&call, 1); /* load libgcc now, not during a crash */
	sigaction(SIGSEGV, &action, &fail_test);
}

int test_run(const char *name, CMFixtureFunction set_up,
	     CMFixtureFunction tear_down)
{
	return _cmocka_run_group_tests(name != NULL ? name : "tests", tests,
				       n_tests, set_up, tear_down);
}

int test_run_apart(const char *name, CMFixtureFunction set_up,
		   CMFixtureFunction tear_down)
{
	int n_failed = 0, status = 0;
	pid_t pid;

	for (size_t i = 0; i < n_tests; i++) {
		if (name != NULL && strcmp(name, tests[i].name) != 0)
			continue;
		fflush(NULL); /* or the child would print it again */
		pid = fork();
		if (pid == 0) {
			/* At its time limit, meson kills only the parent. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			cmocka_set_test_filter(tests[i].name);
			exit(test_run(tests[i].name, set_up, tear_down));
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
			n_failed++;
	}
	return n_failed;
}
