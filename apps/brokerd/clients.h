/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of mr-brokerd: one process each. */
#ifndef BROKERD_CLIENTS_H
#define BROKERD_CLIENTS_H

#include <stdatomic.h>

#include "rules.h"

enum {
	CLIENTS_MAX = 1024,
	CLIENTS_MAX_IDLE =
		32, /* without a port, of one user: the oldest ends */
	CLIENTS_MAX_STUCK = 64, /* the same, if they do not end: refuse more */
	CLIENTS_IDLE_MS = 30000,
};

/* Memory that all processes share. */
struct clients_shared {
	atomic_uint n_reloads; /* of the rules */
	struct {
		uid_t uid;
		_Atomic uint64_t n_bytes; /* registered; 0: no port */
	} of[CLIENTS_MAX];
};

struct client {
	struct peer peer;
	pid_t pid; /* of its process; 0: none */
	uint64_t since_ns;
	bool is_ending; /* SIGTERM has been sent */
};

struct clients {
	struct mr_ctx *ctx;
	const char *rules_path;
	struct rules rules;
	uint32_t n_reloads; /* when these rules were read */
	struct clients_shared *shared;
	int lock_fd;  /* a byte per user: one request at a time */
	int child_fd; /* readable when a process has ended */
	int listener;
	pid_t pid; /* of the broker */
	uint32_t n;
	struct client clients[CLIENTS_MAX];
};

/* Prepare to serve connections to listener: 0 or -errno. */
int clients_open(struct clients *clients, int listener);
/* Accept pending connections. False: there is no room; try again later. */
bool clients_accept(struct clients *clients);
/* Forget clients whose process has ended. */
void clients_reap(struct clients *clients);
/* Read the rules again, or keep the old ones and say why. */
void clients_reload(struct clients *clients);

/* session.c: */

/* Serve clients->clients[i] at fd until its end, in a process of its own. */
void session_run(struct clients *clients, uint32_t i, int fd);
/* Send a client its first message. err < 0: it is refused. */
int session_greet(int fd, int err, const struct mr_reason *why);

#endif
