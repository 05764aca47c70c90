/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a lock, with growing pauses. */
#include <sched.h>
#include <time.h>

#include "pages/lock.h"

enum {
	LOOKS = 64,  /* each with a pause: longer than any holder needs */
	YIELDS = 16, /* lets a preempted holder continue */
	FIRST_SLEEP_NS = 20 * 1000,
	LONGEST_SLEEP_NS = 1000 * 1000,
};

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__("yield"); /* kept: it has no outputs */
#endif
}

void mri_lock_wait(struct mri_lock *lock)
{
	struct timespec sleep = { .tv_nsec = FIRST_SLEEP_NS };

	for (uint32_t i = 0;; i++) {
		/* Look before each try: a failed swap takes the line away. */
		if (__atomic_load_n(&lock->is_taken, __ATOMIC_RELAXED) == 0 &&
		    mri_lock_try(lock))
			return;
		if (i < LOOKS) {
			pause_core();
		} else if (i < LOOKS + YIELDS) {
			sched_yield();
		} else {
			nanosleep(&sleep, NULL);
			if (sleep.tv_nsec < LONGEST_SLEEP_NS / 2)
				sleep.tv_nsec *= 2;
			else
				sleep.tv_nsec = LONGEST_SLEEP_NS;
		}
	}
}
