/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compile a file of lib/ so that it calls atomic_step() before each atomic
 * operation, and a test may stop it or let another thread go first there.
 *
 * The test includes the headers that it needs, defines atomic_step(), includes
 * this and then the .c file. What headers do inline is no step: they came
 * before. The functions of the .c file get names of their own by macros ahead
 * of all that, as libmillrace_internal.a has them too.
 *
 * A compare-and-swap never fails for nothing here, so that steps can be
 * counted. With STEPPED_FAULTS it goes through stepped_cas(), where tests that
 * run one thread at a time put faults that they must find.
 */
#ifndef SUPPORT_STEPPED_H
#define SUPPORT_STEPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef STEPPED_FAULTS

/* What a compare-and-swap, or another operation, does wrong. */
static struct stepped_fault {
	bool is_blind;      /* it finds what was expected, whatever is there */
	uint64_t seen_mask; /* 0: compares all bits; else only these */
	uint64_t stored_mask; /* 0: stores all bits; else only these */
	bool is_split;        /* of additions: they are a load and a store */
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

#endif

#define __atomic_load_n(at, order) (atomic_step(), __atomic_load_n(at, order))
#define __atomic_store_n(at, value, order)                                     \
	(atomic_step(), __atomic_store_n(at, value, order))
#define __atomic_exchange_n(at, value, order)                                  \
	(atomic_step(), __atomic_exchange_n(at, value, order))
#ifdef STEPPED_FAULTS
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
#else
#define __atomic_fetch_add(at, value, order)                                   \
	(atomic_step(), __atomic_fetch_add(at, value, order))
#define __atomic_fetch_sub(at, value, order)                                   \
	(atomic_step(), __atomic_fetch_sub(at, value, order))
#define __atomic_compare_exchange_n(at, expected, desired, weak, order,        \
				    failed)                                    \
	(atomic_step(), __atomic_compare_exchange_n(at, expected, desired,     \
						    false, order, failed))
#endif

#endif
