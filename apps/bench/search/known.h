/* SPDX-License-Identifier: BSD-3-Clause */
/* The known device: what it does is told to it, and has to be found. */
#ifndef SEARCH_KNOWN_H
#define SEARCH_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "net/trial.h"

struct known_case {
	const char *device; /* as --device takes it */
	const char *figure; /* "lost" */
	const char *unit;
	const char *row_unit; /* the same in a document, */
	double row_scale;     /* where it is so many times more */
	double pps;           /* that is sent */
	double injected;
	double error; /* that is stated: 0 is exact */
	double (*found)(const struct trial_result *result);
};

/* Not a multiple: the last frame has none behind it to be overtaken by. */
enum { KNOWN_FRAMES = 100050, KNOWN_BYTES = 60 };

/* The table of them. */
const struct known_case *known_cases(uint32_t *ret_n);

bool known_agrees(const struct known_case *c, double found);

#endif
