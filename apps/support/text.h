/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text from files, command lines and peers, for a terminal: a control character
 * in it must neither move the cursor nor end a line.
 */
#ifndef SUPPORT_TEXT_H
#define SUPPORT_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

/* Write control characters, and bytes that are not UTF-8, as \n, \t or \x1b.
 * Truncates to n bytes; 4 bytes per byte of text always suffice. Returns
 * ret. */
char *text_escape(const char *text, char *ret, size_t n);

/* Format into n bytes, more than 4. Text that does not fit is cut after a whole
 * word, and ends with "…". */
void text_format(char *ret, size_t n, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

/* Set a message, cut as by text_format(); returns the status. */
int fail_with(struct mr_reason *ret_error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct mac_text {
	char text[18];
};
struct mac_text text_of_mac(const uint8_t mac[6]);

/* The first line of a file, whose path has at most 511 bytes; or "". */
void read_line(char *ret, size_t n, const char *path_format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Print one line to stderr, escaped and truncated to 2 KiB, or to PIPE_BUF
 * bytes once escaped. It is lost if stderr cannot take it at once.
 */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
