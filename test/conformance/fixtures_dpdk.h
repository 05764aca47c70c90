/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the fixtures of DPDK's devices. */
#ifndef CONFORMANCE_RIGS_DPDK_H
#define CONFORMANCE_RIGS_DPDK_H

#include "harness.h"

/* Start EAL. NULL, or why the machine has no DPDK. */
const char *fixture_dpdk_start(void);

extern const struct fixture fixture_dpdk_ring, fixture_dpdk_vhost;

#endif
