/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "net/clock.h"
#include "search/progress.h"

static const uint64_t second = 1000000000;

void progress_open(struct progress *progress, bool is_quiet)
{
	progress->is_quiet = is_quiet;
	progress->is_terminal = isatty(STDERR_FILENO);
	progress->start_ns = clock_monotonic_ns();
	progress->next_ns = progress->start_ns;
	/* What is over before is no line in a log. */
	if (!progress->is_terminal)
		progress->next_ns += PROGRESS_LOG_S * second;
}

double progress_seconds(const struct progress *progress)
{
	return (double)(clock_monotonic_ns() - progress->start_ns) /
	       (double)second;
}

void progress_show(struct progress *progress, double left_s, const char *format,
		   ...)
{
	const uint64_t now_ns = clock_monotonic_ns();
	va_list args;

	if (progress->is_quiet || now_ns < progress->next_ns)
		return;
	if (!progress->is_terminal)
		progress->next_ns = now_ns + PROGRESS_LOG_S * second;
	fputs(progress->is_terminal ? "\r\033[K" : "mr-bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (left_s > 0)
		fprintf(stderr, ", about %.0f s left", left_s);
	if (!progress->is_terminal)
		fputc('\n', stderr);
	fflush(stderr);
}

void progress_clear(const struct progress *progress)
{
	if (progress->is_terminal && !progress->is_quiet)
		fputs("\r\033[K", stderr);
}
