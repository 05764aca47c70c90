/* SPDX-License-Identifier: BSD-3-Clause */
/* The vhost-user socket at which this process listens, and its file. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <millrace/driver.h>

#include "vhost_listen.h"

static int new_socket(void)
{
	return mr_fd_guard(
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* Whether nobody listens there any more: the process has died. */
static bool is_stale(const struct sockaddr_un *addr)
{
	const int fd = new_socket();
	const bool is_refused =
		fd >= 0 &&
		connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 &&
		errno == ECONNREFUSED;

	mr_fd_close(fd);
	return is_refused;
}

static int bind_to(int fd, const struct sockaddr_un *addr)
{
	return bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ?
		       -errno :
		       0;
}

static int listen_at(const struct sockaddr_un *addr,
		     struct vhost_listener *listener)
{
	struct stat status;
	int err = bind_to(listener->fd, addr);

	if (err == -EADDRINUSE && lstat(addr->sun_path, &status) == 0 &&
	    !S_ISSOCK(status.st_mode))
		return -ENOTSOCK;
	if (err == -EADDRINUSE && is_stale(addr) && unlink(addr->sun_path) == 0)
		err = bind_to(listener->fd, addr);
	if (err < 0)
		return err;
	if (lstat(addr->sun_path, &status) == 0)
		listener->inode = status.st_ino;
	return listen(listener->fd, 1) < 0 ? -errno : 0;
}

int mri_vhost_listen(const char *name, const struct sockaddr_un *addr,
		     const char *other_way, struct vhost_listener *ret_listener,
		     struct mr_reason *reason)
{
	int err;

	*ret_listener = (struct vhost_listener){ .fd = new_socket() };
	err = ret_listener->fd < 0 ? -errno : listen_at(addr, ret_listener);
	if (err == 0)
		return 0;
	mri_vhost_unlisten(addr, ret_listener, false);
	if (err == -ENOTSOCK)
		return mr_fail(reason, err,
			       "%s: %s is not a socket: choose another path",
			       name, addr->sun_path);
	if (err == -EADDRINUSE)
		return mr_fail(reason, -EBUSY,
			       "%s: another process listens there: stop it, "
			       "choose another path, or connect to it (%s)",
			       name, other_way);
	return mr_fail(reason, err == -EACCES || err == -ENOENT ? err : -EIO,
		       "%s: cannot listen there: %s", name, mr_strerror(-err));
}

void mri_vhost_unlisten(const struct sockaddr_un *addr,
			struct vhost_listener *listener, bool is_away)
{
	struct stat status;

	/* Another process may have made a socket there since. */
	if (!is_away && listener->inode != 0 &&
	    lstat(addr->sun_path, &status) == 0 &&
	    status.st_ino == listener->inode)
		(void)unlink(addr->sun_path);
	mr_fd_close(listener->fd);
	*listener = (struct vhost_listener){ .fd = -1 };
}

/* ---- to another process ---- */

enum { LISTENER_LAYOUT = 1 /* the inode */ };

void mri_vhost_listener_put(const struct vhost_listener *listener,
			    struct mr_parcel *parcel)
{
	if (listener->fd < 0)
		return;
	mr_parcel_put(parcel, "listener", LISTENER_LAYOUT, &listener->inode,
		      sizeof(listener->inode));
	mr_parcel_put_fd(parcel, "listener-fd", listener->fd);
}

int mri_vhost_listener_take(struct vhost_listener *ret_listener,
			    struct mr_parcel *parcel, struct mr_reason *reason)
{
	const int err = mr_parcel_get(parcel, "listener", LISTENER_LAYOUT,
				      &ret_listener->inode,
				      sizeof(ret_listener->inode), reason);

	if (err == -ENOENT)
		return 0;
	if (err == 0)
		ret_listener->fd = mr_parcel_take_fd(parcel, "listener-fd");
	return ret_listener->fd < 0 ?
		       mr_fail(reason, -EPROTO, "the state lacks a listener") :
		       0;
}
