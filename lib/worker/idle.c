/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a round: idle strategy and time accounting.
 *
 * A round that moved frames is busy, others are idle. The clock is read every
 * BUSY_STAMP_ROUNDS while there is work, and in each empty round, where it
 * costs nothing, so a change from idle to busy is stamped to the round.
 *
 * Sleep: the worker sets is_asleep, then looks at the hand-off rings, is_called
 * and the stop flag once more, arms its rx queues, and waits. A producer
 * enqueues (or sets is_called), then takes is_asleep. Both do it with an
 * exchange, acquire and release, on one variable, so one of them comes second:
 * a producer that comes second finds the flag and writes to wake_fd; a worker
 * that comes second sees what was enqueued. (The plain form would be a store
 * and a load with a full fence in between, on both sides.)
 *
 * Sleeps are also the tick of the tx queues: the first one after work lasts up
 * to 1 ms, then 2, 4, ..., 100, and the round after each collects completions
 * and wakes a device that has frames left.
 *
 * poll(), not epoll: an fd in an epoll set is waited on all the time, awake or
 * asleep, and an AF_XDP socket calls its waiters for each frame that it has
 * sent. That took 10 % of the rate between veths (docs/performance.md). Only
 * mr_worker_fd() creates an epoll set, for threads with their own loop.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "worker/worker.h"

enum {
	BUSY_STAMP_ROUNDS = 256,
	BUSY_FLUSH_ROUNDS = 64, /* for tx queues without new frames */
	IDLE_FLUSH_ROUNDS = 16,
	MAX_TICK_MS = 100,
};

int mri_idle_init(struct mri_worker *worker, struct mr_reason *reterr_reason)
{
	const struct mr_ctx *ctx = worker->base.workers->ctx;

	worker->tick_ms = 1;
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake_fd < 0)
		return mr_fail(reterr_reason, -EIO, "worker %u: eventfd: %s",
			       worker->base.idx, mr_strerror(errno));
	worker->fds = mr_alloc(
		ctx, 0, (worker->base.n_rxqs + 1) * sizeof(worker->fds[0]));
	if (worker->fds == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "worker %u: no memory for waiting",
			       worker->base.idx);
	worker->fds[worker->n_fds++] =
		(struct pollfd){ .fd = worker->wake_fd, .events = POLLIN };
	for (uint32_t i = 0; i < worker->base.n_rxqs; i++) {
		const int fd = worker->base.rxqs[i].rxq->queue.fd;

		if (fd < 0)
			worker->has_fdless_rxq = true;
		else
			worker->fds[worker->n_fds++] =
				(struct pollfd){ .fd = fd, .events = POLLIN };
	}
	return 0;
}

void mri_idle_fini(struct mri_worker *worker)
{
	if (worker->wake_fd >= 0)
		close(worker->wake_fd);
	if (worker->epoll_fd >= 0)
		close(worker->epoll_fd);
	worker->wake_fd = worker->epoll_fd = -1;
	mr_free(worker->base.workers->ctx, worker->fds);
	worker->fds = NULL;
	worker->n_fds = 0;
	worker->has_fdless_rxq = false;
}

void mri_idle_begin(struct mri_worker *worker)
{
	const int slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

	worker->stamp_ns = mr_ctx_now_ns(worker->base.workers->ctx);
	worker->worked_ns = worker->stamp_ns;
	worker->n_empty = 0;
	worker->tick_ms = 1;
	worker->has_slept = false;
	worker->slack_ns = slack_ns > 0 ? (uint32_t)slack_ns : 0;
	mri_adapt_begin(&worker->adapt);
}

void mri_idle_wake(struct mri_worker *worker)
{
	const uint64_t one = 1;

	if (__atomic_exchange_n(&worker->is_asleep, 0, __ATOMIC_ACQ_REL) == 0)
		return;
	/* It fails only if already readable, which is all we want. */
	if (write(worker->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Also ends a sleep that begins later. */
void mr_worker_wake(struct mr_worker *base)
{
	struct mri_worker *worker = mri_worker_of(base);

	__atomic_store_n(&worker->is_called, 1, __ATOMIC_RELEASE);
	mri_idle_wake(worker);
}

int mr_workers_set_idle(struct mr_workers *workers, enum mr_idle_mode idle)
{
	if (idle > MR_IDLE_INTERRUPT)
		return -EINVAL;
	__atomic_store_n(&workers->idle, idle, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < workers->n_workers; i++)
		mr_worker_wake(&workers->workers[i].base);
	return 0;
}

static enum mr_idle_mode idle_of(const struct mri_worker *worker)
{
	return __atomic_load_n(&worker->base.workers->idle, __ATOMIC_RELAXED);
}

static bool is_stopping(const struct mri_worker *worker)
{
	return __atomic_load_n(&worker->base.workers->is_stopping,
			       __ATOMIC_ACQUIRE) != 0;
}

/* Add the time since the last stamp to one of the two counters. */
static uint64_t stamp_time(struct mri_worker *worker, uint64_t *counter)
{
	const uint64_t now = mr_ctx_now_ns(worker->base.workers->ctx);

	mr_counter_add(counter, now - worker->stamp_ns);
	worker->stamp_ns = now;
	return now;
}

/*
 * Collect completions of all tx queues, and wake devices that have frames left.
 * Return what belongs to other caches.
 */
void mri_idle_flush(struct mri_worker *worker)
{
	for (uint32_t i = 0; i < worker->n_txqs; i++)
		mr_tx_burst(worker->txqs[i], worker->base.cache, NULL, 0);
	mr_cache_flush(worker->base.cache);
}

static bool arm_all(struct mri_worker *worker)
{
	for (uint32_t i = 0; i < worker->base.n_rxqs; i++)
		if (mr_queue_arm(&worker->base.rxqs[i].rxq->queue) != 0)
			return false;
	return true;
}

/*
 * An fd that reports an error stays readable for good: its device is gone. From
 * then on, check the queue on each tick.
 */
static void handle_fds(struct mri_worker *worker)
{
	uint64_t count;

	/* A spurious wake-up is harmless: the flag decides. */
	if (worker->fds[0].revents != 0 &&
	    read(worker->wake_fd, &count, sizeof(count)) < 0)
		worker->fds[0].revents = 0;
	for (uint32_t i = 1; i < worker->n_fds; i++) {
		if (!(worker->fds[i].revents & (POLLERR | POLLHUP | POLLNVAL)))
			continue;
		if (worker->epoll_fd >= 0)
			epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL,
				  worker->fds[i].fd, NULL);
		worker->fds[i].fd = -1; /* poll() skips it */
	}
}

/* Returns the longest sleep in ms; 0: do not sleep, there is work. */
static int begin_sleep(struct mri_worker *worker)
{
	__atomic_exchange_n(&worker->is_asleep, 1, __ATOMIC_ACQ_REL);
	/* If a tx queue is full, its ring is not work: retry on each tick. */
	if (__atomic_exchange_n(&worker->is_called, 0, __ATOMIC_ACQUIRE) == 0 &&
	    !is_stopping(worker) &&
	    (worker->is_stuck || mri_handoff_is_empty(worker)) &&
	    arm_all(worker)) {
		worker->sleep_ms = worker->has_fdless_rxq || worker->is_stuck ?
					   1 :
					   worker->tick_ms;
		worker->slept_from_ns =
			mr_ctx_now_ns(worker->base.workers->ctx);
		return (int)worker->sleep_ms;
	}
	__atomic_exchange_n(&worker->is_asleep, 0, __ATOMIC_ACQ_REL);
	return 0;
}

/*
 * A sleep that times out shows what a wake-up costs: how late it is, minus the
 * timer slack (prctl(2)), which poll() sets to a thousandth of long times.
 */
static void end_sleep(struct mri_worker *worker, int n_readable)
{
	const uint64_t tick_ns = worker->sleep_ms * 1000000ull;
	const uint64_t slack_ns = tick_ns / 1000 > worker->slack_ns ?
					  tick_ns / 1000 :
					  worker->slack_ns;
	const uint64_t slept = mr_ctx_now_ns(worker->base.workers->ctx) -
			       worker->slept_from_ns;
	/* Else a signal ended it, or another event of the caller's loop. */
	const bool has_timed_out = n_readable == 0 && slept >= tick_ns;

	mr_counter_add(&worker->stats.sleeps, 1);
	mr_counter_add(&worker->stats.asleep_ns, slept);
	worker->has_slept = true;
	if (has_timed_out)
		mri_adapt_wake(&worker->adapt,
			       slept > tick_ns + slack_ns ?
				       slept - tick_ns - slack_ns :
				       0);
	if (n_readable > 0)
		handle_fds(worker);
	if (has_timed_out && worker->tick_ms < MAX_TICK_MS)
		worker->tick_ms = mri_min_u32(2 * worker->tick_ms, MAX_TICK_MS);
	__atomic_exchange_n(&worker->is_asleep, 0, __ATOMIC_ACQ_REL);
	stamp_time(worker, &worker->stats.idle_ns);
}

/* Whether to continue polling instead of sleeping. */
static bool polls_on(const struct mri_worker *worker, uint64_t now)
{
	const enum mr_idle_mode idle = idle_of(worker);

	if (idle != MR_IDLE_ADAPTIVE)
		return idle == MR_IDLE_POLL;
	return now - worker->worked_ns < worker->adapt.limit_ns;
}

/* Returns the longest sleep in ms; 0: continue. */
static int end_empty_round(struct mri_worker *worker)
{
	struct mr_worker_stats *stats = &worker->stats;
	const bool was_busy = worker->n_empty++ == 0;
	const uint64_t now = stamp_time(worker, was_busy ? &stats->busy_ns :
							   &stats->idle_ns);

	mr_counter_add(&stats->empty_rounds, 1);
	if (was_busy) {
		worker->worked_ns = now;
		worker->tick_ms = 1;
	}
	if (worker->n_empty % IDLE_FLUSH_ROUNDS == 1)
		mri_idle_flush(worker);
	if (polls_on(worker, now))
		return 0;
	mri_idle_flush(worker);
	return begin_sleep(worker);
}

/* The gap ended with the round before this one, which found work. */
static void end_gap(struct mri_worker *worker, uint32_t n_moved)
{
	if (idle_of(worker) == MR_IDLE_ADAPTIVE)
		mri_adapt_gap(&worker->adapt,
			      worker->stamp_ns - worker->worked_ns,
			      worker->has_slept ? n_moved : 0);
	worker->has_slept = false;
}

/* Returns the longest sleep in ms; 0: continue. */
static inline int end_round(struct mri_worker *worker, uint32_t n_moved)
{
	const uint64_t rounds = worker->stats.rounds + 1;

	mr_counter_add(&worker->stats.rounds, 1);
	if (n_moved == 0)
		return end_empty_round(worker);
	if (worker->n_empty > 0)
		end_gap(worker, n_moved);
	if (worker->n_empty > 0 || rounds % BUSY_STAMP_ROUNDS == 0)
		stamp_time(worker, &worker->stats.busy_ns);
	worker->n_empty = 0;
	if (rounds % BUSY_FLUSH_ROUNDS == 0)
		mri_idle_flush(worker);
	return 0;
}

int mr_worker_wait(struct mr_worker *base, uint32_t n_moved)
{
	struct mri_worker *worker = mri_worker_of(base);
	const int ms = end_round(worker, n_moved);

	if (ms > 0)
		end_sleep(worker, poll(worker->fds, worker->n_fds, ms));
	return !is_stopping(worker);
}

int mr_worker_pause(struct mr_worker *base, uint32_t n_moved)
{
	struct mri_worker *worker = mri_worker_of(base);
	const int ms = end_round(worker, n_moved);

	return ms == 0 && is_stopping(worker) ? -ECANCELED : ms;
}

void mr_worker_resume(struct mr_worker *base)
{
	struct mri_worker *worker = mri_worker_of(base);

	end_sleep(worker, poll(worker->fds, worker->n_fds, 0));
}

int mr_worker_fd(struct mr_worker *base, struct mr_reason *reterr_reason)
{
	struct mri_worker *worker = mri_worker_of(base);
	struct epoll_event event = { .events = EPOLLIN };
	int err = 0;

	if (worker->epoll_fd >= 0)
		return worker->epoll_fd;
	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (worker->epoll_fd < 0)
		err = errno;
	for (uint32_t i = 0; i < worker->n_fds && err == 0; i++)
		if (worker->fds[i].fd >= 0 &&
		    epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD,
			      worker->fds[i].fd, &event) < 0)
			err = errno;
	if (err == 0)
		return worker->epoll_fd;
	if (worker->epoll_fd >= 0)
		close(worker->epoll_fd);
	worker->epoll_fd = -1;
	return mr_fail(reterr_reason, -EIO, "worker %u: epoll: %s", base->idx,
		       mr_strerror(err));
}
