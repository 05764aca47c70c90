/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What forwards frames: a context, a pool that is large enough, the ports and
 * the workers that share their queues. Opened in this order, closed in the
 * other one. What the workers do with frames is the application's.
 */
#ifndef SUPPORT_DATAPLANE_H
#define SUPPORT_DATAPLANE_H

#include <millrace/millrace.h>

#include "options.h"
#include "specs.h"

enum { MAX_PORTS = 32 };

/* Zero is the default, but of program, specs, n_ports, burst, page_bytes. */
struct dataplane_config {
	const char *program;         /* in front of lines of log; constant */
	enum mr_log_level log_level; /* of the lines that go to stderr */
	const char *const *specs;    /* by port, as the user wrote them */
	uint32_t n_ports;
	struct port_options port; /* of all ports */
	uint32_t n_workers;       /* 0: the queues of a port, or n_cores */
	bool may_be_fewer;        /* n_workers is the most: mr_workers_config */
	uint32_t n_cores;         /* 0: any */
	uint32_t cores[MR_WORKERS_MAX];
	uint32_t burst;   /* entries, checked against the ports' frames */
	uint32_t n_pages; /* of the pool; 0: what is needed */
	/* That the application itself keeps: in queues, in reassembly. */
	uint32_t n_kept_pages;
	uint32_t page_bytes;
	enum mr_safety safety;
	enum mr_idle_mode idle;
	uint32_t cpu_percent;     /* of a core, at most, if adaptive; 0: 100 */
	uint32_t handoff_entries; /* of each ring; 0: 1024 */
	/* Port that the frames of each port go to, or MR_SENDS_TO_ANY; NULL:
	 * any, all. Read by dataplane_open() only. */
	const uint32_t *sends_to;
};

/* For reading; the functions below write it. It may not move. */
struct dataplane {
	const char *program;
	enum mr_log_level log_level;
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	uint32_t n_pages; /* of the pool */
	struct mr_port *ports[MAX_PORTS];
	uint32_t n_ports;
	struct mr_workers *workers; /* not started */
	uint32_t n_workers;
};

/*
 * Open all. Returns 0, or the exit status: 2 if the configuration asks for what
 * cannot be, else 1; ret_error says why. On failure nothing is left open.
 */
int dataplane_open(struct dataplane *plane,
		   const struct dataplane_config *config,
		   struct mr_reason *ret_error);

/* Drop what is left in a ring, with a counter for it, and free the pages. */
typedef void dataplane_drop_fn(void *opaque, struct mr_worker *worker,
			       const struct mr_frame *frames, uint32_t n);

/*
 * After the workers have ended: send what is in hand-off rings and tx queues,
 * for at most a second. What is left in rings is handed to drop().
 */
void dataplane_drain(struct dataplane *plane, dataplane_drop_fn *drop,
		     void *opaque);

/*
 * Wait up to 5 s until all workers have ended, as mr_workers_join(). The line
 * of -ETIMEDOUT says what keeps the worker, and the remedy.
 */
enum { DATAPLANE_JOIN_MS = 5000 };

int dataplane_join(struct dataplane *plane, struct mr_reason *ret_error);
/* What keeps a worker's thread, and the remedy; "": there is no such thread. */
void dataplane_why_stuck(uint32_t worker_idx, char *ret, size_t n);

/*
 * Close ports and workers; the pool stays, to be looked at, until
 * dataplane_close(), which also closes what is open.
 */
void dataplane_close_ports(struct dataplane *plane);
void dataplane_close(struct dataplane *plane);

/* A port, its mode, and why not a better one: a line on stderr. */
void dataplane_print_port(const struct mr_port_info *info);
/* What was opened and who works where, on stderr. */
void dataplane_print_map(const struct dataplane *plane);

/*
 * Options that fill the configuration, for the tables of applications: those
 * that an application offers have these ids there, with its own help.
 */
enum {
	OPTION_CORES = 'c',
	OPTION_WORKERS = 'w',
	OPTION_BURST = OPTION_LONG + 101,
	OPTION_IDLE,
	OPTION_MTU,
	OPTION_PAGE_BYTES,
	OPTION_POOL_PAGES,
	OPTION_PROMISC,
	OPTION_QUEUES,
	OPTION_RING,
	OPTION_SAFETY,
	OPTION_MAX_CPU,
};

/* Take one of them. */
enum parse_result dataplane_take_option(const struct option_row *row,
					const char *arg,
					struct dataplane_config *config,
					struct mr_reason *ret_error);

/* Whether they go together: PARSE_RUN or PARSE_WRONG. */
enum parse_result dataplane_check_options(const struct dataplane_config *config,
					  struct mr_reason *ret_error);

#endif
