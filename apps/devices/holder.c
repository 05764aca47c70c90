/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holder.h"

/* The nodes by which a program opens a device; "" where there is none. */
struct nodes {
	struct path group;
	char device[NAME_BYTES];
};

static bool holds(const struct machine *machine, const char *pid,
		  const struct nodes *nodes)
{
	struct names fds;
	bool does = false;

	(void)machine_names(machine_path(machine, "/proc/%s/fd", pid), &fds);
	for (uint32_t i = 0; !does && i < fds.n; i++) {
		const struct path path = machine_path(machine, "/proc/%s/fd/%s",
						      pid, fds.list[i]);
		char target[PATH_BYTES];
		const ssize_t n =
			readlink(path.text, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		does = strcmp(target, nodes->group.text) == 0 ||
		       strcmp(target, nodes->device) == 0;
	}
	names_free(&fds);
	return does;
}

bool holder_find(const struct machine *machine, const struct device *device,
		 uint32_t *ret_pid, char name[NAME_BYTES])
{
	struct nodes nodes = {
		.group = device_group_node(machine, &device->pci),
	};
	struct names pids;
	bool is_found = false;

	if (device->pci.vfio_cdev[0] != '\0')
		snprintf(nodes.device, sizeof(nodes.device),
			 "/dev/vfio/devices/%s", device->pci.vfio_cdev);
	(void)machine_names(machine_path(machine, "/proc"), &pids);
	for (uint32_t i = 0; !is_found && i < pids.n; i++) {
		const char *const pid = pids.list[i];

		if (pid[0] < '0' || pid[0] > '9' ||
		    !holds(machine, pid, &nodes))
			continue;
		is_found = true;
		*ret_pid = (uint32_t)strtoul(pid, NULL, 10);
		(void)machine_read(machine_path(machine, "/proc/%s/comm", pid),
				   name, NAME_BYTES);
	}
	names_free(&pids);
	return is_found;
}
