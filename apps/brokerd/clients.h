/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of mr-brokerd. */
#ifndef BROKERD_CLIENTS_H
#define BROKERD_CLIENTS_H

#include <poll.h>
#include <stdatomic.h>

#include "rules.h"

enum {
	CLIENTS_MAX = 1024,
	CLIENTS_MAX_IDLE = 32, /* without a port, of one user */
	CLIENTS_IDLE_MS = 30000,
	CLIENTS_MAX_CLOSINGS = 64, /* requests with fds that are not memory */
	CLIENTS_CLOSING_MS = 20,
};

struct client;

/* Fds that a thread closes. */
struct closing {
	atomic_bool is_busy;
	uid_t uid;
	uint32_t n;
	int fds[XDP_BROKER_MAX_FDS];
};

struct clients {
	struct mr_ctx *ctx;
	const struct rules *rules;
	struct client *clients[CLIENTS_MAX];
	uint32_t n;
	struct closing closings[CLIENTS_MAX_CLOSINGS];
};

/* Accept pending connections. False: without fds, they have to wait. */
bool clients_accept(struct clients *clients, int listener);
/* Fill in fds for poll(2). Returns the timeout in ms, or -1 for none. */
int clients_poll(const struct clients *clients, struct pollfd *fds);
/* Serve the clients that poll(2) found; end those idle for too long. */
void clients_serve(struct clients *clients, const struct pollfd *fds);

#endif
