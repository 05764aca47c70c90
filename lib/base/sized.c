/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs that begin with their size. */
#include <errno.h>
#include <string.h>

#include "base/base.h"

int mri_copy_sized(void *to, const void *from, uint32_t n_known_bytes,
		   const char *what, struct mr_reason *reterr_reason)
{
	uint32_t n_bytes;

	memset(to, 0, n_known_bytes);
	if (from == NULL) {
		memcpy(to, &n_known_bytes, sizeof(n_known_bytes));
		return 0;
	}
	memcpy(&n_bytes, from, sizeof(n_bytes));
	if (n_bytes < sizeof(n_bytes) || n_bytes > n_known_bytes)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s.size is %u, must be sizeof(struct %s), at "
			       "most %u in this version of the library",
			       what, n_bytes, what, n_known_bytes);
	memcpy(to, from, n_bytes);
	return 0;
}

int mri_fill_sized(void *to, const void *from, uint32_t n_known_bytes)
{
	uint32_t n_bytes, n_copy;

	memcpy(&n_bytes, to, sizeof(n_bytes));
	if (n_bytes < sizeof(n_bytes))
		return -EINVAL;
	n_copy = mri_min_u32(n_bytes, n_known_bytes);
	memcpy(to, from, n_copy);
	memset((char *)to + n_copy, 0, n_bytes - n_copy);
	memcpy(to, &n_bytes, sizeof(n_bytes));
	return 0;
}
