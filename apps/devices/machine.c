/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "devices.h"

enum { NAP_MS = 5 };

struct machine machine;

struct path machine_path(const char *format, ...)
{
	struct path path;
	int n = snprintf(path.text, sizeof(path.text), "%s", machine.root);
	va_list args;

	va_start(args, format);
	vsnprintf(path.text + n, sizeof(path.text) - (size_t)n, format, args);
	va_end(args);
	return path;
}

void machine_read(struct path path, char *line, size_t n_bytes)
{
	const int fd = open(path.text, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, line, n_bytes - 1);

	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (fd >= 0)
		close(fd);
}

int machine_write(struct path path, const char *text)
{
	const int fd = open(path.text, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

void machine_link(struct path path, char target[PATH_BYTES])
{
	const ssize_t n = readlink(path.text, target, PATH_BYTES - 1);

	target[n > 0 ? n : 0] = '\0';
}

bool machine_exists(struct path path)
{
	return access(path.text, F_OK) == 0;
}

static int is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strlen(entry->d_name) < NAME_BYTES;
}

int machine_names(struct path path, struct names *ret)
{
	ret->n = scandir(path.text, &ret->list, is_name, alphasort);
	if (ret->n >= 0)
		return 0;
	*ret = (struct names){ 0 };
	return -errno;
}

void names_free(struct names *names)
{
	while (names->n > 0)
		free(names->list[--names->n]);
	free(names->list);
	names->list = NULL;
}

int fail(struct mr_reason *reason, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason->text, sizeof(reason->text), format, args);
	va_end(args);
	return err;
}

uint64_t machine_after_ms(uint32_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 +
	       ms;
}

bool machine_nap(uint64_t until_ms)
{
	const struct timespec nap = { .tv_nsec = NAP_MS * 1000000 };

	nanosleep(&nap, NULL);
	return machine_after_ms(0) < until_ms;
}
