/* SPDX-License-Identifier: BSD-3-Clause */
/* What an address is: addrs.h. Sources: RFC 1122 3.2.1.3, RFC 6890. */
#include <netinet/in.h>
#include <string.h>

#include "addrs.h"

enum { LINK_LOCAL = 0xa9fe0000u }; /* 169.254.0.0/16 */

/* Flag the octets that the addresses first to last (host order) begin with. */
static void flag(uint8_t *table, uint32_t first, uint32_t last)
{
	for (uint32_t octet = first >> 24; octet <= last >> 24; octet++)
		table[octet] = 1;
}

static void flag_prefix(uint8_t *table, const struct nat_prefix *prefix)
{
	flag(table, prefix->addr, prefix->addr | ~prefix->mask);
}

/* Addresses that no packet comes from or goes to, wherever. */
static void flag_martians(uint8_t *table)
{
	flag(table, 0, 0);
	flag(table, INADDR_LOOPBACK, INADDR_LOOPBACK);
	flag(table, LINK_LOCAL, LINK_LOCAL);
	flag(table, INADDR_UNSPEC_GROUP, INADDR_BROADCAST);
}

static void flag_external(uint8_t *table, const struct nat_config *config)
{
	for (uint32_t i = 0; i < config->n_pool; i++)
		flag(table, config->pool[i].first, config->pool[i].last);
	for (uint32_t i = 0; i < config->n_forwards; i++)
		flag(table, config->forwards[i].outside_addr,
		     config->forwards[i].outside_addr);
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		flag(table, config->one_to_ones[i].outside_addr,
		     config->one_to_ones[i].outside_addr);
}

void nat_addrs_init(struct nat_addrs *addrs, const struct nat_config *config)
{
	memset(addrs, 0, sizeof(*addrs));
	addrs->config = config;
	flag_martians(addrs->octets);
	flag_external(addrs->octets, config);
	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		const struct nat_side_config *c = &config->sides[side];

		for (uint32_t i = 0; i < c->n_addrs; i++) {
			flag(addrs->octets, c->addrs[i], c->addrs[i]);
			flag_prefix(addrs->octets, &c->nets[i]);
		}
	}
	for (uint32_t i = 0; i < config->n_subscribers; i++)
		flag_prefix(addrs->octets, &config->subscribers[i]);
	for (uint32_t i = 0; i < config->n_excludes; i++)
		flag_prefix(addrs->octets, &config->excludes[i].to);
}

bool nat_addrs_is_own(const struct nat_addrs *addrs, enum nat_side side,
		      uint32_t addr)
{
	const struct nat_side_config *c = &addrs->config->sides[side];

	for (uint32_t i = 0; i < c->n_addrs; i++)
		if (c->addrs[i] == ntohl(addr))
			return true;
	return false;
}

bool nat_addrs_is_external(const struct nat_addrs *addrs, uint32_t addr)
{
	const struct nat_config *config = addrs->config;
	const uint32_t host = ntohl(addr);

	for (uint32_t i = 0; i < config->n_pool; i++)
		if (config->pool[i].first <= host &&
		    host <= config->pool[i].last)
			return true;
	for (uint32_t i = 0; i < config->n_forwards; i++)
		if (config->forwards[i].outside_addr == host)
			return true;
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		if (config->one_to_ones[i].outside_addr == host)
			return true;
	return nat_addrs_is_own(addrs, NAT_OUTSIDE, addr);
}

bool nat_addrs_is_subscriber(const struct nat_addrs *addrs, uint32_t addr)
{
	for (uint32_t i = 0; i < addrs->config->n_subscribers; i++)
		if (nat_prefix_has(&addrs->config->subscribers[i], ntohl(addr)))
			return true;
	return false;
}

bool nat_addrs_is_on_link(const struct nat_addrs *addrs, enum nat_side side,
			  uint32_t addr)
{
	const struct nat_side_config *c = &addrs->config->sides[side];

	for (uint32_t i = 0; i < c->n_addrs; i++)
		if (nat_prefix_has(&c->nets[i], ntohl(addr)))
			return true;
	return false;
}

bool nat_addrs_is_inside(const struct nat_addrs *addrs, uint32_t addr)
{
	for (uint32_t i = 0; i < addrs->config->n_subscribers; i++)
		if (addrs->config->subscribers[i].mask != 0 &&
		    nat_prefix_has(&addrs->config->subscribers[i], ntohl(addr)))
			return true;
	return nat_addrs_is_on_link(addrs, NAT_INSIDE, addr);
}

bool nat_addrs_is_martian(const struct nat_addrs *addrs, enum nat_side side,
			  uint32_t addr)
{
	const struct nat_side_config *c = &addrs->config->sides[side];
	const uint32_t host = ntohl(addr);

	if (host >> 24 == 0 || host >> 24 == IN_LOOPBACKNET ||
	    host >= INADDR_UNSPEC_GROUP)
		return true;
	/* RFC 3927 7: it stays on its link. */
	if (host >> 16 == LINK_LOCAL >> 16 &&
	    !nat_addrs_is_on_link(addrs, side, addr))
		return true;
	for (uint32_t i = 0; i < c->n_addrs; i++) {
		const uint32_t rest = ~c->nets[i].mask;

		/* A link of two or one has no broadcast: RFC 3021. */
		if (rest > 1 && nat_prefix_has(&c->nets[i], host) &&
		    ((host & rest) == rest || (host & rest) == 0))
			return true;
	}
	return false;
}

bool nat_addrs_is_excluded(const struct nat_addrs *addrs, uint32_t addr,
			   uint8_t proto, uint16_t port)
{
	for (uint32_t i = 0; i < addrs->config->n_excludes; i++) {
		const struct nat_exclude *e = &addrs->config->excludes[i];

		if (nat_prefix_has(&e->to, ntohl(addr)) &&
		    (e->proto == 0 || e->proto == proto) &&
		    e->first_port <= ntohs(port) && ntohs(port) <= e->last_port)
			return true;
	}
	return false;
}

static bool is_excluded_host(const struct nat_addrs *addrs, uint32_t addr)
{
	for (uint32_t i = 0; i < addrs->config->n_excludes; i++)
		if (nat_prefix_has(&addrs->config->excludes[i].to, ntohl(addr)))
			return true;
	return false;
}

bool nat_addrs_is_odd(const struct nat_addrs *addrs, uint32_t addr)
{
	return nat_addrs_is_martian(addrs, NAT_INSIDE, addr) ||
	       nat_addrs_is_martian(addrs, NAT_OUTSIDE, addr) ||
	       nat_addrs_is_own(addrs, NAT_INSIDE, addr) ||
	       nat_addrs_is_inside(addrs, addr) ||
	       nat_addrs_is_external(addrs, addr) ||
	       is_excluded_host(addrs, addr);
}
