/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/config/addrs.c against a scan of all lists. */
#include "support/unit.h"

#include <netinet/in.h>

#include "config/addrs.h"

enum { N_CONFIGS = 30, N_LIST = 40, N_ASKED = 4000 };

static uint64_t random_state = 1;

static uint32_t below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1;
	return (uint32_t)((random_state >> 32) * n >> 32);
}

/* Few networks, so that they meet; all sizes. */
static uint32_t any_addr(void)
{
	static const uint32_t nets[] = { 0x0a000000, 0x0a00ff00, 0xc0a80000,
					 0xcb007100, 0xa9fe0000, 0xe0000000,
					 0x00ffff00, 0x7f000000, 0xffffff00 };

	return nets[below(9)] + below(2) * below(1 << 16) + below(512);
}

static struct nat_prefix any_prefix(void)
{
	const uint32_t mask = below(40) == 0 ? 0 : UINT32_MAX << below(20);

	return (struct nat_prefix){ any_addr() & mask, mask };
}

static void fill_config(struct nat_config *c)
{
	for (uint32_t i = 0; i < N_LIST; i++) {
		const uint32_t addr = any_addr();
		const uint16_t port = (uint16_t)below(100);

		c->pool[i] = (struct nat_range){ addr, addr + below(600) };
		if (c->pool[i].last < addr)
			c->pool[i].last = addr;
		c->subscribers[i] = any_prefix();
		c->forwards[i].outside_addr = any_addr();
		c->one_to_ones[i].outside_addr = any_addr();
		c->excludes[i] = (struct nat_exclude){
			any_prefix(), (uint8_t)(below(2) * IPPROTO_UDP), port,
			(uint16_t)(port + below(20))
		};
		if (below(4) == 0)
			c->excludes[i] = (struct nat_exclude){ any_prefix(), 0,
							       0, UINT16_MAX };
	}
	for (uint32_t s = 0; s < NAT_SIDES; s++)
		for (uint32_t i = 0; i < c->sides[s].n_addrs; i++) {
			c->sides[s].nets[i] = any_prefix();
			c->sides[s].addrs[i] =
				c->sides[s].nets[i].addr |
				(below(512) & ~c->sides[s].nets[i].mask);
		}
	c->n_pool = c->n_subscribers = c->n_forwards = c->n_one_to_ones =
		c->n_excludes = 1 + below(N_LIST);
}

static bool is_external(const struct nat_config *c, uint32_t addr)
{
	bool is = false;

	for (uint32_t i = 0; i < c->n_pool; i++)
		is |= (c->pool[i].first <= addr && addr <= c->pool[i].last) ||
		      c->forwards[i].outside_addr == addr ||
		      c->one_to_ones[i].outside_addr == addr;
	for (uint32_t i = 0; i < c->sides[NAT_OUTSIDE].n_addrs; i++)
		is |= c->sides[NAT_OUTSIDE].addrs[i] == addr;
	return is;
}

static bool is_subscriber(const struct nat_config *c, uint32_t addr,
			  bool is_default_one)
{
	for (uint32_t i = 0; i < c->n_subscribers; i++)
		if (nat_prefix_has(&c->subscribers[i], addr) &&
		    (is_default_one || c->subscribers[i].mask != 0))
			return true;
	return false;
}

static bool is_on_link(const struct nat_config *c, uint32_t side, uint32_t addr)
{
	for (uint32_t i = 0; i < c->sides[side].n_addrs; i++)
		if (nat_prefix_has(&c->sides[side].nets[i], addr))
			return true;
	return false;
}

static bool is_martian(const struct nat_config *c, uint32_t side, uint32_t addr)
{
	if (addr >> 24 == 0 || addr >> 24 == 127 || addr >> 24 >= 224 ||
	    (addr >> 16 == 0xa9fe && !is_on_link(c, side, addr)))
		return true;
	for (uint32_t i = 0; i < c->sides[side].n_addrs; i++) {
		const uint32_t rest = ~c->sides[side].nets[i].mask;

		if (rest > 1 && nat_prefix_has(&c->sides[side].nets[i], addr) &&
		    ((addr & rest) == 0 || (addr & rest) == rest))
			return true;
	}
	return false;
}

static bool is_excluded(const struct nat_config *c, uint32_t addr,
			uint8_t proto, uint16_t port)
{
	for (uint32_t i = 0; i < c->n_excludes; i++) {
		const struct nat_exclude *e = &c->excludes[i];

		if (nat_prefix_has(&e->to, addr) &&
		    (e->proto == 0 || e->proto == proto) &&
		    e->first_port <= port && port <= e->last_port)
			return true;
	}
	return false;
}

static void compare(const struct nat_addrs *addrs, const struct nat_config *c)
{
	const uint32_t host = any_addr(), addr = htonl(host);
	const uint8_t proto = below(2) ? IPPROTO_UDP : IPPROTO_TCP;
	const uint16_t port = (uint16_t)below(130);
	const uint32_t is = nat_addrs_of(addrs, addr);
	bool is_odd = is_external(c, host) || is_subscriber(c, host, true);

	assert_int_equal((is & NAT_ADDR_EXTERNAL) != 0, is_external(c, host));
	assert_int_equal((is & NAT_ADDR_SUBSCRIBER) != 0,
			 is_subscriber(c, host, true));
	assert_int_equal((is & NAT_ADDR_INSIDE) != 0,
			 is_subscriber(c, host, false) ||
				 is_on_link(c, NAT_INSIDE, host));
	assert_int_equal(nat_addrs_is_excluded(addrs, addr, proto, htons(port)),
			 is_excluded(c, host, proto, port));
	is_odd |= is_excluded(c, host, proto, port);
	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		bool is_own = false;

		for (uint32_t i = 0; i < c->sides[s].n_addrs; i++)
			is_own |= c->sides[s].addrs[i] == host;
		assert_int_equal((is & NAT_ADDR_OWN << s) != 0, is_own);
		assert_int_equal((is & NAT_ADDR_LINK << s) != 0,
				 is_on_link(c, s, host));
		assert_int_equal(nat_addrs_is_martian(addrs, s, addr),
				 is_martian(c, s, host));
		is_odd |= is_own || is_martian(c, s, host);
	}
	if (is_odd)
		assert_true(nat_addrs_may_be_special(addrs, addr) &&
			    nat_addrs_is_special(addrs, addr));
}

TEST(lookups_and_scans_of_the_lists_agree)
{
	static struct nat_range pool[N_LIST];
	static struct nat_prefix subscribers[N_LIST];
	static struct nat_port_forward forwards[N_LIST];
	static struct nat_one_to_one one_to_ones[N_LIST];
	static struct nat_exclude excludes[N_LIST];
	struct nat_config c = { .pool = pool,
				.subscribers = subscribers,
				.forwards = forwards,
				.one_to_ones = one_to_ones,
				.excludes = excludes,
				.sides = { { .n_addrs = 3 },
					   { .n_addrs = 2 } } };

	for (uint32_t i = 0; i < N_CONFIGS; i++) {
		fill_config(&c);
		assert_int_equal(nat_addrs_create(&c), 0);
		for (uint32_t k = 0; k < N_ASKED; k++)
			compare(c.addrs, &c);
		nat_addrs_destroy(c.addrs);
	}
}
