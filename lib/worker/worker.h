/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of lib/worker.
 *
 *   topology.c  which cores there are
 *   pollers.c   other threads that poll on them
 *   core_map.c  assigns workers to cores and queues: no system calls
 *   workers.c   create and destroy
 *   thread.c    start, stop, join; threads of the caller
 *   handoff.c   rings between workers
 *   idle.c      the end of a round: time, completions, sleep
 *   adapt.c     how long to poll before sleeping: no system calls
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <millrace/ring.h>
#include <millrace/worker.h>
#include <millrace/worker_loop.h>

#include "base/base.h"

enum {
	MRI_MAX_CORES = 1024,
	MRI_MAX_PORTS = 64,
	MRI_HANDOFF_ENTRIES = 1024, /* default */
};

/* An available core. */
struct mri_core {
	uint32_t id;
	int32_t numa_node;     /* -1: unknown */
	uint32_t sibling_rank; /* 0: the first allowed thread of its core */
	uint32_t n_pollers;    /* threads that monopolize it */
	bool has_irqs;         /* of one of the ports */
};

/* topology.c: the cores that the calling thread may use. Returns how many. */
uint32_t mri_cores_allowed(struct mri_core *cores, uint32_t n);

/* Read a file, up to n_bytes - 1, and add a NUL. Returns how many, or 0. */
size_t mri_read_text(const char *path, char *text, size_t n_bytes);

/*
 * Mark the cores that take interrupts of a port, if it is a network interface:
 * its softirqs run there. root: "", or a test's directory with /proc and /sys.
 */
void mri_mark_irq_cores(const char *root, const char *port_name,
			struct mri_core *cores, uint32_t n);

/* A thread that monopolizes a core. */
struct mri_poller {
	uint32_t core;
	int32_t pid, tid;
	char name[17]; /* of its process */
};

enum { MRI_MAX_POLLERS = 256 };

/*
 * pollers.c: all except the calling thread. Returns how many. Reads /proc once
 * per thread of the host, and takes 20 ms if a thread looks like one.
 */
uint32_t mri_find_pollers(struct mri_poller *pollers, uint32_t room);

struct mri_map_port {
	const char *name;
	uint32_t n_rxqs, n_txqs;
	int32_t numa_node;
	uint32_t sends_to; /* a port, or MR_SENDS_TO_ANY */
};

struct mri_map_route {
	bool is_own;
	uint32_t owner;     /* worker; if is_own, the worker itself */
	uint32_t queue_idx; /* of the tx queue; UINT32_MAX: none */
};

/* mri_core_map_init allocates all arrays except the cores. */
struct mri_core_map {
	uint32_t n_workers, n_ports;
	const struct mri_map_port *ports;
	struct mri_core cores[MR_WORKERS_MAX];
	uint32_t *first_rxq; /* n_ports + 1: index in rx_owner of queue 0 */
	uint32_t *rx_owner;  /* worker of each rx queue, port by port */
	struct mri_map_route *routes; /* n_workers * n_ports */
};

/*
 * Choose n cores for the rx queues of the ports: first those without pollers;
 * among them nodes in proportion to their rx queues; within a node whole cores
 * before second threads, cores without interrupts of the ports first, and core
 * 0 last, where kernels do their housekeeping.
 */
void mri_pick_cores(const struct mri_core *allowed, uint32_t n_allowed,
		    const struct mri_map_port *ports, uint32_t n_ports,
		    struct mri_core *picked, uint32_t n);

/* Call with n_workers, n_ports, ports and cores set. -ENOMEM. */
int mri_core_map_init(struct mri_core_map *map, const struct mr_ctx *ctx);
void mri_core_map_fini(struct mri_core_map *map, const struct mr_ctx *ctx);
void mri_core_map_line(const struct mri_core_map *map, uint32_t worker,
		       char *text, uint32_t n_bytes);

static inline struct mri_map_route *
mri_map_route(const struct mri_core_map *map, uint32_t worker, uint32_t port)
{
	return &map->routes[worker * map->n_ports + port];
}

/* A ring that ends at a tx queue of this worker. */
struct mri_inbound {
	struct mr_ring_spsc *ring;
	struct mr_ring_spsc *metas; /* META_ENTRIES for each entry, or NULL */
	struct mr_txq *txq;
};

/*
 * What an adaptive worker has learned. Bucket b counts gaps of up to 2^b us,
 * the last one all longer ones.
 */
enum { MRI_GAP_BUCKETS = 13 };

struct mri_adapt {
	uint64_t limit_ns; /* how long to poll after the last work */
	uint32_t n_new;    /* gaps since all counts were halved */
	uint64_t n_gaps[MRI_GAP_BUCKETS], sum_ns[MRI_GAP_BUCKETS];
	uint64_t wake_ns; /* mean delay of a wake-up */
};

/* adapt.c */
void mri_adapt_begin(struct mri_adapt *a);
/* Work came after gap_ns. n_slept_for: frames that ended a sleep, else 0. */
void mri_adapt_gap(struct mri_adapt *a, uint64_t gap_ns, uint32_t n_slept_for);
/* A sleep ended this much too late. */
void mri_adapt_wake(struct mri_adapt *a, uint64_t late_ns);

struct mri_worker {
	_Alignas(MRI_CACHE_LINE) struct mr_worker base;
	/* Used only by the worker, each round. */
	_Alignas(MRI_CACHE_LINE) struct mr_worker_stats stats;
	uint64_t stamp_ns;  /* time is counted up to here */
	uint64_t worked_ns; /* end of the last round with work */
	uint32_t n_empty;   /* empty rounds in a row */
	uint32_t tick_ms;   /* maximum of the next sleep */
	bool has_slept;     /* since the last work */
	uint32_t slack_ns;  /* added to a sleep by the kernel */
	uint32_t sleep_ms;  /* maximum of this sleep */
	uint64_t slept_from_ns;
	struct mri_adapt adapt;
	bool is_stuck; /* a tx queue did not take all of an inbound ring */
	/* Set before a sleep, cleared by the waker. */
	_Alignas(MRI_CACHE_LINE) uint32_t is_asleep; /* atomic */
	uint32_t is_called; /* atomic: mr_worker_wake() since the last sleep */
	/* Cold. */
	_Alignas(MRI_CACHE_LINE) struct mri_inbound *inbounds;
	struct mr_txq **txqs; /* its own */
	uint32_t n_inbounds, n_txqs;
	struct pollfd *fds; /* wake_fd, then those of the rx queues */
	uint32_t n_fds;
	int wake_fd;
	int epoll_fd;        /* of fds; -1: not created yet */
	bool has_fdless_rxq; /* of a queue that cannot wake it */
	bool is_running;     /* on a thread of the library */
	uint32_t is_taken;   /* atomic: has a thread, of any kind */
	uint32_t has_ended;  /* atomic */
	int result;
	pthread_t thread;
};

struct mr_workers {
	struct mr_ctx *ctx;
	uint32_t n_workers, n_ports, n_handoff_entries;
	enum mr_idle_mode idle;
	bool has_meta; /* of hand-off rings */
	mr_worker_fn *fn;
	void *opaque;
	pthread_mutex_t starting; /* held until all have, or one failed */
	bool has_started;         /* all; under the lock */
	struct mr_port **ports;
	struct mri_map_port *map_ports;
	struct mr_port_info *infos;
	struct mri_core_map map;
	struct mri_worker *workers;
	_Alignas(MRI_CACHE_LINE) uint32_t is_stopping; /* atomic */
};

static inline struct mri_worker *mri_worker_of(const struct mr_worker *base)
{
	return (struct mri_worker *)base;
}

/* workers.c: add those of another process, before the worker starts. */
void mri_worker_add_stats(struct mri_worker *worker,
			  const struct mr_worker_stats *stats);

/* handoff.c */
int mri_handoff_init(struct mr_workers *workers,
		     struct mr_reason *reterr_reason);
void mri_handoff_fini(struct mr_workers *workers);
bool mri_handoff_is_empty(const struct mri_worker *worker);

/* idle.c */
int mri_idle_init(struct mri_worker *worker, struct mr_reason *reterr_reason);
void mri_idle_fini(struct mri_worker *worker);
void mri_idle_begin(struct mri_worker *worker);
/* Collect completions of all tx queues. */
void mri_idle_flush(struct mri_worker *worker);
/* Make a worker that sleeps, or is about to, look again. Any thread. */
void mri_idle_wake(struct mri_worker *worker);

#endif
