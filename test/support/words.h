/* SPDX-License-Identifier: BSD-3-Clause */
/* A test's command line, as main() gets it. */
#ifndef SUPPORT_WORDS_H
#define SUPPORT_WORDS_H

#include <stdio.h>
#include <string.h>

enum { MAX_WORDS = 40 };

/* Options point into it. */
struct words {
	char text[512];
	char *argv[MAX_WORDS + 1];
	int n;
};

/* The program, and the line split at spaces. */
static inline void words_cut(struct words *words, const char *program,
			     const char *line)
{
	memset(words, 0, sizeof(*words));
	snprintf(words->text, sizeof(words->text), "%s %s", program, line);
	for (char *word = strtok(words->text, " ");
	     word != NULL && words->n < MAX_WORDS; word = strtok(NULL, " "))
		words->argv[words->n++] = word;
}

#endif
