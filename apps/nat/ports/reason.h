/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a frame was dropped. Every frame that was received was sent, is held (for
 * a neighbour, or as a fragment), or is counted here once.
 */
#ifndef NAT_REASON_H
#define NAT_REASON_H

#include <stdint.h>

enum nat_reason {
	NAT_OK,                   /* not dropped; no counter */
	NAT_DROP_RUNT,            /* no whole Ethernet header */
	NAT_DROP_NOT_FOR_US,      /* another host's MAC address */
	NAT_DROP_ETHER_TYPE,      /* neither IPv4 nor ARP, IPv6 included */
	NAT_DROP_VLAN,            /* not the tag of this side */
	NAT_DROP_MALFORMED,       /* IPv4 header wrong or cut off */
	NAT_DROP_IP_CSUM,         /* its sum is wrong */
	NAT_DROP_L4_MALFORMED,    /* TCP, UDP or ICMP header wrong or cut off */
	NAT_DROP_MARTIAN,         /* an address that cannot be there */
	NAT_DROP_SPOOFED,         /* inside address that is no subscriber's,
				   * or an inside or own one from outside */
	NAT_DROP_SOURCE_ROUTE,    /* it ends here, cannot be kept to, or is
				   * not wanted */
	NAT_DROP_TTL,             /* ran out; answered */
	NAT_DROP_PROTOCOL,        /* not translated */
	NAT_DROP_NO_MAPPING,      /* from outside, unsolicited */
	NAT_DROP_FILTERED,        /* mapping there, sender not allowed */
	NAT_DROP_TCP_STATE,       /* no SYN, and no session */
	NAT_DROP_UNSOLICITED_SYN, /* held for 6 s, then answered */
	NAT_DROP_NO_PORT,         /* external ports used up */
	NAT_DROP_QUOTA,           /* the subscriber's limit */
	NAT_DROP_TABLE_FULL,      /* max_mappings or max_sessions */
	NAT_DROP_HAIRPIN_OFF,
	NAT_DROP_ICMP_TYPE, /* neither query nor error that we know */
	NAT_DROP_ICMP_CSUM,
	NAT_DROP_ICMP_EMBEDDED,  /* embedded packet wrong or not ours */
	NAT_DROP_TOO_BIG,        /* DF set; answered */
	NAT_DROP_FRAGMENT_FULL,  /* no room to hold it */
	NAT_DROP_FRAGMENT_OLD,   /* the first one never came */
	NAT_DROP_FRAGMENT_WRONG, /* overlapping or tiny */
	NAT_DROP_NO_ROUTE,       /* not on the link, and no gateway */
	NAT_DROP_NEIGHBOUR,      /* does not answer ARP; answered */
	NAT_DROP_NEIGHBOUR_FULL, /* it does not answer yet, and too many
				  * frames wait, or too many queries, of the
				  * sender's or of all */
	NAT_DROP_ARP,            /* ARP that does not concern us, or wrong */
	NAT_DROP_NO_PAGE,        /* no buffer for a copy or an answer */
	NAT_DROP_TX_FULL,
	NAT_DROP_HANDOFF_FULL, /* the ring to the worker that owns it */
	NAT_DROP_SHUTDOWN,
	NAT_TAKEN, /* a frame for us: ARP, ping. Counted, but not a drop
		    */
	NAT_REASONS,
};

/* The name of a counter, as in JSON; NULL behind the last one. */
const char *nat_reason_name(uint32_t reason);

#endif
