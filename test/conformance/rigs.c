/* SPDX-License-Identifier: BSD-3-Clause */
#include "suite.h"

const struct rig *const suite_rigs[] = {
	&rig_null,   &rig_pair,   &rig_pcap,         &rig_xdp,
	&rig_nic,    &rig_vfio,   &rig_dpdk_nic,     &rig_igb,
	&rig_e1000e, &rig_virtio, &rig_virtio_plain, NULL
};
