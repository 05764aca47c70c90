/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of lib/dataplane.
 *
 *   size.c  how many pages, and how large the workers' magazines are
 *   open.c  open and close
 *   hand_over.c, take_over.c  give all of it to another process
 *   recover.c  what the next process needs if this one is killed
 *   run.c   the rounds of workers, in both forms; drain
 *   text.c  counters by name
 */
#ifndef DATAPLANE_DATAPLANE_H
#define DATAPLANE_DATAPLANE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/dataplane.h>
#include <millrace/driver.h>
#include <millrace/pool.h>

#include "base/base.h"
#include "base/parcel.h"
#include "worker/worker.h"

/* One word, shared by both processes, says whose the data plane is. */
enum mri_owner {
	MRI_OWNER_OLD,
	MRI_OWNER_OFFERED, /* to the new process; the old one has stopped */
	MRI_OWNER_NEW,
};

/* While it goes from one process to another. */
struct mri_hand_over {
	int socket_fd;            /* of the other process; -1: none */
	int owner_fd;             /* memory of owner */
	bool is_ready;            /* the new process asked for the state */
	uint32_t *owner;          /* atomic, enum mri_owner; NULL: none */
	struct mr_parcel *offer;  /* received, of what is opened; or NULL */
	struct mr_parcel *parcel; /* the state: received, or with memory for
				   * what will be sent; or NULL */
};

struct mri_dataplane {
	struct mr_dataplane base;
	struct mri_hand_over hand;
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

/*
 * open.c: as mr_dataplane_open(), with pool and ports from a parcel unless it
 * is NULL.
 */
int mri_dataplane_make(const struct mr_dataplane_config *caller_config,
		       struct mr_parcel *parcel, struct mr_dataplane **ret_dp,
		       struct mr_reason *reterr_reason);

/* hand_over.c: what both sides need. */
enum {
	MRI_HAND_FORMAT = 1,      /* that is written */
	MRI_HAND_OLDEST = 1,      /* that is read */
	MRI_HAND_WAIT_MS = 10000, /* for the next parcel */
	MRI_HAND_OWNER_MS = 2000, /* for the new process to take it */
	MRI_HAND_DRAIN_MS = 5,    /* of tx rings */
	MRI_HAND_OWNER_BYTES = 4096,
};
/* Whether ports and pages belong to the other process. */
void mri_dataplane_set_away(struct mri_dataplane *dp, bool is_away);

/* A parcel with one entry: a question, an answer, or "why" with a reason. */
int mri_hand_say(const struct mr_ctx *ctx, int socket_fd, const char *name,
		 uint32_t layout, const void *bytes, size_t n_bytes,
		 struct mr_reason *reterr_reason);
/* As mri_parcel_receive(); -ECANCELED: the other side said why. */
int mri_hand_hear(const struct mr_ctx *ctx, int socket_fd, int timeout_ms,
		  struct mr_parcel **ret_parcel,
		  struct mr_reason *reterr_reason);
/* Send memory and ports; what of a port, put_port() says. */
typedef int mri_hand_port_fn(struct mr_port *port, uint32_t i,
			     struct mr_parcel *parcel,
			     struct mr_reason *reterr_reason);
int mri_hand_send_offer(const struct mri_dataplane *dp,
			mri_hand_port_fn *put_port, int socket_fd,
			struct mr_reason *reterr_reason);
/* take_over.c: copy the configuration; if it has no context, with one of its
 * own, which the caller then owns. */
int mri_hand_copy_config(const struct mr_dataplane_config *caller_config,
			 struct mr_dataplane_config *ret_config,
			 struct mr_ctx **ret_own_ctx,
			 struct mr_reason *reterr_reason);
/* take_over.c: whether an offer has this format, and as many ports. */
int mri_hand_check_offer(const struct mr_parcel *parcel,
			 const struct mr_dataplane_config *config,
			 struct mr_reason *reterr_reason);
/* Map the owner's word of owner_fd. 0 or -errno. */
int mri_hand_map(struct mri_hand_over *hand);
/* Close and unmap all of it. */
void mri_hand_close(struct mri_hand_over *hand);

/* recover.c: forget what was kept, for good. */
void mri_dataplane_end_keep(struct mri_dataplane *dp);

/* run.c: stop and join the threads that mr_dataplane_step() started. */
int mri_dataplane_end_threads(struct mri_dataplane *dp);

/* "NAME: why", unless the reason has the name already. Returns err. */
int mri_dataplane_fail_port(int err, const char *spec,
			    const struct mr_reason *why,
			    struct mr_reason *reterr_reason);

#endif
