/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to the peer. mr_port_poll() never waits for the peer: it reads
 * a message as the bytes arrive, and drops a peer that does not take a reply.
 *
 * As a server the port listens at its path, and takes one peer at a time; as a
 * client it connects, and tries again until a peer listens there.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "vhost.h"

enum {
	RETRY_NS = 100 * 1000 * 1000,
	MAX_MESSAGES = 64, /* in one mr_port_poll() */
};

static const char *name_of(const struct vhost_port *port)
{
	return port->base.info->name;
}

static int watch(const struct vhost_port *port, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(port->base.fd, EPOLL_CTL_ADD, fd, &event);
}

/* ---- losing and finding a peer ---- */

/* Start or stop the retry timer. */
static void set_timer(const struct vhost_port *port, bool is_on)
{
	const struct itimerspec times = {
		.it_value.tv_nsec = is_on ? RETRY_NS : 0,
	};

	if (port->timer_fd >= 0)
		(void)timerfd_settime(port->timer_fd, 0, &times, NULL);
}

void mri_vhost_peer_drop_fds(struct vhost_peer *peer)
{
	for (uint32_t i = 0; i < peer->n_fds; i++)
		mr_fd_close(peer->fds[i]);
	peer->n_fds = 0;
}

/* Release the peer's mappings and fds. */
static void forget_peer(struct vhost_port *port)
{
	struct vhost_peer *peer = &port->peer;

	mri_vhost_rings_stop(port);
	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++)
		mri_vhost_ring_reset(vhost_ring_of(port, i));
	mri_vhost_memory_clear(&peer->memory);
	mri_vhost_log_clear(&peer->log);
	mri_vhost_records_clear(port);
	mri_vhost_peer_drop_fds(peer);
	mr_fd_close(peer->fd);
	*peer = (struct vhost_peer){ .fd = -1 };
	__atomic_store_n(&port->rxqs[0].rarp_mac, 0, __ATOMIC_RELAXED);
	mri_vhost_apply_features(port, 0);
}

void mri_vhost_say_no_memory(struct vhost_port *port)
{
	if (!port->has_complained)
		mr_log(port->base.ctx, MR_LOG_ERROR,
		       "%s: the peer shares no memory; QEMU needs -object "
		       "memory-backend-memfd,share=on and -numa node,memdev=",
		       name_of(port));
	port->has_complained = true;
}

void mri_vhost_complain(struct vhost_port *port, const char *text)
{
	if (!port->peer.has_erred)
		mr_log(port->base.ctx, MR_LOG_ERROR, "%s", text);
	port->peer.has_erred = true;
}

static void lose_peer(struct vhost_port *port, int err,
		      const struct mr_reason *why)
{
	const struct vhost_peer *peer = &port->peer;

	if (peer->has_worked)
		mr_log(port->base.ctx, MR_LOG_INFO,
		       "%s: the peer is gone; waiting for the next one",
		       name_of(port));
	if (err != -EPIPE && !port->has_complained)
		mr_log(port->base.ctx, MR_LOG_ERROR, "%s", why->text);
	else if (err == -EPIPE && !peer->has_worked && peer->features != 0 &&
		 peer->memory.n == 0)
		mri_vhost_say_no_memory(port);
	port->has_complained = !peer->has_worked;
	forget_peer(port);
	set_timer(port, true);
}

static void take_peer(struct vhost_port *port, int fd)
{
	fd = mr_fd_guard(fd);
	if (fd < 0)
		return;
	if (port->peer.fd >= 0 || watch(port, fd) < 0) {
		mr_fd_close(fd); /* there is one already */
		return;
	}
	port->peer.fd = fd;
	set_timer(port, false);
}

int mri_vhost_peer_take(struct vhost_port *port, int fd)
{
	if (fd < 0)
		set_timer(port, true);
	else
		take_peer(port, fd);
	return fd >= 0 && port->peer.fd < 0 ? -EIO : 0;
}

static int connect_to(struct vhost_port *port)
{
	const int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&port->addr,
		    sizeof(port->addr)) < 0) {
		const int err = -errno;

		close(fd);
		return err;
	}
	take_peer(port, fd);
	return 0;
}

static void find_peer(struct vhost_port *port)
{
	uint64_t n;
	int fd;

	if (port->timer_fd >= 0) {
		if (port->peer.fd < 0 &&
		    read(port->timer_fd, &n, sizeof(n)) == (ssize_t)sizeof(n) &&
		    connect_to(port) < 0)
			set_timer(port, true);
		return;
	}
	fd = accept4(port->listener.fd, NULL, NULL,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		take_peer(port, fd);
}

/* ---- messages ---- */

/* Keep the fds of a message. -EPROTO: there are too many. */
static int keep_fds(struct vhost_peer *peer, struct msghdr *header)
{
	int err = header->msg_flags & MSG_CTRUNC ? -EPROTO : 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL;
	     c = CMSG_NXTHDR(header, c)) {
		const uint32_t n =
			(uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (uint32_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			fd = mr_fd_guard(fd);
			if (peer->n_fds < VHOST_MAX_REGIONS && fd >= 0) {
				peer->fds[peer->n_fds++] = fd;
				continue;
			}
			mr_fd_close(fd);
			err = -EPROTO;
		}
	}
	return err;
}

/* Receive until the message has n_bytes. 0: it has; -EAGAIN, -EPIPE. */
static int receive_up_to(struct vhost_peer *peer, uint32_t n_bytes)
{
	union {
		char bytes[CMSG_SPACE(VHOST_MAX_REGIONS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec data = { (char *)&peer->msg + peer->n_received,
			      n_bytes - peer->n_received };
	struct msghdr header = { .msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t n;
	int err;

	if (data.iov_len == 0)
		return 0;
	n = recvmsg(peer->fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? -EAGAIN : -EPIPE;
	if (n == 0)
		return -EPIPE;
	err = keep_fds(peer, &header);
	peer->n_received += (uint32_t)n;
	if (err < 0)
		return err;
	return peer->n_received == n_bytes ? 0 : -EAGAIN;
}

static int receive_message(struct vhost_port *port)
{
	struct vhost_peer *peer = &port->peer;
	const struct vhost_msg *msg = &peer->msg;
	int err = 0;

	if (peer->n_received < VHOST_HEADER_BYTES)
		err = receive_up_to(peer, VHOST_HEADER_BYTES);
	if (err < 0)
		return err;
	if ((msg->flags & 3) != VHOST_VERSION ||
	    msg->n_bytes > sizeof(*msg) - VHOST_HEADER_BYTES)
		return -EPROTO;
	return receive_up_to(peer, VHOST_HEADER_BYTES + msg->n_bytes);
}

static int send_reply(const struct vhost_peer *peer)
{
	/* The fds of other messages are the peer's own. */
	const bool has_fd = peer->msg.request == VHOST_GET_IN_FLIGHT;

	/* The socket is non-blocking. */
	return mri_vhost_send(peer->fd, &peer->msg, peer->fds, has_fd) < 0 ?
		       -EPIPE :
		       0;
}

static int serve_message(struct vhost_port *port, struct mr_reason *why)
{
	struct vhost_peer *peer = &port->peer;
	bool has_reply = false;
	int err = receive_message(port);

	if (err == -EPROTO)
		return mr_fail(why, err,
			       "%s: the peer does not speak vhost-user",
			       name_of(port));
	if (err == 0)
		err = mri_vhost_handle(port, &has_reply, why);
	if (err == 0 && has_reply)
		err = send_reply(peer);
	if (err < 0)
		return err;
	mri_vhost_peer_drop_fds(peer);
	peer->n_received = 0;
	return 0;
}

/* ---- poll ---- */

/* The link is up while both rings of the first pair run. */
static uint32_t follow_link(struct vhost_port *port)
{
	const uint32_t is_up = vhost_ring_of(port, 0)->is_running &&
			       vhost_ring_of(port, 1)->is_running;

	if (is_up) {
		port->peer.has_worked = true;
		port->has_complained = false;
	}
	return __atomic_exchange_n(&port->is_up, is_up, __ATOMIC_RELAXED) !=
	       is_up;
}

static void report_broken(struct vhost_port *port)
{
	uint64_t n;

	if (read(port->break_fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		return;
	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++) {
		struct vhost_ring *ring = vhost_ring_of(port, i);

		if (__atomic_load_n(&ring->state, __ATOMIC_RELAXED) !=
			    VHOST_BROKEN ||
		    ring->is_broken)
			continue;
		ring->is_broken = true;
		ring->is_running = false;
		mri_vhost_signal(port->signal, ring->error_fd);
		mr_log(port->base.ctx, MR_LOG_ERROR,
		       "%s: the driver wrote an invalid descriptor into ring "
		       "%u; the ring stops until the driver resets it",
		       name_of(port), i);
	}
}

uint32_t mri_vhost_poll(struct mr_port *base)
{
	struct vhost_port *port = (struct vhost_port *)base;
	struct mr_reason why;
	int err = 0;

	for (uint32_t i = 0; i < MAX_MESSAGES && port->peer.fd >= 0; i++) {
		err = serve_message(port, &why);
		if (err < 0)
			break;
	}
	if (err < 0 && err != -EAGAIN)
		lose_peer(port, err, &why);
	find_peer(port); /* a lost peer may be back already */
	report_broken(port);
	mri_vhost_rings_share(port);
	return follow_link(port);
}

/* ---- open and close ---- */

static int set_path(struct vhost_port *port, const char *path,
		    struct mr_reason *reason)
{
	port->addr.sun_family = AF_UNIX;
	if (path == NULL || path[0] == '\0')
		return mr_fail(reason, -EINVAL,
			       "vhost: name a socket for the virtual machine: "
			       "vhost:/run/vm.sock");
	if (strlen(path) >= sizeof(port->addr.sun_path))
		return mr_fail(reason, -EINVAL,
			       "vhost: the path of a socket has at most %zu "
			       "bytes",
			       sizeof(port->addr.sun_path) - 1);
	snprintf(port->addr.sun_path, sizeof(port->addr.sun_path), "%s", path);
	return 0;
}

static int start_server(struct vhost_port *port, struct mr_reason *reason)
{
	int err = 0;

	if (port->listener.fd < 0) /* it was not handed over */
		err = mri_vhost_listen(name_of(port), &port->addr, "client=on",
				       &port->listener, reason);
	if (err < 0)
		return err;
	return watch(port, port->listener.fd) < 0 ?
		       mr_fail(reason, -EIO, "%s: no epoll: %s", name_of(port),
			       mr_strerror(errno)) :
		       0;
}

static int start_client(struct vhost_port *port, struct mr_reason *reason)
{
	struct stat status;
	int err;

	port->timer_fd = mr_fd_guard(
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (port->timer_fd < 0 || watch(port, port->timer_fd) < 0)
		return mr_fail(reason, -EIO, "%s: no timer: %s", name_of(port),
			       mr_strerror(errno));
	if (stat(port->addr.sun_path, &status) == 0 &&
	    !S_ISSOCK(status.st_mode))
		return mr_fail(reason, -ENOTSOCK, "%s: %s is not a socket",
			       name_of(port), port->addr.sun_path);
	if (port->base.is_away)
		return 0;
	err = connect_to(port);
	if (err == -EACCES)
		return mr_fail(reason, err, "%s: cannot connect: %s",
			       name_of(port), mr_strerror(-err));
	if (err < 0)
		set_timer(port, true);
	return 0;
}

int mri_vhost_peer_open(struct vhost_port *port, const char *path,
			struct mr_reason *reason)
{
	int err = set_path(port, path, reason);

	if (err < 0)
		return err;
	port->base.fd = mr_fd_guard(epoll_create1(EPOLL_CLOEXEC));
	port->break_fd = mr_fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (port->base.fd < 0 || port->break_fd < 0 ||
	    watch(port, port->break_fd) < 0)
		return mr_fail(reason, -EIO, "%s: no epoll or eventfd: %s",
			       name_of(port), mr_strerror(errno));
	return port->options.is_client ? start_client(port, reason) :
					 start_server(port, reason);
}

void mri_vhost_peer_close(struct vhost_port *port)
{
	if (port->rxqs != NULL)
		forget_peer(port);
	mri_vhost_unlisten(&port->addr, &port->listener, port->base.is_away);
	mr_fd_close(port->timer_fd);
	mr_fd_close(port->break_fd);
	mr_fd_close(port->base.fd);
	port->base.fd = -1;
}
