/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets of applications. */
#ifndef SUPPORT_LISTEN_H
#define SUPPORT_LISTEN_H

#include <stddef.h>
#include <sys/types.h>

#include <millrace/millrace.h>

enum { LISTEN_MAX_PATH = 108 }; /* of sun_path */

/*
 * Listen on a path, with a socket of the given type (such as SOCK_STREAM) and
 * mode (0600: only the process's owner may connect). Replaces a socket that no
 * process serves any more, but nothing else. Returns a non-blocking fd, or
 * -errno with a message: -EADDRINUSE if another process serves it.
 */
int listen_unix(const char *path, int type, mode_t mode,
		struct mr_reason *ret_why);

/* Remove the path, and close; -1 is fine. */
void listen_close(const char *path, int fd);

/* "127.0.0.1:9100", "[::]:9100", "localhost:9100". The same. */
int listen_tcp(const char *where, struct mr_reason *ret_why);

/*
 * The folder of control sockets: RUNTIME_DIRECTORY (systemd sets it); else
 * /run/millrace, or without root a folder of the user. Creates it. 0, or -errno
 * with a message.
 */
int listen_folder(char *ret_path, size_t n_bytes, struct mr_reason *ret_why);

#endif
