/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the suite: one array of tests per file. */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "bed.h"

struct part {
	const char *name;
	const struct CMUnitTest *tests;
	size_t n;
};

/* The rigs that a program of the suite has, NULL at the end. */
extern const struct rig *const suite_rigs[];

extern const struct part part_rx, part_tx, part_owner, part_life, part_wait,
	part_control, part_frag;

#endif
