/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite: one set of tests, the same for every driver.
 *
 *     conformance RIG[,OPTION...] [PATTERN]
 *
 * Options go behind every spec. Exit code 77: this machine cannot.
 */
#include <stdio.h>
#include <string.h>

#include "suite.h"

static const char *name_of(const struct rig *rig)
{
	return rig->name != NULL ? rig->name : rig->driver;
}

static const struct rig *find_rig(const char *name, size_t n)
{
	for (size_t i = 0; suite_rigs[i] != NULL; i++)
		if (strlen(name_of(suite_rigs[i])) == n &&
		    memcmp(name_of(suite_rigs[i]), name, n) == 0)
			return suite_rigs[i];
	return NULL;
}

static int complain(const char *program)
{
	fprintf(stderr, "usage: %s RIG[,OPTION...] [PATTERN]\nRIG:", program);
	for (size_t i = 0; suite_rigs[i] != NULL; i++)
		fprintf(stderr, " %s", name_of(suite_rigs[i]));
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	const size_t n = argc > 1 ? strcspn(argv[1], ",") : 0;
	const struct rig *rig = argc > 1 ? find_rig(argv[1], n) : NULL;
	const char *why_not;

	if (rig == NULL)
		return complain(argv[0]);
	why_not = rig->probe();
	if (why_not != NULL) {
		printf("%s: skipped: %s\n", name_of(rig), why_not);
		return 77;
	}
	bed_set_rig(rig, argv[1] + n);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return test_run(argv[1], NULL, NULL) > 0;
}
