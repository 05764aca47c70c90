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

enum { CAP_SYS_ADMIN_BIT = 21 };

const char *mri_xdp_missing_capability(uint32_t wanted)
{
	/* In the order of XDP_CAP_*. */
	static const struct {
		uint32_t bit;
		bool is_of_sys_admin; /* as before Linux 5.8 */
		const char *name;
	} known[] = {
		{ 39, true, "CAP_BPF" },
		{ 38, true, "CAP_PERFMON" },
		{ 12, false, "CAP_NET_ADMIN" },
		{ 13, false, "CAP_NET_RAW" },
	};
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint64_t has;

	if (syscall(SYS_capget, &header, words) < 0)
		return NULL;
	has = words[0].effective | (uint64_t)words[1].effective << 32;
	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (wanted & 1u << i && !(has >> known[i].bit & 1) &&
		    !(known[i].is_of_sys_admin && has >> CAP_SYS_ADMIN_BIT & 1))
			return known[i].name;
	return NULL;
}
