/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/reload.c: what lives on, what ends, and nothing by
 * half. */
#include <errno.h>

#include "fixture.h"

/* The fixture's own configuration may not change under it: another one. */
struct next {
	struct nat_config config;
	struct nat_range pool[4];
	struct nat_prefix subscribers[4];
	struct nat_port_forward forwards[8];
};

static void next_init(struct next *next)
{
	next->config = fixture.config;
	memcpy(next->pool, fixture.pool, sizeof(next->pool));
	memcpy(next->subscribers, fixture.subscribers,
	       sizeof(next->subscribers));
	memcpy(next->forwards, fixture.forwards, sizeof(next->forwards));
	next->config.pool = next->pool;
	next->config.subscribers = next->subscribers;
	next->config.forwards = next->forwards;
}

static void reload(struct next *next)
{
	struct mr_reason why = { "" };

	if (nat_maps_reload(fixture.maps, &next->config, fixture.now_s, &why) !=
	    0)
		fail_msg("%s", why.text);
	fixture_check_ports();
}

/* A reload is done with what changed, however many mappings there are. */
TEST_STARTED(a_reload_does_not_walk_mappings_that_stay)
{
	struct nat_ports *ports;
	struct next next;
	uint32_t n_new = 0;

	for (uint32_t i = 0; i < 5000; i++)
		fixture_map(UDP, INSIDE + i, 1);
	ports = fixture.maps->ports;
	next_init(&next);
	reload(&next);
	next.pool[0].first = POOL - 3;
	next.forwards[0] = (struct nat_port_forward){
		POOL, INSIDE + 5, 80, 80, 80, 1 << NAT_TCP
	};
	next.config.n_forwards = 1;
	next.config.timeouts.udp_s = 400;
	reload(&next);
	assert_ptr_equal(fixture.maps->ports, ports);
	assert_int_equal(fixture.maps->review, NAT_REVIEW_NONE);
	assert_int_equal(fixture_port(fixture_find_in(TCP, POOL, 80)), 80);
	for (uint32_t i = 0; i < 400; i++)
		n_new += fixture_addr(fixture_map(TCP, INSIDE + 6000 + i, 1)) !=
			 POOL;
	assert_in_range(n_new, 200, 400);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t id = fixture_find_out(UDP, INSIDE + i, 1);

		assert_int_equal(fixture_addr(id), POOL);
		assert_int_equal(fixture_find_back(id), id);
	}
	/* And back, with which the ports are made anew. */
	next_init(&next);
	reload(&next);
	assert_ptr_not_equal(fixture.maps->ports, ports);
	assert_int_equal(fixture_stats().n_mappings, 5400 - n_new);
}

/* What may end is looked at in parts. */
TEST_STARTED(a_reload_ends_mappings_in_parts)
{
	struct next next;
	uint32_t n_ended, n_calls = 0;

	for (uint32_t i = 0; i < 5000; i++)
		fixture_map(UDP, INSIDE + i, 1);
	next_init(&next);
	next.subscribers[0].mask = 0xfffffc00;
	reload(&next);
	assert_int_equal(fixture_stats().n_mappings, 5000);
	for (uint32_t left = 5000; left > 1024; left -= n_ended) {
		n_ended = nat_maps_expire(fixture.maps, 1000);
		assert_in_range(n_ended, 0, 1024);
		assert_in_range(n_calls++, 0, 10);
	}
	assert_int_equal(fixture_stats().n_subscribers, 1024);
	assert_int_equal(fixture_at(1000), 0);
	assert_int_equal(fixture.maps->review, NAT_REVIEW_NONE);
}

/* No room for one of them: the old configuration stays in force. */
TEST_FIXTURE(static_mappings_are_made_before_others_end)
{
	struct mr_reason why;
	struct next next;
	uint32_t id, n = 0;

	fixture.forwards[0] = (struct nat_port_forward){ POOL, INSIDE + 5,  80, 80,
						    80,   1 << NAT_TCP };
	fixture.config.n_forwards = 1;
	fixture.config.max_mappings = 10;
	fixture_start();
	id = fixture_find_in(TCP, POOL, 80);
	/* Others take all numbers. */
	for (struct nat_tuple end = { .proto = GRE, .reserved = 1 };
	     nat_other_add(fixture.maps, &end, id) == 0; end.addr++)
		n++;
	assert_int_equal(nat_other_add(fixture.maps,
				       &(struct nat_tuple){ .reserved = 2 },
				       id),
			 -ENOSPC);
	next_init(&next);
	next.forwards[0] = (struct nat_port_forward){
		POOL, INSIDE + 6, 81, 89, 80, 1 << NAT_TCP
	};
	next.config.timeouts.udp_s = 1;
	assert_int_equal(
		nat_maps_reload(fixture.maps, &next.config, 1000, &why),
		-ENOMEM);
	assert_reason_has(&why, "no memory for static mappings");
	assert_int_equal(fixture_find_in(TCP, POOL, 80), id);
	assert_int_equal(fixture_find_in(TCP, POOL, 81), MR_FLOW_NONE);
	assert_int_equal(fixture_find_out(TCP, INSIDE + 6, 80), MR_FLOW_NONE);
	assert_int_equal(fixture_stats().n_mappings, 1);
	assert_int_equal(fixture_stats().n_subscribers, 1);
	assert_int_equal(fixture.maps->timeouts.udp_s, 300);
	assert_true(n > 0);
}

TEST_FIXTURE(too_many_static_mappings_leave_all_as_it_was)
{
	struct mr_reason why;
	struct next next;
	uint32_t id;

	fixture_start();
	id = fixture_map(UDP, INSIDE, 1);
	next_init(&next);
	next.forwards[0] =
		(struct nat_port_forward){ POOL, INSIDE, 1, 9000, 1, 1 << NAT_TCP };
	next.config.n_forwards = 1;
	next.config.timeouts.udp_s = 1;
	assert_int_equal(
		nat_maps_reload(fixture.maps, &next.config, 1000, &why),
		-EINVAL);
	assert_reason_has(&why, "9000 static mappings need a restart");
	assert_int_equal(fixture_find_back(id), id);
	assert_int_equal(fixture_stats().n_mappings, 1);
	assert_int_equal(fixture.maps->timeouts.udp_s, 300);
}
