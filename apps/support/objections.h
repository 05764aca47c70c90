/* SPDX-License-Identifier: BSD-3-Clause */
/* What a check of settings rejects, and where a file or a command line has it.
 */
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

/* What exceeds the maximum is left out. */
struct objections {
	uint32_t n;
	struct objection list[YAML_MAX_ERRORS];
};

/* Add one; returns -EINVAL. */
int object(struct objections *objections, const char *section, const char *key,
	   uint32_t idx, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* As an error of a command line, whose option is the key; PARSE_WRONG. */
enum parse_result objection_of_option(const struct objection *objection,
				      struct mr_reason *ret_error);

/* Add errors to those of the reader, with the lines that they are about. */
void objections_report(const struct objections *objections,
		       struct yaml_reader *reader);

#endif
