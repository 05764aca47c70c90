/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds of workers: in a loop here, or one at a time in an event loop. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <millrace/port.h>
#include <millrace/ring.h>

#include "dataplane/dataplane.h"

enum {
	PORTS_MS = 100,  /* between two polls of the ports */
	MAX_ROUNDS = 64, /* busy ones without a look at the clock */
	JOIN_MS = 5000,
	NS_PER_MS = 1000000,
};

static uint32_t do_round(struct mr_worker *worker, mr_dataplane_fn *fn,
			 void *opaque)
{
	uint32_t n = mr_worker_serve(worker);

	for (uint32_t i = 0; i < worker->n_rxqs; i++)
		n += fn(worker, &worker->rxqs[i], opaque);
	return n;
}

static int run_worker(struct mr_worker *worker, void *opaque)
{
	const struct mri_dataplane *dp = opaque;

	while (mr_worker_wait(worker, do_round(worker, dp->fn, dp->opaque)))
		;
	return 0;
}

/* After a round of worker 0 that moved n: timers and events of the ports. */
static void poll_ports(struct mri_dataplane *dp, uint32_t n)
{
	uint64_t now_ns;

	if (n > 0 && ++dp->n_rounds < MAX_ROUNDS)
		return;
	dp->n_rounds = 0;
	now_ns = mr_ctx_now_ns(dp->base.ctx);
	if (now_ns < dp->ports_due_ns)
		return;
	dp->ports_due_ns = now_ns + PORTS_MS * NS_PER_MS;
	for (uint32_t p = 0; p < dp->base.n_ports; p++)
		mr_port_poll(dp->ports[p]);
}

static void run_here(struct mri_dataplane *dp, struct mr_worker *worker,
		     mr_dataplane_fn *fn, void *opaque)
{
	uint32_t n;

	do {
		n = do_round(worker, fn, opaque);
		poll_ports(dp, n);
	} while (mr_worker_wait(worker, n));
}

/* Bind the calling thread to a core. False: it stays where it may run. */
static bool bind_thread(uint32_t core, cpu_set_t *ret_before)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	return pthread_getaffinity_np(pthread_self(), sizeof(*ret_before),
				      ret_before) == 0 &&
	       pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

int mr_dataplane_run(struct mr_dataplane *base, mr_dataplane_fn *fn,
		     void *opaque, struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_worker *worker = mr_workers_get(base->workers, 0);
	cpu_set_t before;
	bool is_bound;
	int err;

	if (fn == NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_dataplane_run: fn is NULL");
	/* Threads of an earlier run use what is set below. */
	if (mr_workers_join(base->workers, 0, reterr_reason) == -ETIMEDOUT)
		return -ETIMEDOUT;
	err = mr_worker_attach(worker, reterr_reason);
	if (err < 0)
		return err;
	dp->fn = fn;
	dp->opaque = opaque;
	is_bound = bind_thread(worker->core, &before);
	err = mr_workers_start(base->workers,
			       base->n_workers > 1 ? run_worker : NULL, dp,
			       reterr_reason);
	/* Starting cancels a stop, and one may have come before. */
	if (__atomic_load_n(&dp->is_stopping, __ATOMIC_SEQ_CST))
		mr_workers_stop(base->workers);
	if (err == 0)
		run_here(dp, worker, fn, opaque);
	mr_worker_detach(worker);
	if (is_bound)
		pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	__atomic_store_n(&dp->is_stopping, false, __ATOMIC_SEQ_CST);
	if (err == 0)
		err = mr_workers_join(base->workers, JOIN_MS, reterr_reason);
	return err;
}

void mr_dataplane_stop(struct mr_dataplane *base)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	const int saved_errno = errno; /* of what a signal interrupted */
	struct mr_workers *workers;

	if (dp == NULL)
		return;
	__atomic_store_n(&dp->is_stopping, true, __ATOMIC_SEQ_CST);
	workers = __atomic_load_n(&base->workers, __ATOMIC_SEQ_CST);
	if (workers != NULL) /* they were not closed */
		mr_workers_stop(workers);
	errno = saved_errno;
}

int mr_dataplane_fd(struct mr_dataplane *base, struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_worker *worker = mr_workers_get(base->workers, 0);
	int err = 0;

	if (!dp->is_attached)
		err = mr_worker_attach(worker, reterr_reason);
	if (err < 0)
		return err;
	dp->is_attached = true;
	return mr_worker_fd(worker, reterr_reason);
}

int mri_dataplane_end_threads(struct mri_dataplane *dp)
{
	int err;

	if (!dp->has_threads)
		return 0;
	mr_workers_stop(dp->base.workers);
	err = mr_workers_join(dp->base.workers, JOIN_MS, NULL);
	dp->has_threads = err == -ETIMEDOUT;
	return err;
}

/* In the first step: threads for the workers that are not the caller's. */
static int start_others(struct mri_dataplane *dp, mr_dataplane_fn *fn,
			void *opaque)
{
	int err;

	if (__atomic_load_n(&dp->is_stopping, __ATOMIC_SEQ_CST))
		return 0; /* the step ends at once */
	dp->fn = fn;
	dp->opaque = opaque;
	err = mr_workers_start(dp->base.workers, run_worker, dp, NULL);
	dp->has_threads = err == 0;
	if (__atomic_load_n(&dp->is_stopping, __ATOMIC_SEQ_CST))
		mr_workers_stop(dp->base.workers); /* starting cancels it */
	return err;
}

int mr_dataplane_step(struct mr_dataplane *base, mr_dataplane_fn *fn,
		      void *opaque)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_worker *worker = mr_workers_get(base->workers, 0);
	uint32_t n;
	int wait_ms, err;

	if (base->n_workers > 1 && !dp->has_threads) {
		err = start_others(dp, fn, opaque);
		if (err < 0)
			return err;
	}
	if (dp->is_paused)
		mr_worker_resume(worker);
	n = do_round(worker, fn, opaque);
	wait_ms = mr_worker_pause(worker, n);
	dp->is_paused = wait_ms > 0;
	poll_ports(dp, n);
	if (wait_ms < 0) {
		err = mri_dataplane_end_threads(dp);
		return err < 0 ? err : wait_ms;
	}
	return wait_ms < PORTS_MS ? wait_ms : PORTS_MS;
}

/* Send what was handed off to a worker. Returns whether frames are left, in its
 * rings or on their way. */
static bool flush_worker(struct mr_dataplane *dp, struct mr_worker *worker)
{
	bool has_left = mr_worker_serve(worker) > 0;

	for (uint32_t p = 0; p < dp->n_ports; p++) {
		const struct mr_worker_route *route = &worker->routes[p];
		struct mr_tx_stats stats = { .size = sizeof(stats) };

		if (route->handoff != NULL &&
		    mr_ring_spsc_count(route->handoff) > 0)
			has_left = true;
		if (route->txq == NULL)
			continue;
		mr_tx_burst(route->txq, worker->cache, NULL, 0);
		mr_txq_stats(route->txq, &stats);
		has_left |= stats.pending > 0;
	}
	return has_left;
}

static void drop_handed_off(struct mr_dataplane *dp, struct mr_worker *worker,
			    mr_dataplane_drop_fn *drop, void *opaque)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n;

	for (uint32_t p = 0; p < dp->n_ports; p++) {
		struct mr_ring_spsc *ring = worker->routes[p].handoff;
		struct mr_ring_spsc *metas = worker->routes[p].handoff_meta;

		while (metas != NULL &&
		       mr_ring_spsc_dequeue_burst(metas, frames, MR_BURST_MAX) >
			       0)
			;
		while (ring != NULL &&
		       (n = mr_ring_spsc_dequeue_burst(ring, frames,
						       MR_BURST_MAX)) > 0)
			if (drop != NULL)
				drop(worker, frames, n, opaque);
			else
				mr_frame_free_bulk(worker->cache, frames, n);
	}
}

void mr_dataplane_drain(struct mr_dataplane *dp, uint32_t timeout_ms,
			mr_dataplane_drop_fn *drop, void *opaque)
{
	const uint64_t end_ns =
		mr_ctx_now_ns(dp->ctx) + (uint64_t)timeout_ms * NS_PER_MS;
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	bool has_left;

	for (;;) {
		has_left = false;
		for (uint32_t w = 0; w < dp->n_workers; w++)
			has_left |= flush_worker(
				dp, mr_workers_get(dp->workers, w));
		if (!has_left || mr_ctx_now_ns(dp->ctx) >= end_ns)
			break;
		nanosleep(&pause, NULL);
	}
	for (uint32_t w = 0; w < dp->n_workers; w++)
		drop_handed_off(dp, mr_workers_get(dp->workers, w), drop,
				opaque);
}
