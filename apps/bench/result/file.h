/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are complete, or not touched. */
#ifndef RESULT_FILE_H
#define RESULT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include <millrace/error.h>

enum { FILE_PATH_BYTES = 4096 };

/* Writes all to the stream; false: it failed. */
typedef bool file_fn(const void *opaque, FILE *to);

/*
 * Write path by fn, beside its name first; "-" is standard output. What is no
 * regular file (/dev/stderr, a pipe) is written to as it is. Returns 0, or
 * -errno with a line that has the path.
 */
int file_write(const char *path, file_fn *fn, const void *opaque,
	       struct mr_reason *why);

/*
 * Whether path can be written, as far as that is known before: 0, or -errno
 * with a line. For what takes hours to measure.
 */
int file_check(const char *path, struct mr_reason *why);

#endif
