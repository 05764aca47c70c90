/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to our own addresses. */
#ifndef NAT_LOCAL_H
#define NAT_LOCAL_H

#include "state.h"

/* Consumes the packet. */
void nat_local(struct nat_path *path, struct nat_packet *packet);

#endif
