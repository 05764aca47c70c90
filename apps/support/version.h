/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_VERSION_H
#define SUPPORT_VERSION_H

/* Of the programs: that of the library, and the commit, if known. */
extern const char program_version[];

#endif
