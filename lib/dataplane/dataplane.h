/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of lib/dataplane.
 *
 *   size.c  how many pages, and how large the workers' magazines are
 *   open.c  open and close
 *   run.c   the rounds of workers, in both forms; drain
 *   text.c  counters by name
 */
#ifndef DATAPLANE_DATAPLANE_H
#define DATAPLANE_DATAPLANE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/dataplane.h>
#include <millrace/pool.h>

#include "base/base.h"
#include "worker/worker.h"

struct mri_dataplane {
	struct mr_dataplane base;
	struct mr_port *ports[MRI_MAX_PORTS];
	bool owns_ctx;
	bool is_stopping; /* atomic: asked to, even before it runs */
	/* Of mr_dataplane_run() and _step(), for their threads: */
	mr_dataplane_fn *fn;
	void *opaque;
	/* Of worker 0: */
	bool is_attached;      /* the caller's thread, for an event loop */
	bool is_paused;        /* it returned more than 0 ms */
	bool has_threads;      /* mr_dataplane_step() started the others */
	uint32_t n_rounds;     /* busy ones since the last look at the clock */
	uint64_t ports_due_ns; /* when to poll the ports */
};

/*
 * size.c: fill in the number of pages and the size of magazines for n_workers.
 * -EINVAL: config->n_pages is too small.
 */
int mri_dataplane_size(struct mr_ctx *ctx,
		       const struct mr_dataplane_config *config,
		       uint32_t n_workers, struct mr_pool_config *pool,
		       struct mr_reason *reterr_reason);

/* run.c: stop and join the threads that mr_dataplane_step() started. */
int mri_dataplane_end_threads(struct mri_dataplane *dp);

/* "NAME: why", unless the reason has the name already. Returns err. */
int mri_dataplane_fail_port(int err, const char *spec,
			    const struct mr_reason *why,
			    struct mr_reason *reterr_reason);

#endif
