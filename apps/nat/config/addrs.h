/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an address is to the translator: its own, external, a subscriber's, one
 * that cannot be on the wire. Made from a configuration, never changed.
 *
 * Most packets come from or go to addresses that are nothing of all that. A
 * table by the first octet says so with one load; only what it flags is looked
 * up.
 */
#ifndef NAT_ADDRS_H
#define NAT_ADDRS_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>

#include "classes.h"
#include "config.h"

/* Those of a side are shifted by it. */
enum nat_addr_class {
	NAT_ADDR_OWN = 1 << 0,
	NAT_ADDR_LINK = 1 << 2,      /* a network on the link */
	NAT_ADDR_BROADCAST = 1 << 4, /* of such a network */
	NAT_ADDR_MARTIAN = 1 << 6,   /* on any link */
	NAT_ADDR_LINK_LOCAL = 1 << 7,
	NAT_ADDR_EXTERNAL = 1 << 8,
	NAT_ADDR_SUBSCRIBER = 1 << 9,
	NAT_ADDR_INSIDE = 1 << 10,
	NAT_ADDR_EXCLUDED = 1 << 11,
	NAT_ADDR_EXCLUDED_PORTS = 1 << 12, /* some of its ports are */
	NAT_ADDR_GIVEN = 1 << 13, /* external, and hosts inside may have it */
};

struct nat_addrs {
	struct nat_classes classes;
	struct nat_exclude *excludes; /* those of ports: by network and port */
	uint32_t n_excludes;
	uint64_t masks;      /* bit i: there are networks of i bits */
	uint8_t octets[256]; /* by the first octet: may it be odd? */
};

/* 0, or -ENOMEM: there is nothing to end then. */
int nat_addrs_init(struct nat_addrs *addrs, const struct nat_config *config);
void nat_addrs_end(struct nat_addrs *addrs);

/* Make those of a complete configuration, which owns them. 0, or -ENOMEM. It
 * takes time: not for a worker between two bursts. */
int nat_addrs_create(struct nat_config *config);
/* NULL is allowed. */
void nat_addrs_destroy(struct nat_addrs *addrs);

/* All addresses below are in network order. */

static inline uint32_t nat_addrs_of(const struct nat_addrs *addrs,
				    uint32_t addr)
{
	return nat_classes_of(&addrs->classes, ntohl(addr));
}

/* One of the translator's own on that side. */
static inline bool nat_addrs_is_own(const struct nat_addrs *addrs,
				    enum nat_side side, uint32_t addr)
{
	return nat_addrs_of(addrs, addr) & NAT_ADDR_OWN << side;
}

/* Own ones outside, the pool's, those of forwards and one-to-one mappings. */
static inline bool nat_addrs_is_external(const struct nat_addrs *addrs,
					 uint32_t addr)
{
	return nat_addrs_of(addrs, addr) & NAT_ADDR_EXTERNAL;
}

/* An own one that is never the destination of packets to hosts inside. */
static inline bool nat_addrs_is_ours_alone(const struct nat_addrs *addrs,
					   uint32_t addr)
{
	const uint32_t is = nat_addrs_of(addrs, addr);

	return is & (NAT_ADDR_OWN << NAT_INSIDE | NAT_ADDR_OWN
							  << NAT_OUTSIDE) &&
	       (is & NAT_ADDR_GIVEN) == 0;
}

static inline bool nat_addrs_is_subscriber(const struct nat_addrs *addrs,
					   uint32_t addr)
{
	return nat_addrs_of(addrs, addr) & NAT_ADDR_SUBSCRIBER;
}

/* On the link of that side. */
static inline bool nat_addrs_is_on_link(const struct nat_addrs *addrs,
					enum nat_side side, uint32_t addr)
{
	return nat_addrs_of(addrs, addr) & NAT_ADDR_LINK << side;
}

/* On the inside link, or in a network of subscribers (0.0.0.0/0 is none). */
static inline bool nat_addrs_is_inside(const struct nat_addrs *addrs,
				       uint32_t addr)
{
	return nat_addrs_of(addrs, addr) & NAT_ADDR_INSIDE;
}

/* No host has it: multicast, loopback, broadcast also of that side's links. */
static inline bool nat_addrs_is_martian(const struct nat_addrs *addrs,
					enum nat_side side, uint32_t addr)
{
	const uint32_t is = nat_addrs_of(addrs, addr);

	/* RFC 3927 7: link-local addresses stay on their link. */
	return is & (NAT_ADDR_MARTIAN | NAT_ADDR_BROADCAST << side) ||
	       (is & (NAT_ADDR_LINK_LOCAL | NAT_ADDR_LINK << side)) ==
		       NAT_ADDR_LINK_LOCAL;
}

/* Packets to it are not translated; port: of the destination. */
bool nat_addrs_is_excluded(const struct nat_addrs *addrs, uint32_t addr,
			   uint8_t proto, uint16_t port);

/* Whether it is anything of this, or inside: not just a host out there. */
static inline bool nat_addrs_is_odd(const struct nat_addrs *addrs,
				    uint32_t addr)
{
	return nat_addrs_of(addrs, addr) & ~(NAT_ADDR_LINK << NAT_OUTSIDE);
}

/* false: certainly not. */
static inline bool nat_addrs_may_be_odd(const struct nat_addrs *addrs,
					uint32_t addr)
{
	return addrs->octets[ntohl(addr) >> 24];
}

#endif
