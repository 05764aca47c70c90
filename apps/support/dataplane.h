/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data plane of a program: <millrace/dataplane.h>, with log lines to stderr,
 * the specs of a user, exit statuses, and workers that can be paused. The
 * application decides what workers do with frames.
 */
#ifndef SUPPORT_DATAPLANE_H
#define SUPPORT_DATAPLANE_H

#include <millrace/millrace.h>

#include "options.h"
#include "specs.h"

enum { MAX_PORTS = 32, MAX_METRICS_BYTES = 128 };

/* Zero is the default, except of program, specs, n_ports, burst, page_bytes. */
struct dataplane_config {
	const char *program;         /* prefix of log lines; constant */
	enum mr_log_level log_level; /* for lines to stderr */
	const char *const *specs;    /* by port, as given by the user */
	uint32_t n_ports;
	struct port_options port; /* of all ports */
	uint32_t n_workers;       /* 0: the queues of a port, or n_cores */
	bool may_be_fewer;        /* n_workers is a maximum: see
				   * mr_workers_config */
	uint32_t n_cores;         /* 0: any */
	uint32_t cores[MR_WORKERS_MAX];
	uint32_t burst;   /* entries; must suffice for the ports' frames */
	uint32_t n_pages; /* of the pool; 0: as needed */
	/* Held by the application itself: in queues, in reassembly. */
	uint32_t n_kept_pages;
	uint32_t page_bytes;
	enum mr_safety safety;
	enum mr_idle_mode idle;
	uint32_t handoff_entries; /* of each ring; 0: 1024 */
	/* The port that each port's frames go to, or MR_SENDS_TO_ANY; NULL:
	 * any, for all. Only read by dataplane_open(). */
	const uint32_t *sends_to;
	bool takes_meta; /* false: ports that merge segments are refused */
	/* From a file: where to serve metrics, as for metrics_open(); "":
	 * nowhere. dataplane_open() ignores it. */
	char metrics[MAX_METRICS_BYTES];
};

/* Read-only for callers; must not move. */
struct dataplane {
	const char *program;
	enum mr_log_level log_level;
	struct mr_dataplane *open;
	/* Parts of it: */
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	uint32_t n_pages; /* of the pool */
	struct mr_port *const *ports;
	char specs[MAX_PORTS][MAX_SPEC_BYTES]; /* as they were opened */
	uint64_t n_reopened[MAX_PORTS];
	uint32_t n_ports;
	struct mr_workers *workers; /* not started */
	enum mr_idle_mode idle;     /* of them */
	uint32_t n_workers;
	/* Frames of a port need their metadata: segments are merged
	 * (MR_OFFLOAD_LRO) or tags are not in the frame. */
	bool has_meta;
	/* Another process has it until upgrade_take(): leave devices alone. */
	bool is_taken_over;
	bool has_filter; /* ports were opened with the filter port.punt */
};

/*
 * Open everything. Returns 0, or an exit status: 2 if the configuration cannot
 * be satisfied, else 1, with ret_error. On failure nothing is left open.
 */
int dataplane_open(struct dataplane *plane,
		   const struct dataplane_config *config,
		   struct mr_reason *ret_error);

/* How long to drain after the workers have ended. */
enum { DATAPLANE_DRAIN_MS = 1000 };

/*
 * Wait up to 5 s until all workers have ended, like mr_workers_join(). The
 * message of -ETIMEDOUT says what blocks the worker, and the remedy.
 */
enum { DATAPLANE_JOIN_MS = 5000 };

int dataplane_join(struct dataplane *plane, struct mr_reason *ret_error);
/* What blocks a worker's thread, and the remedy; "": no such thread. */
void dataplane_why_stuck(uint32_t worker_idx, char *ret, size_t n);

/*
 * For adding queues or opening ports again. dataplane_pause() ends the workers,
 * and sends or drop()s the frames in hand-off rings; dataplane_resume() gives
 * the workers the queues that exist now, and starts them. Both return 0, or an
 * error with a reason: -ETIMEDOUT if a worker still runs; after another -errno,
 * the workers can only be destroyed.
 */
int dataplane_pause(struct dataplane *plane, mr_dataplane_drop_fn *drop,
		    void *opaque, struct mr_reason *ret_error);
int dataplane_resume(struct dataplane *plane, mr_worker_fn *work, void *opaque,
		     struct mr_reason *ret_error);

/*
 * Close ports and workers; the pool stays, for inspection, until
 * dataplane_close(), which also closes what is still open. If pages are missing,
 * this is -EBUSY with a reason, and the pool stays for good.
 */
void dataplane_close_ports(struct dataplane *plane);
int dataplane_close(struct dataplane *plane, struct mr_reason *ret_error);

/* The tick of workers that count seconds. */
static inline uint32_t dataplane_now_s(const struct dataplane *plane)
{
	return (uint32_t)(mr_ctx_now_ns(plane->ctx) / 1000000000u);
}

/* Set what idle workers do, and which log lines go to stderr. */
void dataplane_set_idle(struct dataplane *plane, enum mr_idle_mode idle);
void dataplane_set_log(struct dataplane *plane, enum mr_log_level level);

/*
 * Change the filter of frames that the kernel keeps, on all ports that were
 * opened with the filter "before", or on none; "": it keeps none. specs are
 * those with which the ports were opened. Returns 0, or -errno with a reason.
 */
int dataplane_set_punt(struct dataplane *plane, const char *const *specs,
		       const char *before, const char *next,
		       struct mr_reason *ret_error);
/* The same on one port, which was opened again with the filter of the start. */
int dataplane_set_port_punt(struct dataplane *plane, uint32_t p,
			    const char *spec, const char *filter,
			    struct mr_reason *ret_error);

/* Print a port, its mode, and why not a better one, to stderr. */
void dataplane_print_port(const struct mr_port_info *info);
/* Print what was opened, and the core map, to stderr. */
void dataplane_print_map(const struct dataplane *plane);

/* Names of idle modes and log levels; NULL ends them. */
extern const char *const dataplane_idle_words[], *const dataplane_log_words[];

/* Check that options are consistent: PARSE_RUN or PARSE_WRONG. */
enum parse_result dataplane_check_options(const struct dataplane_config *config,
					  struct mr_reason *ret_error);

#endif
