/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many messages of vhost-user, most of them malformed, each independent of the
 * others: what a port refuses by a reply leaves it connected for the next one.
 */
#ifndef FUZZ_VHOST_FLOOD_H
#define FUZZ_VHOST_FLOOD_H

#include <stdint.h>

#include <millrace/millrace.h>

#include "vhost_user.h"

struct vhost_flood {
	struct mr_port *port;
	int fd;        /* of the connection */
	int memory_fd; /* shared with messages that share memory */
	struct vhost_region region;
	/* Connect and set up again, and update fd. */
	void (*connect)(void *opaque, struct vhost_flood *flood);
	void *opaque;
};

/* Send n messages. The state of the random numbers is not 0. */
void vhost_flood(struct vhost_flood *flood, uint64_t *state, uint32_t n);

#endif
