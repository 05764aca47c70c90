/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_DATAPLANE_H
#define MILLRACE_DATAPLANE_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/error.h>
#include <millrace/frame.h>
#include <millrace/pool.h>
#include <millrace/worker.h>

MR_BEGIN_DECLS

/**
 * @file
 * A data plane in one call: a context, a pool that is large enough for its
 * ports, the ports, and the workers that share their queues.
 *
 *     static uint32_t forward(struct mr_worker *worker,
 *                             const struct mr_worker_rxq *rx, void *opaque);
 *
 *     struct mr_dataplane_config config = { .size = sizeof(config),
 *                                           .specs = specs, .n_specs = 2 };
 *     mr_dataplane_open(&config, &dp, &why);
 *     mr_dataplane_run(dp, forward, NULL, &why);
 *     mr_dataplane_close(dp, &why);
 *
 * mr_dataplane_run() uses the calling thread for the first worker, and starts a
 * thread for each other one. A program with an event loop calls
 * mr_dataplane_fd() and mr_dataplane_step() instead; one that keeps its own
 * thread for other things calls mr_workers_start(). The parts are those of
 * <millrace/pool.h>, <millrace/port.h> and <millrace/worker.h>: what is
 * documented there can be done with them, except closing them.
 */

struct mr_port;
struct mr_ring_spsc;

/** Zero is the default of each member but size and specs. */
struct mr_dataplane_config {
	uint32_t size;            /**< sizeof(struct mr_dataplane_config) */
	uint32_t n_specs;         /**< 1..64; 0: NULL ends them, as in argv */
	const char *const *specs; /**< of the ports, as for mr_port_open() */
	struct mr_ctx *ctx; /**< one with hooks or with drivers of its own;
			     *   it must outlive the data plane. NULL: a new
			     *   one, which is destroyed at the end */
	const char *name;        /**< of the pool, in messages; NULL: "pool" */
	uint32_t n_pages;        /**< of the pool; 0: what ports, workers and
				  *   kept_pages need, and it may grow */
	uint32_t kept_pages;     /**< for frames that the program holds beyond a
				  *   burst per worker */
	uint32_t page_bytes;     /**< these four as in mr_pool_config */
	uint32_t headroom_bytes;
	uint32_t tailroom_bytes;
	enum mr_safety safety;
	uint32_t n_workers;      /**< 0: one per core in cores, else one per rx
				  *   queue of the port with the most, at most
				  *   one per core */
	uint32_t max_workers;    /**< if n_workers is 0; 0: 16 */
	uint32_t may_idle;       /**< 1: workers may have no queue yet; 0: that
				  *   is refused */
	uint32_t n_cores;
	const uint32_t *cores;   /**< these six as in mr_workers_config */
	const uint32_t *sends_to;
	uint32_t handoff_entries;
	enum mr_idle_mode idle;
	uint32_t may_be_fewer;
	uint32_t takes_meta; /**< 1: the program uses mr_rx_burst_meta() and
			      *   mr_worker_send_meta(); 0: a port that merges
			      *   received segments is refused */
};

/** What was opened, in the order of the specs. Read only. */
struct mr_dataplane {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_port *const *ports;
	struct mr_workers *workers;
	uint32_t n_ports;
	uint32_t n_workers;
	uint32_t n_pages;  /**< of the pool at the start */
	uint32_t has_meta; /**< 1: a port's frames need their metadata, and
			    *   hand-off rings carry it */
	uint64_t reserved[4];
};

/**
 * Open everything. On failure nothing is left open.
 *
 * @param config  copied, with what it points to
 *
 * @return 0, or
 *   -EINVAL  the configuration cannot be satisfied: config->size, no ports or
 *            more than 64, a spec, too few pages, a core, a worker that would
 *            have no queue, or a port that merges segments although
 *            takes_meta is 0
 *   -ENOMEM  no memory
 *   others   as mr_ctx_create(), mr_pool_create(), mr_port_open(),
 *            mr_workers_create()
 *
 * The reason of an error that one port causes has its name.
 *
 * Owner:  the caller, of the data plane.
 * Thread: any, one per context. Cost: as the functions above.
 */
MR_API int mr_dataplane_open(const struct mr_dataplane_config *config,
			     struct mr_dataplane **ret_dp,
			     struct mr_reason *reterr_reason);

/**
 * Receive a burst from one of a worker's queues, and send or free it. Called
 * for each of them in each round, at least every 100 ms. To end on an error,
 * keep it in @p opaque and call mr_dataplane_stop().
 *
 * @return entries received; after a round in which all calls returned 0, the
 *         worker may sleep, as the idle mode says
 *
 * Thread: the worker's.
 */
typedef uint32_t mr_dataplane_fn(struct mr_worker *worker,
				 const struct mr_worker_rxq *rxq,
				 void *opaque);

/**
 * Run all workers until mr_dataplane_stop(). The calling thread is worker 0,
 * bound to its core meanwhile; it also calls mr_port_poll() for all ports,
 * about every 100 ms, so event subscribers run on it. The other workers'
 * threads block all signals. Each round begins with sending what other workers
 * handed off.
 *
 * @return 0 after a stop, or
 *   -EINVAL     @p fn is NULL
 *   -ETIMEDOUT  a worker has not ended within 5 s of the stop, or one of an
 *               earlier run has not ended yet; call mr_workers_join() before
 *               closing
 *   others      as mr_workers_start(), mr_worker_attach(); nothing has run
 *
 * Owner:  unchanged. Afterwards the caller uses all queues and caches, and may
 *         run it again.
 * Thread: one at a time. Cost: blocks.
 */
MR_API int mr_dataplane_run(struct mr_dataplane *dp, mr_dataplane_fn *fn,
			    void *opaque, struct mr_reason *reterr_reason);

/**
 * End mr_dataplane_run() after the current round; if it is not running, its
 * next call ends after one round. mr_dataplane_step() fails from then on. NULL
 * is allowed: a signal may arrive before mr_dataplane_open() returns.
 *
 * Owner:  unchanged.
 * Thread: any, also a signal handler; keeps errno. Cost: one write() per worker
 *         that sleeps.
 */
MR_API void mr_dataplane_stop(struct mr_dataplane *dp);

/**
 * Make the calling thread worker 0 of a program with an event loop, which
 * calls mr_dataplane_step() before it waits for the first time:
 *
 *     while ((ms = mr_dataplane_step(dp, forward, NULL)) >= 0)
 *             poll(fds, n_fds, ms);
 *
 * @return an fd that is readable when mr_dataplane_step() has work; or an error
 *         as mr_worker_attach(), mr_worker_fd()
 *
 * Owner:  the data plane, of the fd.
 * Thread: that of mr_dataplane_step().
 */
MR_API int mr_dataplane_fd(struct mr_dataplane *dp,
			   struct mr_reason *reterr_reason);

/**
 * One round of worker 0, for a thread that called mr_dataplane_fd(). Calls
 * mr_port_poll() as mr_dataplane_run() does. The first call starts a thread for
 * each other worker, which calls @p fn with @p opaque of that call.
 *
 * @return how many ms the caller may wait for the fd, at most; 0: call this
 *         again now; or
 *   -ECANCELED  mr_dataplane_stop() was called, and the threads have ended
 *   -ETIMEDOUT  one has not ended within 5 s of the stop; call again
 *   others      as mr_workers_start(); no thread was started
 *
 * Owner: unchanged. Thread: that of mr_dataplane_fd().
 */
MR_API int mr_dataplane_step(struct mr_dataplane *dp, mr_dataplane_fn *fn,
			     void *opaque);

/**
 * Take the frames that no tx queue took: what is left in a hand-off ring.
 *
 * @param frames  @p n entries, at most MR_BURST_MAX
 *
 * Owner: the callee, of the frames.
 */
typedef void mr_dataplane_drop_fn(struct mr_worker *worker,
				  const struct mr_frame *frames, uint32_t n,
				  void *opaque);

/**
 * After the workers have ended: send what is in hand-off rings, and wait until
 * the devices have completed what they took. mr_dataplane_close() does this,
 * too; call it before to count what is dropped, or to see the last counters.
 *
 * @param timeout_ms  how long to wait; 0: try once
 * @param drop        called for what is left in rings; NULL: it is freed
 *
 * Owner:  unchanged, of frames in tx queues: mr_port_close() takes them back.
 * Thread: the one that joined the workers.
 */
MR_API void mr_dataplane_drain(struct mr_dataplane *dp, uint32_t timeout_ms,
			       mr_dataplane_drop_fn *drop, void *opaque);

/**
 * All counters of ports, workers and pool by name: mr_port_stats_text() of each
 * port, then a line per counter, such as "worker 0 rounds 12" and "pool n_free
 * 4711". The names are those in struct mr_worker_stats and struct
 * mr_pool_stats.
 *
 * @param[out] ret_text  @p n_bytes, NUL-terminated, truncated if longer
 *
 * @return length of the whole text, without the NUL
 *
 * Owner: unchanged. Thread: any.
 */
MR_API size_t mr_dataplane_text(const struct mr_dataplane *dp, char *ret_text,
				size_t n_bytes);

/**
 * The same as a JSON object: {"ports": [...], "workers": [...], "pool": {...}};
 * "ports" has what mr_port_stats_json() prints.
 *
 * @return as mr_dataplane_text(). Owner, Thread: as that.
 */
MR_API size_t mr_dataplane_json(const struct mr_dataplane *dp, char *ret_text,
				size_t n_bytes);

/**
 * Close ports and workers, without draining. The pool, and its statistics, stay
 * until mr_dataplane_close().
 *
 * Owner:  nobody, of ports and workers; dp->n_ports and n_workers are 0.
 * Thread: the one that joined the workers, or called mr_dataplane_fd().
 */
MR_API void mr_dataplane_close_ports(struct mr_dataplane *dp);

/**
 * Drain for at most a second, close ports and workers, and free everything.
 * NULL is allowed.
 *
 * @return 0, or
 *   -EBUSY  the program still has frames, or a cache or a port of its own in
 *           the pool. The reason says how many pages and where they are. Only
 *           ports and workers were closed; call again
 *
 * Owner:  on success nobody, on failure the caller.
 * Thread: as mr_dataplane_close_ports().
 */
MR_API int mr_dataplane_close(struct mr_dataplane *dp,
			      struct mr_reason *reterr_reason);

MR_END_DECLS

#endif
