/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "notify.h"

bool notify(const char *state)
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
	is_full = sendto(fd, state, strlen(state), MSG_NOSIGNAL,
			 (struct sockaddr *)&to,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				     n)) < 0 &&
		  errno == EAGAIN;
	close(fd);
	return !is_full;
}
