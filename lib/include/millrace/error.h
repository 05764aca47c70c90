/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_ERROR_H
#define MILLRACE_ERROR_H

/**
 * @file
 * Why a configuring call failed. Each of them returns 0 or a negative errno
 * value, and takes a struct mr_reason, or NULL, that is set on failure only.
 */

/** One line for a person: the cause, and where there is one, the cure. */
struct mr_reason {
	char text[384]; /**< NUL-terminated, no newline; cut off if longer */
};

#endif
