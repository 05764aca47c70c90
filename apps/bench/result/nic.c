/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "result/document_parts.h"
#include "result/nic.h"
#include "support/text.h"

enum { PATH_BYTES = 512 };

static long read_number(const char *folder, const char *name, long otherwise)
{
	char text[32], *end;
	long n;

	read_line(text, sizeof(text), "%s/%s", folder, name);
	n = strtol(text, &end, 10);
	return end != text ? n : otherwise;
}

static void set_file(json_t *object, const char *key, const char *folder,
		     const char *name)
{
	char text[128];

	read_line(text, sizeof(text), "%s/%s", folder, name);
	json_object_set_new(object, key, json_text(text));
}

/* The last part of what a link leads to. */
static void read_link(const char *folder, const char *name, char *ret, size_t n)
{
	char path[PATH_BYTES], target[PATH_BYTES];
	const char *last;
	ssize_t n_bytes;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "%.400s/%.64s", folder, name);
	n_bytes = readlink(path, target, sizeof(target) - 1);
	if (n_bytes <= 0)
		return;
	target[n_bytes] = '\0';
	last = strrchr(target, '/');
	snprintf(ret, n, "%.64s", last != NULL ? last + 1 : target);
}

/* A slot that is slower than the device's best is a limit to know of. */
static json_t *pci_object(const char *folder)
{
	json_t *object = json_object();
	char driver[80];

	read_link(folder, "driver", driver, sizeof(driver));
	set_file(object, "vendor", folder, "vendor");
	set_file(object, "device", folder, "device");
	set_file(object, "subsystem_vendor", folder, "subsystem_vendor");
	set_file(object, "subsystem_device", folder, "subsystem_device");
	set_file(object, "revision", folder, "revision");
	json_object_set_new(object, "driver", json_text(driver));
	set_file(object, "link_speed", folder, "current_link_speed");
	set_file(object, "link_width", folder, "current_link_width");
	set_file(object, "max_link_speed", folder, "max_link_speed");
	set_file(object, "max_link_width", folder, "max_link_width");
	return object;
}

static int ask_kernel(int fd, const char *netdev, void *command)
{
	struct ifreq request = { .ifr_data = command };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", netdev);
	return fd >= 0 ? ioctl(fd, SIOCETHTOOL, &request) : -1;
}

/* Driver, firmware, rings and interrupt moderation, by ethtool's ioctl. */
static void add_ethtool(json_t *object, const char *netdev)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	struct ethtool_ringparam rings = { .cmd = ETHTOOL_GRINGPARAM };
	struct ethtool_coalesce wait = { .cmd = ETHTOOL_GCOALESCE };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ask_kernel(fd, netdev, &driver) == 0) {
		json_object_set_new(object, "driver",
				    json_text(driver.driver));
		json_object_set_new(object, "driver_version",
				    json_text(driver.version));
		json_object_set_new(object, "firmware",
				    json_text(driver.fw_version));
	}
	if (ask_kernel(fd, netdev, &rings) == 0)
		json_object_set_new(object, "rings",
				    json_pack("{s:i, s:i}", "rx",
					      (int)rings.rx_pending, "tx",
					      (int)rings.tx_pending));
	if (ask_kernel(fd, netdev, &wait) == 0)
		json_object_set_new(
			object, "coalesce",
			json_pack("{s:i, s:i, s:b, s:b}", "rx_us",
				  (int)wait.rx_coalesce_usecs, "tx_us",
				  (int)wait.tx_coalesce_usecs, "rx_adaptive",
				  (int)wait.use_adaptive_rx_coalesce,
				  "tx_adaptive",
				  (int)wait.use_adaptive_tx_coalesce));
	if (fd >= 0)
		close(fd);
}

/* The node that a core is of; -1: unknown. */
static int node_of_core(const char *sysfs, uint32_t core)
{
	char path[PATH_BYTES];

	for (int node = 0; node < 256; node++) {
		snprintf(path, sizeof(path),
			 "%s/devices/system/cpu/cpu%u/node%d", sysfs, core,
			 node);
		if (access(path, F_OK) == 0)
			return node;
	}
	return -1;
}

/* As the firmware has it: 10 is on the node itself; 0: unknown. */
static int node_distance(const char *sysfs, int from, int to)
{
	char line[1024], *at = line;
	long distance = 0;

	read_line(line, sizeof(line), "%s/devices/system/node/node%d/distance",
		  sysfs, from);
	for (int i = 0; i <= to; i++) {
		char *end;

		distance = strtol(at, &end, 10);
		if (end == at)
			return 0;
		at = end;
	}
	return (int)distance;
}

/* Of the core that is the furthest away; 0: unknown. */
static int furthest(const char *sysfs, int numa_node, const uint32_t *cores,
		    uint32_t n_cores)
{
	int most = 0;

	for (uint32_t i = 0; i < n_cores && numa_node >= 0; i++) {
		const int node = node_of_core(sysfs, cores[i]);
		const int distance =
			node < 0 ? 0 : node_distance(sysfs, node, numa_node);

		if (distance > most)
			most = distance;
	}
	return most;
}

/* The PCI function that an interface is of; that of virtio is one above. */
static bool find_pci(const char *folder, char *ret, size_t n)
{
	static const char *const places[] = { "device", "device/.." };
	char vendor[16], width[16];

	for (uint32_t i = 0; i < 2; i++) {
		snprintf(ret, n, "%s/%s", folder, places[i]);
		read_line(vendor, sizeof(vendor), "%s/vendor", ret);
		read_line(width, sizeof(width), "%s/current_link_width", ret);
		if (strlen(vendor) == strlen("0x8086") && width[0] != '\0')
			return true;
	}
	return false;
}

static void add_netdev(json_t *object, const char *folder, const char *netdev)
{
	const long mbps = read_number(folder, "speed", 0);

	add_ethtool(object, netdev);
	json_object_set_new(object, "link_mbps",
			    json_integer(mbps > 0 ? mbps : 0));
	json_object_set_new(
		object, "napi_defer_hard_irqs",
		json_integer(read_number(folder, "napi_defer_hard_irqs", 0)));
	json_object_set_new(
		object, "gro_flush_timeout_ns",
		json_integer(read_number(folder, "gro_flush_timeout", 0)));
}

json_t *nic_json(const char *sysfs, const char *device, const uint32_t *cores,
		 uint32_t n_cores)
{
	char netdev[PATH_BYTES - 32], pci[PATH_BYTES];
	bool is_netdev, is_pci;
	json_t *object;
	long node;

	if (device[0] == '\0' || strchr(device, '/') != NULL)
		return json_null();
	snprintf(netdev, sizeof(netdev), "%.64s/class/net/%.64s", sysfs,
		 device);
	snprintf(pci, sizeof(pci), "%.64s/bus/pci/devices/%.64s", sysfs,
		 device);
	is_netdev = access(netdev, F_OK) == 0;
	is_pci = access(pci, F_OK) == 0;
	if (!is_netdev && !is_pci)
		return json_null();
	object = json_object();
	if (is_netdev) {
		add_netdev(object, netdev, device);
		is_pci = find_pci(netdev, pci, sizeof(pci));
	}
	json_object_set_new(object, "pci",
			    is_pci ? pci_object(pci) : json_null());
	node = is_pci ? read_number(pci, "numa_node", -1) : -1;
	json_object_set_new(object, "numa_node", json_integer(node));
	json_object_set_new(
		object, "numa_distance",
		json_integer(furthest(sysfs, (int)node, cores, n_cores)));
	return object;
}
