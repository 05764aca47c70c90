/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When bursts are due, for the program in the kernel and its loader: ns, and
 * their fraction apart, because both together would wrap after 78 hours in 64
 * bits. A gap is in 1/65536 ns.
 */
#ifndef LIVE_DUE_H
#define LIVE_DUE_H

#include <linux/types.h>

struct live_due {
	__u64 ns; /* of the next burst */
	__u32 part;
	__u32 in_burst; /* frames of it that have gone */
};

static inline void live_due_add(struct live_due *due, __u64 parts)
{
	const __u64 part = due->part + (parts & 0xffff);

	due->ns += (parts >> 16) + (part >> 16);
	due->part = part & 0xffff;
}

/* Bursts that are due before until_ns, which is less than 2^47 ns (39 hours)
 * away. */
static inline __u64 live_due_before(const struct live_due *due, __u64 until_ns,
				    __u64 gap)
{
	if (due->ns >= until_ns)
		return 0;
	return (((until_ns - due->ns) << 16) - due->part - 1) / gap + 1;
}

#endif
