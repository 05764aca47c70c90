/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash of a flow's key: 64 by 64 bit products, their halves folded.
 *
 * Senders of packets choose keys, and attackers would like them in one bucket.
 * A CRC is linear: keys whose difference it maps to 0 collide under every seed,
 * so a seed does not help. Here each factor mixes a part of the key with a part
 * of the seed, and which keys collide depends on both. This is not a cipher:
 * measuring single lookups for long enough may still reveal something. SipHash
 * would prevent that, at several times the cost.
 *
 * Source: the folded product is that of wyhash (Wang Yi, 2019); the seed is
 * spread by splitmix64 (G. L. Steele, D. Lea, C. H. Flood, 2014).
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>
#include <string.h>

static inline uint64_t mri_hash_fold(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void mri_hash_init(uint64_t keys[4], uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t x = seed += 0x9e3779b97f4a7c15;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
		x = (x ^ x >> 27) * 0x94d049bb133111eb;
		keys[i] = x ^ x >> 31;
	}
}

/* n_bytes: a multiple of 4; fast if constant. */
static inline uint32_t mri_hash(const uint64_t keys[4], const void *key,
				uint32_t n_bytes)
{
	const uint8_t *at = key;
	uint64_t h = keys[0], a, b;

	for (; n_bytes > 16; n_bytes -= 16, at += 16) {
		memcpy(&a, at, 8);
		memcpy(&b, at + 8, 8);
		h = mri_hash_fold(a ^ keys[1], b ^ h);
	}
	/* The last 4 to 16 bytes: as two words that may overlap. */
	if (n_bytes >= 8) {
		memcpy(&a, at, 8);
		memcpy(&b, at + n_bytes - 8, 8);
	} else {
		uint32_t word;

		memcpy(&word, at, 4);
		a = b = word;
	}
	h = mri_hash_fold(a ^ keys[1], b ^ h);
	return (uint32_t)mri_hash_fold(h ^ keys[2], keys[3]);
}

#endif
