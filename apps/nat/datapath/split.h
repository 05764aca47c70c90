/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragment what is too big for a link. */
#ifndef NAT_SPLIT_H
#define NAT_SPLIT_H

#include "state.h"

/* Send it as fragments of at most the link's MTU. */
void nat_split(struct nat_path *path, struct nat_packet *packet,
	       enum nat_side to, uint64_t mac);

#endif
