/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters that select sessions: "inside=10.0.0.0/24,port=53,proto=udp". */
#ifndef NAT_FILTER_H
#define NAT_FILTER_H

#include "config/config.h"
#include "map.h"

/* A conjunction of conditions; zero has none. */
struct nat_filter {
	struct nat_prefix inside, outside, remote; /* mask 0: any */
	uint16_t port;                             /* of any end; 0: any */
	uint8_t proto;                             /* IPPROTO_*; 0: any */
};

/* NULL, "" and "all" have no condition. False with an error. */
bool nat_filter_parse(const char *text, struct nat_filter *ret_filter,
		      struct mr_reason *ret_why);

bool nat_filter_has(const struct nat_filter *filter,
		    const struct nat_session *session);

#endif
