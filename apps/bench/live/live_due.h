/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When bursts are due, as the program in the kernel and the one that loads it
 * both reckon: ns apart from their fraction, for in 64 bits both together would
 * wrap after 78 hours. A gap is in parts of a ns, 65536 of them.
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

/* Bursts that are due before until_ns, which is not 2^47 ns (39 hours) away. */
static inline __u64 live_due_before(const struct live_due *due, __u64 until_ns,
				    __u64 gap)
{
	if (due->ns >= until_ns)
		return 0;
	return (((until_ns - due->ns) << 16) - due->part - 1) / gap + 1;
}

#endif
