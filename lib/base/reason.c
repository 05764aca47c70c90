/* SPDX-License-Identifier: BSD-3-Clause */
/* Error messages. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* Cut text that does not fit after a whole word, and end it with "…". */
static void end_cut(char *text, size_t n_bytes)
{
	size_t at = n_bytes - sizeof("…");

	while (at > 0 && text[at - 1] != ' ')
		at--;
	if (at == 0) /* one word: cut between two characters */
		for (at = n_bytes - sizeof("…");
		     at > 0 && (text[at] & 0xc0) == 0x80;)
			at--;
	memcpy(text + at, "…", sizeof("…"));
}

int mr_fail(struct mr_reason *reason, int error, const char *format, ...)
{
	va_list args;

	if (reason != NULL) {
		const size_t n_bytes = sizeof(reason->text);

		va_start(args, format);
		if (vsnprintf(reason->text, n_bytes, format, args) >=
		    (int)n_bytes)
			end_cut(reason->text, n_bytes);
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
