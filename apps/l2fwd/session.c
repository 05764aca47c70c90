/* SPDX-License-Identifier: BSD-3-Clause */
/* What forwards, and what mr-l2fwd adds to it: forwarders and a table. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "support/text.h"

#include "session.h"

/* What to merge for a port: segments that it can cut, if it receives merged
 * ones; of a vhost port, once it has a peer. */
static uint32_t merges_for(const struct mr_port *port)
{
	struct mr_port_info info = { .size = sizeof(info) };

	mr_port_info(port, &info);
	return info.offloads & MR_OFFLOAD_LRO ?
		       info.offloads & (MR_OFFLOAD_LRO | MR_OFFLOAD_TSO4 |
					MR_OFFLOAD_TSO6 | MR_OFFLOAD_USO) :
		       0;
}

/* The MTU can change while the port is open. */
static void follow_mtu(struct session *session, uint32_t port_idx)
{
	struct mr_port_info info = { .size = sizeof(info) };

	mr_port_info(session->plane.ports[port_idx], &info);
	__atomic_store_n(&session->shared.mtus[port_idx], info.mtu_bytes,
			 __ATOMIC_RELAXED);
}

/* A port that is opened again may have another device, and a vhost port with a
 * link another peer. */
static void follow_device(struct session *session, uint32_t port_idx)
{
	__atomic_store_n(&session->shared.merges[port_idx],
			 merges_for(session->plane.ports[port_idx]),
			 __ATOMIC_RELAXED);
	follow_mtu(session, port_idx);
}

static int make_forwarders(struct session *session, struct mr_reason *ret_error)
{
	const struct options *options = session->options;
	uint64_t seed = (uintptr_t)session; /* without getrandom: some */

	if (options->mode == MODE_LEARN) {
		if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
			seed ^= mr_ctx_now_ns(session->plane.ctx);
		session->fdb =
			fdb_create(options->fdb_limit, options->age_s, seed);
		if (session->fdb == NULL)
			return fail_with(ret_error, 1,
					 "no memory for %u addresses",
					 options->fdb_limit);
	}
	session->shared = (struct forward_shared){
		.options = options,
		.ctx = session->plane.ctx,
		.base = mr_region_base(mr_pool_region(session->plane.pool)),
		.fdb = session->fdb,
		.has_meta = session->plane.has_meta,
		.done_fd = session->done_fd,
	};
	for (uint32_t p = 0; p < session->plane.n_ports; p++)
		follow_device(session, p);
	session->forwarders =
		forward_create(&session->shared, session->plane.workers,
			       session->plane.n_workers);
	if (session->forwarders == NULL)
		return fail_with(ret_error, 1, "no memory for %u workers",
				 session->plane.n_workers);
	return 0;
}

/* Add the counts of rules that were closed before. */
void session_offload_stats(const struct session *session,
			   struct offload_stats *ret_stats)
{
	*ret_stats = session->offload_stats;
	if (session->offload == NULL)
		return;
	offload_stats(session->offload, ret_stats);
	offload_add(&ret_stats->counts, &session->offload_stats.counts);
}

/* Frames that the driver has forwarded. */
static uint64_t count_offloaded(void *app)
{
	struct offload_stats stats;

	session_offload_stats(app, &stats);
	return stats.counts.attempted;
}

static int open_capture(struct session *session, struct mr_reason *ret_error)
{
	const struct capture_config config = { .plane = &session->plane,
					       .explain = forward_explain,
					       .offloaded = count_offloaded,
					       .app = session };

	session->capture = capture_create(&config);
	if (session->capture == NULL)
		return fail_with(ret_error, 1, "captures: %s",
				 mr_strerror(errno));
	for (uint32_t i = 0; i < session->plane.n_workers; i++) {
		struct forwarder *fwd = &session->forwarders[i];

		capture_attach(session->capture, i, &fwd->recorder, fwd);
	}
	return 0;
}

int session_open(struct session *session, struct options *options,
		 struct mr_reason *ret_error)
{
	struct dataplane_config plane = options->plane;
	uint32_t sends_to[MAX_PORTS];
	int status;

	*session = (struct session){ .options = options };
	session->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (session->done_fd < 0)
		return fail_with(ret_error, 1, "eventfd: %s",
				 mr_strerror(errno));
	for (uint32_t p = 0; p < plane.n_ports; p++)
		sends_to[p] = options->mode == MODE_LEARN ? MR_SENDS_TO_ANY :
			      options->mode == MODE_DROP || plane.n_ports == 1 ?
							    p :
							    forward_peer(p);
	plane.sends_to = sends_to;
	plane.takes_meta = true;
	if (plane.port.promisc == PROMISC_AUTO && options->mode != MODE_PATCH &&
	    options->mode != MODE_LEARN)
		plane.port.promisc = PROMISC_OFF;
	status = dataplane_open(&session->plane, &plane, ret_error);
	if (status == 0)
		status = make_forwarders(session, ret_error);
	if (status == 0)
		status = open_capture(session, ret_error);
	if (status == 0 && options->offload != OFFLOAD_OFF &&
	    offload_open(&session->offload, options, session->plane.ports,
			 session->plane.n_ports, session->fdb,
			 session->plane.is_taken_over, ret_error) < 0)
		status = 1;
	if (status != 0)
		session_close(session);
	return status;
}

void session_close(struct session *session)
{
	capture_destroy(session->capture);
	forward_destroy(session->forwarders, session->plane.n_workers);
	offload_close(session->offload);
	fdb_destroy(session->fdb);
	(void)dataplane_close(&session->plane, NULL);
	close(session->done_fd);
	*session = (struct session){ 0 };
}

void session_drop_at_end(struct mr_worker *worker,
			 const struct mr_frame *frames, uint32_t n,
			 void *forwarders)
{
	forward_drop_at_end((struct forwarder *)forwarders + worker->idx,
			    frames, n);
}

bool session_offload_event(void *app)
{
	const struct session *session = app;

	if (session->offload != NULL)
		offload_poll(session->offload,
			     mr_ctx_now_ns(session->plane.ctx));
	return false;
}

void session_end_offload(void *app)
{
	struct session *session = app;
	struct offload_stats last;

	if (session->offload == NULL)
		return;
	offload_stop(session->offload);
	session_offload_stats(session, &last);
	session->offload_stats = last;
	offload_close(session->offload);
	session->offload = NULL;
	session->fds[1].fd = -1;
}

void session_each_second(void *app)
{
	const struct session *session = app;

	if (session->fdb != NULL && session->offload != NULL)
		offload_refresh(session->offload);
	if (session->fdb != NULL)
		fdb_age(session->fdb, dataplane_now_s(&session->plane));
}

/* Behind a link that went down nobody is where they were. */
void session_port_event(void *app, uint32_t port_idx, uint32_t events)
{
	struct session *session = app;
	struct mr_link link = { 0 };

	if (events & (MR_PORT_EVENT_MTU | MR_PORT_EVENT_LINK))
		follow_device(session, port_idx);
	if (session->fdb != NULL && events & MR_PORT_EVENT_LINK &&
	    mr_port_link(session->plane.ports[port_idx], &link) == 0 &&
	    !link.is_up)
		fdb_forget_port(session->fdb, port_idx);
}

/* Close the rules, which cannot outlive a port. */
void session_port_closing(void *app, uint32_t port_idx)
{
	(void)port_idx;
	session_end_offload(app);
}

void session_port_opened(void *app, uint32_t port_idx)
{
	struct session *session = app;
	struct options *options = session->options;
	struct mr_reason why;

	follow_device(session, port_idx);
	if (session->plane.has_filter &&
	    dataplane_set_port_punt(&session->plane, port_idx,
				    options->plane.specs[port_idx],
				    options->plane.port.punt, &why) < 0)
		print_error("mr-l2fwd: punt: the port has the filter of the "
			    "start again: %s",
			    why.text);
	if (session->fdb != NULL)
		fdb_forget_port(session->fdb, port_idx);
	if (options->offload == OFFLOAD_OFF)
		return;
	if (offload_open(&session->offload, options, session->plane.ports,
			 session->plane.n_ports, session->fdb, false,
			 &why) < 0)
		print_error("mr-l2fwd: offload is off: %s", why.text);
	else if (session->offload != NULL)
		session->fds[1].fd = offload_fd(session->offload);
}

void session_polled(void *app)
{
	(void)session_offload_event(app);
}
