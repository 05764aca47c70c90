/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the peer of a Unix socket may send fds to it. Since Linux 6.16, the
 * receiver decides; accepted sockets inherit the choice from their listener.
 *
 * Source: linux/net/unix/af_unix.c (unix_may_passrights).
 */
#ifndef BROKERD_PASSRIGHTS_H
#define BROKERD_PASSRIGHTS_H

#include <stdbool.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static inline void passrights_set(int fd, bool may)
{
	const int value = may;

	/* Fails on older kernels, where the peer always may. */
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

static inline bool passrights_may(int fd)
{
	int value = 1;
	socklen_t n_bytes = sizeof(value);

	(void)getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, &n_bytes);
	return value != 0;
}

#endif
