/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for critical sections of a few dozen instructions.
 *
 * Taken by one atomic exchange, released by a plain store: less than 5 ns per
 * round on the machine of docs/design/0003-memory.md, compared with 10.6 ns for
 * a three-state futex() lock, whose unlock must also be an atomic exchange, to
 * see whether somebody sleeps, and 16.3 ns for pthread_mutex_t in a process
 * with threads.
 *
 * The drawback is that releasing the lock wakes no waiter. A waiter polls for
 * about a microsecond, then yields, then sleeps for up to 1 ms between tries: a
 * stopped holder delays the others, but none of them keeps a core busy.
 */
#ifndef PAGES_LOCK_H
#define PAGES_LOCK_H

#include <stdint.h>

struct mri_lock {
	uint32_t is_taken;
};

/* lib/pages/lock.c */
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
