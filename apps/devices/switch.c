/* SPDX-License-Identifier: BSD-3-Clause */
/* Source: linux/Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-platform. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "devices.h"

/* Some drivers wait for firmware when probing. */
enum { DRIVER_WAIT_MS = 10000 };

static int write_or_fail(struct path path, const char *text, const char *bdf,
			 const char *what, struct mr_reason *reason)
{
	const int err = machine_write(path, text);

	if (err == 0)
		return 0;
	return fail(reason, err, "%s: %s: %s: %s%s", bdf, what, path.text,
		    strerror(-err),
		    err == -EACCES || err == -EPERM ? ": run as root" : "");
}

/* Wait until it has this driver; "": none; NULL: any but vfio-pci. */
static bool wait_for(const char *bdf, const char *wanted)
{
	const uint64_t until_ms = machine_after_ms(DRIVER_WAIT_MS);
	struct mr_pci_info info;
	const char *const name = info.kernel_driver;

	do {
		(void)device_look(bdf, &info);
		if (wanted != NULL ?
			    strcmp(name, wanted) == 0 :
			    name[0] != '\0' && strcmp(name, "vfio-pci") != 0)
			return true;
	} while (machine_nap(until_ms));
	return false;
}

static int unbind(const char *bdf, struct mr_reason *reason)
{
	struct mr_pci_info info;
	int err;

	if (!device_look(bdf, &info) || info.kernel_driver[0] == '\0')
		return 0;
	err = write_or_fail(
		machine_path("/sys/bus/pci/devices/%s/driver/unbind", bdf), bdf,
		bdf, "cannot unbind it from its kernel driver", reason);
	if (err < 0 || wait_for(bdf, ""))
		return err;
	return fail(reason, -ETIMEDOUT,
		    "%s: kernel driver %s did not release it within %d s", bdf,
		    info.kernel_driver, DRIVER_WAIT_MS / 1000);
}

int switch_to(const char *bdf, const char *driver, struct mr_reason *reason)
{
	const bool is_vfio = driver != NULL && strcmp(driver, "vfio-pci") == 0;
	/* Makes vfio-pci match only this device. An empty line removes it. */
	int err = write_or_fail(
		machine_path("/sys/bus/pci/devices/%s/driver_override", bdf),
		is_vfio ? driver : "\n", bdf, "cannot set its driver", reason);

	if (err == 0)
		err = unbind(bdf, reason);
	if (err < 0 || (driver != NULL && driver[0] == '\0'))
		return err;
	if (driver != NULL && !is_vfio &&
	    !machine_exists(machine_path("/sys/bus/pci/drivers/%s", driver)))
		return fail(reason, -ENOENT,
			    "%s: its kernel driver %s is not loaded; 'modprobe "
			    "%s', then try again",
			    bdf, driver, driver);
	/* By name: another driver may also match its ids. */
	if (driver == NULL || is_vfio ||
	    machine_write(machine_path("/sys/bus/pci/drivers/%s/bind", driver),
			  bdf) < 0)
		err = write_or_fail(machine_path("/sys/bus/pci/drivers_probe"),
				    bdf, bdf,
				    is_vfio ? "vfio-pci does not accept it" :
					      "no kernel driver accepts it",
				    reason);
	if (err < 0 || wait_for(bdf, driver))
		return err;
	return fail(reason, -ETIMEDOUT,
		    "%s: %s did not bind within %d s; see dmesg", bdf,
		    driver != NULL ? driver :
				     "its kernel driver (is it loaded?)",
		    DRIVER_WAIT_MS / 1000);
}
