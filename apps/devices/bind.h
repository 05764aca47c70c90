/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices handed to vfio-pci, and given back. */
#ifndef DEVICES_BIND_H
#define DEVICES_BIND_H

#include "owner.h"

/*
 * Bind n functions to vfio-pci: all or none. Says on stdout what was done.
 * owner: NULL leaves their nodes as they are. Forced: also those that this
 * machine uses. 0 or -errno with a reason.
 */
int bind_devices(char *const *bdfs, uint32_t n, bool is_forced,
		 const struct owner *owner, struct mr_reason *ret_error);

/* Give one back to the kernel driver that it had. 0 or -errno with a reason. */
int bind_give_back(const char *bdf, struct mr_reason *ret_error);

#endif
