/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the part inside the library and the module. */
#ifndef DPDK_MODULE_H
#define DPDK_MODULE_H

#include <millrace/driver.h>

/* Room for the module's port struct. */
struct mri_dpdk_room {
	struct mr_port base;
	void *port;
};

#define MRI_DPDK_MODULE "mri_dpdk_module"
enum { MRI_DPDK_VERSION = 2 };

struct mri_dpdk_module {
	uint32_t version; /* MRI_DPDK_VERSION */
	uint32_t reserved;
	const struct mr_driver *driver;
};

#endif
