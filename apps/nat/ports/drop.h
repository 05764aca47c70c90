/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a frame was dropped. Every received frame is sent, held (for a neighbour,
 * or as a fragment), or counted here once.
 */
#ifndef NAT_DROP_H
#define NAT_DROP_H

#include <stdint.h>

enum nat_drop {
	NAT_OK,                   /* not dropped; no counter */
	NAT_DROP_RUNT,            /* no complete Ethernet header */
	NAT_DROP_NOT_FOR_US,      /* another host's MAC address */
	NAT_DROP_ETHER_TYPE,      /* neither IPv4 nor ARP, IPv6 included */
	NAT_DROP_VLAN,            /* not the tag of this side */
	NAT_DROP_MALFORMED,       /* IPv4 header invalid or truncated */
	NAT_DROP_IP_CSUM,         /* wrong IPv4 checksum */
	NAT_DROP_L4_MALFORMED,    /* bad TCP, UDP or ICMP header */
	NAT_DROP_MARTIAN,         /* an invalid address */
	NAT_DROP_SPOOFED,         /* from inside, not a subscriber's address, or
				   * from outside, an inside or own one */
	NAT_DROP_SOURCE_ROUTE,    /* LSRR or SSRR: RFC 7126 */
	NAT_DROP_TTL,             /* expired; answered */
	NAT_DROP_PROTOCOL,        /* not translated */
	NAT_DROP_NO_MAPPING,      /* from outside, unsolicited */
	NAT_DROP_FILTERED,        /* the mapping's filter rejects the sender */
	NAT_DROP_TCP_STATE,       /* not a SYN, and no session */
	NAT_DROP_UNSOLICITED_SYN, /* held for 6 s, then answered */
	NAT_DROP_NO_PORT,         /* no external ports left */
	NAT_DROP_QUOTA,           /* the subscriber's limit */
	NAT_DROP_TABLE_FULL,      /* max_mappings or max_sessions */
	NAT_DROP_HAIRPIN_OFF,
	NAT_DROP_ICMP_TYPE, /* neither a query nor a known error */
	NAT_DROP_ICMP_CSUM,
	NAT_DROP_ICMP_EMBEDDED, /* embedded packet too short, a later fragment,
				 * an error itself, or not IPv4 */
	NAT_DROP_ICMP_EMBEDDED_CSUM, /* bad IP checksum; icmp_errors: strict */
	NAT_DROP_ICMP_EMBEDDED_SENDER, /* the error goes to another host than
					* its sender */
	NAT_DROP_ICMP_NO_MAPPING,      /* about a packet without a mapping */
	NAT_DROP_TOO_BIG,        /* DF set; answered */
	NAT_DROP_FRAGMENT_FULL,  /* no room to hold it */
	NAT_DROP_FRAGMENT_OLD,   /* the first fragment never came */
	NAT_DROP_FRAGMENT_WRONG, /* overlapping or tiny */
	NAT_DROP_NO_ROUTE,       /* not on the link, and no gateway */
	NAT_DROP_NEIGHBOUR,      /* no answer to ARP; answered */
	NAT_DROP_NEIGHBOUR_FULL, /* no answer yet, and too many frames or
				  * queries are waiting, of this sender or of
				  * all */
	NAT_DROP_ARP,            /* invalid ARP, or not about us */
	NAT_DROP_NO_PAGE,        /* no buffer for a copy or an answer */
	NAT_DROP_TX_FULL,
	NAT_DROP_HANDOFF_FULL, /* the ring to its owner is full */
	NAT_DROP_SHUTDOWN,
	NAT_TAKEN, /* a frame for us: ARP, ping; counted, but not a drop */
	NAT_DROPS,
};

/* Names of their counters, as in JSON. */
extern const char *const nat_drop_names[NAT_DROPS];
/* NULL after the last. */
const char *nat_drop_name(uint32_t drop);

#endif
