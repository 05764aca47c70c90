/* SPDX-License-Identifier: BSD-3-Clause */
/* A translator's state to play with: one pool, one inside network, a clock. */
#ifndef NAT_FIXTURE_H
#define NAT_FIXTURE_H

#include <arpa/inet.h>

#include "support/unit.h"

#include "mapping/session.h"

enum {
	UDP = 17,
	TCP = 6,
	GRE = 47,
	SYN = MR_TCP_SYN,
	ACK = MR_TCP_ACK,
	FIN = MR_TCP_FIN,
	RST = MR_TCP_RST,
};

/* Host order. */
#define INSIDE 0x0a000000u /* 10.0.0.0/8 */
#define POOL 0xcb007100u   /* 203.0.113.0 */
#define REMOTE 0xc6336401u /* 198.51.100.1 */

struct fixture {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct nat_config config;
	struct nat_range pool[4];
	struct nat_prefix subscribers[4];
	struct nat_port_forward forwards[8];
	struct nat_maps *maps;
	uint32_t now_s;
};

static struct fixture fixture;

/* The defaults of mr-nat, and one address; what a test wants it changes. */
static inline void fixture_init(void)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.ctx = test_ctx(&fixture.allocator);
	fixture.pool[0] = (struct nat_range){ POOL, POOL };
	fixture.subscribers[0] = (struct nat_prefix){ INSIDE, 0xff000000 };
	fixture.config = (struct nat_config){
		.pool = fixture.pool,
		.n_pool = 1,
		.subscribers = fixture.subscribers,
		.n_subscribers = 1,
		.forwards = fixture.forwards,
		.timeouts = { 300, 240, 7440, 240, 240, 6, 60, 300, 2, 120 },
		.ports = { .first = 1024, .last = 65535 },
		.max_mappings = 1000000,
		.max_sessions = 100000,
		.is_paired = true,
		.hairpins = true,
	};
	fixture.now_s = 1000;
}

static inline int fixture_try(uint32_t shard, uint32_t n_shards,
			      struct mr_reason *why)
{
	const struct nat_maps_config config = {
		.ctx = fixture.ctx,
		.config = &fixture.config,
		.shard = shard,
		.n_shards = n_shards,
		.seed = 42,
		.now_s = fixture.now_s,
	};

	return nat_maps_create(&config, &fixture.maps, why);
}

static inline void fixture_start(void)
{
	struct mr_reason why = { "" };

	if (fixture_try(0, 1, &why) != 0)
		fail_msg("%s", why.text);
}

static inline void fixture_end(void)
{
	nat_maps_destroy(fixture.maps);
	mr_ctx_destroy(fixture.ctx);
	assert_int_equal(fixture.allocator.n_out, 0);
}

/* Ends in host order to those in network order. */
static inline struct nat_tuple tuple(uint8_t proto, uint32_t addr,
				     uint16_t port)
{
	return (struct nat_tuple){ htonl(addr), htons(port), proto, 0 };
}

static inline struct nat_end remote(uint32_t addr, uint16_t port)
{
	return (struct nat_end){ htonl(addr), htons(port) };
}

static inline uint32_t fixture_map(uint8_t proto, uint32_t addr, uint16_t port)
{
	const struct nat_tuple inside = tuple(proto, addr, port);
	uint32_t id = MR_FLOW_NONE;

	assert_int_equal(
		nat_maps_open(fixture.maps, &inside, fixture.now_s, &id),
		NAT_OK);
	return id;
}

static inline uint32_t fixture_find_out(uint8_t proto, uint32_t addr,
					uint16_t port)
{
	struct nat_tuple inside = tuple(proto, addr, port);
	uint32_t id;

	nat_maps_find_out(fixture.maps, &inside, 1, &id);
	return id;
}

static inline uint32_t fixture_find_in(uint8_t proto, uint32_t addr,
				       uint16_t port)
{
	struct nat_tuple outside = tuple(proto, addr, port);
	uint32_t id;

	nat_maps_find_in(fixture.maps, &outside, 1, &id);
	return id;
}

/* By what stands in the mapping. */
static inline uint32_t fixture_find_back(uint32_t id)
{
	const struct nat_tuple outside =
		nat_outside_of(nat_map_at(fixture.maps, id));
	uint32_t back;

	nat_maps_find_in(fixture.maps, &outside, 1, &back);
	return back;
}

static inline enum nat_drop fixture_out(uint32_t id, uint32_t addr,
					uint16_t port, uint8_t flags)
{
	return nat_maps_out(fixture.maps, id, remote(addr, port),
			    &(struct nat_segment){ .flags = flags },
			    fixture.now_s);
}

static inline enum nat_drop fixture_in(uint32_t id, uint32_t addr,
				       uint16_t port, uint8_t flags)
{
	return nat_maps_in(fixture.maps, id, remote(addr, port),
			   &(struct nat_segment){ .flags = flags },
			   fixture.now_s);
}

/* All that is due at this time. Returns how many mappings ended. */
static inline uint32_t fixture_at(uint32_t now_s)
{
	const struct nat_maps *maps = fixture.maps;
	uint32_t n = 0, n_idle = 0;

	fixture.now_s = now_s;
	/* A call may do no more than set timers of what was used. */
	while (n_idle < 40) {
		uint64_t before = maps->n_sessions + maps->ports->n_hold_down;
		uint32_t here = nat_maps_expire(fixture.maps, now_s);
		uint64_t behind = maps->n_sessions + maps->ports->n_hold_down;

		n += here;
		n_idle = here > 0 || before != behind ? 0 : n_idle + 1;
	}
	return n;
}

static inline struct nat_maps_stats fixture_stats(void)
{
	struct nat_maps_stats stats;

	nat_maps_stats(fixture.maps, &stats);
	return stats;
}

/* The invariant of ports. */
static inline void fixture_check_ports(void)
{
	struct nat_ports_stats s;

	nat_ports_stats(fixture.maps->ports, &s);
	assert_int_equal(s.n_all,
			 s.n_free + s.n_used + s.n_hold_down + s.n_static);
}

static inline uint16_t fixture_port(uint32_t id)
{
	return ntohs(nat_map_at(fixture.maps, id)->outside_port);
}

static inline uint32_t fixture_addr(uint32_t id)
{
	return ntohl(nat_map_at(fixture.maps, id)->outside_addr);
}

static inline int fixture_set_up(void **state)
{
	(void)state;
	fixture_init();
	return 0;
}

static inline int fixture_set_up_started(void **state)
{
	fixture_set_up(state);
	fixture_start();
	return 0;
}

static inline int fixture_tear_down(void **state)
{
	(void)state;
	fixture_end();
	return 0;
}

/* A test that has a fixture, which it changes before it starts it; and one that
 * has it started as it is. */
#define TEST_FIXTURE(name) TEST_WITH(fixture_set_up, fixture_tear_down, name)
#define TEST_STARTED(name)                                                     \
	TEST_WITH(fixture_set_up_started, fixture_tear_down, name)

#endif
