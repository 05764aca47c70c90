/* SPDX-License-Identifier: BSD-3-Clause */
/* A vhost-user socket at which this process listens. */
#ifndef VIRTIO_VHOST_LISTEN_H
#define VIRTIO_VHOST_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include <millrace/error.h>
#include <millrace/experimental/parcel.h>

struct vhost_listener {
	int fd;         /* does not block; -1: none */
	uint64_t inode; /* of the socket's file: no other is removed */
};

/*
 * Listen at addr. The socket of a process that has died is replaced. -ENOTSOCK,
 * -EBUSY, -EACCES, -ENOENT, -EIO, with a reason: it begins with name, and says
 * how to connect instead: other_way.
 */
int mri_vhost_listen(const char *name, const struct sockaddr_un *addr,
		     const char *other_way, struct vhost_listener *ret_listener,
		     struct mr_reason *reason);
/* Stop, and remove the socket's file unless another process listens there. */
void mri_vhost_unlisten(const struct sockaddr_un *addr,
			struct vhost_listener *listener, bool is_away);

/* Hand over a listener; there may be none. take: 0, or -EPROTO with a reason.
 */
void mri_vhost_listener_put(const struct vhost_listener *listener,
			    struct mr_parcel *parcel);
int mri_vhost_listener_take(struct vhost_listener *ret_listener,
			    struct mr_parcel *parcel, struct mr_reason *reason);

#endif
