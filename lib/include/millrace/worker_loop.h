/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_WORKER_LOOP_H
#define MILLRACE_WORKER_LOOP_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * Workers on threads of the program, also those with an event loop of their
 * own (epoll, io_uring). They have the statistics, the hand-off and the idle
 * strategy of the others:
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
 * affinity and signal mask remain as they are; run it on worker->core for the
 * placement that the core map intends.
 *
 * @return 0, or -EBUSY: the worker has a thread
 *
 * Owner:  the calling thread uses the worker's queues and its cache.
 * Thread: any, one per worker; mr_workers_join() does not wait for it.
 * Cost:   some system calls.
 */
MR_API int mr_worker_attach(struct mr_worker *worker,
			    struct mr_reason *reterr_reason);

/**
 * End what mr_worker_attach() began. Hand-off rings to this worker fill up
 * until another thread attaches; mr_workers_destroy() frees what is in them.
 *
 * Owner:  whoever attaches next, or the caller of mr_workers_destroy().
 * Thread: the worker's. Cost: as a burst of mr_tx_burst() per tx queue.
 */
MR_API void mr_worker_detach(struct mr_worker *worker);

/**
 * An fd for epoll, io_uring or poll(): readable, level-triggered, if a worker
 * that paused has work.
 *
 * @return the fd, or -EIO
 *
 * Owner:  the worker, which closes it.
 * Thread: the worker's. Cost: the first call creates an epoll set. On `xdp:`
 *         ports the kernel then also wakes for frames sent: about a tenth of
 *         the rate between veths. mr_worker_wait() has no such cost.
 */
MR_API int mr_worker_fd(struct mr_worker *worker,
			struct mr_reason *reterr_reason);

/**
 * mr_worker_wait() for a thread with an event loop of its own: end a round, and
 * let the caller do the sleeping.
 *
 * @return for how many ms the caller may wait for mr_worker_fd(), at most;
 *         0: run the next round now; or
 *   -ECANCELED  mr_workers_stop() was called
 *
 * Owner: unchanged. Thread: the worker's. Cost: as mr_worker_wait().
 */
MR_API int mr_worker_pause(struct mr_worker *worker, uint32_t n_moved);

/**
 * After a positive result of mr_worker_pause(), and before the next round.
 *
 * Owner: unchanged. Thread: the worker's. Cost: two system calls.
 */
MR_API void mr_worker_resume(struct mr_worker *worker);

#ifdef __cplusplus
}
#endif

#endif
