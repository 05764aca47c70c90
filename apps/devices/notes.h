/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /run/millrace/devices: a file per device that was bound to vfio-pci, with the
 * kernel driver and the interface that it had. Gone with a reboot, as the
 * binding is.
 */
#ifndef DEVICES_NOTES_H
#define DEVICES_NOTES_H

#include "device.h"

/* An fd that no other mr-devices has while it is open, or -errno. */
int notes_lock(void);
/* 0 or -errno. */
int notes_remember(const struct mr_pci_info *pci);
/* Fill the former driver and interface. False: nothing is remembered. */
bool notes_recall(const char *bdf, struct device *device);
void notes_forget(const char *bdf);
/* BDFs of all that are remembered. 0 or -errno; none is no error. */
int notes_names(struct names *ret);

#endif
