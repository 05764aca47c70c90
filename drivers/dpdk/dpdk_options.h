/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a dpdk: spec, used in the library and in the module. */
#ifndef DPDK_OPTIONS_H
#define DPDK_OPTIONS_H

#include <stdint.h>

#include <millrace/driver.h>

enum dpdk_switch { DPDK_AUTO, DPDK_ON, DPDK_OFF };

struct dpdk_options {
	uint32_t n_queues;
	uint32_t ring_entries;  /* of each rx and each tx queue */
	uint32_t mtu_bytes;     /* 0: unchanged */
	uint32_t sg, csum, irq; /* enum dpdk_switch */
	bool promisc;
	bool strip_vlan;
	bool force;      /* even if this machine uses the interface */
	const char *eal; /* the spec's arguments for EAL; NULL: none */
};

int mri_dpdk_read_options(const struct mr_spec *spec,
			  struct dpdk_options *ret_options,
			  struct mr_reason *reason);

/* Most pages that a port can hold: its rings and a stash. */
uint32_t mri_dpdk_need(const struct dpdk_options *options);

#endif
