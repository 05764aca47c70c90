/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the drops, for people and tools. */
#include <stddef.h>

#include "drop.h"

const char *const nat_drop_names[NAT_DROPS] = {
	[NAT_OK] = "ok",
	[NAT_DROP_RUNT] = "runt",
	[NAT_DROP_NOT_FOR_US] = "not_for_us",
	[NAT_DROP_ETHER_TYPE] = "ether_type",
	[NAT_DROP_VLAN] = "vlan",
	[NAT_DROP_MALFORMED] = "malformed",
	[NAT_DROP_IP_CSUM] = "ip_csum",
	[NAT_DROP_L4_MALFORMED] = "l4_malformed",
	[NAT_DROP_MARTIAN] = "martian",
	[NAT_DROP_SPOOFED] = "spoofed",
	[NAT_DROP_SOURCE_ROUTE] = "source_route",
	[NAT_DROP_TTL] = "ttl",
	[NAT_DROP_PROTOCOL] = "protocol",
	[NAT_DROP_NO_MAPPING] = "no_mapping",
	[NAT_DROP_FILTERED] = "filtered",
	[NAT_DROP_TCP_STATE] = "tcp_state",
	[NAT_DROP_UNSOLICITED_SYN] = "unsolicited_syn",
	[NAT_DROP_NO_PORT] = "no_port",
	[NAT_DROP_QUOTA] = "quota",
	[NAT_DROP_TABLE_FULL] = "table_full",
	[NAT_DROP_HAIRPIN_OFF] = "hairpin_off",
	[NAT_DROP_ICMP_TYPE] = "icmp_type",
	[NAT_DROP_ICMP_CSUM] = "icmp_csum",
	[NAT_DROP_ICMP_EMBEDDED] = "icmp_embedded",
	[NAT_DROP_ICMP_EMBEDDED_CSUM] = "icmp_embedded_csum",
	[NAT_DROP_ICMP_EMBEDDED_SENDER] = "icmp_embedded_sender",
	[NAT_DROP_ICMP_NO_MAPPING] = "icmp_no_mapping",
	[NAT_DROP_TOO_BIG] = "too_big",
	[NAT_DROP_FRAGMENT_FULL] = "fragment_full",
	[NAT_DROP_FRAGMENT_OLD] = "fragment_old",
	[NAT_DROP_FRAGMENT_WRONG] = "fragment_wrong",
	[NAT_DROP_NO_ROUTE] = "no_route",
	[NAT_DROP_NEIGHBOUR] = "neighbour",
	[NAT_DROP_NEIGHBOUR_FULL] = "neighbour_full",
	[NAT_DROP_ARP] = "arp",
	[NAT_DROP_NO_PAGE] = "no_page",
	[NAT_DROP_TX_FULL] = "tx_full",
	[NAT_DROP_HANDOFF_FULL] = "handoff_full",
	[NAT_DROP_SHUTDOWN] = "shutdown",
	[NAT_TAKEN] = "taken",
};

const char *nat_drop_name(uint32_t drop)
{
	return drop < NAT_DROPS ? nat_drop_names[drop] : NULL;
}
