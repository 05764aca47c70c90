/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PCI functions in sysfs.
 *
 * Source: linux/Documentation/ABI/testing/sysfs-bus-pci;
 * drivers/vfio/vfio_main.c for vfio-dev, drivers/virtio for the directory
 * between a function and its net.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "pci/pci.h"

/* Skip min to max hex digits at *text, and the character after them. */
static bool skip_hex(const char **text, int min, int max, char end)
{
	int n = 0;

	while (n < max && isxdigit((unsigned char)**text)) {
		n++;
		(*text)++;
	}
	if (n < min || **text != end)
		return false;
	*text += end != '\0';
	return true;
}

/* "03:00.0", or a domain of 4 to 8 digits before it: VMD has 5, VMBus more. */
static bool is_short(const char *text)
{
	return skip_hex(&text, 2, 2, ':') && skip_hex(&text, 2, 2, '.') &&
	       skip_hex(&text, 1, 1, '\0');
}

static bool is_long(const char *text)
{
	return skip_hex(&text, 4, 8, ':') && is_short(text);
}

/* The address in sysfs's format. */
static bool normalise(const char *bdf, char *ret, size_t n)
{
	if (!is_short(bdf) && !is_long(bdf))
		return false;
	snprintf(ret, n, "%s%s", is_short(bdf) ? "0000:" : "", bdf);
	for (; *ret != '\0'; ret++)
		*ret = (char)tolower((unsigned char)*ret);
	return true;
}

/* Read a number, 0x or not, from a file; otherwise if it is missing. */
static long read_number(const char *folder, const char *name, long otherwise)
{
	char path[MRI_PATH_BYTES + 32], line[32];
	FILE *file;
	char *end;
	long value;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (file == NULL)
		return otherwise;
	value = otherwise;
	if (fgets(line, sizeof(line), file) != NULL) {
		value = strtol(line, &end, 0);
		if (end == line)
			value = otherwise;
	}
	(void)fclose(file);
	return value;
}

/* The last component of a link's target, "" if there is no link. */
static void read_link(const char *folder, const char *name, char *ret, size_t n)
{
	char path[MRI_PATH_BYTES + 32], target[MRI_PATH_BYTES];
	const char *last;
	ssize_t n_read;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ret[0] = '\0';
	n_read = readlink(path, target, sizeof(target) - 1);
	if (n_read <= 0)
		return;
	target[n_read] = '\0';
	last = strrchr(target, '/');
	snprintf(ret, n, "%.*s", (int)(n - 1),
		 last != NULL ? last + 1 : target);
}

/* The first entry of a directory that begins with prefix; "": none. */
static void find_entry(const char *folder, const char *name, const char *prefix,
		       char *ret, size_t n)
{
	char path[MRI_PATH_BYTES + 32];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ret[0] = '\0';
	dir = opendir(path);
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' &&
		    strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    (ret[0] == '\0' || strcmp(entry->d_name, ret) < 0))
			snprintf(ret, n, "%.*s", (int)(n - 1), entry->d_name);
	(void)closedir(dir);
}

/* The interface: below the function, or below its virtio device. */
static void find_netdev(const char *folder, char *ret, size_t n)
{
	char virtio[32], name[40];

	find_entry(folder, "net", "", ret, n);
	if (ret[0] != '\0')
		return;
	find_entry(folder, ".", "virtio", virtio, sizeof(virtio));
	if (virtio[0] == '\0')
		return;
	snprintf(name, sizeof(name), "%s/net", virtio);
	find_entry(folder, name, "", ret, n);
}

/* Without CONFIG_VFIO_DEVICE_CDEV there is an entry, but no node. */
static void find_cdev(const char *folder, char *ret, size_t n)
{
	char name[32];

	find_entry(folder, "vfio-dev", "vfio", ret, n);
	snprintf(name, sizeof(name), "vfio-dev/%.16s/dev", ret);
	if (ret[0] != '\0' && read_number(folder, name, -1) < 0)
		ret[0] = '\0';
}

int mri_sysfs_info(const struct mr_ctx *ctx, const char *bdf,
		   struct mr_pci_info *info, struct mr_reason *reterr_reason)
{
	char folder[MRI_PATH_BYTES], group[16];
	long vendor;

	if (!normalise(bdf, info->bdf, sizeof(info->bdf)))
		return mr_fail(
			reterr_reason, -ENODEV,
			"'%s' is neither a PCI address, such as 0000:03:00.0, "
			"nor a software device of this context",
			bdf);
	snprintf(folder, sizeof(folder), "%s/bus/pci/devices/%s",
		 ctx->config.sysfs, info->bdf);
	vendor = read_number(folder, "vendor", -1);
	if (vendor < 0)
		return mr_fail(reterr_reason, -ENODEV,
			       "no PCI device %s (lspci -D lists them)",
			       info->bdf);
	info->vendor_id = (uint16_t)vendor;
	info->device_id = (uint16_t)read_number(folder, "device", 0);
	info->subsystem_vendor_id =
		(uint16_t)read_number(folder, "subsystem_vendor", 0);
	info->subsystem_id =
		(uint16_t)read_number(folder, "subsystem_device", 0);
	info->class_code = (uint32_t)read_number(folder, "class", 0);
	info->numa_node = (int32_t)read_number(folder, "numa_node", -1);
	info->n_vfs = (uint32_t)read_number(folder, "sriov_numvfs", 0);
	read_link(folder, "iommu_group", group, sizeof(group));
	info->iommu_group =
		group[0] != '\0' ? (int32_t)strtol(group, NULL, 10) : -1;
	read_link(folder, "driver", info->kernel_driver,
		  sizeof(info->kernel_driver));
	find_netdev(folder, info->netdev, sizeof(info->netdev));
	find_cdev(folder, info->vfio_cdev, sizeof(info->vfio_cdev));
	return 0;
}
