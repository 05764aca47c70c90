/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fixtures of DPDK's devices have in common. */
#ifndef CONFORMANCE_RIGS_DPDK_H
#define CONFORMANCE_RIGS_DPDK_H

#include "harness.h"

/* Start EAL. NULL, or why the machine has no DPDK. */
const char *fixture_dpdk_start(void);

extern const struct fixture fixture_dpdk_ring;

#endif
