/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel gets, if it shares our addresses (local: kernel). */
#include "kernel.h"

#include "frame.h"
#include "header.h"

void nat_leave_to_kernel(struct nat_path *path, struct nat_packet *packet,
			 enum nat_drop drop)
{
	if (!path->config->is_shared) {
		nat_drop_packet(path, packet, drop);
		return;
	}
	drop = mr_port_to_kernel(path->ports[packet->from], path->cache,
				 packet->frames, packet->n) == 1 ?
		       NAT_TAKEN :
		       NAT_DROP_TX_FULL;
	counter_add(&path->stats.drops[drop], 1);
}

/* Whether a mapping may have its destination port. */
static bool has_mapped_port(const struct nat_path *path,
			    const struct nat_packet *packet)
{
	return nat_has_ports(packet->proto) &&
	       nat_config_has_port(path->config, ntohl(packet->ip->dst),
				   ntohs(packet->dport));
}

bool nat_is_for_kernel(const struct nat_path *path,
		       const struct nat_packet *packet)
{
	return path->config->is_shared && nat_has_ports(packet->proto) &&
	       nat_addrs_of(&path->addrs, packet->ip->dst) &
		       NAT_ADDR_OWN << NAT_OUTSIDE &&
	       !has_mapped_port(path, packet);
}

bool nat_kernel_takes(const struct nat_path *path,
		      const struct nat_packet *packet, enum nat_drop drop)
{
	const uint32_t is = nat_addrs_of(&path->addrs, packet->ip->dst);

	if (!path->config->is_shared || packet->is_looped ||
	    !(is & NAT_ADDR_OURS))
		return false;
	switch (drop) {
	case NAT_TAKEN:
	case NAT_DROP_PROTOCOL:
	case NAT_DROP_ICMP_TYPE:
	case NAT_DROP_ICMP_EMBEDDED:
	case NAT_DROP_ICMP_EMBEDDED_CSUM:
	case NAT_DROP_ICMP_EMBEDDED_SENDER:
	case NAT_DROP_ICMP_NO_MAPPING:
		return true;
	case NAT_DROP_NO_MAPPING:
	case NAT_DROP_UNSOLICITED_SYN:
		return !(is & NAT_ADDR_GIVEN) || !has_mapped_port(path, packet);
	default:
		return false;
	}
}
