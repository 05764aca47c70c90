/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of ours as the peer: harness->far. Members of a fixture. */
#ifndef CONFORMANCE_FAR_PORT_H
#define CONFORMANCE_FAR_PORT_H

#include "harness.h"

struct far_port;

/*
 * Open spec as the peer, on a pool that it does not own. It sends through its
 * first n_txqs queues in turn. NULL, with the reason: not possible.
 */
struct far_port *far_port_open(struct mr_ctx *ctx, struct mr_pool *pool,
			       const char *spec, uint32_t n_txqs,
			       struct mr_reason *why);
void far_port_close(struct far_port *far);
struct mr_port *far_port_get(const struct far_port *far);

bool far_port_inject(struct harness *harness, const uint8_t *bytes,
		     uint32_t n_bytes);
uint32_t far_port_collect(struct harness *harness, uint8_t *bytes,
			  uint32_t room);

#endif
