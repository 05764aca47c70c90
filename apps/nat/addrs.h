/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an address is to the translator: its own, external, a subscriber's, one
 * that cannot be on the wire. Made from a configuration, never changed.
 *
 * Most packets come from or go to addresses that are nothing of all that. A
 * table by the first octet says so with one load; only what it flags is looked
 * at.
 */
#ifndef NAT_ADDRS_H
#define NAT_ADDRS_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>

#include "config.h"

struct nat_addrs {
	const struct nat_config *config;
	uint8_t octets[256]; /* by the first octet: may it be odd? */
};

/* config must live as long. */
void nat_addrs_init(struct nat_addrs *addrs, const struct nat_config *config);

/* All addresses below are in network order. */

/* One of the translator's own on that side. */
bool nat_addrs_is_own(const struct nat_addrs *addrs, enum nat_side side,
		      uint32_t addr);
/* Own ones outside, the pool's, those of forwards and one-to-one mappings. */
bool nat_addrs_is_external(const struct nat_addrs *addrs, uint32_t addr);
bool nat_addrs_is_subscriber(const struct nat_addrs *addrs, uint32_t addr);
/* On the link of that side. */
bool nat_addrs_is_on_link(const struct nat_addrs *addrs, enum nat_side side,
			  uint32_t addr);
/* On the inside link, or in a network of subscribers (0.0.0.0/0 is none). */
bool nat_addrs_is_inside(const struct nat_addrs *addrs, uint32_t addr);
/* No host has it: multicast, loopback, broadcast also of that side's links. */
bool nat_addrs_is_martian(const struct nat_addrs *addrs, enum nat_side side,
			  uint32_t addr);
/* Packets to it are not translated; port: of the destination. */
bool nat_addrs_is_excluded(const struct nat_addrs *addrs, uint32_t addr,
			   uint8_t proto, uint16_t port);

/* Whether it is anything of this, or inside: not just a host out there. */
bool nat_addrs_is_odd(const struct nat_addrs *addrs, uint32_t addr);

/* false: certainly not. */
static inline bool nat_addrs_may_be_odd(const struct nat_addrs *addrs,
					uint32_t addr)
{
	return addrs->octets[ntohl(addr) >> 24];
}

#endif
