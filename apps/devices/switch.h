/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One function from one kernel driver to another, by sysfs. Each wait has a
 * deadline.
 */
#ifndef DEVICES_SWITCH_H
#define DEVICES_SWITCH_H

#include "machine.h"

/*
 * To "vfio-pci"; to "", which is none; to the kernel driver of this name; or,
 * NULL, to whichever takes it. 0 or -errno with a reason.
 */
int switch_to(const char *bdf, const char *driver, struct mr_reason *ret_error);

/* The kernel driver that a function has now; "": none. */
void switch_driver(const char *bdf, char driver[32]);

#endif
