/* SPDX-License-Identifier: BSD-3-Clause */
/* The forwarding loop, one struct forwarder per worker. */
#ifndef FORWARD_H
#define FORWARD_H

#include <millrace/millrace.h>

#include "support/capture.h"

#include "fdb.h"
#include "options.h"

/* Why the forwarder itself gave a frame up. Names: forward_drop_names. */
enum forward_drop {
	DROP_TX_FULL,      /* the tx queue took no more */
	DROP_HANDOFF_FULL, /* nor did the ring to the worker that owns it */
	DROP_NO_ROUTE,     /* the port has no tx queue */
	DROP_MODE,         /* mode drop */
	DROP_SAME_PORT,    /* learn: its receiver is where it came from */
	DROP_LINK_LOCAL,   /* learn: 01-80-c2-00-00-0x, not for bridges */
	DROP_RUNT,         /* learn, macswap: no whole Ethernet header */
	DROP_TOO_SHARED,   /* learn: no more owners can be counted */
	DROP_NO_PAGE,      /* macswap: shared, and no page for a copy */
	DROP_SHUTDOWN,     /* left in a hand-off ring at the end */
	N_FORWARD_DROPS,
};

/* Written by the worker, read by any thread. */
struct forward_stats {
	uint64_t bursts;                 /* rx bursts that brought something */
	uint64_t entries;                /* in them */
	uint64_t cloned;                 /* frames added by flooding */
	uint64_t flooded;                /* frames flooded */
	uint64_t merged;                 /* frames that others absorbed */
	uint64_t drops[N_FORWARD_DROPS]; /* frames */
};

/* Entries that wait to be sent to one port, within one burst. */
struct outbox {
	uint32_t n;
	struct mr_frame frames[MR_BURST_MAX];
	struct mr_meta metas[MR_BURST_MAX]; /* unused if a forwarder has none */
};

/* What all workers share. */
struct forward_shared {
	const struct options *options;
	struct mr_ctx *ctx;
	void *base;      /* of the region */
	struct fdb *fdb; /* NULL except in mode learn */
	bool has_meta;   /* of the data plane */
	/* Arguments of mr_gro(), by port, atomic. */
	uint32_t merges[MAX_PORTS], mtus[MAX_PORTS];
	uint64_t n_frames; /* atomic; counted only if there is a limit */
	uint32_t is_done;  /* atomic: the limit is reached */
	int done_fd;       /* readable then; for the main thread */
};

struct forwarder {
	_Alignas(64) struct forward_stats stats;
	_Alignas(64) struct forward_shared *shared;
	struct mr_worker *worker;
	struct recorder *recorder;       /* atomic: see capture.h */
	struct recorder *round_recorder; /* NULL: none in this round */
	bool has_extras[MAX_PORTS];      /* tx is merged or recorded */
	void *base;
	struct fdb *fdb;
	uint32_t n_burst;
	uint32_t now_s;          /* learn: the clock, read now and then */
	uint32_t n_rounds;       /* learn: since the last pause */
	struct outbox *outboxes; /* learn: by port */
	struct mr_meta *metas;   /* of frames, MR_BURST_MAX; NULL: without */
	struct mr_frame frames[MR_BURST_MAX];
};

extern const char *const forward_drop_names[N_FORWARD_DROPS];

/* Where the frames of a port go in pairs. */
static inline uint32_t forward_peer(uint32_t port)
{
	return port ^ 1;
}

/* One per worker; NULL: no memory. */
struct forwarder *forward_create(struct forward_shared *shared,
				 struct mr_workers *workers, uint32_t n);
void forward_destroy(struct forwarder *forwarders, uint32_t n);

/* Give up what is left when the workers have ended. */
void forward_drop_at_end(struct forwarder *fwd, const struct mr_frame *frames,
			 uint32_t n);

/* capture_explain_fn, with a forwarder. */
void forward_explain(void *forwarder, uint32_t port, bool is_tx,
		     const uint8_t *bytes, uint32_t n, char *ret);

/* mr_worker_fn; opaque is the array of forwarders. */
int forward_run(struct mr_worker *worker, void *opaque);

#endif
