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

/** Around the functions of a header, which a C++ program can call, too. */
#ifdef __cplusplus
#define MR_BEGIN_DECLS extern "C" {
#define MR_END_DECLS }
#else
#define MR_BEGIN_DECLS
#define MR_END_DECLS
#endif

MR_BEGIN_DECLS

/**
 * The version of the loaded library, which may be newer than the MR_VERSION_*
 * of the headers that the program was built with.
 *
 * @return "major.minor.patch", a constant string
 *
 * Thread: any.
 */
MR_API const char *mr_version(void);

MR_END_DECLS

#endif
