/* SPDX-License-Identifier: BSD-3-Clause */
/* Send and receive messages of vhost-user, and check their eventfds. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vhost_user.h"

_Static_assert(offsetof(struct vhost_msg, u64) == VHOST_HEADER_BYTES,
	       "the payload follows the header");

int mri_vhost_send(int fd, const struct vhost_msg *msg, const int *fds,
		   uint32_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(VHOST_MAX_REGIONS * sizeof(int))];
		struct cmsghdr header;
	} control = { 0 };
	struct iovec data = { (void *)(uintptr_t)msg,
			      VHOST_HEADER_BYTES + msg->n_bytes };
	struct msghdr header = { .msg_iov = &data, .msg_iovlen = 1 };
	ssize_t n;

	if (n_fds > 0) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.header = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return -ETIMEDOUT; /* SO_SNDTIMEO */
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	/* Messages are shorter than the smallest socket buffer. */
	return n == (ssize_t)data.iov_len ? 0 : -EPIPE;
}

/*
 * Receive exactly n_bytes, all at once: a peer that sends them one by one would
 * make the caller wait for each.
 */
static int receive_bytes(int fd, void *bytes, size_t n_bytes, int timeout_ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int n_ready;
	ssize_t n;

	do
		n_ready = poll(&ready, 1, timeout_ms);
	while (n_ready < 0 && errno == EINTR);
	if (n_ready <= 0)
		return n_ready == 0 ? -ETIMEDOUT : -errno;
	n = recv(fd, bytes, n_bytes, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -EPIPE;
	if (n < 0)
		return -errno;
	return n == (ssize_t)n_bytes ? 0 : -EPROTO;
}

int mri_vhost_receive_reply(int fd, struct vhost_msg *msg, uint32_t request,
			    uint32_t n_bytes, int timeout_ms)
{
	int err = receive_bytes(fd, msg, VHOST_HEADER_BYTES, timeout_ms);

	if (err < 0)
		return err;
	if (msg->request != request || !(msg->flags & VHOST_REPLY) ||
	    (msg->flags & 3) != VHOST_VERSION || msg->n_bytes != n_bytes)
		return -EPROTO;
	return receive_bytes(fd, (char *)msg + VHOST_HEADER_BYTES, n_bytes,
			     timeout_ms);
}

bool mri_vhost_is_eventfd(int fd)
{
	char path[32], target[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	if (n >= 0 && strcmp(target, "anon_inode:[eventfd]") != 0)
		return false; /* n < 0: there is no /proc */
	return fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0;
}
