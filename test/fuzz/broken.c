/* SPDX-License-Identifier: BSD-3-Clause */
/* How a target stops, under libFuzzer and without it. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

_Noreturn void fuzz_broken(const char *file, int line, const char *promise)
{
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, promise);
	abort();
}
