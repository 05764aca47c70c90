/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_VERSION_H
#define SUPPORT_VERSION_H

/* The version of the library and, if known, the commit. */
extern const char program_version[];

#endif
