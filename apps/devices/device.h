/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a device, from the library and from sysfs beside it. */
#ifndef DEVICES_DEVICE_H
#define DEVICES_DEVICE_H

#include "machine.h"

struct device {
	struct mr_pci_info pci;
	const char *driver;    /* ours that drives it by vfio; NULL: none */
	struct names siblings; /* its IOMMU group, itself included */
	bool is_nic;
	bool is_vfio;  /* bound to vfio-pci or a driver of its kind */
	bool has_link; /* the interface says whether it is up */
	bool is_up;
	int mbps;               /* 0: unknown */
	char default_route[16]; /* its interface that has it; "": none */
	/* As it was before it was bound to vfio-pci. */
	bool is_remembered;
	char former_driver[32]; /* "": none */
	char former_interface[16];
};

/* device_free() in either case. 0 or -errno. */
int device_read(const char *bdf, struct device *ret,
		struct mr_reason *ret_error);
void device_free(struct device *device);

/* Whether a user space program may own a group with a function of this one, and
 * the kernel driver that it has; "": none. */
bool device_leaves_group_viable(const char *bdf, char driver[32]);

/* The nodes by which a program opens a device, without the root; "": none. */
struct nodes {
	struct path group, device;
};
struct nodes device_nodes(const struct mr_pci_info *pci);

/*
 * The process that has the device, or its group, open: its pid and name. False:
 * none that we may see. Taking a device away from its user blocks in the kernel
 * until the user lets go, and cannot be called off.
 */
bool device_holder(const struct device *device, char pid[NAME_BYTES],
		   char name[NAME_BYTES]);

#endif
