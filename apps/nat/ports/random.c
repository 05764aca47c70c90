/* SPDX-License-Identifier: BSD-3-Clause */
/* See random.h. */
#include <errno.h>
#include <sys/random.h>

#include "random.h"

/* Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012, section 2. */
static uint64_t rotate_left(uint64_t x, uint32_t n)
{
	return x << n | x >> (64 - n);
}

static void sip_rounds(uint64_t v[4], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] = rotate_left(v[0], 32) + v[3];
		v[2] += v[1];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] = rotate_left(v[2], 32);
	}
}

/* Of an eight-byte message. */
static uint64_t siphash(const uint64_t keys[2], uint64_t message)
{
	const uint64_t last = (uint64_t)sizeof(message) << 56;
	uint64_t v[4] = {
		keys[0] ^ 0x736f6d6570736575,
		keys[1] ^ 0x646f72616e646f6d,
		keys[0] ^ 0x6c7967656e657261,
		keys[1] ^ 0x7465646279746573,
	};

	v[3] ^= message;
	sip_rounds(v, 2);
	v[0] ^= message;
	v[3] ^= last;
	sip_rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int nat_random_init(struct nat_random *random, uint64_t seed)
{
	*random = (struct nat_random){ .keys = { seed, ~seed } };
	if (seed != 0)
		return 0;
	/* getrandom(2) returns so few bytes all at once. */
	if (getrandom(random->keys, sizeof(random->keys), 0) < 0)
		return -errno;
	return 0;
}

uint64_t nat_random_u64(struct nat_random *random)
{
	return siphash(random->keys, random->counter++);
}

uint32_t nat_random_below(struct nat_random *random, uint32_t n)
{
	uint32_t x;

	if (random->n_left == 0) {
		random->word = nat_random_u64(random);
		random->n_left = 2;
	}
	x = (uint32_t)random->word;
	random->word >>= 32;
	random->n_left--;
	return (uint32_t)((uint64_t)x * n >> 32);
}
