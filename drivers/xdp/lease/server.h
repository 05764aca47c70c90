/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the broker's side. */
#ifndef XDP_LEASE_SERVER_H
#define XDP_LEASE_SERVER_H

#include "lease/wire.h"

struct xdp_served {
	struct mr_ctx *ctx;
	xdp_allow_fn *allow;
	void *opaque;
	struct xdp_port *port;    /* NULL: none */
	struct mr_port_info info; /* the port's; lib/port did not open it */
	struct xdp_grant grant;   /* valid while a request is served */
	int record_fd;            /* the client's, as given to it; -1: none */
	uint32_t prog_id;         /* of the program in the client's link */
	uint32_t count_id;        /* of the map with its filter's counters */
};

struct xdp_request {
	const void *bytes; /* struct xdp_wire_*: its length is checked */
	const int *fds;
	uint32_t n_fds;
};

typedef int xdp_serve_fn(struct xdp_served *served,
			 const struct xdp_request *request,
			 struct xdp_answer *answer, struct mr_reason *reason);

/* The options of a request; prog and the like are not among them. */
static inline struct xdp_options
xdp_served_options(const struct xdp_wire_open *request)
{
	struct xdp_options options = { 0 };

	memcpy(&options, request->options, sizeof(request->options));
	return options;
}

static inline struct xdp_wire_answer *xdp_answer_body(struct xdp_answer *answer)
{
	return (struct xdp_wire_answer *)answer->bytes;
}

/* program/program.c */
/* Replace the link's program by one with port->filter and the sockets. */
int mri_xdp_prog_renew(struct xdp_port *port, struct mr_reason *reterr_reason);

/* server_open.c */
xdp_serve_fn mri_xdp_serve_find, mri_xdp_serve_open;
void mri_xdp_served_free(struct xdp_served *served);
/* An fd whose lock says that the port is open; -1: it has or needs none. */
int mri_xdp_record_for_client(struct xdp_served *served);
/* port->filter: the rule's filter, then the client's of n instructions. */
int mri_xdp_serve_filter(struct xdp_served *served,
			 const struct sock_filter *insns, uint32_t n,
			 struct mr_reason *reason);
/* The program of a link on the port's interface; 0: none. */
uint32_t mri_xdp_linked_prog(const struct xdp_port *port, int link_fd);
uint32_t mri_xdp_map_id(int map_fd); /* 0: not a map */

/* unbound.c */
/* If rings of bound sockets cannot be mapped, replace the broker's sockets by
 * unbound ones, which its client can map. */
int mri_xdp_unbound_open(struct xdp_port *port, bool is_allowed,
			 struct mr_reason *reason);
xdp_serve_fn mri_xdp_serve_bind;

/* server_set.c: for a client that has a port and the permission. */
xdp_serve_fn mri_xdp_serve_set, mri_xdp_serve_rss, mri_xdp_serve_steer,
	mri_xdp_serve_unsteer, mri_xdp_serve_new_filter;

#endif
