/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_WORKER_H
#define MILLRACE_WORKER_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/frame.h>
#include <millrace/port.h>

MR_BEGIN_DECLS

/**
 * @file
 * Workers: run-to-completion threads, each pinned to a core, that share the
 * queues of some ports.
 *
 *     rx queues --> worker 0 --> its own tx queues
 *                      |
 *                      +-- hand-off ring --> worker 1 --> its tx queues
 *
 * A core map assigns every rx queue to one worker, and gives every worker a
 * route to every port: a tx queue of its own or, if the port has too few, a
 * bounded ring to a worker that has one. Never a lock. The program writes the
 * loop:
 *
 *     do {
 *             n = 0;
 *             for (i = 0; i < worker->n_rxqs; i++)
 *                     n += forward(worker, &worker->rxqs[i]);
 *             n += mr_worker_serve(worker);
 *     } while (mr_worker_wait(worker, n));
 *
 * The library runs no thread before mr_workers_start() or after
 * mr_workers_join(). Threads of the program can also be workers:
 * <millrace/worker_loop.h>.
 */

struct mr_cache;
struct mr_ctx;
struct mr_pool;
struct mr_ring_spsc;
struct mr_workers;

enum { MR_WORKERS_MAX = 64 };

/** Frames may leave through any port. */
#define MR_SENDS_TO_ANY UINT32_MAX

/** What a worker does after a round that found no work. */
enum mr_idle_mode {
	MR_IDLE_ADAPTIVE = 0,  /**< poll or sleep, depending on the gaps between
				*   frames and the cost of a wake-up */
	MR_IDLE_POLL = 1,      /**< keep polling */
	MR_IDLE_INTERRUPT = 2, /**< sleep immediately */
};

/** Zero is the default of each member but size. */
struct mr_workers_config {
	uint32_t size;        /**< sizeof(struct mr_workers_config) */
	uint32_t n_workers;   /**< 0: one per core in cores, else one per rx
			       *   queue of the port with the most, as far as
			       *   there are cores */
	struct mr_pool *pool; /**< for the workers' caches */
	struct mr_port *const *ports;
	const uint32_t *sends_to; /**< destination port of each port's frames,
				   *   or MR_SENDS_TO_ANY; NULL: any, for all */
	const uint32_t *cores; /**< one worker on each, in order; NULL: chosen
				*   from those the calling thread may use */
	uint32_t n_ports;
	uint32_t n_cores;
	uint32_t handoff_entries; /**< of each ring, a power of two, 2..2^20, or
				   *   2^18 with has_meta; 0: 1024 */
	enum mr_idle_mode idle;
	uint32_t has_meta; /**< 1: hand-off rings carry metadata, 64 bytes more
			    *   per entry: for mr_worker_send_meta() */
	uint32_t may_be_fewer; /**< 1: start fewer than n_workers rather than
				*   share a core with another polling thread;
				*   ignored if cores are named */
};

/** An rx queue of a worker. */
struct mr_worker_rxq {
	struct mr_rxq *rxq;
	uint32_t port_idx; /**< in mr_workers_config.ports */
	uint32_t queue_idx;
};

/** A worker's route to a port. */
struct mr_worker_route {
	struct mr_txq *txq; /**< the worker's own; NULL: hand off, or none */
	struct mr_ring_spsc *handoff; /**< NULL: the port has no tx queue */
	struct mr_ring_spsc *handoff_meta; /**< metadata of what is in handoff;
					    *   NULL: has_meta is 0 */
	uint32_t queue_idx;                /**< of the tx queue at its end */
	uint32_t owner_idx;                /**< the worker that has it */
};

/** One worker, as seen by its thread. Read only. */
struct mr_worker {
	struct mr_workers *workers;
	struct mr_cache *cache;
	const struct mr_worker_rxq *rxqs;
	const struct mr_worker_route *routes; /**< by port */
	uint32_t n_rxqs;
	uint32_t n_ports;
	uint32_t idx;
	uint32_t core;
	int32_t numa_node; /**< of the core; -1: unknown */
	uint32_t reserved;
	uint64_t reserved_words[4];
};

/** Counters of one worker. */
struct mr_worker_stats {
	uint32_t size; /**< sizeof(struct mr_worker_stats) */
	uint32_t reserved;
	uint64_t busy_ns; /**< in rounds that moved frames */
	uint64_t idle_ns; /**< in all other rounds, asleep or not */
	uint64_t rounds;
	uint64_t empty_rounds;
	uint64_t sleeps;
	uint64_t handed_off;   /**< frames put into hand-off rings */
	uint64_t handoff_full; /**< frames that did not fit into a ring */
	uint64_t asleep_ns;    /**< of idle_ns; all other time is CPU time */
};

/** The loop of a worker. @return 0, or -errno, for mr_workers_join() */
typedef int mr_worker_fn(struct mr_worker *worker, void *opaque);

/**
 * Create the core map and what the workers need: a cache each, hand-off rings,
 * an fd to wake them. Starts nothing. Cores on which another thread polls or
 * another program's worker runs are chosen last; if a worker must share one,
 * even a core that the caller named, a log warning names the other program.
 *
 * @param      config  copied; the ports must stay open as long as a thread
 *                     runs a worker, the pool until mr_workers_destroy()
 *
 * @return 0, or
 *   -EINVAL  config->size, no pool, no ports, a core that is absent, not
 *            allowed or named twice, more workers than cores or than
 *            MR_WORKERS_MAX, or an invalid ring size
 *   -ENOMEM  no memory
 *   -ENOSPC  the pool has its maximum number of caches
 *   -EIO     a system call failed in another way; the reason has it
 *
 * Owner:  the caller, of the workers.
 * Thread: any. Cost: a read in /proc per thread of the host, and 20 ms.
 */
MR_API int mr_workers_create(struct mr_ctx *ctx,
			     const struct mr_workers_config *config,
			     struct mr_workers **ret_workers,
			     struct mr_reason *reterr_reason);

/**
 * Free the workers, whose threads must have been joined. Frames left in
 * hand-off rings return to the pool. NULL is allowed.
 *
 * Owner: nobody, of the workers and their caches. Thread: one.
 */
MR_API void mr_workers_destroy(struct mr_workers *workers);

/**
 * Worker @p i.
 *
 * @return NULL after the last one
 *
 * Owner: the workers. Thread: any.
 */
MR_API struct mr_worker *mr_workers_get(struct mr_workers *workers, uint32_t i);

/**
 * Line @p i of the core map as text, one line per worker.
 *
 * @param[out] ret_text  @p n_bytes, NUL-terminated, truncated if longer
 *
 * @return 0, or -ENOENT after the last line
 *
 * Owner: unchanged. Thread: any.
 */
MR_API int mr_workers_line(const struct mr_workers *workers, uint32_t i,
			   char *ret_text, uint32_t n_bytes);

/**
 * Start one thread per worker, pinned to its core, with all signals blocked.
 * Workers on a thread of the program (mr_worker_attach()) keep that thread.
 * Cancels an earlier mr_workers_stop().
 *
 * @param fn      runs on each of them, with its worker and @p opaque, once all
 *                threads exist; NULL: start no thread, so that only workers on
 *                threads of the program run (again)
 *
 * @return 0, or, without a call of @p fn,
 *   -EBUSY   they are running already
 *   -EINVAL  a core is gone
 *   -EAGAIN  the limit on threads is reached
 *
 * Owner: unchanged. Thread: one at a time.
 */
MR_API int mr_workers_start(struct mr_workers *workers, mr_worker_fn *fn,
			    void *opaque, struct mr_reason *reterr_reason);

/**
 * Tell all workers to end after the current round; wakes those asleep. Holds
 * until mr_workers_start(), also for workers that are attached later.
 *
 * Owner:  unchanged.
 * Thread: any, also a signal handler. Cost: one write() per worker.
 */
MR_API void mr_workers_stop(struct mr_workers *workers);

/**
 * Wait until all workers have ended.
 *
 * @param timeout_ms  0: only check
 *
 * @return 0 if all returned 0 or were never started, or
 *   -ETIMEDOUT  one is still running; call again
 *   another     what the first worker that failed returned; the others were
 *               told to end, and have
 *
 * Owner:  unchanged. Afterwards the caller is the user of all queues and caches
 *         of the workers. Thread: one at a time. Cost: blocks.
 */
MR_API int mr_workers_join(struct mr_workers *workers, uint32_t timeout_ms,
			   struct mr_reason *reterr_reason);

/**
 * Assign the queues that the ports have now, after mr_port_add_queues() or
 * mr_port_reopen(). Workers, their cores, caches and counters stay; each struct
 * mr_worker has its new queues and routes. Frames left in hand-off rings return
 * to the pool. The fds of mr_worker_fd() are closed: ask for them again.
 *
 * @return 0, or
 *   -EBUSY   a worker has a thread; nothing has changed
 *   -ENOMEM, -EIO  the workers can only be destroyed
 *
 * Owner: unchanged. Thread: the one that joined the workers' threads.
 */
MR_API int mr_workers_reassign(struct mr_workers *workers,
			       struct mr_reason *reterr_reason);

/**
 * Change what idle workers do, from their next round on.
 *
 * @return 0, or -EINVAL: no such mode
 *
 * Owner: unchanged. Thread: any.
 * Cost:   as mr_worker_wake(), for each worker.
 */
MR_API int mr_workers_set_idle(struct mr_workers *workers,
			       enum mr_idle_mode idle);

/**
 * Make a worker look again: the current sleep ends or, if it is awake, the next
 * one does not begin. For programs that pass work to a worker themselves: store
 * it first, then call this.
 *
 * Owner: unchanged. Thread: any.
 * Cost:   two atomics; a system call if the worker sleeps.
 */
MR_API void mr_worker_wake(struct mr_worker *worker);

/**
 * Send the frames that other workers handed off to this one's tx queues.
 *
 * @return entries sent
 *
 * Owner:  as mr_tx_burst(); what a queue does not take stays in the ring.
 * Thread: the worker's, or that of whoever has joined it.
 * Cost:   one read per inbound ring if there is nothing.
 */
MR_API uint32_t mr_worker_serve(struct mr_worker *worker);

/**
 * End a round: count it and, if it moved nothing, collect completions, then
 * poll or sleep according to the idle mode. A sleep ends when a queue has work,
 * another worker hands something off, mr_worker_wake() or mr_workers_stop() is
 * called, or after 100 ms.
 *
 * @param n_moved  entries that the round moved
 *
 * @return 1: continue; 0: mr_workers_stop() was called
 *
 * Owner: unchanged. Thread: the worker's.
 * Cost:   after a round that moved frames, a few loads and stores; the clock is
 *         read in empty rounds and in every 256th other one.
 */
MR_API int mr_worker_wait(struct mr_worker *worker, uint32_t n_moved);

/**
 * Put frames for a port into the ring of the worker that owns its tx queue.
 * mr_worker_send_meta() calls it where necessary.
 *
 * @param meta  as that of mr_tx_burst_meta(); NULL unless
 *              mr_workers_config.has_meta is 1
 *
 * @return entries taken, 0..n; the last one ends a frame; 0 if there is no
 *         route
 *
 * Owner:  the ring, of the entries taken; **the rest stay the caller's**.
 * Thread: the worker's. Cost: wait-free; a system call if the owner sleeps;
 * with has_meta, a copy of the metadata.
 */
MR_API uint32_t mr_worker_hand_off(struct mr_worker *worker, uint32_t port_idx,
				   const struct mr_frame *frames,
				   const struct mr_meta *meta, uint32_t n);

/**
 * Copy the counters of @p worker.
 *
 * @return 0, or -EINVAL if stats->size, which the caller sets, is 0
 *
 * Owner: unchanged. Thread: any.
 */
MR_API int mr_worker_stats(const struct mr_worker *worker,
			   struct mr_worker_stats *stats);

/**
 * Send frames with their metadata through port @p port_idx, by this worker's
 * route to it.
 *
 * @param meta  as that of mr_tx_burst_meta(); NULL unless
 *              mr_workers_config.has_meta is 1
 * @param n     entries, whole frames, at most MR_BURST_MAX
 *
 * @return entries taken, 0..n; the last one ends a frame
 *
 * Owner:  the queue or the ring, of the entries taken; **the rest stay the
 *         caller's**.
 * Thread: the worker's.
 * Cost:   as mr_tx_burst_meta() or mr_worker_hand_off().
 */
static inline uint32_t mr_worker_send_meta(struct mr_worker *worker,
					   uint32_t port_idx,
					   const struct mr_frame *frames,
					   const struct mr_meta *meta,
					   uint32_t n)
{
	struct mr_txq *txq = worker->routes[port_idx].txq;

	if (txq != NULL)
		return mr_tx_burst_meta(txq, worker->cache, frames, meta, n);
	return mr_worker_hand_off(worker, port_idx, frames, meta, n);
}

/**
 * mr_worker_send_meta() without metadata.
 *
 * @return as mr_worker_send_meta(). Owner, Thread, Cost: as that.
 */
static inline uint32_t mr_worker_send(struct mr_worker *worker,
				      uint32_t port_idx,
				      const struct mr_frame *frames, uint32_t n)
{
	return mr_worker_send_meta(worker, port_idx, frames, NULL, n);
}

MR_END_DECLS

#endif
