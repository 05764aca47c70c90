/* SPDX-License-Identifier: BSD-3-Clause */
/* The drivers of a context. */
#ifndef PORT_DRIVER_LIST_H
#define PORT_DRIVER_LIST_H

#include <millrace/driver.h>

/* Driver i, the built-in ones first; NULL after the last. */
const struct mr_driver *mri_driver_at(const struct mr_ctx *ctx, uint32_t i);

/*
 * For "vfio:BDF": the first driver of the context whose pci_ids have the
 * device. -ENODEV: there is no such device, or it is none of theirs; their
 * names are in the reason.
 */
int mri_pci_match(struct mr_ctx *ctx, const char *bdf,
		  const struct mr_driver **ret_driver,
		  struct mr_reason *reterr_reason);

#endif
