/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine as a table; see tcp.h. */
#include <stddef.h>

#include "tcp.h"

/* How a segment is classified. RST outranks SYN, SYN outranks FIN. */
enum event {
	OUT_SYN,
	OUT_SYN_ACK,
	OUT_FIN,
	OUT_RST,
	OUT_DATA,
	IN_SYN, /* with or without ACK: simultaneous open */
	IN_FIN,
	IN_RST,
	IN_DATA,
	EVENTS,
};

/* Without their prefix. */
enum {
	CLOSED = NAT_TCP_CLOSED,
	OPENING = NAT_TCP_OPENING,
	OPEN = NAT_TCP_OPEN,
	HALF_OUT = NAT_TCP_HALF_OUT,
	HALF_IN = NAT_TCP_HALF_IN,
	CLOSING = NAT_TCP_CLOSING,
	RESET = NAT_TCP_RESET,
	ANSWERED = NAT_TCP_ANSWERED,
};

/*
 * By event, in the order of the enum. An outgoing SYN after the end of the
 * connection begins a new one between the same ends, which the old timer must
 * not cut off. ANSWERED: the host whose address was forged answers with RST.
 */
static const uint8_t next[NAT_TCP_STATES][EVENTS] = {
	[CLOSED] = { OPENING, ANSWERED },
	[OPENING] = { OPENING, OPENING, OPENING, OPENING, OPENING, /* out */
		      OPEN, OPENING, OPENING, OPENING },
	[OPEN] = { OPEN, OPEN, HALF_OUT, RESET, OPEN, /* out */
		   OPEN, HALF_IN, RESET, OPEN },
	[HALF_OUT] = { HALF_OUT, HALF_OUT, HALF_OUT, RESET, HALF_OUT, /* out */
		       HALF_OUT, CLOSING, RESET, HALF_OUT },
	[HALF_IN] = { HALF_IN, HALF_IN, CLOSING, RESET, HALF_IN, /* out */
		      HALF_IN, HALF_IN, RESET, HALF_IN },
	[CLOSING] = { OPENING, ANSWERED, CLOSING, CLOSING, CLOSING, /* out */
		      CLOSING, CLOSING, CLOSING, CLOSING },
	[RESET] = { OPENING, ANSWERED, HALF_OUT, RESET, OPEN, /* out */
		    RESET, HALF_IN, RESET, OPEN },
	[ANSWERED] = { ANSWERED, ANSWERED, ANSWERED, ANSWERED, ANSWERED,
		       ANSWERED, HALF_IN, ANSWERED, OPEN },
};

static enum event event_of(enum nat_direction direction, uint8_t flags)
{
	bool is_out = direction == NAT_OUT;

	if (flags & MR_TCP_RST)
		return is_out ? OUT_RST : IN_RST;
	if (flags & MR_TCP_SYN && is_out)
		return flags & MR_TCP_ACK ? OUT_SYN_ACK : OUT_SYN;
	if (flags & MR_TCP_SYN)
		return IN_SYN;
	if (flags & MR_TCP_FIN)
		return is_out ? OUT_FIN : IN_FIN;
	return is_out ? OUT_DATA : IN_DATA;
}

enum nat_tcp nat_tcp_next(enum nat_tcp state, enum nat_direction direction,
			  uint8_t flags)
{
	return (enum nat_tcp)next[state][event_of(direction, flags)];
}

bool nat_tcp_refreshes(enum nat_tcp state, uint8_t flags)
{
	switch (state) {
	case NAT_TCP_OPENING:
	case NAT_TCP_ANSWERED:
		return (flags & (MR_TCP_SYN | MR_TCP_RST)) == MR_TCP_SYN;
	case NAT_TCP_OPEN:
	case NAT_TCP_HALF_OUT:
	case NAT_TCP_HALF_IN:
		return (flags & MR_TCP_RST) == 0;
	default:
		return false;
	}
}

uint32_t nat_tcp_timeout(const struct nat_timeouts *timeouts,
			 enum nat_tcp state)
{
	switch (state) {
	case NAT_TCP_OPEN:
	case NAT_TCP_HALF_OUT:
	case NAT_TCP_HALF_IN:
		return timeouts->tcp_open_s;
	case NAT_TCP_CLOSING:
		return timeouts->tcp_closing_s;
	case NAT_TCP_RESET:
		return timeouts->tcp_reset_s;
	default:
		return timeouts->tcp_opening_s;
	}
}

const char *nat_tcp_name(uint32_t state)
{
	static const char *const names[] = {
		"closed",  "opening", "open",     "half-out", "half-in",
		"closing", "reset",   "answered", NULL,
	};

	return names[state < NAT_TCP_STATES ? state : NAT_TCP_STATES];
}
