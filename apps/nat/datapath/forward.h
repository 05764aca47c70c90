/* SPDX-License-Identifier: BSD-3-Clause */
/* Send a packet as its verdict says. */
#ifndef NAT_FORWARD_H
#define NAT_FORWARD_H

#include "state.h"

/* Resolve its next hop first; consumes the packet, which may have to wait. */
void nat_forward_packet(struct nat_path *path, struct nat_packet *packet,
			const struct nat_verdict *verdict);
/* Send the packets whose next hop is now known. */
void nat_forward_ready(struct nat_path *path);

#endif
