/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of 1024 words from one thread to another: the same one for all
 * players, so that a row compares pools and not rings.
 */
#ifndef LANE_H
#define LANE_H

#include <stdalign.h>
#include <stdint.h>

enum { LANE_WORDS = 1024 };

struct lane {
	alignas(64) uint32_t head; /* the producer's */
	uint32_t seen_tail;
	uint64_t n_dealt;          /* for the workload */
	alignas(64) uint32_t tail; /* the consumer's */
	uint32_t seen_head;
	alignas(64) uint64_t words[LANE_WORDS];
};

static inline uint32_t lane_put(struct lane *lane, const uint64_t *words,
				uint32_t n)
{
	const uint32_t head = lane->head;

	if (LANE_WORDS - (head - lane->seen_tail) < n)
		lane->seen_tail =
			__atomic_load_n(&lane->tail, __ATOMIC_ACQUIRE);
	if (LANE_WORDS - (head - lane->seen_tail) < n)
		n = LANE_WORDS - (head - lane->seen_tail);
	for (uint32_t i = 0; i < n; i++)
		lane->words[(head + i) % LANE_WORDS] = words[i];
	__atomic_store_n(&lane->head, head + n, __ATOMIC_RELEASE);
	return n;
}

static inline uint32_t lane_take(struct lane *lane, uint64_t *words, uint32_t n)
{
	const uint32_t tail = lane->tail;

	if (lane->seen_head - tail < n)
		lane->seen_head =
			__atomic_load_n(&lane->head, __ATOMIC_ACQUIRE);
	if (lane->seen_head - tail < n)
		n = lane->seen_head - tail;
	for (uint32_t i = 0; i < n; i++)
		words[i] = lane->words[(tail + i) % LANE_WORDS];
	if (n > 0)
		__atomic_store_n(&lane->tail, tail + n, __ATOMIC_RELEASE);
	return n;
}

#endif
