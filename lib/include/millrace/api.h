/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_API_H
#define MILLRACE_API_H

/**
 * @file
 * Visibility and version. The library hides every symbol that is not marked
 * MR_API; lib/millrace.map lists the same names by release.
 */

#define MR_API __attribute__((visibility("default")))

#define MR_VERSION_MAJOR 0
#define MR_VERSION_MINOR 1
#define MR_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The version of the loaded library, which may be newer than the MR_VERSION_*
 * of the headers that the program was built with.
 *
 * @return "major.minor.patch", a constant string
 *
 * Thread: any.
 */
MR_API const char *mr_version(void);

#ifdef __cplusplus
}
#endif

#endif
