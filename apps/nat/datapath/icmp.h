/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of ICMP messages, and the translation of errors. */
#ifndef NAT_ICMP_H
#define NAT_ICMP_H

#include "state.h"

/* RFC 792. */
enum {
	NAT_ICMP_ECHO_REPLY = 0,
	NAT_ICMP_UNREACHABLE = 3,
	NAT_ICMP_ECHO = 8,
	NAT_ICMP_TIME = 11,
	NAT_ICMP_PARAMETER = 12,
	NAT_ICMP_TIMESTAMP = 13,
	NAT_ICMP_TIMESTAMP_REPLY = 14,
};

/* Codes of NAT_ICMP_UNREACHABLE. */
enum {
	NAT_ICMP_NO_NET = 0,
	NAT_ICMP_NO_HOST = 1,
	NAT_ICMP_NO_PORT = 3,
	NAT_ICMP_TOO_BIG = 4,
	NAT_ICMP_PROHIBITED = 13,
};

static inline bool nat_icmp_is_error(uint8_t type)
{
	return type == NAT_ICMP_UNREACHABLE || type == NAT_ICMP_TIME ||
	       type == NAT_ICMP_PARAMETER;
}

static inline bool nat_icmp_is_query(uint8_t type)
{
	return type == NAT_ICMP_ECHO || type == NAT_ICMP_TIMESTAMP;
}

static inline bool nat_icmp_is_reply(uint8_t type)
{
	return type == NAT_ICMP_ECHO_REPLY || type == NAT_ICMP_TIMESTAMP_REPLY;
}

/* Decide about an error, and translate the packet embedded in it. */
enum nat_drop nat_icmp_translate(struct nat_path *path,
				 struct nat_packet *packet,
				 struct nat_verdict *ret_verdict);

#endif
