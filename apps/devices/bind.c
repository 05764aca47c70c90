/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "holder.h"
#include "state.h"
#include "switch.h"

enum {
	NETDEV_WAIT_MS = 10000,
	/* udev renames a new interface when it has seen it. */
	RENAME_WAIT_MS = 1000,
};

static bool is_among(const char *bdf, const struct device *devices, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(devices[i].pci.bdf, bdf) == 0)
			return true;
	return false;
}

/* The others of its group are bound with it, or do no DMA of the kernel's. */
static int check_group(const struct machine *machine,
		       const struct device *device,
		       const struct device *devices, uint32_t n,
		       struct mr_reason *reason)
{
	char others[200] = "";

	for (uint32_t i = 0; i < device->siblings.n; i++) {
		const char *const other = device->siblings.list[i];
		const size_t n_bytes = strlen(others);
		char driver[32];

		if (!device_leaves_group_viable(machine, other, driver) &&
		    !is_among(other, devices, n))
			snprintf(others + n_bytes, sizeof(others) - n_bytes,
				 "%s %s (%s)", n_bytes > 0 ? "," : "", other,
				 driver);
	}
	if (others[0] == '\0')
		return 0;
	return machine_fail(
		reason, -EBUSY,
		"%s: IOMMU group %d is not viable, for the kernel uses "
		"others of it:%s; network devices are bound as well, others "
		"are freed of their drivers (in sysfs, driver/unbind), or "
		"another slot is used",
		device->pci.bdf, device->pci.iommu_group, others);
}

static bool allows_noiommu(const struct machine *machine)
{
	char line[8];

	return machine_read(machine_path(machine, "/sys/module/vfio/parameters/"
						  "enable_unsafe_noiommu_mode"),
			    line, sizeof(line)) == 0 &&
	       (line[0] == 'Y' || line[0] == '1');
}

/* The kernel lets root alone open the node of one without an IOMMU. */
static int check_owner(const struct machine *machine,
		       const struct device *device,
		       const struct bind_options *options,
		       struct mr_reason *reason)
{
	const struct path node = device_group_node(machine, &device->pci);

	if (options->owner == NULL ||
	    (node.text[0] != '\0' && strstr(node.text, "noiommu") == NULL))
		return 0;
	return machine_fail(reason, -EPERM,
			    "%s: without an IOMMU only root may use it",
			    device->pci.bdf);
}

/* What the kernel uses it for besides; of another root it knows nothing. */
static int check_use(const struct machine *machine, const struct device *device,
		     struct mr_reason *reason)
{
	const char *const name = device->pci.netdev;
	const uint32_t ifindex =
		machine->root[0] == '\0' ? if_nametoindex(name) : 0;
	struct mr_reason why;

	if (ifindex == 0 || mr_netdev_use(ifindex, &why) != MR_NETDEV_IN_USE)
		return 0;
	return machine_fail(reason, -EBUSY,
			    "%s: its interface %s %s; --force takes it all the "
			    "same",
			    device->pci.bdf, name, why.text);
}

static int check(const struct machine *machine, const struct device *device,
		 const struct device *devices, uint32_t n,
		 const struct bind_options *options, struct mr_reason *reason)
{
	const struct mr_pci_info *pci = &device->pci;
	int err;

	if (!device_is_nic(device))
		return machine_fail(
			reason, -EINVAL,
			"%s: is no network device (class %06x); only "
			"those are bound",
			pci->bdf, pci->class_code);
	if (device->default_route[0] != '\0' && !options->is_forced)
		return machine_fail(
			reason, -EBUSY,
			"%s: its interface %s carries the default route "
			"of this machine, which would be cut off; "
			"add --force to bind it anyway",
			pci->bdf, device->default_route);
	err = options->is_forced ? 0 : check_use(machine, device, reason);
	if (err < 0)
		return err;
	if (!machine_exists(
		    machine_path(machine, "/sys/bus/pci/drivers/vfio-pci")))
		return machine_fail(
			reason, -ENOENT,
			"%s: the kernel has no driver vfio-pci now: "
			"'modprobe vfio-pci' first",
			pci->bdf);
	if (pci->iommu_group < 0 && !allows_noiommu(machine))
		return machine_fail(
			reason, -ENODEV,
			"%s: is in no IOMMU group: switch the IOMMU on, "
			"in the firmware (VT-d, AMD-Vi) and by "
			"intel_iommu=on on the kernel's command line",
			pci->bdf);
	err = check_owner(machine, device, options, reason);
	return err < 0 ? err : check_group(machine, device, devices, n, reason);
}

/*
 * Back to what it had. Where that fails the note stays, for unbind, and the
 * reason of why it is undone says so.
 */
static void undo(const struct machine *machine, const struct device *device,
		 struct mr_reason *reason)
{
	const struct mr_pci_info *pci = &device->pci;
	const size_t n_used = strlen(reason->text);
	struct mr_reason ignored;
	char now[32];

	if (pci->kernel_driver[0] != '\0')
		(void)switch_to_kernel(machine, pci->bdf, pci->kernel_driver,
				       &ignored);
	else
		(void)switch_to_none(machine, pci->bdf, &ignored);
	device_kernel_driver(machine, pci->bdf, now);
	if (strcmp(now, pci->kernel_driver) == 0)
		state_forget(machine, pci->bdf);
	else
		snprintf(reason->text + n_used, sizeof(reason->text) - n_used,
			 "; %s could not be given back: mr-devices unbind %s",
			 pci->bdf, pci->bdf);
}

static int bind_one(const struct machine *machine, const struct device *device,
		    struct mr_reason *reason)
{
	const struct mr_pci_info *pci = &device->pci;
	int err;

	if (device_is_vfio(device))
		return 0;
	/* Before anything is changed: killed in between, it can be undone. */
	err = state_remember(machine, pci->bdf, pci->kernel_driver,
			     pci->netdev);
	if (err < 0)
		return machine_fail(reason, err,
				    "%s: cannot remember its kernel driver in "
				    "/run/millrace/devices: %s",
				    pci->bdf, strerror(-err));
	err = switch_to_vfio(machine, pci->bdf, reason);
	if (err < 0)
		undo(machine, device, reason);
	return err;
}

static void say_bound(const struct device *device)
{
	const struct mr_pci_info *pci = &device->pci;

	if (device_is_vfio(device))
		printf("%s: has been bound to %s before\n", pci->bdf,
		       pci->kernel_driver);
	else
		printf("%s: bound to vfio-pci, was %s%s%s\n", pci->bdf,
		       pci->kernel_driver[0] != '\0' ? pci->kernel_driver :
						       "without a driver",
		       pci->netdev[0] != '\0' ? ", interface " : "",
		       pci->netdev);
}

static int give_all(const struct machine *machine, const struct device *devices,
		    uint32_t n, const struct owner *owner,
		    struct mr_reason *reason)
{
	int err = 0;

	for (uint32_t i = 0; i < n && err == 0 && owner != NULL; i++)
		err = owner_give(machine, devices[i].pci.bdf, owner, reason);
	return err;
}

static void say_all(const struct machine *machine, const struct device *devices,
		    uint32_t n, const struct owner *owner)
{
	for (uint32_t i = 0; i < n; i++)
		say_bound(&devices[i]);
	for (uint32_t i = 0; i < n && owner != NULL; i++)
		owner_say(machine, devices[i].pci.bdf, owner);
}

static int bind_all(const struct machine *machine, const struct device *devices,
		    uint32_t n, const struct bind_options *options,
		    struct mr_reason *reason)
{
	uint32_t n_bound = 0;
	int err = 0;

	for (uint32_t i = 0; i < n && err == 0; i++)
		err = check(machine, &devices[i], devices, n, options, reason);
	for (; n_bound < n && err == 0; n_bound++) {
		err = bind_one(machine, &devices[n_bound], reason);
		if (err < 0)
			break;
	}
	if (err == 0)
		err = give_all(machine, devices, n, options->owner, reason);
	for (uint32_t i = 0; err < 0 && i < n_bound; i++)
		if (!device_is_vfio(&devices[i]))
			undo(machine, &devices[i], reason);
	if (err == 0)
		say_all(machine, devices, n, options->owner);
	return err;
}

int bind_devices(const struct machine *machine, char *const *bdfs, uint32_t n,
		 const struct bind_options *options, struct mr_reason *reason)
{
	struct device *devices = calloc(n, sizeof(devices[0]));
	uint32_t n_read = 0;
	int err = 0;

	if (devices == NULL)
		return machine_fail(reason, -ENOMEM, "no memory");
	while (n_read < n && err == 0) {
		err = device_read(machine, bdfs[n_read], &devices[n_read],
				  reason);
		n_read++;
	}
	if (err == 0)
		err = bind_all(machine, devices, n, options, reason);
	for (uint32_t i = 0; i < n_read; i++)
		device_free(&devices[i]);
	free(devices);
	return err;
}

/* The interface's name when it is there and is not renamed any more. */
static bool wait_for_interface(const struct machine *machine, const char *bdf,
			       const char *former, char name[16])
{
	const uint64_t start_ms = machine_now_ms();

	for (;;) {
		struct mr_pci_info info = { .size = sizeof(info) };
		const uint64_t ms = machine_now_ms() - start_ms;

		if (mr_pci_info(machine->ctx, bdf, &info, NULL) == 0)
			snprintf(name, 16, "%s", info.netdev);
		if (name[0] != '\0' &&
		    (strcmp(name, former) == 0 || ms > RENAME_WAIT_MS))
			return true;
		if (ms > NETDEV_WAIT_MS)
			return name[0] != '\0';
		machine_nap();
	}
}

static int check_unused(const struct machine *machine,
			const struct device *device, struct mr_reason *reason)
{
	char name[NAME_BYTES];
	uint32_t pid;

	if (!holder_find(machine, device, &pid, name))
		return 0;
	return machine_fail(
		reason, -EBUSY,
		"%s: process %u (%s) uses it: end that first, or the "
		"kernel would wait for it",
		device->pci.bdf, pid, name);
}

/* Where the kernel driver was taken from it by nobody: no more to be done. */
static int forget(const struct machine *machine, const struct device *device)
{
	printf("%s: is not bound to vfio-pci; it has %s\n", device->pci.bdf,
	       device->pci.kernel_driver[0] != '\0' ?
		       device->pci.kernel_driver :
		       "no driver");
	state_forget(machine, device->pci.bdf);
	return 0;
}

static int give_back(const struct machine *machine, const struct device *device,
		     struct mr_reason *reason)
{
	const char *const bdf = device->pci.bdf;
	char former[32], interface[16], name[16] = "", now[32];
	int err;

	if (!device_is_vfio(device) && device->pci.kernel_driver[0] != '\0')
		return forget(machine, device);
	if (!device_is_vfio(device) && !device->is_remembered)
		return forget(machine, device);
	err = check_unused(machine, device, reason);
	if (err < 0)
		return err;
	(void)state_recall(machine, bdf, former, interface);
	if (device->is_remembered && former[0] == '\0')
		err = switch_to_none(machine, bdf, reason);
	else
		err = switch_to_kernel(machine, bdf, former, reason);
	if (err < 0)
		return err;
	device_kernel_driver(machine, bdf, now);
	if (interface[0] != '\0' &&
	    !wait_for_interface(machine, bdf, interface, name))
		return machine_fail(
			reason, -ETIMEDOUT,
			"%s: %s has it again, but interface %s did not "
			"come back within %d s; dmesg says why",
			bdf, now, interface, NETDEV_WAIT_MS / 1000);
	printf("%s: given back to %s%s%s\n", bdf,
	       now[0] != '\0' ? now : "nobody: it had no driver before",
	       name[0] != '\0' ? ", interface " : "", name);
	state_forget(machine, bdf);
	return 0;
}

int bind_give_back(const struct machine *machine, const char *bdf,
		   struct mr_reason *reason)
{
	struct device device;
	int err = device_read(machine, bdf, &device, reason);
	char former[32];

	if (err == -ENODEV && state_recall(machine, bdf, former, NULL)) {
		printf("%s: is not there any more\n", bdf);
		state_forget(machine, bdf);
		err = 0;
	} else if (err == 0)
		err = give_back(machine, &device, reason);
	device_free(&device);
	return err;
}
