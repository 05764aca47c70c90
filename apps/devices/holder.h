/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICES_HOLDER_H
#define DEVICES_HOLDER_H

#include "device.h"

/*
 * The process that has the device, or its group, open: its pid and name. False:
 * none that we may see. Taking a device away from its user blocks in the kernel
 * until the user lets go, and cannot be called off.
 */
bool holder_find(const struct machine *machine, const struct device *device,
		 uint32_t *ret_pid, char name[NAME_BYTES]);

#endif
