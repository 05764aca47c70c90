/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 options that a router fills in. */
#ifndef NAT_IP_OPTIONS_H
#define NAT_IP_OPTIONS_H

#include "state.h"

enum {
	NAT_OPTION_END = 0,
	NAT_OPTION_NOP = 1,
	NAT_OPTION_RECORD_ROUTE = 7,
	NAT_OPTION_TIMESTAMP = 68,
	NAT_OPTION_COPIED = 0x80, /* a flag: every fragment has it */
	NAT_OPTION_LSRR = 131,    /* source routes */
	NAT_OPTION_SSRR = 137,
};

/* The length of an option that parse.c has checked. */
static inline uint32_t nat_option_bytes(const uint8_t *option)
{
	return *option == NAT_OPTION_NOP ? 1 : option[1];
}

/* Fill in our address and the time as Record Route and Timestamp request.
 * False: an option is malformed. */
bool nat_options_fill(struct nat_path *path, struct nat_packet *packet,
		      enum nat_side to);

#endif
