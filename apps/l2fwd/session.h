/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that is open while frames are forwarded. */
#ifndef SESSION_H
#define SESSION_H

#include <millrace/millrace.h>

#include "forward.h"
#include "options.h"

struct session {
	const struct options *options;
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_port *ports[MAX_PORTS];
	uint32_t n_ports;
	uint32_t n_pages; /* of the pool */
	struct mr_workers *workers;
	uint32_t n_workers;
	struct fdb *fdb;
	struct forward_shared shared;
	int done_fd; /* readable when --count frames were received */
	struct forwarder *forwarders;
};

/*
 * Open all that the options ask for. Returns 0, or the exit status: 2 if the
 * command line asks for what cannot be, else 1; ret_error says why. On failure
 * nothing is left open.
 */
int session_open(struct session *session, const struct options *options,
		 struct mr_reason *ret_error);

/*
 * After the workers have ended: send what is in hand-off rings and tx queues,
 * for at most a second. What is left in rings is dropped, and counted.
 */
void session_drain(struct session *session);

/*
 * Close ports and workers; the pool stays, to be looked at, until
 * session_close(), which also closes what is open.
 */
void session_close_ports(struct session *session);
void session_close(struct session *session);

#endif
