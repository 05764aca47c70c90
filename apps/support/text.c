/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

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

void print_error(const char *format, ...)
{
	char text[2048], escaped[4 * sizeof(text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "%s\n", text_escape(text, escaped, sizeof(escaped)));
}
