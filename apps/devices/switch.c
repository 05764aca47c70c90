/* SPDX-License-Identifier: BSD-3-Clause */
/* Source: linux/Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-platform. */
#include <errno.h>
#include <string.h>

#include "device.h"
#include "switch.h"

/* Probing waits for firmware in some drivers. */
enum { DRIVER_WAIT_MS = 10000 };

static int fail(struct mr_reason *reason, int err, const char *bdf,
		const char *what, struct path path)
{
	return machine_fail(reason, err, "%s: %s: %s: %s%s", bdf, what,
			    path.text, strerror(-err),
			    err == -EACCES || err == -EPERM ? ": run as root" :
							      "");
}

static int write_or_fail(struct path path, const char *text, const char *bdf,
			 const char *what, struct mr_reason *reason)
{
	const int err = machine_write(path, text);

	return err < 0 ? fail(reason, err, bdf, what, path) : 0;
}

/* What vfio-pci is matched by: no other device becomes its own by it. */
static int set_override(const struct machine *machine, const char *bdf,
			const char *driver, struct mr_reason *reason)
{
	return write_or_fail(
		machine_path(machine, "/sys/bus/pci/devices/%s/driver_override",
			     bdf),
		driver, bdf, "cannot say which driver it is for", reason);
}

/* Wait until it has this driver; "": none; NULL: any but vfio-pci. */
static bool wait_for_driver(const struct machine *machine, const char *bdf,
			    const char *wanted)
{
	const uint64_t until_ms = machine_now_ms() + DRIVER_WAIT_MS;
	char name[32];

	for (;;) {
		device_kernel_driver(machine, bdf, name);
		if (wanted != NULL ?
			    strcmp(name, wanted) == 0 :
			    name[0] != '\0' && strcmp(name, "vfio-pci") != 0)
			return true;
		if (machine_now_ms() > until_ms)
			return false;
		machine_nap();
	}
}

static int unbind(const struct machine *machine, const char *bdf,
		  struct mr_reason *reason)
{
	char name[32];
	int err;

	device_kernel_driver(machine, bdf, name);
	if (name[0] == '\0')
		return 0;
	err = write_or_fail(
		machine_path(machine, "/sys/bus/pci/devices/%s/driver/unbind",
			     bdf),
		bdf, bdf, "cannot take it from its kernel driver", reason);
	if (err < 0)
		return err;
	if (wait_for_driver(machine, bdf, ""))
		return 0;
	return machine_fail(
		reason, -ETIMEDOUT,
		"%s: kernel driver %s did not let it go within %d s", bdf, name,
		DRIVER_WAIT_MS / 1000);
}

/* An empty line takes the override away. */
static int clear_override(const struct machine *machine, const char *bdf,
			  struct mr_reason *reason)
{
	return set_override(machine, bdf, "\n", reason);
}

int switch_to_none(const struct machine *machine, const char *bdf,
		   struct mr_reason *reason)
{
	const int err = clear_override(machine, bdf, reason);

	return err < 0 ? err : unbind(machine, bdf, reason);
}

int switch_to_vfio(const struct machine *machine, const char *bdf,
		   struct mr_reason *reason)
{
	const struct path probe =
		machine_path(machine, "/sys/bus/pci/drivers_probe");
	int err;

	if ((err = set_override(machine, bdf, "vfio-pci", reason)) < 0 ||
	    (err = unbind(machine, bdf, reason)) < 0 ||
	    (err = write_or_fail(probe, bdf, bdf, "vfio-pci does not take it",
				 reason)) < 0)
		return err;
	if (wait_for_driver(machine, bdf, "vfio-pci"))
		return 0;
	return machine_fail(
		reason, -ETIMEDOUT,
		"%s: vfio-pci did not take it within %d s; dmesg says why", bdf,
		DRIVER_WAIT_MS / 1000);
}

int switch_to_kernel(const struct machine *machine, const char *bdf,
		     const char *former, struct mr_reason *reason)
{
	const struct path probe =
		machine_path(machine, "/sys/bus/pci/drivers_probe");
	int err = switch_to_none(machine, bdf, reason);

	if (err < 0)
		return err;
	if (former[0] != '\0' &&
	    !machine_exists(
		    machine_path(machine, "/sys/bus/pci/drivers/%s", former))) {
		return machine_fail(
			reason, -ENOENT,
			"%s: its kernel driver %s is not loaded: 'modprobe "
			"%s', then once more",
			bdf, former, former);
	}
	/* By name: another driver may know its ids, too. */
	if (former[0] == '\0' ||
	    machine_write(machine_path(machine, "/sys/bus/pci/drivers/%s/bind",
				       former),
			  bdf) < 0)
		err = write_or_fail(probe, bdf, bdf,
				    "no kernel driver takes it", reason);
	if (err < 0)
		return err;
	if (wait_for_driver(machine, bdf, former[0] != '\0' ? former : NULL))
		return 0;
	return machine_fail(
		reason, -ETIMEDOUT,
		"%s: kernel driver %s did not take it within %d s; dmesg says "
		"why",
		bdf, former[0] != '\0' ? former : "for it (is it loaded?)",
		DRIVER_WAIT_MS / 1000);
}
