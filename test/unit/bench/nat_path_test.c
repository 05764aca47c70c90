/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/nat/nat_path.c: how it runs --reset. Its frames are
 * tested with a NAT, in test/netns/test_bench_search.py.
 */
#include <errno.h>

#include "support/unit.h"

#include "nat/nat_path.h"

/* A process group of its own is killed as a whole. */
TEST(a_reset_has_an_end)
{
	struct nat_path path = { .reset_command = "sleep 0.1",
				 .reset_limit_s = 1 };
	struct mr_reason why = { .text = "" };
	double seconds;

	assert_int_equal(nat_path_reset(&path, &seconds, &why), 0);
	assert_true(path.is_emptied);
	assert_true(seconds >= 0.1 && seconds < 0.9);
	/* Requests of a front end, on stdin, are none of its business. */
	path.reset_command =
		"[ $(readlink /proc/$$/fd/0) = /dev/null ] || exit 4";
	assert_int_equal(nat_path_reset(&path, &seconds, &why), 0);
	path.reset_command = "echo; exit 3";
	assert_int_equal(nat_path_reset(&path, &seconds, &why), -EIO);
	assert_non_null(strstr(why.text, "ended with status 3"));
	path.reset_command = "sleep 71.5; true";
	assert_int_equal(nat_path_reset(&path, &seconds, &why), -ETIMEDOUT);
	assert_non_null(strstr(why.text, "'sleep 71.5; true' runs longer than "
					 "1 s"));
	assert_true(seconds < 10);
	assert_int_not_equal(system("pgrep -xf 'sleep 71.5' >/dev/null"), 0);
}

/* The NAT that a command starts again would else share the tester's core. */
TEST(a_reset_has_the_cores_of_before)
{
	struct nat_path path = { .reset_limit_s = 10, .has_core = true };
	struct mr_reason why = { .text = "" };
	cpu_set_t own;
	char command[64];
	double seconds;

	assert_int_equal(sched_getaffinity(0, sizeof(path.cores_before),
					   &path.cores_before),
			 0);
	if (CPU_COUNT(&path.cores_before) < 2) {
		print_message("needs two cores\n");
		skip();
	}
	snprintf(command, sizeof(command), "test $(nproc) = %d",
		 CPU_COUNT(&path.cores_before));
	path.reset_command = command;
	CPU_ZERO(&own);
	for (uint32_t core = 0; CPU_COUNT(&own) == 0; core++)
		if (CPU_ISSET(core, &path.cores_before))
			CPU_SET(core, &own);
	assert_int_equal(sched_setaffinity(0, sizeof(own), &own), 0);
	assert_int_equal(nat_path_reset(&path, &seconds, &why), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	assert_int_equal(CPU_COUNT(&own), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(path.cores_before),
					   &path.cores_before),
			 0);
}
