/* SPDX-License-Identifier: BSD-3-Clause */
/* Which driver "vfio:BDF" means. */
#ifndef PORT_PCI_MATCH_H
#define PORT_PCI_MATCH_H

#include <millrace/driver.h>

/*
 * The first driver of the context whose pci_ids have the device. -ENODEV: there
 * is no such device, or it is none of theirs; their names are in the reason.
 */
int mri_pci_match(struct mr_ctx *ctx, const char *bdf,
		  const struct mr_driver **ret_driver,
		  struct mr_reason *reterr_reason);

#endif
