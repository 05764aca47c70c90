/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks before ports are opened; see check.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "config/addrs.h"
#include "host.h"
#include "support/specs.h"

static bool may_write(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

/* Check that files can be created in the folder of path. */
static int check_folder(const char *key, const char *path,
			struct mr_reason *ret_error)
{
	char copy[sizeof(((struct nat_config *)0)->state_path)];
	const char *folder;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	if (may_write(folder, W_OK | X_OK))
		return 0;
	if (errno == ENOENT)
		return fail_with(ret_error, 1,
				 "%s: %s: there is no folder %s; create it, or "
				 "name another",
				 key, path, folder);
	return fail_with(ret_error, 1,
			 "%s: %s: cannot create files in %s: %s; make it "
			 "writable, or name another",
			 key, path, folder, mr_strerror(errno));
}

/* Check that the log can be written. If it exists, its folder may be
 * read-only. */
static int check_log(const char *path, struct mr_reason *ret_error)
{
	struct stat file;

	if (stat(path, &file) < 0 && errno == ENOENT)
		return check_folder("log", path, ret_error);
	if (may_write(path, W_OK)) {
		if (!S_ISDIR(file.st_mode))
			return 0;
		errno = EISDIR;
	}
	return fail_with(ret_error, 1,
			 "log: %s: %s; make it writable, or name another file",
			 path, mr_strerror(errno));
}

int nat_check(struct nat_config *config, struct mr_reason *ret_error)
{
	int status;

	if (nat_addrs_create(config) < 0)
		return fail_with(ret_error, 1, "no memory");
	status = nat_host_check(config, ret_error);
	if (status == 0 && config->log_path[0] != '\0')
		status = check_log(config->log_path, ret_error);
	if (status == 0 && config->state_path[0] != '\0')
		status = check_folder("state", config->state_path, ret_error);
	return status;
}
