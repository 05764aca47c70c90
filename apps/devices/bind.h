/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices handed to vfio-pci, and given back. */
#ifndef DEVICES_BIND_H
#define DEVICES_BIND_H

#include "device.h"
#include "owner.h"

struct bind_options {
	bool is_forced;            /* also the default route's */
	const struct owner *owner; /* NULL: as they are */
};

/*
 * Bind n functions to vfio-pci: all or none. Says on stdout what was done.
 * 0 or -errno with a reason.
 */
int bind_devices(const struct machine *machine, char *const *bdfs, uint32_t n,
		 const struct bind_options *options,
		 struct mr_reason *ret_error);

/* Give one back to the kernel driver that it had. 0 or -errno with a reason. */
int bind_give_back(const struct machine *machine, const char *bdf,
		   struct mr_reason *ret_error);

#endif
