/* SPDX-License-Identifier: BSD-3-Clause */
/* A test's own sysfs: PCI functions as files and links in a directory. */
#ifndef SUPPORT_FAKE_SYSFS_H
#define SUPPORT_FAKE_SYSFS_H

#include "support/unit.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAKE_PATH_BYTES = 512 };

struct fake_sysfs {
	char root[64];
};

__attribute__((format(printf, 2, 3))) static inline void
fake_path(char *ret, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	assert_true(vsnprintf(ret, FAKE_PATH_BYTES, format, args) <
		    FAKE_PATH_BYTES);
	va_end(args);
}

/* Create the directories above the last component of a path. */
static inline void fake_folders(const char *path)
{
	char part[FAKE_PATH_BYTES];

	for (const char *c = path + 1; *c != '\0'; c++) {
		if (*c != '/')
			continue;
		fake_path(part, "%.*s", (int)(c - path), path);
		assert_true(mkdir(part, 0777) == 0 || errno == EEXIST);
	}
}

/* A file below bus/pci/devices, with this content. */
static inline void fake_file(const struct fake_sysfs *sysfs, const char *name,
			     const char *text)
{
	char path[FAKE_PATH_BYTES];
	FILE *file;

	fake_path(path, "%s/bus/pci/devices/%s", sysfs->root, name);
	fake_folders(path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* A link; its target need not exist. */
static inline void fake_link(const struct fake_sysfs *sysfs, const char *name,
			     const char *target)
{
	char path[FAKE_PATH_BYTES];

	fake_path(path, "%s/%s", sysfs->root, name);
	fake_folders(path);
	(void)unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

/* The kernel driver of a function; NULL: none. */
static inline void fake_bind(const struct fake_sysfs *sysfs, const char *bdf,
			     const char *driver)
{
	char name[FAKE_PATH_BYTES], path[FAKE_PATH_BYTES];
	char target[FAKE_PATH_BYTES];

	fake_path(name, "bus/pci/devices/%s/driver", bdf);
	fake_path(target, "../../../drivers/%s", driver != NULL ? driver : "");
	if (driver != NULL) {
		fake_link(sysfs, name, target);
		return;
	}
	fake_path(path, "%s/%s", sysfs->root, name);
	(void)unlink(path);
}

/* An Ethernet controller, with a driver and a group, or NULL. */
static inline void fake_nic(const struct fake_sysfs *sysfs, const char *bdf,
			    const char *vendor, const char *device,
			    const char *driver, const char *group)
{
	const struct {
		const char *name, *text;
	} files[] = {
		{ "vendor", vendor },
		{ "device", device },
		{ "class", "0x020000" },
	};
	char name[FAKE_PATH_BYTES], target[FAKE_PATH_BYTES];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		fake_path(name, "%s/%s", bdf, files[i].name);
		fake_file(sysfs, name, files[i].text);
	}
	fake_bind(sysfs, bdf, driver);
	if (group == NULL)
		return;
	fake_path(name, "bus/pci/devices/%s/iommu_group", bdf);
	fake_path(target, "../../../../kernel/iommu_groups/%s", group);
	fake_link(sysfs, name, target);
	fake_path(name, "kernel/iommu_groups/%s/devices/%s", group, bdf);
	fake_path(target, "../../../../bus/pci/devices/%s", bdf);
	fake_link(sysfs, name, target);
}

static inline void fake_sysfs_open(struct fake_sysfs *sysfs)
{
	char path[FAKE_PATH_BYTES];

	snprintf(sysfs->root, sizeof(sysfs->root),
		 "/tmp/millrace-sysfs-XXXXXX");
	assert_non_null(mkdtemp(sysfs->root));
	fake_path(path, "%s/bus/pci/devices/", sysfs->root);
	fake_folders(path);
}

static inline int fake_remove(const char *path, const struct stat *st, int type,
			      struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static inline void fake_sysfs_close(struct fake_sysfs *sysfs)
{
	assert_int_equal(
		nftw(sysfs->root, fake_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
