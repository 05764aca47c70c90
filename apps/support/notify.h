/* SPDX-License-Identifier: BSD-3-Clause */
/* Tell systemd the state of a service. */
#ifndef SUPPORT_NOTIFY_H
#define SUPPORT_NOTIFY_H

#include <stdbool.h>

/*
 * Send a state, such as "READY=1", to the socket that NOTIFY_SOCKET names. Does
 * nothing without that variable. False: its queue is full; try again later.
 *
 * Source: sd_notify(3), which documents this protocol for programs that do not
 * link with libsystemd.
 */
bool notify(const char *state);
/* The same with a copy of an fd. */
bool notify_fd(const char *state, int fd);

#endif
