/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers that cannot be predicted from earlier ones, as RFC 6056 requires for
 * ports: SipHash-2-4 of a counter, with a random or given key.
 */
#ifndef NAT_RANDOM_H
#define NAT_RANDOM_H

#include <stdint.h>

struct nat_random {
	uint64_t keys[2];
	uint64_t counter;
	uint64_t word;   /* drawn, but not yet used up... */
	uint32_t n_left; /* ...32 bits of it at a time */
};

/* seed 0: random, from the kernel. Returns 0 or -errno of getrandom(2). */
int nat_random_init(struct nat_random *random, uint64_t seed);

uint64_t nat_random_u64(struct nat_random *random);

/* 0 to n - 1; n is not 0. The bias is below n / 2^32. */
uint32_t nat_random_below(struct nat_random *random, uint32_t n);

#endif
