/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loops over numbers and addresses, in vectors as wide as the CPU is fast with:
 * for pages, and for objects whose size is a power of two.
 *
 * With vectors of 32 bytes instead of 16, bursts take a tenth less time for 32
 * pages and a third less for 64, and for frames a quarter less for 64. Only
 * bursts of a multiple of 16 use them: others lose more in the remainder than
 * they gain.
 */
#ifndef POOL_VECTOR_H
#define POOL_VECTOR_H

#include <stdint.h>

/*
 * Bytes of the vectors to use. Not 64 everywhere: CPUs without VBMI2 slow down
 * with them, and Zen 4 is slow to load data that it has just stored across two
 * cache lines.
 */
static inline uint32_t mri_vector_bytes(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512vbmi2"))
		return 64;
	if (__builtin_cpu_supports("avx2"))
		return 32;
#endif
	return 16;
}

/*
 * Define a function for each width: X(width, attributes) does. Call the one for
 * vector_bytes, with a multiple of 16.
 */
#ifdef __x86_64__
#define MRI_EACH_WIDTH(X)                                                      \
	X(16, __attribute__((noinline)))                                       \
	X(32, __attribute__((noinline, target("avx2"))))                       \
	X(64, __attribute__((noinline, target("avx512f"))))
#define MRI_WIDE(vector_bytes, function, ...)                                  \
	((vector_bytes) == 64 ? function##_64(__VA_ARGS__) :                   \
	 (vector_bytes) == 32 ? function##_32(__VA_ARGS__) :                   \
				function##_16(__VA_ARGS__))
#else
#define MRI_EACH_WIDTH(X) X(16, __attribute__((noinline)))
#define MRI_WIDE(vector_bytes, function, ...) function##_16(__VA_ARGS__)
#endif

#endif
