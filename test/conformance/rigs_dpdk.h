/* SPDX-License-Identifier: BSD-3-Clause */
/* What the rigs of DPDK's devices have in common. */
#ifndef CONFORMANCE_RIGS_DPDK_H
#define CONFORMANCE_RIGS_DPDK_H

#include "bed.h"

/* Start EAL. NULL, or why the machine has no DPDK. */
const char *rig_dpdk_start(void);

extern const struct rig rig_dpdk_ring;

#endif
