/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet socket on an interface as the peer. Members of a fixture. */
#ifndef CONFORMANCE_FAR_SOCKET_H
#define CONFORMANCE_FAR_SOCKET_H

#include "harness.h"

void far_socket_open(struct harness *harness, const char *interface);
void far_socket_close(struct harness *harness);

/* The interface's MTU in bytes; 0: there is no such interface. */
uint32_t far_socket_mtu(const char *interface);

/*
 * Wait until the interface sends: after a queue is attached, a tap drops frames
 * until a kernel thread has run, without any notification.
 */
void far_socket_await_link(struct harness *harness, const char *interface);

bool far_socket_inject(struct harness *harness, const uint8_t *bytes,
		       uint32_t n_bytes);
uint32_t far_socket_collect(struct harness *harness, uint8_t *bytes,
			    uint32_t room);

/* For a fixture's probe: run a shell command; whether it succeeded. */
bool far_run(const char *command);

/* A private network namespace. NULL, or why there is none. */
const char *far_namespace(void);

#endif
