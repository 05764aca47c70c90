/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that is open while frames are forwarded. */
#ifndef SESSION_H
#define SESSION_H

#include <millrace/millrace.h>

#include "support/dataplane.h"
#include "support/snapshot.h"

#include "forward.h"
#include "options.h"

struct session {
	const struct options *options;
	struct dataplane plane;
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
 * After the workers have ended, as dataplane_drain(): what no queue took is
 * dropped, and counted.
 */
void session_drain(struct session *session);

/* Also closes what dataplane_close_ports() has left. */
void session_close(struct session *session);

/* What is counted; the session is what snapshot_take() wants as app. */
const struct app_counters *session_counters(const struct session *session);

#endif
