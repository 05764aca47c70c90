/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine that the program works on: its files below a folder that tests
 * choose, and the little that is done with them. There is one.
 */
#ifndef DEVICES_MACHINE_H
#define DEVICES_MACHINE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

enum { PATH_BYTES = 512, NAME_BYTES = 64 };

struct machine {
	const char *root; /* in front of /sys, /proc, /dev and /run; "" */
	struct mr_ctx *ctx;
};
extern struct machine machine;

/* A path on the machine, from "/sys/..." and so on. */
struct path {
	char text[PATH_BYTES];
};
struct path machine_path(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* The first line of a file, without its end; "" if there is none. */
void machine_read(struct path path, char *line, size_t n_bytes);
/* One write(), as sysfs wants it. 0 or -errno. */
int machine_write(struct path path, const char *text);
/* What a link points to; "" if there is no link. */
void machine_link(struct path path, char target[PATH_BYTES]);
bool machine_exists(struct path path);

/* A folder's entries, sorted. */
struct names {
	int n;
	struct dirent **list;
};
/* 0 or -errno; names_free() in either case. */
int machine_names(struct path path, struct names *ret);
void names_free(struct names *names);

/* Sets the line that says why; returns err. */
int fail(struct mr_reason *reason, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

uint64_t machine_now_ms(void);
void machine_nap(void);

#endif
