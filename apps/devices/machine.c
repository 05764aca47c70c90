/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

enum { NAP_MS = 5 };

struct path machine_path(const struct machine *machine, const char *format, ...)
{
	struct path path;
	int n = snprintf(path.text, sizeof(path.text), "%s", machine->root);
	va_list args;

	va_start(args, format);
	vsnprintf(path.text + n, sizeof(path.text) - (size_t)n, format, args);
	va_end(args);
	return path;
}

int machine_read(struct path path, char *line, size_t n_bytes)
{
	const int fd = open(path.text, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int err;

	line[0] = '\0';
	if (fd < 0)
		return -errno;
	n = read(fd, line, n_bytes - 1);
	err = n < 0 ? -errno : 0;
	close(fd);
	if (err < 0)
		return err;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

int machine_read_number(struct path path, int64_t *ret)
{
	char line[NAME_BYTES], *end;
	int err = machine_read(path, line, sizeof(line));
	long long value;

	if (err < 0)
		return err;
	value = strtoll(line, &end, 10);
	if (end == line)
		return -EIO;
	*ret = value;
	return 0;
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

void machine_link_name(struct path path, char *name, size_t n_bytes)
{
	char target[PATH_BYTES];
	const ssize_t n = readlink(path.text, target, sizeof(target) - 1);
	const char *slash;

	name[0] = '\0';
	if (n <= 0)
		return;
	target[n] = '\0';
	slash = strrchr(target, '/');
	snprintf(name, n_bytes, "%s", slash != NULL ? slash + 1 : target);
}

bool machine_exists(struct path path)
{
	return access(path.text, F_OK) == 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int add_name(struct names *names, const char *name)
{
	/* Doubled where n is a power of two: then the array is full. */
	if ((names->n & (names->n - 1)) == 0) {
		const size_t n = names->n == 0 ? 1 : 2 * (size_t)names->n;
		void *list = realloc(names->list, n * sizeof(names->list[0]));

		if (list == NULL)
			return -ENOMEM;
		names->list = list;
	}
	snprintf(names->list[names->n++], NAME_BYTES, "%s", name);
	return 0;
}

int machine_names(struct path path, struct names *ret)
{
	DIR *dir = opendir(path.text);
	const struct dirent *entry;
	int err = 0;

	*ret = (struct names){ 0 };
	if (dir == NULL)
		return -errno;
	while (err == 0 && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' &&
		    strlen(entry->d_name) < NAME_BYTES)
			err = add_name(ret, entry->d_name);
	closedir(dir);
	if (ret->n > 0)
		qsort(ret->list, ret->n, sizeof(ret->list[0]), compare_names);
	return err;
}

void names_free(struct names *names)
{
	free(names->list);
	*names = (struct names){ 0 };
}

int machine_fail(struct mr_reason *reason, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason->text, sizeof(reason->text), format, args);
	va_end(args);
	return err;
}

uint64_t machine_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void machine_nap(void)
{
	const struct timespec nap = { .tv_nsec = NAP_MS * 1000000 };

	nanosleep(&nap, NULL);
}
