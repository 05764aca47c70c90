/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

static struct path path_of(const struct machine *machine, const char *bdf)
{
	return machine_path(machine, "/run/millrace/devices/%s", bdf);
}

int state_lock(const struct machine *machine)
{
	static const char *const folders[] = { "/run/millrace",
					       "/run/millrace/devices" };
	int fd;

	for (uint32_t i = 0; i < 2; i++)
		if (mkdir(machine_path(machine, "%s", folders[i]).text, 0755) <
			    0 &&
		    errno != EEXIST)
			return -errno;
	fd = open(path_of(machine, "").text,
		  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		const int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* Under another name first: there is never half a file. */
int state_remember(const struct machine *machine, const char *bdf,
		   const char *driver, const char *interface)
{
	const struct path path = path_of(machine, bdf);
	const struct path fresh = path_of(machine, ".new");
	FILE *file = fopen(fresh.text, "we");
	bool is_written;

	if (file == NULL)
		return -errno;
	is_written = fprintf(file, "driver=%s\ninterface=%s\n", driver,
			     interface) > 0;
	is_written &= fclose(file) == 0;
	if (!is_written || rename(fresh.text, path.text) < 0)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

bool state_recall(const struct machine *machine, const char *bdf,
		  char driver[32], char *interface)
{
	FILE *file = fopen(path_of(machine, bdf).text, "re");
	char line[PATH_BYTES];

	driver[0] = '\0';
	if (interface != NULL)
		interface[0] = '\0';
	if (file == NULL)
		return false;
	while (fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "driver=", 7) == 0)
			snprintf(driver, 32, "%.31s", line + 7);
		if (interface != NULL && strncmp(line, "interface=", 10) == 0)
			snprintf(interface, 16, "%.15s", line + 10);
	}
	fclose(file);
	return true;
}

void state_forget(const struct machine *machine, const char *bdf)
{
	(void)unlink(path_of(machine, bdf).text);
}

int state_names(const struct machine *machine, struct names *ret)
{
	const int err = machine_names(path_of(machine, ""), ret);

	return err == -ENOENT ? 0 : err;
}
