/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, the same in each run (G. Marsaglia, "Xorshift RNGs", 2003). */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stdint.h>

/* @p state is not 0. */
static inline uint64_t test_random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline uint32_t test_random(uint64_t *state, uint32_t below)
{
	return (uint32_t)((test_random_u64(state) >> 32) * below >> 32);
}

#endif
