/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for a few dozen instructions, where taking it is most of the cost.
 *
 * Taken by one atomic exchange, given back by a plain store: less than 5 ns a
 * round on the machine of docs/design/0003-memory.md, against 10.6 ns of a lock
 * of three states on futex(), whose unlock must be an atomic exchange as well,
 * to see whether somebody sleeps, and 16.3 ns of pthread_mutex_t in a process
 * with threads.
 *
 * The price is that nobody is woken. Who finds it taken looks again for a
 * microsecond or so, then yields, then sleeps between looks, up to 1 ms: a
 * holder that is stopped delays the others, but none of them burns a core.
 */
#ifndef POOL_LOCK_H
#define POOL_LOCK_H

#include <stdint.h>

struct mri_lock {
	uint32_t is_taken;
};

/* lib/pool/pages/lock.c */
void mri_lock_wait(struct mri_lock *lock);

static inline int mri_lock_try(struct mri_lock *lock)
{
	/* Pairs with the release in mri_lock_give(). */
	return __atomic_exchange_n(&lock->is_taken, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void mri_lock_take(struct mri_lock *lock)
{
	if (!mri_lock_try(lock))
		mri_lock_wait(lock);
}

static inline void mri_lock_give(struct mri_lock *lock)
{
	__atomic_store_n(&lock->is_taken, 0, __ATOMIC_RELEASE);
}

#endif
