/* SPDX-License-Identifier: BSD-3-Clause */
/* A parcel that was sent and received, in one process. */
#ifndef SUPPORT_CARRY_H
#define SUPPORT_CARRY_H

#include <sys/socket.h>
#include <unistd.h>

#include "support/unit.h"

#include "base/parcel.h"

static inline struct mr_parcel *carry(struct mr_ctx *of,
				      struct mr_parcel *parcel)
{
	struct mr_parcel *received = NULL;
	struct mr_reason why = { "" };
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	if (mri_parcel_send(parcel, fds[0], &why) < 0 ||
	    mri_parcel_receive(of, fds[1], 1000, &received, &why) < 0)
		fail_msg("%s", why.text);
	close(fds[0]);
	close(fds[1]);
	mri_parcel_destroy(parcel);
	return received;
}

#endif
