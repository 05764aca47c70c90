/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systemd keeps what the next process needs if this one crashes: the socket of
 * mr_dataplane_keep(), in the unit's fd store (FileDescriptorStoreMax=).
 *
 * Source: sd_notify(3), FDSTORE=1; sd_listen_fds(3).
 */
#ifndef SUPPORT_KEEPER_H
#define SUPPORT_KEEPER_H

struct mr_dataplane;

/* The socket that a process before this one left; -1: none. Once: it is the
 * caller's, and no longer in the store. */
int keeper_take_fd(void);
/* Each second: have systemd keep it, if that started this process. */
void keeper_tick(struct mr_dataplane *dp);
/* This process ends, and leaves nothing. */
void keeper_leave(void);

#endif
