/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function under test writes to stdout. */
#ifndef UNIT_SUPPORT_CAPTURE_H
#define UNIT_SUPPORT_CAPTURE_H

#include <unistd.h>

#include "support/unit.h"

struct capture {
	FILE *file;
	int stdout_fd;
	char text[65536];
};

static inline void capture_begin(struct capture *capture)
{
	capture->file = tmpfile();
	assert_non_null(capture->file);
	fflush(stdout);
	capture->stdout_fd = dup(STDOUT_FILENO);
	assert_true(dup2(fileno(capture->file), STDOUT_FILENO) >= 0);
}

static inline void capture_end(struct capture *capture)
{
	size_t n;

	fflush(stdout);
	dup2(capture->stdout_fd, STDOUT_FILENO);
	close(capture->stdout_fd);
	rewind(capture->file);
	n = fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
	capture->text[n] = '\0';
	fclose(capture->file);
}

static inline void assert_has(const char *text, const char *words)
{
	if (strstr(text, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, text);
}

#endif
