/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a long measurement is at, on stderr: on a terminal one line that is
 * written again and again; in a log a line now and then.
 */
#ifndef SEARCH_PROGRESS_H
#define SEARCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Seconds between two lines of a log. */
enum { PROGRESS_LOG_S = 10 };

struct progress {
	bool is_quiet, is_terminal;
	uint64_t start_ns, next_ns;
};

void progress_open(struct progress *progress, bool is_quiet);
double progress_seconds(const struct progress *progress); /* since then */

/* A text that lives for the moment, as printf(). left_s: 0: not known. */
void progress_show(struct progress *progress, double left_s, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));

/* Take the line away, before others write. */
void progress_clear(const struct progress *progress);

#endif
