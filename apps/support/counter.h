/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters that one thread writes, and others read while it does. */
#ifndef SUPPORT_COUNTER_H
#define SUPPORT_COUNTER_H

#include <stdint.h>

/* By the thread that writes it: a load and a store, no locked instruction. */
static inline void counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* What was counted and then not done. */
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
