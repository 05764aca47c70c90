/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of lib/worker.
 *
 *   topology.c  which cores there are
 *   pollers.c   who else polls on them
 *   core_map.c  who works where, on which queues: pure, no system call
 *   workers.c   create and destroy
 *   thread.c    start, stop, join
 *   handoff.c   rings between workers
 *   idle.c      the end of a round: time, completions, sleep
 *   adapt.c     how long to poll before a sleep: pure, no system call
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <millrace/ring.h>
#include <millrace/worker.h>

#include "base/base.h"

enum {
	MRI_MAX_CORES = 1024,
	MRI_MAX_PORTS = 64,
	MRI_HANDOFF_ENTRIES = 1024, /* default */
};

/* A core that may be used. */
struct mri_core {
	uint32_t id;
	int32_t numa_node;     /* -1: unknown */
	uint32_t sibling_rank; /* 0: the first allowed thread of its core */
	uint32_t n_pollers;    /* threads that keep it to themselves */
	bool has_irqs;         /* of one of the ports */
};

/* topology.c: the cores that the calling thread may use; how many. */
uint32_t mri_cores_allowed(struct mri_core *cores, uint32_t n);

/* Up to n_bytes - 1 of a file, and a NUL; how many, 0: there is none. */
size_t mri_read_text(const char *path, char *text, size_t n_bytes);

/*
 * Mark the cores that take interrupts of a port, if that is a network
 * interface: its softirqs run there. root: "", or where a test has its /proc
 * and /sys.
 */
void mri_mark_irq_cores(const char *root, const char *port_name,
			struct mri_core *cores, uint32_t n);

/* A thread that keeps a core to itself. */
struct mri_poller {
	uint32_t core;
	int32_t pid, tid;
	char name[17]; /* of its process */
};

enum { MRI_MAX_POLLERS = 256 };

/*
 * pollers.c: those that there are, but for the calling thread; how many. Reads
 * /proc, once per thread of the host, and takes 20 ms if one looks like one.
 */
uint32_t mri_find_pollers(struct mri_poller *pollers, uint32_t room);

/* What the map is made from. */
struct mri_map_port {
	const char *name;
	uint32_t n_rxqs, n_txqs;
	int32_t numa_node;
	uint32_t sends_to; /* a port, or MR_SENDS_TO_ANY */
};

struct mri_map_route {
	bool is_own;
	uint32_t owner;     /* worker; with is_own the worker itself */
	uint32_t queue_idx; /* of the tx queue; UINT32_MAX: there is none */
};

/* The map. Everything but the cores is in arrays made by mri_core_map_init. */
struct mri_core_map {
	uint32_t n_workers, n_ports;
	const struct mri_map_port *ports;
	struct mri_core cores[MR_WORKERS_MAX];
	uint32_t *first_rxq; /* n_ports + 1: place in rx_owner of queue 0 */
	uint32_t *rx_owner;  /* worker of each rx queue, port by port */
	struct mri_map_route *routes; /* n_workers * n_ports */
};

/*
 * Choose n cores for the rx queues of the ports: first those on which nobody
 * polls; of them nodes in proportion to their rx queues; within a node whole
 * cores before second threads, those without interrupts of the ports first, and
 * core 0 last, where kernels do their housekeeping.
 */
void mri_pick_cores(const struct mri_core *allowed, uint32_t n_allowed,
		    const struct mri_map_port *ports, uint32_t n_ports,
		    struct mri_core *picked, uint32_t n);

/* map->n_workers, n_ports, ports and cores are set. -ENOMEM. */
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
	struct mr_txq *txq;
};

/*
 * What an adaptive worker has learned. Bucket b has the gaps of up to 2^b us,
 * the last one all longer ones.
 */
enum { MRI_GAP_BUCKETS = 13 };

struct mri_adapt {
	uint64_t limit_ns; /* poll so long after the last work */
	bool is_spent;     /* the share of CPU is used up: do not poll */
	uint32_t n_new;    /* gaps since all were halved */
	uint64_t n_gaps[MRI_GAP_BUCKETS], sum_ns[MRI_GAP_BUCKETS];
	uint64_t wake_ns; /* delay of a wake-up, the mean of some */
	uint64_t last_ns;
	int64_t credit_ns;
	uint32_t cpu_percent;
};

/* adapt.c. Times are of any clock that runs evenly. */
void mri_adapt_begin(struct mri_adapt *a, uint64_t now_ns,
		     uint32_t cpu_percent);
/* Work came after gap_ns. n_slept_for: its frames if it ended a sleep, else 0.
 */
void mri_adapt_gap(struct mri_adapt *a, uint64_t gap_ns, uint32_t n_slept_for);
/* A sleep ended so long after it should have. */
void mri_adapt_wake(struct mri_adapt *a, uint64_t late_ns);
/* The time is now_ns; of the time since the last call the worker slept
 * asleep_ns. */
void mri_adapt_time(struct mri_adapt *a, uint64_t now_ns, uint64_t asleep_ns);

struct mri_worker {
	_Alignas(MRI_CACHE_LINE) struct mr_worker base;
	/* Its own, written each round. */
	_Alignas(MRI_CACHE_LINE) struct mr_worker_stats stats;
	uint64_t stamp_ns;  /* up to here time is counted */
	uint64_t worked_ns; /* end of the last round that moved something */
	uint32_t n_empty;   /* empty rounds in a row */
	uint32_t tick_ms;   /* longest next sleep */
	bool has_slept;     /* since the last work */
	uint32_t slack_ns;  /* that the kernel adds to a sleep */
	struct mri_adapt adapt;
	bool is_stuck; /* a tx queue did not take all of an inbound ring */
	/* Set before a sleep, taken by whoever wakes it. */
	_Alignas(MRI_CACHE_LINE) uint32_t is_asleep; /* atomic */
	uint32_t is_called; /* atomic: mr_worker_wake() since the last sleep */
	/* Cold. */
	_Alignas(MRI_CACHE_LINE) struct mri_inbound *inbounds;
	struct mr_txq **txqs; /* its own */
	uint32_t n_inbounds, n_txqs;
	struct pollfd *fds; /* wake_fd, then those of the rx queues */
	uint32_t n_fds;
	int wake_fd;
	bool has_fdless_rxq; /* one that cannot wake it */
	bool is_running;
	uint32_t has_ended; /* atomic */
	int result;
	pthread_t thread;
};

struct mr_workers {
	struct mr_ctx *ctx;
	uint32_t n_workers, n_ports, n_handoff_entries;
	enum mr_idle_mode idle;
	uint32_t cpu_percent;
	mr_worker_fn *fn;
	void *opaque;
	pthread_mutex_t starting; /* held until all have, or one cannot */
	bool has_started;         /* all; under it */
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

/* handoff.c */
int mri_handoff_init(struct mr_workers *workers,
		     struct mr_reason *reterr_reason);
void mri_handoff_fini(struct mr_workers *workers);
bool mri_handoff_is_empty(const struct mri_worker *worker);

/* idle.c */
int mri_idle_init(struct mri_worker *worker, struct mr_reason *reterr_reason);
void mri_idle_fini(struct mri_worker *worker);
void mri_idle_begin(struct mri_worker *worker);
/* Let a worker that sleeps, or is about to, look again. Any thread. */
void mri_idle_wake(struct mri_worker *worker);

#endif
