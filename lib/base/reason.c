/* SPDX-License-Identifier: BSD-3-Clause */
/* Error messages. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

int mr_fail(struct mr_reason *reason, int error, const char *format, ...)
{
	va_list args;

	if (reason != NULL) {
		va_start(args, format);
		vsnprintf(reason->text, sizeof(reason->text), format, args);
		va_end(args);
		for (char *c = reason->text; *c != '\0'; c++)
			if (*c == '\n')
				*c = ' ';
	}
	return error;
}

const char *mr_strerror(int error)
{
	switch (error) {
	case EMFILE:
		return "too many open files; raise the limit of this process "
		       "(ulimit -n, or LimitNOFILE= in a systemd unit)";
	case ENFILE:
		return "too many open files in the system; raise fs.file-max";
	default:
		return strerror(error);
	}
}
