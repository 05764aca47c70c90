/* SPDX-License-Identifier: BSD-3-Clause */
/* What a check of settings rejects, and where it is in a file or on a command
 * line. */
#ifndef SUPPORT_OBJECTIONS_H
#define SUPPORT_OBJECTIONS_H

#include "options.h"
#include "yaml_keys.h"

enum { OBJECTION_WHOLE = UINT32_MAX };

struct objection {
	const char *section; /* of the file: "forwards" */
	const char *key;     /* "addresses"; NULL: the section itself */
	uint32_t idx;        /* in a list; OBJECTION_WHOLE: all of it */
	struct mr_reason why;
};

/* Those above the maximum are omitted. */
struct objections {
	uint32_t n;
	struct objection list[YAML_MAX_ERRORS];
};

/* Add one; returns -EINVAL. */
int object(struct objections *objections, const char *section, const char *key,
	   uint32_t idx, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* As an error of a command line; the key is the option. Returns PARSE_WRONG. */
enum parse_result objection_of_option(const struct objection *objection,
				      struct mr_reason *ret_error);

/* Add the objections to the reader's errors, with their lines. */
void objections_report(const struct objections *objections,
		       struct yaml_reader *reader);

#endif
