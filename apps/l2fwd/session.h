/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that is open while frames are forwarded. */
#ifndef SESSION_H
#define SESSION_H

#include <millrace/millrace.h>

#include "support/dataplane.h"
#include "support/run.h"
#include "support/snapshot.h"

#include "forward.h"
#include "offload.h"
#include "options.h"

struct session {
	struct options *options; /* those in force */
	struct dataplane plane;
	struct fdb *fdb;
	struct capture *capture;
	struct offload *offload;            /* NULL: off, or at its end */
	struct offload_stats offload_stats; /* the last ones */
	struct forward_shared shared;
	int done_fd; /* readable when --count frames were received */
	struct forwarder *forwarders;
	struct run_fd fds[2]; /* for run(): done_fd, that of offload */
};

/*
 * Open all that the options ask for. Returns 0, or the exit status: 2 if the
 * command line asks for what cannot be, else 1; ret_error says why. On failure
 * nothing is left open.
 */
int session_open(struct session *session, struct options *options,
		 struct mr_reason *ret_error);

/* Also closes what dataplane_close_ports() has left. */
void session_close(struct session *session);

/* SIGHUP: read the file again; app is the session. */
void session_reload(void *app);
/* reload.c */
extern const struct settings_ops session_settings_ops;

/* What apps/support calls: see run.h. app is the session. */
const struct app_counters *session_counters(const struct session *session);
void session_each_second(void *app);
bool session_offload_event(void *app);
/* Frames arrive in the queues again; before their last counters are read. */
void session_end_offload(void *app);
void session_port_event(void *app, uint32_t port_idx, uint32_t events);
void session_polled(void *app);
void session_offload_stats(const struct session *session,
			   struct offload_stats *ret_stats);
void session_port_closing(void *app, uint32_t port_idx);
void session_port_opened(void *app, uint32_t port_idx);
/* `mrctl upgrade`: hand_over.c. */
void session_put_state(void *app, struct mr_parcel *parcel);
int session_take_state(void *app, struct mr_parcel *parcel,
		       struct mr_reason *ret_why);
/* With the array of forwarders. */
void session_drop_at_end(struct mr_worker *worker,
			 const struct mr_frame *frames, uint32_t n,
			 void *forwarders);

#endif
