/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of the suite differ in. */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "harness.h"

/* The fixtures that a program of the suite has, NULL at the end. */
extern const struct fixture *const suite_fixtures[];

#endif
