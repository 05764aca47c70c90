/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the headers of a packet, and check them. */
#ifndef NAT_PARSE_H
#define NAT_PARSE_H

#include "state.h"

/* NAT_OK, or why it is dropped. Only the frame's entries may change. */
enum nat_drop nat_parse_link(struct nat_path *path, struct nat_packet *packet,
			     uint16_t *ret_ether_type);
enum nat_drop nat_parse_ip(struct nat_path *path, struct nat_packet *packet);
enum nat_drop nat_parse_l4(struct nat_path *path, struct nat_packet *packet);

#endif
