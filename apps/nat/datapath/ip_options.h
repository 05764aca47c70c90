/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 options that a router fills in. */
#ifndef NAT_IP_OPTIONS_H
#define NAT_IP_OPTIONS_H

#include "state.h"

/* Fill in our address and the time as Record Route and Timestamp request.
 * False: an option is malformed. */
bool nat_options_fill(struct nat_path *path, struct nat_packet *packet,
		      enum nat_side to);

#endif
