/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_ERROR_H
#define MILLRACE_ERROR_H

/**
 * @file
 * Why a control-path call failed. These calls return 0 or a negative errno
 * value and take a struct mr_reason, which is set on failure only; it may be
 * NULL. Unless documented otherwise, outputs (ret_*) are valid on success only.
 */

#include <millrace/api.h>

/** One line for a person: the cause and, if there is one, the remedy. */
struct mr_reason {
	char text[384]; /**< NUL-terminated, no newline; truncated if longer */
};

MR_BEGIN_DECLS

/**
 * Return the text of an errno value, with the remedy if there is only one.
 *
 * @param error  positive, as errno
 *
 * @return a constant string. Thread: any.
 */
MR_API const char *mr_strerror(int error);

MR_END_DECLS

#endif
