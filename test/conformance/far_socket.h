/* SPDX-License-Identifier: BSD-3-Clause */
/* A far side that is a packet socket on an interface. Members of a rig. */
#ifndef CONFORMANCE_FAR_SOCKET_H
#define CONFORMANCE_FAR_SOCKET_H

#include "bed.h"

void far_socket_open(struct bed *bed, const char *interface);
void far_socket_close(struct bed *bed);

/*
 * Wait until the interface sends: a tap that a queue came to drops frames until
 * a thread of the kernel has looked at it, and tells nobody.
 */
void far_socket_await_link(struct bed *bed, const char *interface);

bool far_socket_inject(struct bed *bed, const uint8_t *bytes, uint32_t n_bytes);
uint32_t far_socket_collect(struct bed *bed, uint8_t *bytes, uint32_t room);

/* For the probe of a rig: a shell command; whether it ended with 0. */
bool far_run(const char *command);

/* A network namespace of this process alone. NULL, or why there is none. */
const char *far_namespace(void);

#endif
