/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systemd keeps what the next process needs if this one crashes: the socket of
 * mr_dataplane_keep(), in the unit's fd store (FileDescriptorStoreMax=).
 *
 * Source: sd_notify(3), FDSTORE=1; sd_listen_fds(3).
 */
#ifndef SUPPORT_KEEPER_H
#define SUPPORT_KEEPER_H

#include <stdint.h>

struct mr_dataplane;

enum { KEEPER_MAX_FDS = 4 }; /* as the units have places */

/* The sockets that earlier processes left, in any order; how many. After an
 * upgrade there may be two, and one of them is empty. They are the caller's, and
 * no longer in the store. Call it once. */
uint32_t keeper_take_fds(int ret_fds[KEEPER_MAX_FDS]);
/* Call it each second: it gives the socket to systemd, if that started us. */
void keeper_tick(struct mr_dataplane *dp);
/* This process ends normally: have systemd forget the socket. */
void keeper_leave(void);

#endif
