/* SPDX-License-Identifier: BSD-3-Clause */
/* The version, from its single definition: <millrace/api.h>. */
#include <millrace/api.h>

#define TEXT(x) #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *mr_version(void)
{
	return VERSION(MR_VERSION_MAJOR, MR_VERSION_MINOR, MR_VERSION_PATCH);
}
