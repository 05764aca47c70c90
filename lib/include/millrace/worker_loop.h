/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_WORKER_LOOP_H
#define MILLRACE_WORKER_LOOP_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * Workers on the program's own threads, including those with an event loop
 * (epoll, io_uring). They have the same statistics, hand-off and idle strategy
 * as other workers:
 *
 *     mr_worker_attach(worker, &why);
 *     watch(mr_worker_fd(worker, &why));
 *     while ((ms = mr_worker_pause(worker, forward(worker))) >= 0) {
 *             epoll_wait(loop, events, n, ms);
 *             if (ms > 0)
 *                     mr_worker_resume(worker);
 *             ...
 *     }
 *     mr_worker_detach(worker);
 *
 * A thread without such a loop calls mr_worker_wait() instead.
 */

struct mr_worker;

/**
 * Make the calling thread the worker's thread, until mr_worker_detach(). Its
 * affinity and signal mask do not change; run it on worker->core to follow the
 * core map.
 *
 * @return 0, or -EBUSY: the worker already has a thread
 *
 * Owner:  the calling thread uses the worker's queues and its cache.
 * Thread: any, one per worker; mr_workers_join() does not wait for it.
 * Cost:   a few system calls.
 */
MR_API int mr_worker_attach(struct mr_worker *worker,
			    struct mr_reason *reterr_reason);

/**
 * End what mr_worker_attach() began. Hand-off rings to this worker fill up
 * until another thread attaches; mr_workers_destroy() frees what is in them.
 *
 * Owner:  the thread that attaches next, or the caller of mr_workers_destroy().
 * Thread: the worker's. Cost: as an mr_tx_burst() on each tx queue.
 */
MR_API void mr_worker_detach(struct mr_worker *worker);

/**
 * An fd for epoll, io_uring or poll(). It is readable (level-triggered) when a
 * paused worker has work.
 *
 * @return the fd, or -EIO
 *
 * Owner:  the worker, which closes it.
 * Thread: the worker's. Cost: the first call creates an epoll set. On `xdp:`
 *         ports the kernel then also wakes the worker for frames sent, which
 *         costs about a tenth of the rate between veths. mr_worker_wait() has
 *         no such cost.
 */
MR_API int mr_worker_fd(struct mr_worker *worker,
			struct mr_reason *reterr_reason);

/**
 * mr_worker_wait() for a thread with its own event loop: end a round, but leave
 * the sleeping to the caller.
 *
 * @return how many ms the caller may wait for mr_worker_fd(), at most; 0: run
 *         the next round now; or
 *   -ECANCELED  mr_workers_stop() was called
 *
 * Owner: unchanged. Thread: the worker's. Cost: as mr_worker_wait().
 */
MR_API int mr_worker_pause(struct mr_worker *worker, uint32_t n_moved);

/**
 * Call after a positive result of mr_worker_pause(), before the next round.
 *
 * Owner: unchanged. Thread: the worker's. Cost: two system calls.
 */
MR_API void mr_worker_resume(struct mr_worker *worker);

MR_END_DECLS

#endif
