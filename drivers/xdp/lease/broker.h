/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The AF_XDP driver's interface for mr-brokerd: it answers one client's
 * requests. The daemon handles connections and rules. The driver (server.c)
 * checks and executes the requests, with the same code as for ports without a
 * broker. wire.h defines the messages.
 */
#ifndef XDP_LEASE_BROKER_H
#define XDP_LEASE_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <millrace/driver.h>

#include "program/filter.h"

#define XDP_BROKER_PATH "/run/millrace/broker.sock"

enum {
	XDP_BROKER_MAX_BYTES = 65536, /* of a message */
	XDP_BROKER_MAX_FDS = 64 + 8,  /* XDP_MAX_QUEUES + XDP_LEASE_N_FDS */
};

/* What a client may use of an interface. */
struct xdp_grant {
	uint32_t first_queue, n_queues;
	uint64_t n_bytes_left; /* of memory to register */
	uint64_t max_bytes;    /* for the message */
	bool may_transmit, may_force, may_set, may_rss, may_steer;
	const struct xdp_filter *filter; /* only these frames; NULL: all */
};

/* Fill in the grant: 0, or -EPERM with a reason. */
typedef int xdp_allow_fn(void *opaque, const char *interface,
			 struct xdp_grant *ret_grant,
			 struct mr_reason *reterr_reason);

struct xdp_answer {
	size_t n_bytes;
	uint32_t n_fds;
	int fds[XDP_BROKER_MAX_FDS]; /* the caller closes them */
	_Alignas(8) uint8_t bytes[4096];
};

/* The broker's state for one client. */
struct xdp_served;

/* NULL: no memory. */
struct xdp_served *mri_xdp_served_create(struct mr_ctx *ctx,
					 xdp_allow_fn *allow, void *opaque);
/*
 * Answer a request. The caller keeps the fds. *ret_answer is always set.
 * -EPROTO: not a valid request; end the connection after the answer.
 */
int mri_xdp_serve(struct xdp_served *served, const void *request,
		  size_t n_bytes, const int *fds, uint32_t n_fds,
		  struct xdp_answer *ret_answer);
/* An answer that has only an error or 0. */
void mri_xdp_answer_error(struct xdp_answer *ret_answer, int err,
			  const struct mr_reason *reason);
/* Memory registered for it; 0: it has no port. */
uint64_t mri_xdp_served_bytes(const struct xdp_served *served);
/* Send a message with fds: 0 or -errno. */
int mri_xdp_send(int fd, const void *bytes, size_t n_bytes, const int *fds,
		 uint32_t n_fds);
/*
 * Receive one, with at most XDP_BROKER_MAX_FDS fds, which the caller then owns,
 * even if the message is invalid. Returns the bytes, 0 at the end, 1 if
 * something was truncated, or -errno.
 */
ssize_t mri_xdp_receive(int fd, void *bytes, size_t n_bytes, int *ret_fds,
			uint32_t *ret_n_fds);
/* Restore the settings changed for the client. */
void mri_xdp_served_destroy(struct xdp_served *served);

#endif
