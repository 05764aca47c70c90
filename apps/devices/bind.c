/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"

enum {
	NETDEV_WAIT_MS = 10000,
	/* udev renames a new interface after seeing it. */
	RENAME_WAIT_MS = 1000,
};

static const char *or_else(const char *text, const char *other)
{
	return text[0] != '\0' ? text : other;
}

static bool is_among(const char *bdf, const struct device *devices, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(devices[i].pci.bdf, bdf) == 0)
			return true;
	return false;
}

/* The others in its group are bound as well, or not used for DMA. */
static int check_group(const struct device *device,
		       const struct device *devices, uint32_t n,
		       struct mr_reason *reason)
{
	char others[200] = "";

	for (int i = 0; i < device->siblings.n; i++) {
		const char *const other = device->siblings.list[i]->d_name;
		const size_t n_bytes = strlen(others);
		char driver[32];

		if (!is_among(other, devices, n) &&
		    !device_leaves_group_viable(other, driver))
			snprintf(others + n_bytes, sizeof(others) - n_bytes,
				 "%s %.63s (%s)", n_bytes > 0 ? "," : "", other,
				 driver);
	}
	if (others[0] == '\0')
		return 0;
	return fail(reason, -EBUSY,
		    "%s: IOMMU group %d is not viable: the kernel uses other "
		    "devices of it:%s; bind its network devices as well, "
		    "unbind the others from their drivers (driver/unbind in "
		    "sysfs), or use another slot",
		    device->pci.bdf, device->pci.iommu_group, others);
}

static bool allows_noiommu(void)
{
	char line[8];

	machine_read(machine_path("/sys/module/vfio/parameters/"
				  "enable_unsafe_noiommu_mode"),
		     line, sizeof(line));
	return line[0] == 'Y' || line[0] == '1';
}

/* Whether the kernel uses it; unknown for another root. */
static int check_use(const struct device *device, struct mr_reason *reason)
{
	const struct mr_pci_info *pci = &device->pci;
	const uint32_t ifindex =
		machine.root[0] == '\0' ? if_nametoindex(pci->netdev) : 0;
	struct mr_reason why;

	if (device->default_route[0] != '\0')
		return fail(reason, -EBUSY,
			    "%s: its interface %s carries the default route of "
			    "this machine, which would be cut off; use --force "
			    "to bind it anyway",
			    pci->bdf, device->default_route);
	if (ifindex == 0 || mr_netdev_use(ifindex, &why) != MR_NETDEV_IN_USE)
		return 0;
	return fail(reason, -EBUSY,
		    "%s: its interface %s %s; use --force to bind it anyway",
		    pci->bdf, pci->netdev, why.text);
}

static int check(const struct device *device, const struct device *devices,
		 uint32_t n, const struct bind_options *options,
		 struct mr_reason *reason)
{
	const struct mr_pci_info *pci = &device->pci;
	int err;

	if (!device->is_nic)
		return fail(reason, -EINVAL,
			    "%s is not a network device (class %06x)", pci->bdf,
			    pci->class_code);
	err = options->is_forced ? 0 : check_use(device, reason);
	if (err < 0)
		return err;
	if (!machine_exists(machine_path("/sys/bus/pci/drivers/vfio-pci")))
		return fail(
			reason, -ENOENT,
			"%s: vfio-pci is not loaded; 'modprobe vfio-pci' first",
			pci->bdf);
	if (pci->iommu_group < 0 && !allows_noiommu())
		return fail(reason, -ENODEV,
			    "%s has no IOMMU group; enable the IOMMU in the "
			    "firmware (VT-d, AMD-Vi) and with intel_iommu=on "
			    "on the kernel command line",
			    pci->bdf);
	/* Without an IOMMU, only root may open the node. */
	if (options->has_owner &&
	    (pci->iommu_group < 0 ||
	     strstr(device_nodes(pci).group.text, "noiommu") != NULL))
		return fail(reason, -EPERM,
			    "%s: without an IOMMU, only root may use it",
			    pci->bdf);
	return check_group(device, devices, n, reason);
}

/*
 * Restore its previous driver. If that fails, the note stays, for unbind, and
 * the message says so.
 */
static void undo(const struct device *device, struct mr_reason *reason)
{
	const struct mr_pci_info *pci = &device->pci;
	const size_t n_used = strlen(reason->text);
	struct mr_pci_info now;
	struct mr_reason ignored;

	(void)switch_to(pci->bdf, pci->kernel_driver, &ignored);
	(void)device_look(pci->bdf, &now);
	if (strcmp(now.kernel_driver, pci->kernel_driver) == 0)
		notes_forget(pci->bdf);
	else
		snprintf(reason->text + n_used, sizeof(reason->text) - n_used,
			 "; %s could not be returned; run mr-devices unbind %s",
			 pci->bdf, pci->bdf);
}

static int bind_one(const struct device *device, struct mr_reason *reason)
{
	const struct mr_pci_info *pci = &device->pci;
	int err;

	if (device->is_vfio)
		return 0;
	/* Before any change: if killed in between, it can be undone. */
	err = notes_remember(pci);
	if (err < 0)
		return fail(reason, err,
			    "%s: cannot record its kernel driver in "
			    "/run/millrace/devices: %s",
			    pci->bdf, strerror(-err));
	err = switch_to(pci->bdf, "vfio-pci", reason);
	if (err < 0)
		undo(device, reason);
	return err;
}

static void say_bound(const struct mr_pci_info *pci, bool is_vfio)
{
	if (is_vfio)
		printf("%s: already bound to %s\n", pci->bdf,
		       pci->kernel_driver);
	else
		printf("%s: bound to vfio-pci, was %s%s%s\n", pci->bdf,
		       or_else(pci->kernel_driver, "without a driver"),
		       pci->netdev[0] != '\0' ? ", interface " : "",
		       pci->netdev);
}

static int bind_all(const struct device *devices, uint32_t n,
		    const struct bind_options *options,
		    struct mr_reason *reason)
{
	const uint32_t n_owned = options->has_owner ? n : 0;
	uint32_t n_bound = 0;
	int err = 0;

	for (uint32_t i = 0; i < n && err == 0; i++)
		err = check(&devices[i], devices, n, options, reason);
	while (n_bound < n && err == 0) {
		err = bind_one(&devices[n_bound], reason);
		n_bound += err == 0;
	}
	for (uint32_t i = 0; i < n_owned && err == 0; i++)
		err = owner_give(devices[i].pci.bdf, &options->owner, reason);
	for (uint32_t i = 0; err < 0 && i < n_bound; i++)
		if (!devices[i].is_vfio)
			undo(&devices[i], reason);
	for (uint32_t i = 0; i < n && err == 0; i++)
		say_bound(&devices[i].pci, devices[i].is_vfio);
	for (uint32_t i = 0; i < n_owned && err == 0; i++)
		owner_say(devices[i].pci.bdf, &options->owner);
	return err;
}

int bind_devices(char *const *bdfs, uint32_t n,
		 const struct bind_options *options, struct mr_reason *reason)
{
	struct device *devices = calloc(n, sizeof(devices[0]));
	int err = 0;

	if (devices == NULL)
		return fail(reason, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < n && err == 0; i++)
		err = device_read(bdfs[i], &devices[i], reason);
	if (err == 0)
		err = bind_all(devices, n, options, reason);
	for (uint32_t i = 0; i < n; i++)
		device_free(&devices[i]);
	free(devices);
	return err;
}

/* Wait for the interface, under its final name. */
static bool wait_for_interface(const char *bdf, const char *former,
			       struct mr_pci_info *now)
{
	const uint64_t until_ms = machine_after_ms(NETDEV_WAIT_MS);
	const uint64_t renamed_ms = machine_after_ms(RENAME_WAIT_MS);

	while (!(device_look(bdf, now) && now->netdev[0] != '\0' &&
		 (strcmp(now->netdev, former) == 0 ||
		  machine_after_ms(0) > renamed_ms)) &&
	       machine_nap(until_ms))
		;
	return now->netdev[0] != '\0';
}

static int give_back(const struct device *device, struct mr_reason *reason)
{
	const char *const bdf = device->pci.bdf;
	char pid[NAME_BYTES], program[NAME_BYTES];
	struct mr_pci_info now;
	int err;

	if (!device->is_vfio &&
	    (device->pci.kernel_driver[0] != '\0' || !device->is_remembered)) {
		printf("%s: not bound to vfio-pci; it has %s\n", bdf,
		       or_else(device->pci.kernel_driver, "no driver"));
		return 0;
	}
	if (device_holder(device, pid, program))
		return fail(reason, -EBUSY,
			    "%s: in use by process %s (%s); stop it first, "
			    "since the kernel would wait for it",
			    bdf, pid, program);
	err = switch_to(bdf,
			device->is_remembered ? device->former_driver : NULL,
			reason);
	if (err < 0)
		return err;
	(void)device_look(bdf, &now);
	if (device->former_interface[0] == '\0')
		now.netdev[0] = '\0';
	else if (!wait_for_interface(bdf, device->former_interface, &now))
		return fail(reason, -ETIMEDOUT,
			    "%s: %s has it again, but interface %s did not "
			    "come back within %d s; see dmesg",
			    bdf, now.kernel_driver, device->former_interface,
			    NETDEV_WAIT_MS / 1000);
	printf("%s: returned to %s%s%s\n", bdf,
	       or_else(now.kernel_driver, "no driver, as before"),
	       now.netdev[0] != '\0' ? ", interface " : "", now.netdev);
	return 0;
}

int bind_give_back(const char *bdf, struct mr_reason *reason)
{
	struct device device;
	int err = device_read(bdf, &device, reason);

	if (err == 0) {
		err = give_back(&device, reason);
		bdf = device.pci.bdf;
	} else if (err == -ENODEV && notes_recall(bdf, &device)) {
		printf("%s: no longer present\n", bdf);
		err = 0;
	}
	if (err == 0)
		notes_forget(bdf);
	device_free(&device);
	return err;
}
