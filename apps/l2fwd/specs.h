/* SPDX-License-Identifier: BSD-3-Clause */
/* The specs that ports are opened with: the user's, and the options for all. */
#ifndef SPECS_H
#define SPECS_H

#include <stdarg.h>

#include <millrace/millrace.h>

#include "options.h"

enum { MAX_SPEC_BYTES = 1024 };

/*
 * Write the spec of each port, with those of the program's options that its
 * driver knows and the spec does not set itself. Returns 0, or the exit status
 * with a line that says why: a spec that does not parse, or an option that was
 * given and that no port takes.
 */
int specs_make(struct mr_ctx *ctx, const struct options *options,
	       char (*ret_specs)[MAX_SPEC_BYTES], struct mr_reason *ret_error);

/* Set a line, and return the status. */
int fail(struct mr_reason *ret_error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* With the port's name in front, unless the library says it itself. */
int fail_port(struct mr_reason *ret_error, int status, const char *spec,
	      const struct mr_reason *why);

#endif
