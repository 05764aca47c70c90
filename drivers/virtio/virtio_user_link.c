/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection of virtio-user: requests, and what both sides can do.
 *
 * Source: QEMU, docs/interop/vhost-user.rst.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "virtio_user.h"

enum { NS_PER_MS = 1000 * 1000, NS_PER_S = 1000 * NS_PER_MS };

static const uint64_t our_protocol =
	UINT64_C(1) << VHOST_P_MQ | UINT64_C(1) << VHOST_P_REPLY_ACK |
	UINT64_C(1) << VHOST_P_MTU | UINT64_C(1) << VHOST_P_CONFIGURE_MEM_SLOTS;

/* ---- messages ---- */

int mri_user_refuse(const struct virtio_port *port, int err,
		    struct mr_reason *reason)
{
	if (port->user->n_devices > 0)
		return mr_fail(reason, -EIO,
			       "%s: the kernel refuses a request: %s",
			       port->base.info->name,
			       mr_strerror(port->user->kernel_errno));
	return mr_fail(
		reason, err == -EPROTO ? -EPROTO : -EIO,
		err == -EPROTO    ? "%s: does not answer like a vhost-user "
				    "back end" :
		err == -ETIMEDOUT ? "%s: the back end does not answer "
				    "within 2 s" :
		err == -EREMOTEIO ? "%s: the back end refuses a request; "
				    "its log says why" :
				    "%s: the back end closes the connection",
		port->base.info->name);
}

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void mri_user_allow(struct virtio_user *user, int timeout_ms)
{
	user->until_ns = now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
}

static int left_ms(const struct virtio_user *user)
{
	const uint64_t now = now_ns();

	return now >= user->until_ns ?
		       0 :
		       (int)((user->until_ns - now) / NS_PER_MS + 1);
}

/* Send a message once there is room for it. */
static int send_message(const struct virtio_user *user,
			const struct vhost_msg *msg, const int *fds,
			uint32_t n_fds)
{
	struct pollfd ready = { .fd = user->fd, .events = POLLOUT };

	return poll(&ready, 1, left_ms(user)) == 0 ?
		       -ETIMEDOUT :
		       mri_vhost_send(user->fd, msg, fds, n_fds);
}

int mri_user_ask(struct virtio_user *user, struct vhost_msg *msg,
		 uint32_t n_reply_bytes)
{
	const uint32_t request = msg->request;
	int err;

	if (user->n_devices > 0)
		return mri_user_kernel_call(user, msg, NULL);
	msg->flags = VHOST_VERSION;
	err = send_message(user, msg, NULL, 0);
	if (err == 0)
		err = mri_vhost_receive_reply(user->fd, msg, request,
					      n_reply_bytes, left_ms(user));
	return err;
}

int mri_user_ask_u64(struct virtio_user *user, uint32_t request,
		     uint64_t *ret_value)
{
	struct vhost_msg msg = { .request = request };
	const int err = mri_user_ask(user, &msg, sizeof(msg.u64));

	if (err == 0)
		*ret_value = msg.u64;
	return err;
}

int mri_user_tell(struct virtio_user *user, struct vhost_msg *msg,
		  const int *fds, uint32_t n_fds)
{
	const uint32_t request = msg->request;
	int err;

	if (user->n_devices > 0)
		return mri_user_kernel_call(user, msg, fds);
	msg->flags = VHOST_VERSION;
	if (virtio_user_has(user, VHOST_P_REPLY_ACK))
		msg->flags |= VHOST_NEED_REPLY;
	err = send_message(user, msg, fds, n_fds);
	if (err < 0 || !virtio_user_has(user, VHOST_P_REPLY_ACK))
		return err;
	err = mri_vhost_receive_reply(user->fd, msg, request, sizeof(msg->u64),
				      left_ms(user));
	return err < 0 ? err : msg->u64 != 0 ? -EREMOTEIO : 0;
}

int mri_user_tell_u64(struct virtio_user *user, uint32_t request,
		      uint64_t value)
{
	struct vhost_msg msg = { .request = request,
				 .n_bytes = sizeof(msg.u64),
				 .u64 = value };

	return mri_user_tell(user, &msg, NULL, 0);
}

/* ---- the connection ---- */

/* Limit how long connect() and sendmsg() wait for room. */
static int set_timeout(const struct virtio_user *user, int timeout_ms)
{
	const struct timeval limit = { timeout_ms / 1000,
				       timeout_ms % 1000 * 1000 };

	return setsockopt(user->fd, SOL_SOCKET, SO_SNDTIMEO, &limit,
			  sizeof(limit));
}

static int connect_to(const struct virtio_port *port, int timeout_ms,
		      struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	const char *const path = user->addr.sun_path;
	struct stat status;
	int err;

	user->fd = mr_fd_guard(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (user->fd < 0)
		return mr_fail(reason, -EIO, "%s: no socket: %s",
			       port->base.info->name, mr_strerror(errno));
	if (set_timeout(user, timeout_ms) == 0 &&
	    connect(user->fd, (const struct sockaddr *)&user->addr,
		    sizeof(user->addr)) == 0)
		return 0;
	err = errno;
	mr_fd_close(user->fd);
	user->fd = -1;
	if (err == ECONNREFUSED && stat(path, &status) == 0 &&
	    !S_ISSOCK(status.st_mode))
		return mr_fail(reason, -ENOTSOCK, "%s: %s is not a socket",
			       port->base.info->name, path);
	if (err == ENOENT || err == ECONNREFUSED)
		return mr_fail(reason, -ENODEV,
			       "%s: nobody listens there: start the vhost-user "
			       "back end first",
			       port->base.info->name);
	if (err == EAGAIN)
		return mri_user_refuse(port, -ETIMEDOUT, reason);
	return mr_fail(reason, err == EACCES ? -EACCES : -EIO,
		       "%s: cannot connect: %s", port->base.info->name,
		       mr_strerror(err));
}

/* Accept the first back end that connects. */
static int accept_one(const struct virtio_port *port, int timeout_ms,
		      struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	struct virtio_user *user = port->user;
	struct pollfd ready = { .fd = user->listener.fd, .events = POLLIN };
	const int n = poll(&ready, 1, user->is_open ? 0 : VIRTIO_USER_WAIT_MS);

	if (n < 0)
		return mr_fail(reason, -errno,
			       "%s: no back end has connected yet: %s", name,
			       mr_strerror(errno));
	if (n == 0)
		return mr_fail(reason, -ENODEV,
			       "%s: no back end connects within 30 s: start it "
			       "as the client of this socket",
			       name);
	user->fd = mr_fd_guard(
		accept4(user->listener.fd, NULL, NULL, SOCK_CLOEXEC));
	if (user->fd < 0 || set_timeout(user, timeout_ms) < 0)
		return mr_fail(reason, -EIO, "%s: cannot accept: %s", name,
			       mr_strerror(errno));
	return 0;
}

int mri_user_connect(const struct virtio_port *port, int timeout_ms,
		     struct mr_reason *reason)
{
	struct virtio_user *user = port->user;

	if (user->n_devices > 0) {
		user->fd = user->devices[0];
		return 0;
	}
	return user->listener.fd < 0 ? connect_to(port, timeout_ms, reason) :
				       accept_one(port, timeout_ms, reason);
}

int mri_user_exchange(struct virtio_user *user)
{
	uint64_t n = 0;
	int err;

	user->protocol = 0;
	user->max_pairs = 1;
	user->max_regions = VHOST_MAX_REGIONS;
	if ((err = mri_user_tell(
		     user, &(struct vhost_msg){ .request = VHOST_SET_OWNER },
		     NULL, 0)) < 0 ||
	    (err = mri_user_ask_u64(user, VHOST_GET_FEATURES, &user->offered)) <
		    0 ||
	    !(user->offered & virtio_bit(VHOST_F_PROTOCOL_FEATURES)))
		return err;
	err = mri_user_ask_u64(user, VHOST_GET_PROTOCOL_FEATURES, &n);
	n &= our_protocol;
	if (err == 0)
		err = mri_user_tell_u64(user, VHOST_SET_PROTOCOL_FEATURES, n);
	if (err < 0)
		return err;
	user->protocol = n;
	if (virtio_user_has(user, VHOST_P_MQ) &&
	    (err = mri_user_ask_u64(user, VHOST_GET_QUEUE_NUM, &n)) == 0)
		user->max_pairs =
			n < VIRTIO_MAX_PAIRS ? (uint32_t)n : VIRTIO_MAX_PAIRS;
	if (err == 0 && virtio_user_has(user, VHOST_P_CONFIGURE_MEM_SLOTS) &&
	    (err = mri_user_ask_u64(user, VHOST_GET_MAX_MEM_SLOTS, &n)) == 0)
		user->max_regions =
			n < VHOST_MAX_SLOTS ? (uint32_t)n : VHOST_MAX_SLOTS;
	return err;
}

void mri_user_disconnect(struct virtio_user *user)
{
	if (user->n_devices == 0)
		mr_fd_close(user->fd);
	user->fd = -1;
	user->has_memory = false;
	memset(user->is_started, 0, sizeof(user->is_started));
	user->generation++;
}
