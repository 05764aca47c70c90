/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP packets: answer, learn and announce. RFC 826, RFC 5227. */
#include "arp.h"

#include <arpa/inet.h>

#include "frame.h"
#include "kernel.h"

enum {
	ANNOUNCE_BURST = 32,  /* per tick */
	MAX_ANNOUNCED = 1024, /* external addresses */
};

void nat_arp_send(struct nat_path *path, enum nat_side side, uint16_t op,
		  uint64_t to_mac, uint32_t sender, uint32_t target)
{
	const struct nat_link *link = &path->links[side];
	struct nat_packet packet;
	struct mr_arp arp = { .hardware = htons(1),
			      .protocol = htons(MR_ETHER_IPV4),
			      .hardware_bytes = 6,
			      .protocol_bytes = 4,
			      .op = htons(op),
			      .sender = sender,
			      .target = target };

	if (!nat_make(path, &packet, sizeof(arp)))
		return;
	memcpy(arp.sender_mac, &link->mac, 6);
	memcpy(arp.target_mac, &to_mac, 6);
	memcpy(mr_frame_data(path->base, packet.frames) + packet.l2_bytes, &arp,
	       sizeof(arp));
	nat_send_as(path, &packet, side, MR_ETHER_ARP,
		    to_mac != 0 ? to_mac : NAT_MAC_MASK);
}

/* Whether we answer for addr on that side. */
static bool is_ours(const struct nat_path *path, enum nat_side side,
		    uint32_t addr)
{
	return nat_addrs_of(&path->addrs, addr) &
	       (side == NAT_INSIDE ? NAT_ADDR_OWN << side : NAT_ADDR_EXTERNAL);
}

/* Whether an ARP packet is credible. */
static bool is_plausible(const struct nat_path *path, enum nat_side side,
			 const struct mr_eth *eth, const struct mr_arp *arp)
{
	return arp->hardware == htons(1) &&
	       arp->protocol == htons(MR_ETHER_IPV4) &&
	       arp->hardware_bytes == 6 && arp->protocol_bytes == 4 &&
	       (arp->op == htons(MR_ARP_REQUEST) ||
		arp->op == htons(MR_ARP_REPLY)) &&
	       memcmp(arp->sender_mac, eth->src, 6) == 0 &&
	       (arp->sender_mac[0] & 1) == 0 &&
	       !is_ours(path, side, arp->sender) &&
	       (arp->sender == 0 ||
		(nat_addrs_of(&path->addrs, arp->sender) & NAT_ADDR_LINK
								   << side &&
		 !nat_addrs_is_martian(&path->addrs, side, arp->sender)));
}

bool nat_arp_input(struct nat_path *path, struct nat_packet *packet)
{
	const enum nat_side side = packet->from;
	const struct mr_eth *eth;
	const struct mr_arp *arp;
	enum nat_drop drop = NAT_TAKEN;
	uint32_t slot = NAT_SLOT_NONE;
	bool is_for_us, asks;

	if (!nat_pull_up(path, packet, packet->l2_bytes + sizeof(*arp))) {
		nat_drop_packet(path, packet, NAT_DROP_ARP);
		return false;
	}
	eth = (const void *)mr_frame_data(path->base, packet->frames);
	arp = (const void *)((const uint8_t *)eth + packet->l2_bytes);
	is_for_us = is_ours(path, side, arp->target);
	asks = arp->op == htons(MR_ARP_REQUEST);
	if (is_plausible(path, side, eth, arp) && arp->sender != 0) {
		/* RFC 826: learn from queries to us; else only renew
		 * entries. */
		slot = is_for_us && asks ?
			       nat_neighbours_add(path->neighbours, side,
						  arp->sender, false,
						  path->now_s) :
			       nat_neighbours_find(path->neighbours, side,
						   arp->sender);
		if (slot != NAT_SLOT_NONE)
			nat_neighbours_learn(
				path->neighbours, slot, side, arp->sender,
				nat_mac(arp->sender_mac), path->now_s);
	}
	if (is_for_us && asks && is_plausible(path, side, eth, arp))
		nat_arp_send(path, side, MR_ARP_REPLY, nat_mac(arp->sender_mac),
			     arp->target, arp->sender);
	else if (slot == NAT_SLOT_NONE)
		drop = NAT_DROP_ARP;
	/* The kernel also learns from ARP, but only we answer queries. */
	(is_for_us && asks ? nat_drop_packet :
			     nat_leave_to_kernel)(path, packet, drop);
	return drop == NAT_TAKEN;
}

/* The i-th address for which we answer outside, or 0 after the last. Addresses
 * of forwards are in the pool or our own. */
static uint32_t external_at(const struct nat_config *config, uint32_t i)
{
	if (i < config->n_one_to_ones)
		return config->one_to_ones[i].outside_addr;
	i -= config->n_one_to_ones;
	for (uint32_t j = 0; j < config->n_pool; j++) {
		const uint32_t n =
			config->pool[j].last - config->pool[j].first + 1;

		if (i < n)
			return config->pool[j].first + i;
		i -= n;
	}
	return 0;
}

static void announce_one(struct nat_path *path, enum nat_side side,
			 uint32_t addr)
{
	if (nat_addrs_of(&path->addrs, addr) & NAT_ADDR_LINK << side)
		nat_arp_send(path, side, MR_ARP_REQUEST, 0, addr, addr);
}

/* Gratuitous ARP: own addresses at once, external ones a few per tick. */
void nat_announce(struct nat_path *path)
{
	const struct nat_config *config = path->config;

	if (path->n_announced == 0)
		for (uint32_t side = 0; side < NAT_SIDES; side++)
			for (uint32_t i = 0; i < config->sides[side].n_addrs;
			     i++)
				announce_one(
					path, side,
					htonl(config->sides[side].addrs[i]));
	for (uint32_t i = 0; i < ANNOUNCE_BURST; i++) {
		const uint32_t addr = external_at(config, path->n_announced++);

		path->is_announced =
			addr == 0 || path->n_announced > MAX_ANNOUNCED;
		if (path->is_announced)
			return;
		if ((nat_addrs_of(&path->addrs, htonl(addr)) &
		     NAT_ADDR_OWN << NAT_OUTSIDE) == 0)
			announce_one(path, NAT_OUTSIDE, htonl(addr));
	}
}
