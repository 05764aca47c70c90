/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The broker on kernels before Linux 6.4, where the rings of a bound socket
 * cannot be mapped. The client gets unbound sockets, maps and fills their
 * rings, and has the broker bind them.
 *
 * Until then, the client could bind them itself: only to this interface,
 * because they are locked to it, but to any of its queues, and with a tx ring.
 * So the rule must allow both.
 *
 * Source: linux/net/xdp/xsk.c, xsk_mmap(), xsk_bind(); "xsk: allow remap of
 * fill and/or completion rings" (6.4), "xsk: Honor SO_BINDTODEVICE on bind"
 * (6.5, 6.1.39).
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lease/server.h"
#include "socket/socket.h"
#include "xdp.h"

bool mri_xdp_can_map_bound(const struct xdp_port *port)
{
	const size_t n_bytes = 4096; /* of the ring, which is not smaller */
	void *map = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED,
			 port->lease.sockets[0], XSK_PGOFF_RX);

	if (map == MAP_FAILED)
		return errno != EBUSY;
	munmap(map, n_bytes);
	return true;
}

/* Lock a socket to the interface. An old kernel ignores the lock: then bind()
 * fails because the interface does not exist, not because of the lock. */
static int lock_to_device(const struct xdp_port *port, int fd,
			  struct mr_reason *reason)
{
	const struct xsk_address nowhere = { .family = AF_XDP,
					     .ifindex = INT32_MAX };
	const char *const name = port->dev.name;

	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name,
		       (socklen_t)strlen(name)) == 0 &&
	    bind(fd, (const struct sockaddr *)&nowhere, sizeof(nowhere)) < 0 &&
	    errno == EINVAL)
		return 0;
	return mr_fail(reason, -ENOTSUP,
		       "%s: this kernel cannot lock an AF_XDP socket to an "
		       "interface, so the broker passes none: it needs Linux "
		       "6.1.39, or 6.4 and later",
		       port->base.info->name);
}

int mri_xdp_unbound_open(struct xdp_port *port, bool is_allowed,
			 struct mr_reason *reason)
{
	const bool is_zc = port->lease.n_zc_queues > 0;
	int err = 0;

	if (mri_xdp_can_map_bound(port))
		return 0;
	if (!is_allowed)
		return mr_fail(
			reason, -EPERM,
			"%s: before Linux 6.4, the broker can serve only "
			"a rule that allows all queues of the interface, "
			"and to transmit (queues:, transmit: yes)",
			port->base.info->name);
	mri_xdp_sockets_close(port);
	mri_xdp_sockets_wait(port);
	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++) {
		err = mri_xdp_socket_make(port, i, is_zc, reason);
		if (err == 0)
			err = lock_to_device(port, port->lease.sockets[i],
					     reason);
	}
	port->lease.is_unbound = true;
	port->lease.n_zc_queues = is_zc ? port->lease.n_queues : 0;
	return err;
}

int mri_xdp_serve_bind(struct xdp_served *served,
		       const struct xdp_request *request,
		       struct xdp_answer *answer, struct mr_reason *reason)
{
	struct xdp_port *port = served->port;
	const struct xdp_bind_mode bind_mode = { port->lease.n_zc_queues > 0,
						 port->lease.max_segs };
	bool is_final;
	int err = 0;

	(void)request;
	(void)answer;
	if (!port->lease.is_unbound)
		return mr_fail(reason, -EINVAL, "%s: its sockets are bound",
			       port->base.info->name);
	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++)
		err = mri_xdp_socket_bind(port, i, bind_mode, &is_final,
					  reason);
	if (err < 0)
		return err;
	/* The client has them. */
	for (uint32_t i = 0; i < port->lease.n_queues; i++) {
		mr_fd_close(port->lease.sockets[i]);
		port->lease.sockets[i] = -1;
	}
	port->lease.is_unbound = false;
	return 0;
}
