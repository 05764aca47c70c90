/* SPDX-License-Identifier: BSD-3-Clause */
/* What is printed each second, and at the end: for people or programs. */
#ifndef SUPPORT_REPORT_H
#define SUPPORT_REPORT_H

#include <stdbool.h>

#include "snapshot.h"

/*
 * A form of output. now and before are a second apart, or more if reports in
 * between were skipped; before is NULL in the first and the final report, which
 * begins at t_s 0. Each returns false, with errno, if stdout fails.
 */
struct report {
	bool (*show)(const struct snapshot *now, const struct snapshot *before);
	bool (*end)(const struct snapshot *final);
};

extern const struct report report_text;
extern const struct report report_json;

/* What report_json prints. The caller owns it; NULL: no memory. */
struct json_t *report_json_object(const struct snapshot *snapshot);

#endif
