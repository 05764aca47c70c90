/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters written by one thread while others read them. */
#ifndef SUPPORT_COUNTER_H
#define SUPPORT_COUNTER_H

#include <stdint.h>

/* By the writing thread: a load and a store, no locked instruction. */
static inline void counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* Undo a count. */
static inline void counter_sub(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter - n, __ATOMIC_RELAXED);
}

/* By any thread. */
static inline uint64_t counter_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
