/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "text.h"

/* C0, DEL, and C1, which in UTF-8 is C2 80 to C2 9F. */
static bool is_control(const unsigned char *at)
{
	return *at < 0x20 || *at == 0x7f ||
	       (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0);
}

char *text_escape(const char *text, char *ret, size_t n)
{
	size_t at = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c != '\0';
	     c++) {
		char one[5] = { (char)*c };
		int n_one = 1;

		if (*c == '\n' || *c == '\t')
			n_one = snprintf(one, sizeof(one), "\\%c",
					 *c == '\n' ? 'n' : 't');
		else if (is_control(c))
			n_one = snprintf(one, sizeof(one), "\\x%02x",
					 *c == 0xc2 ? *++c : *c);
		if (at + (size_t)n_one >= n)
			break;
		for (int i = 0; i < n_one; i++)
			ret[at++] = one[i];
	}
	ret[at] = '\0';
	return ret;
}

/*
 * O_NONBLOCK belongs to the open file, which other processes share, so ask
 * first: a pipe that is writable has room for PIPE_BUF bytes.
 */
static void write_message(const char *line, size_t n)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (send(fd.fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	    errno != ENOTSOCK)
		return;
	if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0 &&
	    write(fd.fd, line, n) < 0)
		return;
}

void print_error(const char *format, ...)
{
	char text[2048], line[PIPE_BUF];
	va_list args;
	size_t n;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	n = strlen(text_escape(text, line, sizeof(line) - 1));
	line[n++] = '\n';
	write_message(line, n);
}
