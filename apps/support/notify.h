/* SPDX-License-Identifier: BSD-3-Clause */
/* Tell systemd the state of a service. */
#ifndef SUPPORT_NOTIFY_H
#define SUPPORT_NOTIFY_H

/*
 * Send a state, such as "READY=1", to the socket that NOTIFY_SOCKET names. Does
 * nothing without that variable, or if the socket would block.
 *
 * Source: sd_notify(3), which documents this protocol for programs that do not
 * link with libsystemd.
 */
void notify(const char *state);

#endif
