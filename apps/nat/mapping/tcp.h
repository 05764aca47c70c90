/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NAT's view of a TCP connection: RFC 7857 section 2, figure 1, derived
 * from RFC 6146 section 3.5.2.
 *
 *             out SYN            in SYN
 *     CLOSED --------> OPENING ---------> OPEN
 *     CLOSED --------> ANSWERED --------> |  ^
 *           out SYN+ACK         in data   |  |
 *                   FIN of each side      |  | anything but RST
 *     CLOSING <--- HALF_OUT, HALF_IN <----+->+---- RESET
 *                                           RST
 *
 * An incoming SYN does not create a session; if the filter admits it, the
 * inside host's answer does. It is not OPEN until its sender sends more than a
 * SYN: sessions from a forged source expire with the timer for opening ones.
 */
#ifndef NAT_TCP_H
#define NAT_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum nat_tcp {
	NAT_TCP_CLOSED,   /* no session */
	NAT_TCP_OPENING,  /* SYN went out */
	NAT_TCP_OPEN,     /* SYNs went both ways */
	NAT_TCP_HALF_OUT, /* FIN went out */
	NAT_TCP_HALF_IN,  /* FIN came in */
	NAT_TCP_CLOSING,  /* FINs went both ways */
	NAT_TCP_RESET,    /* RST in either direction */
	NAT_TCP_ANSWERED, /* SYN came in, SYN+ACK went out. Last, since state
			   * files contain the other numbers */
	NAT_TCP_STATES,
};

enum nat_direction { NAT_OUT, NAT_IN };

/* The state after a segment with these flags. */
enum nat_tcp nat_tcp_next(enum nat_tcp state, enum nat_direction direction,
			  uint8_t flags);

/*
 * Whether a segment that does not change the state restarts its timer: not an
 * RST, and nothing once both sides have closed or one has reset.
 */
bool nat_tcp_refreshes(enum nat_tcp state, uint8_t flags);

/* Whether this transition begins a new connection between the same ends. */
static inline bool nat_tcp_begins(enum nat_tcp was, enum nat_tcp is)
{
	return (was == NAT_TCP_CLOSING || was == NAT_TCP_RESET) &&
	       (is == NAT_TCP_OPENING || is == NAT_TCP_ANSWERED);
}

/* Whether the handshake may still be in progress. */
static inline bool nat_tcp_is_opening(enum nat_tcp state)
{
	return state == NAT_TCP_CLOSED || state == NAT_TCP_OPENING ||
	       state == NAT_TCP_ANSWERED;
}

/* How long a session may be idle, in seconds. */
uint32_t nat_tcp_timeout(const struct nat_timeouts *timeouts,
			 enum nat_tcp state);

/* As shown in lists; NULL after the last. */
const char *nat_tcp_name(uint32_t state);

#endif
