/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The capabilities of this process.
 *
 * Source: capabilities(7), capget(2).
 */
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lease/lease.h"

bool mri_xdp_has_capability(uint32_t bit)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capget, &header, words) < 0 ||
	       (words[bit / 32].effective >> bit % 32 & 1);
}
