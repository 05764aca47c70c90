/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text from files, command lines and peers, for a terminal: a control character
 * in it must neither move the cursor nor end a line.
 */
#ifndef SUPPORT_TEXT_H
#define SUPPORT_TEXT_H

#include <stddef.h>

/* Control characters become \n, \t or \x1b. Cuts what does not fit in n bytes;
 * 4 bytes per byte of text always fit. Returns ret. */
char *text_escape(const char *text, char *ret, size_t n);

/* Print one line to stderr, escaped; longer than 2 KiB, it is cut. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
