/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices for a user who is not root. */
#ifndef DEVICES_OWNER_H
#define DEVICES_OWNER_H

#include <sys/types.h>

#include "device.h"

struct owner {
	char user[NAME_BYTES];
	uid_t uid;
	gid_t gid;
};

/* USER[:GROUP], by name or number; no group: the user's own, if it has one. */
int owner_parse(const char *text, struct owner *ret,
		struct mr_reason *ret_error);

/*
 * Make the nodes of a device that is bound to vfio-pci, and has an IOMMU, the
 * owner's. 0 or -errno with a reason.
 */
int owner_give(const char *bdf, const struct owner *owner,
	       struct mr_reason *ret_error);
/* Say whose it is on stdout, and how much memory that user may lock. */
void owner_say(const char *bdf, const struct owner *owner);

#endif
