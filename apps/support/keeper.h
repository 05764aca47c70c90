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

/* The sockets that the processes before this one left, in any order: of an
 * upgrade's two, one is of no use. They are the caller's, and no longer in the
 * store. Once. Returns how many. */
uint32_t keeper_take_fds(int ret_fds[KEEPER_MAX_FDS]);
/* Each second: have systemd keep it, if that started this process. */
void keeper_tick(struct mr_dataplane *dp);
/* This process ends, and leaves nothing. */
void keeper_leave(void);

#endif
