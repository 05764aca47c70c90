/* SPDX-License-Identifier: BSD-3-Clause */
/* Source: linux/Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-net. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "route.h"
#include "state.h"

enum {
	CLASS_NETWORK = 0x02, /* base class; PCI Code and ID Assignment 1.11 */
};

bool device_is_nic(const struct device *device)
{
	return device->pci.class_code >> 16 == CLASS_NETWORK;
}

bool device_is_vfio(const struct device *device)
{
	return device->use == MR_PCI_USE_VFIO;
}

struct path device_spec(const struct device *device)
{
	struct path spec = { "" };

	if (device_is_vfio(device) && device->driver != NULL)
		snprintf(spec.text, sizeof(spec.text), "vfio:%s",
			 device->pci.bdf);
	else if (device->pci.netdev[0] != '\0')
		snprintf(spec.text, sizeof(spec.text), "xdp:%s",
			 device->pci.netdev);
	return spec;
}

struct path device_group_node(const struct machine *machine,
			      const struct mr_pci_info *pci)
{
	struct path node = { "" };

	if (pci->iommu_group < 0)
		return node;
	snprintf(node.text, sizeof(node.text), "/dev/vfio/noiommu-%d",
		 pci->iommu_group);
	if (!machine_exists(machine_path(machine, "%s", node.text)))
		snprintf(node.text, sizeof(node.text), "/dev/vfio/%d",
			 pci->iommu_group);
	return node;
}

void device_kernel_driver(const struct machine *machine, const char *bdf,
			  char name[32])
{
	machine_link_name(
		machine_path(machine, "/sys/bus/pci/devices/%s/driver", bdf),
		name, 32);
}

bool device_leaves_group_viable(const struct machine *machine, const char *bdf,
				char name[32])
{
	struct mr_pci_info info = { .size = sizeof(info) };

	name[0] = '\0';
	/* One that is unplugged meanwhile is in nobody's way. */
	if (mr_pci_info(machine->ctx, bdf, &info, NULL) < 0)
		return true;
	snprintf(name, 32, "%s", info.kernel_driver);
	return mr_pci_use(machine->ctx, &info) != MR_PCI_USE_KERNEL;
}

static int read_siblings(const struct machine *machine, struct device *device)
{
	struct names *siblings = &device->siblings;
	uint32_t n = 0;
	int err;

	if (device->pci.iommu_group < 0)
		return 0;
	err = machine_names(machine_path(machine,
					 "/sys/kernel/iommu_groups/%d/devices",
					 device->pci.iommu_group),
			    siblings);
	for (uint32_t i = 0; i < siblings->n; i++)
		if (strcmp(siblings->list[i], device->pci.bdf) != 0)
			memmove(siblings->list[n++], siblings->list[i],
				NAME_BYTES);
	siblings->n = n;
	return err;
}

static void read_link(const struct machine *machine, struct device *device)
{
	const char *const name = device->pci.netdev;
	int64_t carrier = 0, mbps = 0;

	if (name[0] == '\0')
		return;
	device->has_link = true;
	/* An interface that is down has no carrier file to read: EINVAL. */
	device->is_up = machine_read_number(
				machine_path(machine,
					     "/sys/class/net/%s/carrier", name),
				&carrier) == 0 &&
			carrier == 1;
	if (device->is_up &&
	    machine_read_number(
		    machine_path(machine, "/sys/class/net/%s/speed", name),
		    &mbps) == 0 &&
	    mbps > 0)
		device->mbps = (uint32_t)mbps;
}

/* A function may have several interfaces, a port of the NIC each. */
static void find_default_route(const struct machine *machine,
			       struct device *device)
{
	struct names names = { 0 };

	if (device->pci.netdev[0] != '\0')
		(void)machine_names(machine_path(machine,
						 "/sys/class/net/%s/device/net",
						 device->pci.netdev),
				    &names);
	for (uint32_t i = 0; i < names.n; i++)
		if (route_is_default(machine, names.list[i]))
			snprintf(device->default_route,
				 sizeof(device->default_route), "%.15s",
				 names.list[i]);
	names_free(&names);
}

int device_read(const struct machine *machine, const char *bdf,
		struct device *ret, struct mr_reason *ret_error)
{
	int err;

	*ret = (struct device){ .pci = { .size = sizeof(ret->pci) } };
	err = mr_pci_info(machine->ctx, bdf, &ret->pci, ret_error);
	if (err < 0)
		return err;
	ret->use = mr_pci_use(machine->ctx, &ret->pci);
	ret->driver = mr_pci_driver_name(machine->ctx, &ret->pci);
	err = read_siblings(machine, ret);
	if (err < 0)
		return machine_fail(ret_error, err,
				    "%s: cannot read its IOMMU group %d: %s",
				    ret->pci.bdf, ret->pci.iommu_group,
				    strerror(-err));
	read_link(machine, ret);
	find_default_route(machine, ret);
	ret->is_remembered =
		state_recall(machine, ret->pci.bdf, ret->remembered, NULL);
	return 0;
}

void device_free(struct device *device)
{
	names_free(&device->siblings);
}
