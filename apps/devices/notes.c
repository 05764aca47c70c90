/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devices.h"

static struct path path_of(const char *bdf)
{
	return machine_path("/run/millrace/devices/%s", bdf);
}

int notes_lock(void)
{
	int fd, err;

	if ((mkdir(machine_path("/run/millrace").text, 0755) < 0 &&
	     errno != EEXIST) ||
	    (mkdir(path_of("").text, 0755) < 0 && errno != EEXIST))
		return -errno;
	fd = open(path_of("").text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd < 0 ? -errno : fd;
	err = -errno;
	close(fd);
	return err;
}

/* Write to a temporary name first: there is never half a file. */
int notes_remember(const struct mr_pci_info *pci)
{
	const struct path fresh = path_of(".new");
	FILE *file = fopen(fresh.text, "we");
	bool is_written;

	if (file == NULL)
		return -errno;
	is_written = fprintf(file, "driver=%s\ninterface=%s\n",
			     pci->kernel_driver, pci->netdev) > 0;
	is_written &= fclose(file) == 0;
	if (!is_written || rename(fresh.text, path_of(pci->bdf).text) < 0)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

bool notes_recall(const char *bdf, struct device *device)
{
	FILE *file = fopen(path_of(bdf).text, "re");
	char line[PATH_BYTES];

	if (file == NULL)
		return false;
	/* A conversion without text, such as "driver=", changes nothing. */
	while (fgets(line, sizeof(line), file) != NULL) {
		(void)sscanf(line, "driver=%31[^\n]", device->former_driver);
		(void)sscanf(line, "interface=%15[^\n]",
			     device->former_interface);
	}
	fclose(file);
	return true;
}

void notes_forget(const char *bdf)
{
	(void)unlink(path_of(bdf).text);
}

int notes_names(struct names *ret)
{
	const int err = machine_names(path_of(""), ret);

	return err == -ENOENT ? 0 : err;
}
