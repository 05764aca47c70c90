/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring that passes words from one core to another: one producer, one
 * consumer. All variants of a row use it, so they differ in what they send
 * alone.
 */
#ifndef HOP_H
#define HOP_H

#include <sched.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "bench.h"

/* An address of ours, or a pointer. */
typedef uint64_t __attribute__((may_alias)) word;

/*
 * The least operations of a run: in fewer, most of the time would be that until
 * the other thread begins.
 */
enum { MIN_RUN = 16384 };

static inline uint64_t n_of_run(uint64_t n, uint32_t burst)
{
	n = n < MIN_RUN ? MIN_RUN : n;
	return (n + burst - 1) / burst * burst;
}

struct hop {
	alignas(64) uint32_t tail; /* of the producer */
	uint32_t seen_head;        /* the last value of head that it read */
	alignas(64) uint32_t head; /* of the consumer */
	uint32_t seen_tail;
	uint64_t n_looks, n_waiting; /* reads of tail, words found then */
	alignas(64) uint32_t mask;
	alignas(64) word words[];
};

static inline struct hop *hop_make(uint32_t n_words)
{
	const size_t bytes = sizeof(struct hop) + n_words * sizeof(word);
	struct hop *hop = aligned_alloc(64, (bytes + 63) / 64 * 64);

	if (hop == NULL)
		return NULL;
	memset(hop, 0, bytes);
	hop->mask = n_words - 1;
	return hop;
}

/* Fetch a cache line that will be written from the core that has it. */
static inline void hop_prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
	__asm__("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Put all n words in, or none. */
static inline bool hop_put(struct hop *hop, const word *words, uint32_t n)
{
	const uint32_t tail = hop->tail, at = tail & hop->mask;
	const uint32_t n_words = hop->mask + 1;

	if (n_words - (tail - hop->seen_head) < n) {
		hop->seen_head = __atomic_load_n(&hop->head, __ATOMIC_ACQUIRE);
		if (n_words - (tail - hop->seen_head) < n)
			return false;
	}
	if (n_words - (tail - hop->seen_head) >= 2 * n)
		for (uint32_t i = 0; i < n; i += 8)
			hop_prefetch_to_write(
				&hop->words[(tail + n + i) & hop->mask]);
	if (n == 32 && at + 32 <= n_words) {
		memcpy(hop->words + at, words, 32 * sizeof(*words));
	} else {
		for (uint32_t i = 0; i < n; i++)
			hop->words[(tail + i) & hop->mask] = words[i];
	}
	__atomic_store_n(&hop->tail, tail + n, __ATOMIC_RELEASE);
	return true;
}

/* Take up to n words out. */
static inline uint32_t hop_get(struct hop *hop, word *words, uint32_t n)
{
	const uint32_t head = hop->head, at = head & hop->mask;

	if (hop->seen_tail - head < n) {
		hop->seen_tail = __atomic_load_n(&hop->tail, __ATOMIC_ACQUIRE);
		hop->n_looks++;
		hop->n_waiting += hop->seen_tail - head;
		if (hop->seen_tail - head < n)
			n = hop->seen_tail - head;
	}
	if (hop->seen_tail - head >= 2 * n)
		for (uint32_t i = 0; i < n; i += 8)
			__builtin_prefetch(
				&hop->words[(head + n + i) & hop->mask], 0);
	if (n == 32 && at + 32 <= hop->mask + 1) {
		memcpy(words, hop->words + at, 32 * sizeof(*words));
	} else {
		for (uint32_t i = 0; i < n; i++)
			words[i] = hop->words[(head + i) & hop->mask];
	}
	if (n > 0)
		__atomic_store_n(&hop->head, head + n, __ATOMIC_RELEASE);
	return n;
}

static inline uint32_t hop_count(const struct hop *hop)
{
	return __atomic_load_n(&hop->tail, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&hop->head, __ATOMIC_RELAXED);
}

static inline void relax(void)
{
#if defined(__x86_64__)
	_mm_pause();
#endif
}

/*
 * A thread that waits for another one spins at first, then yields. After 2 s
 * without progress, its patience ends.
 */
struct patience {
	uint32_t n_spins;
	time_t since;
};

static inline bool patience_ends(struct patience *patience)
{
	struct timespec now;

	relax();
	if (++patience->n_spins < 2000)
		return false;
	patience->n_spins = 0;
	sched_yield();
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (patience->since == 0)
		patience->since = now.tv_sec;
	return now.tv_sec - patience->since > 2;
}

/*
 * Whether a run that began at *start has taken 200 ms, even if it is not done:
 * where threads wait for a stopped one, the time of a sample cannot be
 * foreseen. *start is 0 at first.
 */
static inline bool is_too_long(uint64_t *start)
{
	const uint64_t ns = clock_ns();

	if (*start == 0)
		*start = ns;
	return ns - *start > 200000000;
}

#endif
