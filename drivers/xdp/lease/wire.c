/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with fds, for both sides of the broker's protocol.
 *
 * Source: unix(7), cmsg(3).
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lease/broker.h"

int mri_xdp_send(int fd, const void *bytes, size_t n_bytes, const int *fds,
		 uint32_t n_fds)
{
	_Alignas(struct cmsghdr) char
		space[CMSG_SPACE(XDP_BROKER_MAX_FDS * sizeof(int))] = { 0 };
	struct iovec part = { (void *)(uintptr_t)bytes, n_bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *control = (struct cmsghdr *)space;

	if (n_fds > 0) {
		message.msg_control = space;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS;
		control->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(control), fds, n_fds * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

ssize_t mri_xdp_receive(int fd, void *bytes, size_t n_bytes, int *ret_fds,
			uint32_t *ret_n_fds)
{
	_Alignas(struct cmsghdr) char
		space[CMSG_SPACE(XDP_BROKER_MAX_FDS * sizeof(int))];
	struct iovec part = { bytes, n_bytes };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	const ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *control;

	*ret_n_fds = 0;
	if (n < 0)
		return -errno;
	for (control = CMSG_FIRSTHDR(&message); control != NULL;
	     control = CMSG_NXTHDR(&message, control)) {
		const size_t n_data = control->cmsg_len - CMSG_LEN(0);

		if (control->cmsg_level != SOL_SOCKET ||
		    control->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(ret_fds + *ret_n_fds, CMSG_DATA(control), n_data);
		*ret_n_fds += (uint32_t)(n_data / sizeof(int));
	}
	return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? 1 : n;
}
