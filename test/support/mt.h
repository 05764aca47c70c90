/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by tests with several threads.
 *
 * There are more threads than cores, and they yield at random. What the tests
 * themselves share is accessed with relaxed atomics, so that ThreadSanitizer
 * sees no other ordering than the library's.
 */
#ifndef SUPPORT_MT_H
#define SUPPORT_MT_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/random.h"

enum { MT_MAX_THREADS = 16 };

struct mt_run;

struct mt_thread {
	struct mt_run *run;
	uint32_t id; /* 1.. */
	uint64_t random;
	pthread_t handle;
};

/* Threads that start together and end when the body returns. */
struct mt_run {
	void (*body)(struct mt_thread *thread);
	void *shared;
	uint32_t n_threads;
	uint64_t n_ops; /* per thread */
	uint32_t n_failures;
	pthread_barrier_t start;
	struct mt_thread threads[MT_MAX_THREADS];
};

/* MR_TEST_OPS_FACTOR=100 turns the default half minute into an hour. */
static inline uint64_t mt_n_ops(uint64_t n_default)
{
	const char *factor = getenv("MR_TEST_OPS_FACTOR");

	return factor == NULL ? n_default :
				n_default * strtoull(factor, NULL, 10);
}

static inline uint32_t mt_random(struct mt_thread *thread, uint32_t below)
{
	return test_random(&thread->random, below);
}

/* Let another thread go first, one time in @p n. */
static inline void mt_maybe_yield(struct mt_thread *thread, uint32_t n)
{
	if (mt_random(thread, n) == 0)
		sched_yield();
}

static inline bool mt_failed(const struct mt_run *run)
{
	return __atomic_load_n(&run->n_failures, __ATOMIC_RELAXED) != 0;
}

/* An assertion for threads: cmocka's end a test by longjmp(). */
static inline bool mt_check_at(struct mt_run *run, bool is_true,
			       const char *what, const char *file, int line)
{
	if (!is_true &&
	    __atomic_fetch_add(&run->n_failures, 1, __ATOMIC_RELAXED) < 5)
		fprintf(stderr, "%s:%d: %s\n", file, line, what);
	return is_true;
}

#define mt_check(run, condition)                                               \
	mt_check_at((run), (condition), #condition, __FILE__, __LINE__)

static inline void *mt_main(void *opaque)
{
	struct mt_thread *thread = opaque;

	pthread_barrier_wait(&thread->run->start);
	thread->run->body(thread);
	return NULL;
}

/* Run n_threads of body to their end. Returns how many checks failed. */
static inline uint32_t mt_run(struct mt_run *run)
{
	pthread_barrier_init(&run->start, NULL, run->n_threads);
	for (uint32_t i = 0; i < run->n_threads; i++) {
		run->threads[i] = (struct mt_thread){
			.run = run,
			.id = i + 1,
			.random = UINT64_C(0x9e3779b97f4a7c15) * (i + 1),
		};
		if (pthread_create(&run->threads[i].handle, NULL, mt_main,
				   &run->threads[i]) != 0)
			abort();
	}
	for (uint32_t i = 0; i < run->n_threads; i++)
		pthread_join(run->threads[i].handle, NULL);
	pthread_barrier_destroy(&run->start);
	return run->n_failures;
}

#endif
