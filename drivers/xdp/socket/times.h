/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch times, and times of sent frames. */
#ifndef XDP_SOCKET_TIMES_H
#define XDP_SOCKET_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "uapi.h"

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
	uint32_t asks;         /* MR_META_* that frames may ask for */
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

/*
 * How many bytes before each entry to use for the device's features: at most
 * the headroom.
 */
uint32_t mri_xdp_request_bytes(const struct xdp_port *port, bool is_zc,
			       uint64_t features);
/* Once the queues are bound: set what they may ask for, allocate the times. */
int mri_xdp_times_open(struct xdp_port *port, struct mr_reason *reterr_reason);
/* The same for a queue that is added. */
int mri_xdp_times_open_queue(struct xdp_port *port, uint32_t i,
			     struct mr_reason *reterr_reason);
/* Request the time of a frame. */
void mri_xdp_times_ask(struct xdp_txq *txq, const struct mr_meta *meta,
		       struct xdp_tx_request *request);
/* Note the times of the oldest n entries, completed but not yet freed. */
void mri_xdp_times_note(struct xdp_txq *txq, uint32_t n);
uint32_t mri_xdp_times_take(struct mr_txq *base, struct mr_meta *ret_metas,
			    uint32_t n);

#endif
