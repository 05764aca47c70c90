/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Source: linux/Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-net; for
 * /proc/net/route and ipv6_route, proc(5).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"

enum {
	CLASS_NETWORK = 0x02, /* base class; PCI Code and ID Assignment 1.11 */
	MAX_DEPTH = 8,        /* of stacked interfaces */
	MAX_WORDS = 10,       /* in a line of a route table */
};

/* Fields of a route: interface, and those that are zero for a default one. */
static const struct routes {
	const char *path;
	uint32_t interface, address, length;
	const char *zero;
} all_routes[] = {
	{ "/proc/net/route", 0, 1, 7, "00000000" },
	{ "/proc/net/ipv6_route", 9, 1, 1, "00" },
};

static bool has_default(const struct routes *routes, const char *interface)
{
	FILE *file = fopen(machine_path("%s", routes->path).text, "re");
	char line[256];
	bool has = false;

	while (!has && file != NULL &&
	       fgets(line, sizeof(line), file) != NULL) {
		const char *words[MAX_WORDS] = { NULL };
		char *rest = line;

		for (uint32_t i = 0; i < MAX_WORDS; i++) {
			const char *word = strtok_r(rest, " \t\n", &rest);

			words[i] = word != NULL ? word : "";
		}
		has = strcmp(words[routes->interface], interface) == 0 &&
		      strcmp(words[routes->address], routes->zero) == 0 &&
		      strcmp(words[routes->length], routes->zero) == 0;
	}
	if (file != NULL)
		fclose(file);
	return has;
}

/*
 * Whether the machine's default route uses this interface, or a bridge, bond or
 * VLAN on top of it, such as "upper_br0" in its directory.
 */
static bool has_default_route(const char *interface, uint32_t depth)
{
	struct names names;
	bool has = has_default(&all_routes[0], interface) ||
		   has_default(&all_routes[1], interface);

	(void)machine_names(machine_path("/sys/class/net/%s", interface),
			    &names);
	for (int i = 0; !has && depth < MAX_DEPTH && i < names.n; i++)
		if (strncmp(names.list[i]->d_name, "upper_", 6) == 0)
			has = has_default_route(names.list[i]->d_name + 6,
						depth + 1);
	names_free(&names);
	return has;
}

static void read_interface(struct device *device)
{
	const char *const name = device->pci.netdev;
	char line[NAME_BYTES];
	struct names names;

	if (name[0] == '\0')
		return;
	device->has_link = true;
	/* The carrier of an interface that is down: EINVAL. */
	machine_read(machine_path("/sys/class/net/%s/carrier", name), line,
		     sizeof(line));
	device->is_up = strcmp(line, "1") == 0;
	machine_read(machine_path("/sys/class/net/%s/speed", name), line,
		     sizeof(line));
	/* -1: unknown */
	if (device->is_up && line[0] != '-')
		device->mbps = (int)strtoul(line, NULL, 10);
	/* A function may have several interfaces, one per NIC port. */
	(void)machine_names(machine_path("/sys/class/net/%s/device/net", name),
			    &names);
	for (int i = 0; i < names.n; i++)
		if (has_default_route(names.list[i]->d_name, 0))
			snprintf(device->default_route,
				 sizeof(device->default_route), "%.15s",
				 names.list[i]->d_name);
	names_free(&names);
}

int device_read(const char *bdf, struct device *ret,
		struct mr_reason *ret_error)
{
	const struct mr_pci_info *const pci = &ret->pci;
	int err;

	*ret = (struct device){ .pci = { .size = sizeof(ret->pci) } };
	err = mr_pci_info(machine.ctx, bdf, &ret->pci, ret_error);
	if (err < 0)
		return err;
	ret->is_nic = pci->class_code >> 16 == CLASS_NETWORK;
	ret->is_vfio = mr_pci_use(machine.ctx, pci) == MR_PCI_USE_VFIO;
	ret->driver = mr_pci_driver_name(machine.ctx, pci);
	if (pci->iommu_group >= 0)
		err = machine_names(
			machine_path("/sys/kernel/iommu_groups/%d/devices",
				     pci->iommu_group),
			&ret->siblings);
	if (err < 0)
		return fail(ret_error, err,
			    "%s: cannot read its IOMMU group %d: %s", pci->bdf,
			    pci->iommu_group, strerror(-err));
	read_interface(ret);
	ret->is_remembered = notes_recall(pci->bdf, ret);
	return 0;
}

void device_free(struct device *device)
{
	names_free(&device->siblings);
}

bool device_look(const char *bdf, struct mr_pci_info *ret)
{
	*ret = (struct mr_pci_info){ .size = sizeof(*ret) };
	return mr_pci_info(machine.ctx, bdf, ret, NULL) == 0;
}

bool device_leaves_group_viable(const char *bdf, char driver[32])
{
	struct mr_pci_info info;
	const bool is_there = device_look(bdf, &info);

	snprintf(driver, 32, "%s", info.kernel_driver);
	/* One that was unplugged meanwhile does not matter. */
	return !is_there || mr_pci_use(machine.ctx, &info) != MR_PCI_USE_KERNEL;
}

struct nodes device_nodes(const struct mr_pci_info *pci)
{
	struct nodes nodes = { { "" }, { "" } };

	if (pci->iommu_group >= 0)
		snprintf(nodes.group.text, PATH_BYTES, "/dev/vfio/%s%d",
			 machine_exists(machine_path("/dev/vfio/noiommu-%d",
						     pci->iommu_group)) ?
				 "noiommu-" :
				 "",
			 pci->iommu_group);
	if (pci->vfio_cdev[0] != '\0')
		snprintf(nodes.device.text, PATH_BYTES, "/dev/vfio/devices/%s",
			 pci->vfio_cdev);
	return nodes;
}

static bool holds(const char *pid, const struct nodes *nodes)
{
	struct names fds;
	bool does = false;

	(void)machine_names(machine_path("/proc/%s/fd", pid), &fds);
	for (int i = 0; !does && i < fds.n; i++) {
		char target[PATH_BYTES];

		machine_link(machine_path("/proc/%s/fd/%s", pid,
					  fds.list[i]->d_name),
			     target);
		does = target[0] != '\0' &&
		       (strcmp(target, nodes->group.text) == 0 ||
			strcmp(target, nodes->device.text) == 0);
	}
	names_free(&fds);
	return does;
}

bool device_holder(const struct device *device, char pid[NAME_BYTES],
		   char name[NAME_BYTES])
{
	const struct nodes nodes = device_nodes(&device->pci);
	struct names pids;
	bool is_found = false;

	(void)machine_names(machine_path("/proc"), &pids);
	for (int i = 0; !is_found && i < pids.n; i++) {
		snprintf(pid, NAME_BYTES, "%.63s", pids.list[i]->d_name);
		is_found = pid[0] >= '0' && pid[0] <= '9' && holds(pid, &nodes);
	}
	if (is_found)
		machine_read(machine_path("/proc/%s/comm", pid), name,
			     NAME_BYTES);
	names_free(&pids);
	return is_found;
}
