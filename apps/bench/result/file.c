/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "result/file.h"

static int fail(const char *path, struct mr_reason *why)
{
	const int error = errno != 0 ? errno : EIO;

	snprintf(why->text, sizeof(why->text), "cannot write %.180s: %s", path,
		 strerror(error));
	return -error;
}

static int write_to(FILE *to, file_fn *fn, const void *opaque)
{
	bool is_good;

	errno = 0;
	is_good = fn(opaque, to) && !ferror(to);
	return is_good && fflush(to) == 0 ? 0 : -1;
}

static int write_in_place(const char *path, file_fn *fn, const void *opaque,
			  struct mr_reason *why)
{
	FILE *to = fopen(path, "we");

	if (to == NULL)
		return fail(path, why);
	if (write_to(to, fn, opaque) < 0) {
		const int ret = fail(path, why);

		fclose(to);
		return ret;
	}
	return fclose(to) == 0 ? 0 : fail(path, why);
}

int file_write(const char *path, file_fn *fn, const void *opaque,
	       struct mr_reason *why)
{
	char beside[FILE_PATH_BYTES + 32];
	struct stat status;
	int ret;

	if (strcmp(path, "-") == 0)
		return write_to(stdout, fn, opaque) == 0 ?
			       0 :
			       fail("standard output", why);
	if (strlen(path) >= FILE_PATH_BYTES) {
		errno = ENAMETOOLONG;
		return fail(path, why);
	}
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		return write_in_place(path, fn, opaque, why);
	snprintf(beside, sizeof(beside), "%s.%d.part", path, (int)getpid());
	ret = write_in_place(beside, fn, opaque, why);
	if (ret == 0 && rename(beside, path) < 0)
		ret = fail(path, why);
	if (ret < 0)
		unlink(beside);
	return ret;
}

int file_check(const char *path, struct mr_reason *why)
{
	const char *slash = strrchr(path, '/');
	char folder[FILE_PATH_BYTES];
	struct stat status;

	if (strcmp(path, "-") == 0)
		return 0;
	if (strlen(path) >= FILE_PATH_BYTES) {
		errno = ENAMETOOLONG;
		return fail(path, why);
	}
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		errno = EISDIR;
		return S_ISDIR(status.st_mode) || access(path, W_OK) < 0 ?
			       fail(path, why) :
			       0;
	}
	/* It is written beside its name, so the folder is what matters. */
	snprintf(folder, sizeof(folder), "%.*s",
		 slash == NULL ? 1 : (int)(slash - path) + 1,
		 slash == NULL ? "." : path);
	return access(folder, W_OK | X_OK) == 0 ? 0 : fail(path, why);
}
