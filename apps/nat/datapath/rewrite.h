/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of an outgoing packet. */
#ifndef NAT_REWRITE_H
#define NAT_REWRITE_H

#include "state.h"

/* Write addresses, ports, id and TTL of the verdict to the headers. */
void nat_rewrite(struct nat_path *path, struct nat_packet *packet,
		 const struct nat_verdict *verdict);

#endif
