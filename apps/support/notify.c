/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "notify.h"

/* A datagram, with an fd unless that is -1. */
static ssize_t send_state(int socket_fd, const struct sockaddr_un *to,
			  socklen_t n_to, const char *state, int fd)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec part = { (void *)(uintptr_t)state, strlen(state) };
	struct msghdr message = { .msg_name = (void *)(uintptr_t)to,
				  .msg_namelen = n_to,
				  .msg_iov = &part,
				  .msg_iovlen = 1 };
	struct cmsghdr *control = (struct cmsghdr *)space;

	if (fd >= 0) {
		message.msg_control = space;
		message.msg_controllen = sizeof(space);
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS;
		control->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(control), &fd, sizeof(fd));
	}
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL);
}

bool notify(const char *state)
{
	return notify_fd(state, -1);
}

bool notify_fd(const char *state, int passed_fd)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const size_t n = path != NULL ? strlen(path) : 0;
	bool is_full;
	int fd;

	if (n < 2 || n >= sizeof(to.sun_path))
		return true;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@') /* an abstract address */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return true;
	is_full = send_state(fd, &to,
			     (socklen_t)(offsetof(struct sockaddr_un,
						  sun_path) +
					 n),
			     state, passed_fd) < 0 &&
		  errno == EAGAIN;
	close(fd);
	return !is_full;
}
