/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine that the program works on: its files below a folder that tests
 * choose, and the little that is done with them.
 */
#ifndef DEVICES_MACHINE_H
#define DEVICES_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

enum { PATH_BYTES = 512, NAME_BYTES = 64 };

struct machine {
	const char *root; /* in front of /sys, /proc, /dev and /run; "" */
	char sysfs[PATH_BYTES];
	struct mr_ctx *ctx;
};

/* A path on the machine, from "/sys/..." and so on. */
struct path {
	char text[PATH_BYTES];
};
struct path machine_path(const struct machine *machine, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first line of a file, without its end. 0 or -errno. */
int machine_read(struct path path, char *line, size_t n_bytes);
/* A whole number in it. 0 or -errno. */
int machine_read_number(struct path path, int64_t *ret);
/* One write(), as sysfs wants it. 0 or -errno. */
int machine_write(struct path path, const char *text);
/* The last part of what a link points to; "" if there is no link. */
void machine_link_name(struct path path, char *name, size_t n_bytes);
bool machine_exists(struct path path);

/* A folder's entries, sorted. */
struct names {
	uint32_t n;
	char (*list)[NAME_BYTES];
};
/* 0 or -errno; names_free() in either case. */
int machine_names(struct path path, struct names *ret);
void names_free(struct names *names);

/* err, and a line that says why. */
int machine_fail(struct mr_reason *reason, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

uint64_t machine_now_ms(void);
void machine_nap(void);

#endif
