/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One function from one kernel driver to another, by sysfs. Each wait has a
 * deadline.
 */
#ifndef DEVICES_SWITCH_H
#define DEVICES_SWITCH_H

#include "machine.h"

/* From what it has to vfio-pci. 0 or -errno with a reason. */
int switch_to_vfio(const struct machine *machine, const char *bdf,
		   struct mr_reason *ret_error);

/*
 * From vfio-pci, or none, back to a driver. former "": whichever the kernel
 * finds. 0 or -errno with a reason.
 */
int switch_to_kernel(const struct machine *machine, const char *bdf,
		     const char *former, struct mr_reason *ret_error);

/* Away from the driver that it has; no other follows. */
int switch_to_none(const struct machine *machine, const char *bdf,
		   struct mr_reason *ret_error);

#endif
