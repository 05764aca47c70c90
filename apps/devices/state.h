/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /run/millrace/devices: a file per device that was bound to vfio-pci, with the
 * kernel driver and the interface that it had. Gone with a reboot, as the
 * binding is.
 */
#ifndef DEVICES_STATE_H
#define DEVICES_STATE_H

#include "machine.h"

/* An fd that no other mr-devices has while it is open, or -errno. */
int state_lock(const struct machine *machine);
int state_remember(const struct machine *machine, const char *bdf,
		   const char *driver, const char *interface);
/* False: nothing is remembered. interface: 16 bytes, or NULL. */
bool state_recall(const struct machine *machine, const char *bdf,
		  char driver[32], char *interface);
void state_forget(const struct machine *machine, const char *bdf);
/* BDFs of all that are remembered. 0 or -errno; none is no error. */
int state_names(const struct machine *machine, struct names *ret);

#endif
