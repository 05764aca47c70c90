/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite: one set of tests, the same for every driver.
 *
 *     conformance FIXTURE[,OPTION...] [PATTERN]
 *
 * Options are appended to every spec. Exit code 77: not possible on this
 * machine.
 */
#include <stdio.h>
#include <string.h>

#include "suite.h"

static const char *name_of(const struct fixture *fixture)
{
	return fixture->name != NULL ? fixture->name : fixture->driver;
}

static const struct fixture *find_rig(const char *name, size_t n)
{
	for (size_t i = 0; suite_fixtures[i] != NULL; i++)
		if (strlen(name_of(suite_fixtures[i])) == n &&
		    memcmp(name_of(suite_fixtures[i]), name, n) == 0)
			return suite_fixtures[i];
	return NULL;
}

static int complain(const char *program)
{
	fprintf(stderr, "usage: %s RIG[,OPTION...] [PATTERN]\nRIG:", program);
	for (size_t i = 0; suite_fixtures[i] != NULL; i++)
		fprintf(stderr, " %s", name_of(suite_fixtures[i]));
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	const size_t n = argc > 1 ? strcspn(argv[1], ",") : 0;
	const struct fixture *fixture = argc > 1 ? find_rig(argv[1], n) : NULL;
	const char *why_not;

	if (fixture == NULL)
		return complain(argv[0]);
	why_not = fixture->probe != NULL ? fixture->probe() : NULL;
	if (why_not != NULL) {
		printf("%s: skipped: %s\n", name_of(fixture), why_not);
		return 77;
	}
	harness_set_fixture(fixture, argv[1] + n);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return test_run(argv[1], NULL, NULL) > 0;
}
