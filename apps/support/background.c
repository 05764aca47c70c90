/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that does one job at a time. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "background.h"

enum { CANCEL_MS = 1000 };

struct background {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*fn)(void *opaque); /* NULL: idle */
	void *opaque;
	bool is_ending;
	int done_fd; /* -1: none */
};

static void *run_jobs(void *opaque)
{
	struct background *b = opaque;
	int unused;

	/* Cancellable within a job, never while holding the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &unused);
	pthread_mutex_lock(&b->lock);
	for (;;) {
		while (b->fn == NULL && !b->is_ending)
			pthread_cond_wait(&b->changed, &b->lock);
		if (b->fn == NULL)
			break;
		pthread_mutex_unlock(&b->lock);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &unused);
		b->fn(b->opaque);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &unused);
		pthread_mutex_lock(&b->lock);
		b->fn = NULL;
		pthread_cond_broadcast(&b->changed);
		if (b->done_fd >= 0)
			eventfd_write(b->done_fd, 1);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

struct background *background_create(int done_fd)
{
	struct background *b = calloc(1, sizeof(*b));
	sigset_t all, before;
	int err;

	if (b == NULL)
		return NULL;
	b->done_fd = done_fd;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&b->thread, NULL, run_jobs, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err != 0) {
		free(b);
		errno = err;
		return NULL;
	}
	return b;
}

bool background_is_idle(struct background *b)
{
	bool is_idle;

	pthread_mutex_lock(&b->lock);
	is_idle = b->fn == NULL;
	pthread_mutex_unlock(&b->lock);
	return is_idle;
}

void background_do(struct background *b, void (*fn)(void *opaque), void *opaque)
{
	pthread_mutex_lock(&b->lock);
	b->fn = fn;
	b->opaque = opaque;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

static struct timespec after_ms(clockid_t clock, uint32_t ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

bool background_wait(struct background *b, uint32_t timeout_ms)
{
	const struct timespec end = after_ms(CLOCK_MONOTONIC, timeout_ms);
	bool is_idle;

	pthread_mutex_lock(&b->lock);
	while (b->fn != NULL &&
	       pthread_cond_clockwait(&b->changed, &b->lock, CLOCK_MONOTONIC,
				      &end) != ETIMEDOUT)
		;
	is_idle = b->fn == NULL;
	pthread_mutex_unlock(&b->lock);
	return is_idle;
}

bool background_destroy(struct background *b)
{
	struct timespec end;

	if (b == NULL)
		return true;
	pthread_mutex_lock(&b->lock);
	b->is_ending = true;
	if (b->fn != NULL)
		pthread_cancel(b->thread);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	end = after_ms(CLOCK_REALTIME, CANCEL_MS);
	if (pthread_timedjoin_np(b->thread, NULL, &end) != 0)
		return false;
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
	return true;
}
