/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of the suite differ in. */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "bed.h"

/* The rigs that a program of the suite has, NULL at the end. */
extern const struct rig *const suite_rigs[];

#endif
