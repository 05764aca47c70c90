/* SPDX-License-Identifier: BSD-3-Clause */
/* The sockets of a port: memory registration, bind modes, queues. */
#ifndef XDP_SOCKET_SOCKET_H
#define XDP_SOCKET_SOCKET_H

#include <millrace/driver.h>

struct xdp_port;

/* sockets.c */
/* One way to bind; several are tried. */
struct xdp_bind_mode {
	bool is_zc;
	uint32_t max_segs; /* 1: without SG */
};
/*
 * Sockets, registration, rings, buffers and bind of all queues. On failure
 * nothing is left; *ret_is_final tells that no other bind mode would help.
 */
int mri_xdp_sockets_open(struct xdp_port *port, struct xdp_bind_mode bind_mode,
			 bool *ret_is_final, struct mr_reason *reterr_reason);
/* Map and fill the rings of sockets that the broker made; wake the device. */
int mri_xdp_sockets_use(struct xdp_port *port, struct mr_reason *reterr_reason);
/* Map the rings of sockets that another process has filled; leave them to it.
 */
int mri_xdp_sockets_take(struct xdp_port *port, struct mr_reason *reason);
void mri_xdp_sockets_leave(struct xdp_port *port);
/* Close them in three steps: unmap and close; wait until zero-copy sockets are
 * released; take back the buffers. */
void mri_xdp_sockets_close(struct xdp_port *port);
void mri_xdp_sockets_wait(struct xdp_port *port);
void mri_xdp_sockets_take_back(struct xdp_port *port);
/* The same for queue i alone: not the first, whose memory the others share. */
int mri_xdp_socket_open(struct xdp_port *port, uint32_t i,
			struct xdp_bind_mode bind_mode, bool *ret_is_final,
			struct mr_reason *reterr_reason);
void mri_xdp_socket_close(struct xdp_port *port, uint32_t i);
/* The first and the last step of opening it: a socket with its memory and
 * rings, and the bind. */
int mri_xdp_socket_make(struct xdp_port *port, uint32_t i, bool is_zc,
			struct mr_reason *reason);
int mri_xdp_socket_bind(struct xdp_port *port, uint32_t i,
			struct xdp_bind_mode bind_mode, bool *ret_is_final,
			struct mr_reason *reason);

/* bind_modes.c */
/* Whether frames have several buffers; -EINVAL, -ENOTSUP: not with this pool */
int mri_xdp_choose_sg(const struct xdp_port *port, bool *ret_has_sg,
		      struct mr_reason *reterr_reason);
/* What requires several buffers per frame, for a message; with has_sg. */
const char *mri_xdp_sg_cause(const struct xdp_port *port);
/* Longest MTU in the mode that was reached; the device may take less. */
uint32_t mri_xdp_max_mtu(const struct xdp_port *port);
int mri_xdp_climb(struct xdp_port *port, bool has_sg,
		  struct mr_reason *reterr_reason);

/* queues.c */
/* Fill in the lease's sizes, and allocate the queues. */
int mri_xdp_queues_alloc(struct xdp_port *port, struct mr_reason *reason);
/* Allocate the queues of a lease. */
int mri_xdp_queues_take(struct xdp_port *port, struct mr_reason *reason);
void mri_xdp_queues_free(struct xdp_port *port);
int mri_xdp_add_queues(struct mr_port *base, uint32_t n,
		       struct mr_reason *reterr_reason);

/* recover.c */
struct xdp_rxq;
struct xdp_txq;
/* The positions are in the rings. */
void mri_xdp_find_positions(struct xdp_rxq *rxq, struct xdp_txq *txq);
/* Claim the buffers that the kernel has. -EPROTO: not as many as always. */
int mri_xdp_claim_posted(const struct xdp_rxq *rxq, struct mr_reason *reason);
/* Both sides, after a crash. -EPROTO: the rings contradict each other. */
int mri_xdp_recover_queue(struct xdp_port *port, uint32_t i,
			  struct mr_reason *reason);

/* busy.c */
/* Start busy polling on all queues, if the options ask for it and it helps. */
void mri_xdp_busy_open(struct xdp_port *port);
/* Ask for busy polling of a socket. False: there is none. */
bool mri_xdp_busy_poll(const struct xdp_port *port, int fd);

#endif
