/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a packet goes, and how it is translated. */
#ifndef NAT_DECIDE_H
#define NAT_DECIDE_H

#include "state.h"

/*
 * Decide about a packet with a layer-4 header. NAT_OK and *ret_verdict;
 * NAT_TAKEN: it is for us; else why it is dropped.
 */
enum nat_drop nat_decide(struct nat_path *path, struct nat_packet *packet,
			 struct nat_verdict *ret_verdict);

#endif
