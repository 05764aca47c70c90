/* SPDX-License-Identifier: BSD-3-Clause */
/* A far side that is a packet socket on an interface. Members of a fixture. */
#ifndef CONFORMANCE_FAR_SOCKET_H
#define CONFORMANCE_FAR_SOCKET_H

#include "harness.h"

void far_socket_open(struct harness *harness, const char *interface);
void far_socket_close(struct harness *harness);

/*
 * Wait until the interface sends: a tap that a queue came to drops frames until
 * a thread of the kernel has looked at it, and tells nobody.
 */
void far_socket_await_link(struct harness *harness, const char *interface);

bool far_socket_inject(struct harness *harness, const uint8_t *bytes,
		       uint32_t n_bytes);
uint32_t far_socket_collect(struct harness *harness, uint8_t *bytes,
			    uint32_t room);

/* For the probe of a fixture: a shell command; whether it ended with 0. */
bool far_run(const char *command);

/* A network namespace of this process alone. NULL, or why there is none. */
const char *far_namespace(void);

#endif
