/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an address is to the NAT: its own, external, a subscriber's, or invalid.
 * Built from a configuration; immutable.
 *
 * Most addresses are none of these. A table indexed by the first octet shows
 * this with one load; only addresses that it flags are looked up.
 */
#ifndef NAT_ADDRS_H
#define NAT_ADDRS_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* Classes that depend on the side are shifted left by it. */
enum nat_addr_class {
	NAT_ADDR_OWN = 1 << 0, /* of the translator */
	NAT_ADDR_OURS = NAT_ADDR_OWN << NAT_INSIDE | NAT_ADDR_OWN
							     << NAT_OUTSIDE,
	NAT_ADDR_LINK = 1 << 2,      /* a network on the link */
	NAT_ADDR_BROADCAST = 1 << 4, /* of such a network */
	NAT_ADDR_MARTIAN = 1 << 6,   /* invalid on any link */
	NAT_ADDR_LINK_LOCAL = 1 << 7,
	/* Its own outside, the pool's, those of forwards and one-to-ones. */
	NAT_ADDR_EXTERNAL = 1 << 8,
	NAT_ADDR_SUBSCRIBER = 1 << 9,
	/* On the inside link, or a subscriber's other than of 0.0.0.0/0. */
	NAT_ADDR_INSIDE = 1 << 10,
	NAT_ADDR_EXCLUDED = 1 << 11,
	NAT_ADDR_EXCLUDED_PORTS = 1 << 12, /* some of its ports are excluded */
	NAT_ADDR_GIVEN = 1 << 13,          /* external, for inside hosts */
	NAT_ADDR_FIXED = 1 << 14, /* of forwards or one-to-one mappings */
};

/*
 * Which classes an address belongs to: ranges of addresses with bits. A lookup
 * takes at most three loads, however many ranges there are.
 *
 *     slot of the upper 16 bits --> 256 slots of the next 8 --> 256 of the last
 *
 * A slot has bits if they hold for all of its addresses, else its own slots.
 */
enum { NAT_CLASSES_SPLIT = 1u << 31 }; /* not among the bits */

struct nat_classes {
	uint32_t *slots;
	uint32_t n, n_max;
};

/* The bits of an address, host order. */
static inline uint32_t nat_classes_of(const struct nat_classes *classes,
				      uint32_t addr)
{
	uint32_t slot = classes->slots[addr >> 16];

	if (slot & NAT_CLASSES_SPLIT)
		slot = classes->slots[(slot & ~NAT_CLASSES_SPLIT) +
				      (addr >> 8 & 255)];
	if (slot & NAT_CLASSES_SPLIT)
		slot = classes->slots[(slot & ~NAT_CLASSES_SPLIT) +
				      (addr & 255)];
	return slot;
}

struct nat_addrs {
	struct nat_classes classes;
	struct nat_exclude *excludes; /* by network and port */
	uint32_t n_excludes;
	uint64_t masks;      /* bit i: there are networks with i bits */
	uint8_t octets[256]; /* by first octet: may it be special? */
};

/* Build config->addrs for a complete configuration. Returns 0 or -ENOMEM. Too
 * slow for a worker between two bursts. */
int nat_addrs_create(struct nat_config *config);
/* NULL is allowed. */
void nat_addrs_destroy(struct nat_addrs *addrs);

/* All addresses below are in network order. */

static inline uint32_t nat_addrs_of(const struct nat_addrs *addrs,
				    uint32_t addr)
{
	return nat_classes_of(&addrs->classes, ntohl(addr));
}

/* An own address at which no inside host can be reached. */
static inline bool nat_addrs_is_ours_alone(const struct nat_addrs *addrs,
					   uint32_t addr)
{
	const uint32_t is = nat_addrs_of(addrs, addr);

	return is & NAT_ADDR_OURS && (is & NAT_ADDR_GIVEN) == 0;
}

/* Not a host's: multicast, loopback, or broadcast on that side. */
static inline bool nat_addrs_is_martian(const struct nat_addrs *addrs,
					enum nat_side side, uint32_t addr)
{
	const uint32_t is = nat_addrs_of(addrs, addr);

	/* RFC 3927 7: link-local addresses stay on their link. */
	return is & (NAT_ADDR_MARTIAN | NAT_ADDR_BROADCAST << side) ||
	       (is & (NAT_ADDR_LINK_LOCAL | NAT_ADDR_LINK << side)) ==
		       NAT_ADDR_LINK_LOCAL;
}

/* Packets to it are not translated; port is the destination port. */
bool nat_addrs_is_excluded(const struct nat_addrs *addrs, uint32_t addr,
			   uint8_t proto, uint16_t port);

/* Whether it has a class other than that of the outside link. */
static inline bool nat_addrs_is_special(const struct nat_addrs *addrs,
					uint32_t addr)
{
	return nat_addrs_of(addrs, addr) & ~(NAT_ADDR_LINK << NAT_OUTSIDE);
}

/* If false, so is nat_addrs_is_special(). */
static inline bool nat_addrs_may_be_special(const struct nat_addrs *addrs,
					    uint32_t addr)
{
	return addrs->octets[ntohl(addr) >> 24];
}

#endif
