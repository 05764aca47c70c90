/* SPDX-License-Identifier: BSD-3-Clause */
/* Differs between the programs of the suite. */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "harness.h"

/* The fixtures of this program, NULL at the end. */
extern const struct fixture *const suite_fixtures[];

#endif
