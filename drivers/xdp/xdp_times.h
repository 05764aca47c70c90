/* SPDX-License-Identifier: BSD-3-Clause */
/* When frames left. */
#ifndef XDP_TIMES_H
#define XDP_TIMES_H

#include <stdint.h>

#include "xdp_uapi.h"

struct mr_meta;
struct mr_reason;
struct mr_txq;
struct xdp_port;
struct xdp_txq;

/* When a frame left, and its mr_meta.mark. */
struct xdp_time {
	uint64_t ns;
	uint32_t mark;
};

/* The times requested from a tx queue. */
struct xdp_times {
	struct xdp_time *ring; /* not yet taken; NULL: there are no times */
	uint32_t mask, head, tail;
	uint32_t n_asked; /* frames that are not completed */
	uint32_t magic;   /* of struct xdp_tx_request */
	uint16_t clock;
};

/* Precedes a frame. The kernel ignores what follows its own part. */
struct xdp_tx_request {
	struct xsk_tx_meta kernel;
	/* With a time, which a completion of the frame brings. */
	uint32_t magic;
	uint32_t mark;
};

/* After the queues are bound: allocate room for times, if supported. */
int mri_xdp_times_open(struct xdp_port *port, struct mr_reason *reterr_reason);
/* Request the time of a frame. */
void mri_xdp_times_ask(struct xdp_txq *txq, const struct mr_meta *meta,
		       struct xdp_tx_request *request);
/* Note the times of n completed entries, before their buffers are freed. */
void mri_xdp_times_note(struct xdp_txq *txq, const uint64_t *addrs, uint32_t n);
uint32_t mri_xdp_times_take(struct mr_txq *base, struct mr_meta *ret_metas,
			    uint32_t n);

#endif
