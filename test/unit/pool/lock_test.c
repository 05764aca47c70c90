/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pages/lock.c. */
#include "support/mt.h"
#include "support/unit.h"

#include <time.h>

#include "pages/lock.h"

struct guarded {
	struct mri_lock lock;
	uint64_t n; /* plain: ThreadSanitizer sees a lock that is none */
};

static void add_under_lock(struct mt_thread *thread)
{
	struct guarded *g = thread->run->shared;

	for (uint64_t i = 0; i < thread->run->n_ops; i++) {
		mri_lock_take(&g->lock);
		g->n++;
		mt_maybe_yield(thread, 1000);
		g->n++;
		mri_lock_give(&g->lock);
	}
}

TEST(only_one_thread_holds_the_lock)
{
	struct guarded g = { 0 };
	struct mt_run run = { .body = add_under_lock,
			      .shared = &g,
			      .n_threads = 8,
			      .n_ops = mt_n_ops(20000) };

	assert_int_equal(mt_run(&run), 0);
	assert_int_equal(g.n, 2 * 8 * run.n_ops);
	assert_true(mri_lock_try(&g.lock));
	assert_false(mri_lock_try(&g.lock));
}

static void *take_lock(void *opaque)
{
	struct guarded *g = opaque;

	mri_lock_take(&g->lock);
	mri_lock_give(&g->lock);
	return NULL;
}

/* A holder that is stopped: the other one waits, and nearly all of it asleep. */
TEST(waiting_for_the_lock_uses_no_cpu)
{
	const struct timespec hold = { .tv_nsec = 300 * 1000 * 1000 };
	struct guarded g = { 0 };
	struct timespec cpu = { 0 };
	pthread_t other;
	clockid_t clock;

	mri_lock_take(&g.lock);
	assert_int_equal(pthread_create(&other, NULL, take_lock, &g), 0);
	nanosleep(&hold, NULL);
	assert_int_equal(pthread_getcpuclockid(other, &clock), 0);
	assert_int_equal(clock_gettime(clock, &cpu), 0);
	mri_lock_give(&g.lock);
	assert_int_equal(pthread_join(other, NULL), 0);
	/* It spun through less than a half, whatever the machine. */
	assert_true(cpu.tv_sec == 0 && cpu.tv_nsec < hold.tv_nsec / 2);
}
