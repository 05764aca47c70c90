/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "text.h"

/* Length of the printable UTF-8 character at at; 0: escape it. */
static size_t printable(const unsigned char *at)
{
	const size_t n = *at < 0x80                ? 1 :
			 *at >= 0xc2 && *at < 0xe0 ? 2 :
			 (*at & 0xf0) == 0xe0      ? 3 :
			 *at >= 0xf0 && *at < 0xf5 ? 4 :
						     0;

	if (n == 1)
		return *at >= 0x20 && *at != 0x7f;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* C1, overlong forms, surrogates, and beyond U+10FFFF. */
	if ((*at == 0xc2 && at[1] < 0xa0) || (*at == 0xe0 && at[1] < 0xa0) ||
	    (*at == 0xed && at[1] >= 0xa0) || (*at == 0xf0 && at[1] < 0x90) ||
	    (*at == 0xf4 && at[1] >= 0x90))
		return 0;
	return n;
}

void text_format(char *ret, size_t n, const char *format, va_list args)
{
	const int n_wanted = vsnprintf(ret, n, format, args);
	size_t at = n - sizeof("…");

	if (n_wanted < 0 || (size_t)n_wanted < n)
		return;
	while (at > 0 && ret[at - 1] != ' ')
		at--;
	if (at == 0) /* one word: cut between two characters */
		for (at = n - sizeof("…"); at > 0 && (ret[at] & 0xc0) == 0x80;)
			at--;
	memcpy(ret + at, "…", sizeof("…"));
}

int fail_with(struct mr_reason *ret_error, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_format(ret_error->text, sizeof(ret_error->text), format, args);
	va_end(args);
	return status;
}

struct mac_text text_of_mac(const uint8_t mac[6])
{
	struct mac_text text;

	snprintf(text.text, sizeof(text.text), "%02x:%02x:%02x:%02x:%02x:%02x",
		 mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	return text;
}

char *text_escape(const char *text, char *ret, size_t n)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t at = 0;

	while (*c != '\0') {
		const size_t n_char = printable(c);
		char one[5];
		size_t n_one = n_char;

		if (n_char > 0)
			memcpy(one, c, n_char);
		else if (*c == '\n' || *c == '\t')
			n_one = (size_t)snprintf(one, sizeof(one), "\\%c",
						 *c == '\n' ? 'n' : 't');
		else
			n_one = (size_t)snprintf(one, sizeof(one), "\\x%02x",
						 *c);
		if (at + n_one >= n)
			break;
		memcpy(ret + at, one, n_one);
		at += n_one;
		c += n_char > 0 ? n_char : 1;
	}
	ret[at] = '\0';
	return ret;
}

void read_line(char *ret, size_t n, const char *path_format, ...)
{
	char path[512];
	va_list args;
	FILE *file;

	va_start(args, path_format);
	vsnprintf(path, sizeof(path), path_format, args);
	va_end(args);
	file = fopen(path, "re");
	if (file == NULL || fgets(ret, (int)n, file) == NULL)
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (file != NULL)
		fclose(file);
}

/*
 * O_NONBLOCK belongs to the open file, which other processes share, so poll
 * first: a writable pipe has room for PIPE_BUF bytes.
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
