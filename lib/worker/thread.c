/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of workers: the library's, which exist only between start and
 * join, and those of the caller.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "worker/worker.h"

/* Wait until it is known whether all threads have started. */
static bool have_all_started(struct mr_workers *workers)
{
	bool ret;

	pthread_mutex_lock(&workers->starting);
	ret = workers->has_started;
	pthread_mutex_unlock(&workers->starting);
	return ret;
}

static void *run_worker(void *opaque)
{
	struct mri_worker *worker = opaque;
	struct mr_workers *workers = worker->base.workers;

	if (have_all_started(workers)) {
		worker->base.cache = mr_cache_adopt(worker->base.cache);
		mri_idle_begin(worker);
		worker->result = workers->fn(&worker->base, workers->opaque);
	}
	if (worker->result < 0)
		mr_workers_stop(workers);
	__atomic_store_n(&worker->has_ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* True: the worker had no thread, and now has one. */
static bool take_worker(struct mri_worker *worker)
{
	return __atomic_exchange_n(&worker->is_taken, 1, __ATOMIC_ACQUIRE) == 0;
}

static void release_worker(struct mri_worker *worker)
{
	__atomic_store_n(&worker->is_taken, 0, __ATOMIC_RELEASE);
}

int mr_worker_attach(struct mr_worker *base, struct mr_reason *reterr_reason)
{
	struct mri_worker *worker = mri_worker_of(base);

	if (!take_worker(worker))
		return mr_fail(reterr_reason, -EBUSY,
			       "worker %u already has a thread", base->idx);
	base->cache = mr_cache_adopt(base->cache);
	mri_idle_begin(worker);
	return 0;
}

void mr_worker_detach(struct mr_worker *base)
{
	struct mri_worker *worker = mri_worker_of(base);

	mri_idle_flush(worker);
	release_worker(worker);
}

/* Pinned from its first instruction, with all signals blocked. */
static int start_one(struct mri_worker *worker)
{
	pthread_attr_t attr;
	sigset_t all;
	cpu_set_t set;
	char name[16];
	int err;

	CPU_ZERO(&set);
	CPU_SET(worker->base.core, &set);
	sigfillset(&all);
	err = pthread_attr_init(&attr);
	if (err != 0)
		return err;
	err = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	if (err == 0)
		err = pthread_attr_setsigmask_np(&attr, &all);
	if (err == 0)
		err = pthread_create(&worker->thread, &attr, run_worker,
				     worker);
	pthread_attr_destroy(&attr);
	if (err != 0) {
		release_worker(worker);
		return err;
	}
	worker->is_running = true;
	snprintf(name, sizeof(name), "mr-worker-%u", worker->base.idx);
	pthread_setname_np(worker->thread, name);
	return 0;
}

int mr_workers_start(struct mr_workers *workers, mr_worker_fn *fn, void *opaque,
		     struct mr_reason *reterr_reason)
{
	int err = 0;

	for (uint32_t w = 0; w < workers->n_workers; w++)
		if (workers->workers[w].is_running)
			return mr_fail(reterr_reason, -EBUSY,
				       "the workers are already running");
	workers->fn = fn;
	workers->opaque = opaque;
	__atomic_store_n(&workers->is_stopping, 0, __ATOMIC_RELEASE);
	pthread_mutex_lock(&workers->starting);
	for (uint32_t w = 0; w < workers->n_workers && err == 0; w++) {
		struct mri_worker *worker = &workers->workers[w];

		worker->result = 0;
		worker->has_ended = 0;
		if (fn != NULL && take_worker(worker))
			err = start_one(worker);
		if (err != 0)
			mr_fail(reterr_reason, -err,
				"worker %u cannot start on core %u: %s", w,
				workers->workers[w].base.core,
				mr_strerror(err));
	}
	workers->has_started = err == 0;
	pthread_mutex_unlock(&workers->starting);
	if (err == 0)
		return 0;
	/* Immediate: none of them is in the program's loop yet. */
	mr_workers_join(workers, 10000, NULL);
	return -err;
}

void mr_workers_stop(struct mr_workers *workers)
{
	__atomic_store_n(&workers->is_stopping, 1, __ATOMIC_RELEASE);
	for (uint32_t w = 0; w < workers->n_workers; w++)
		mri_idle_wake(&workers->workers[w]);
}

/*
 * Wait until the worker's function has returned. Checking once a millisecond is
 * enough at the end of a program, and needs no fd; TSan does not know
 * pthread_clockjoin_np().
 */
static bool has_ended(const struct mri_worker *worker, uint64_t until_ns)
{
	const struct mr_ctx *ctx = worker->base.workers->ctx;
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (!__atomic_load_n(&worker->has_ended, __ATOMIC_ACQUIRE)) {
		if (mr_ctx_now_ns(ctx) >= until_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

int mr_workers_join(struct mr_workers *workers, uint32_t timeout_ms,
		    struct mr_reason *reterr_reason)
{
	const uint64_t until_ns =
		mr_ctx_now_ns(workers->ctx) + (uint64_t)timeout_ms * 1000000;
	int result = 0;

	for (uint32_t w = 0; w < workers->n_workers; w++) {
		struct mri_worker *worker = &workers->workers[w];

		if (!worker->is_running)
			continue;
		if (!has_ended(worker, until_ns))
			return mr_fail(reterr_reason, -ETIMEDOUT,
				       "worker %u on core %u is still running",
				       w, worker->base.core);
		pthread_join(worker->thread, NULL);
		worker->is_running = false;
		release_worker(worker);
		/* The caller may continue to use what is in it. */
		worker->base.cache = mr_cache_adopt(worker->base.cache);
	}
	for (uint32_t w = 0; w < workers->n_workers && result == 0; w++) {
		result = workers->workers[w].result;
		if (result < 0)
			mr_fail(reterr_reason, result, "worker %u failed: %s",
				w, mr_strerror(-result));
	}
	return result;
}
