/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a device, from the library and from sysfs beside it. */
#ifndef DEVICES_DEVICE_H
#define DEVICES_DEVICE_H

#include "machine.h"

struct device {
	struct mr_pci_info pci;
	enum mr_pci_use use;
	const char *driver;    /* ours that drives it by vfio; NULL: none */
	struct names siblings; /* the others of its IOMMU group */
	bool has_link;         /* the interface says whether it is up */
	bool is_up;
	uint32_t mbps;          /* 0: unknown */
	char default_route[16]; /* its interface that has it; "": none */
	bool is_remembered;
	char remembered[32]; /* kernel driver before vfio-pci; "": none */
};

/* device_free() in either case. 0 or -errno. */
int device_read(const struct machine *machine, const char *bdf,
		struct device *ret, struct mr_reason *ret_error);
void device_free(struct device *device);

bool device_is_nic(const struct device *device);
/* It is bound to vfio-pci or a driver of its kind. */
bool device_is_vfio(const struct device *device);
/* What a program calls it now: "xdp:eth0", "vfio:0000:03:00.0", "". */
struct path device_spec(const struct device *device);

/* Of its IOMMU group, without the root; "": it is in none. */
struct path device_group_node(const struct machine *machine,
			      const struct mr_pci_info *pci);

/* The kernel driver that has a function now; "": none. */
void device_kernel_driver(const struct machine *machine, const char *bdf,
			  char name[32]);
/* Whether a user space program may own a group with a function of this one. */
bool device_leaves_group_viable(const struct machine *machine, const char *bdf,
				char name[32]);

#endif
