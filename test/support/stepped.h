/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiles a file of lib/ so that it calls atomic_step() before each atomic
 * operation. There a test can stop the thread or run another one.
 *
 * A test first renames the functions of the .c file by macros, because
 * libmillrace_internal.a has them, too. Then it includes the headers that it
 * needs, whose inline functions thus have no steps, defines atomic_step(), and
 * includes this header and the .c file.
 *
 * One thread runs at a time, so stepped_cas() stands for compare-and-swap. It
 * never fails spuriously, and tests inject faults into it that they must find.
 */
#ifndef SUPPORT_STEPPED_H
#define SUPPORT_STEPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The fault of a compare-and-swap, or another operation. */
static struct stepped_fault {
	bool is_blind;        /* it always finds the expected value */
	uint64_t seen_mask;   /* 0: compares all bits; else only these */
	uint64_t stored_mask; /* 0: stores all bits; else only these */
	bool is_split;        /* for additions: a separate load and store */
} stepped_fault;

static inline bool stepped_cas(void *at, void *expected, uint64_t desired,
			       uint32_t n_bytes)
{
	uint64_t now = n_bytes == 8 ? *(uint64_t *)at : *(uint32_t *)at;
	uint64_t want =
		n_bytes == 8 ? *(uint64_t *)expected : *(uint32_t *)expected;
	const uint64_t mask = stepped_fault.seen_mask != 0 ?
				      stepped_fault.seen_mask :
				      UINT64_MAX;

	if (((now ^ want) & mask) != 0 && !stepped_fault.is_blind) {
		memcpy(expected, at, n_bytes);
		return false;
	}
	if (stepped_fault.stored_mask != 0)
		desired &= stepped_fault.stored_mask;
	memcpy(at, &desired, n_bytes); /* little endian */
	return true;
}

#define __atomic_load_n(at, order) (atomic_step(), __atomic_load_n(at, order))
#define __atomic_store_n(at, value, order)                                     \
	(atomic_step(), __atomic_store_n(at, value, order))
#define __atomic_exchange_n(at, value, order)                                  \
	(atomic_step(), __atomic_exchange_n(at, value, order))
#define stepped_split(at, value)                                               \
	({                                                                     \
		const __typeof__(*(at)) was_ = *(at);                          \
		atomic_step();                                                 \
		*(at) = was_ + (value);                                        \
		was_;                                                          \
	})
#define __atomic_fetch_add(at, value, order)                                   \
	(atomic_step(), stepped_fault.is_split ?                               \
				stepped_split(at, value) :                     \
				__atomic_fetch_add(at, value, order))
#define __atomic_fetch_sub(at, value, order)                                   \
	(atomic_step(), stepped_fault.is_split ?                               \
				stepped_split(at, -(value)) :                  \
				__atomic_fetch_sub(at, value, order))
#define __atomic_compare_exchange_n(at, expected, desired, weak, order,        \
				    failed)                                    \
	(atomic_step(), stepped_cas(at, expected, desired, sizeof(*(at))))

#endif
