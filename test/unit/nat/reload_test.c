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
	struct nat_forward forwards[8];
	struct nat_one_to_one one_to_ones[4];
};

static void next_init(struct next *next)
{
	next->config = fixture.config;
	memcpy(next->pool, fixture.pool, sizeof(next->pool));
	memcpy(next->subscribers, fixture.subscribers,
	       sizeof(next->subscribers));
	memcpy(next->forwards, fixture.forwards, sizeof(next->forwards));
	memcpy(next->one_to_ones, fixture.one_to_ones,
	       sizeof(next->one_to_ones));
	next->config.pool = next->pool;
	next->config.subscribers = next->subscribers;
	next->config.forwards = next->forwards;
	next->config.one_to_ones = next->one_to_ones;
}

static void reload(struct next *next)
{
	struct mr_reason why = { "" };

	if (nat_maps_reload(fixture.maps, &next->config, fixture.now_s, &why) !=
	    0)
		fail_msg("%s", why.text);
	fixture_check_ports();
}

TEST_FIXTURE(the_same_again_changes_nothing)
{
	struct next next;
	uint32_t ids[3];

	fixture.config.ports.block = 64;
	fixture.config.ports.max_blocks = 4;
	fixture.forwards[0] =
		(struct nat_forward){ POOL, INSIDE + 5, 2000,
				      2009, 1,          1 << NAT_TCP };
	fixture.config.n_forwards = 1;
	fixture_start();
	ids[0] = fixture_map(UDP, INSIDE + 1, 1);
	ids[1] = fixture_map(TCP, INSIDE + 1, 1);
	fixture_out(ids[1], REMOTE, 1, SYN);
	fixture_out(ids[1], REMOTE, 2, SYN);
	ids[2] = fixture_find_in(TCP, POOL, 2003);
	fixture_out(ids[2], REMOTE, 1, SYN | ACK);
	nat_maps_close(fixture.maps, fixture_map(ICMP, INSIDE + 1, 1), 1000);
	fixture.n_events = 0;
	next_init(&next);
	reload(&next);
	assert_int_equal(fixture.n_events, 0);
	assert_int_equal(fixture_find_out(UDP, INSIDE + 1, 1), ids[0]);
	assert_int_equal(fixture_find_back(ids[0]), ids[0]);
	assert_int_equal(fixture_find_back(ids[1]), ids[1]);
	assert_int_equal(fixture_find_in(TCP, POOL, 2003), ids[2]);
	assert_int_equal(nat_map_at(fixture.maps, ids[2])->tcp_state,
			 NAT_TCP_ANSWERED);
	assert_int_equal(fixture_stats().n_sessions, 1);
	assert_int_equal(fixture_stats().n_quarantined, 1);
}

/* Another range of ports has all of them entered anew. */
static void live_on_in_a_larger_pool(uint16_t last_port)
{
	struct next next;
	uint32_t ids[100];
	uint16_t ports[100];

	fixture_init();
	fixture.config.timeouts.hold_down_s = 200;
	fixture_start();
	for (uint32_t i = 0; i < 100; i++) {
		ids[i] = fixture_map(UDP, INSIDE + i / 3, (uint16_t)i);
		ports[i] = fixture_port(ids[i]);
	}
	for (uint32_t i = 0; i < 50; i++)
		nat_maps_close(fixture.maps, ids[i], 1000 + i);
	next_init(&next);
	next.pool[1] = (struct nat_range){ POOL - 10, POOL - 5 };
	next.config.ports.last = last_port;
	next.config.n_pool = 2;
	fixture.now_s = 1060;
	reload(&next);
	for (uint32_t i = 50; i < 100; i++) {
		assert_int_equal(
			fixture_find_out(UDP, INSIDE + i / 3, (uint16_t)i),
			ids[i]);
		assert_int_equal(fixture_find_in(UDP, POOL, ports[i]), ids[i]);
		/* Still paired. */
		assert_int_equal(
			fixture_addr(fixture_map(TCP, INSIDE + i / 3, 1)),
			POOL);
	}
	/* Quarantine goes on as if nothing had been. */
	assert_int_equal(fixture_stats().n_quarantined, 50);
	fixture_at(1200);
	assert_int_equal(fixture_stats().n_quarantined, 50);
	fixture_at(1225);
	assert_int_equal(fixture_stats().n_quarantined, 25);
	fixture_at(1250);
	assert_int_equal(fixture_stats().n_quarantined, 0);
	/* The hosts of the last 50 are 18. */
	assert_int_equal(fixture_at(1301), 50 + 18);
	assert_int_equal(fixture_stats().n_subscribers, 0);
	fixture_check_ports();
	fixture_end();
}

TEST(mappings_live_on_in_a_larger_pool)
{
	live_on_in_a_larger_pool(65535);
}

TEST(mappings_live_on_in_other_ports)
{
	live_on_in_a_larger_pool(65534);
}

/* A reload is done with what changed, however many mappings there are. */
TEST_STARTED(what_stays_is_not_walked)
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
	next.forwards[0] = (struct nat_forward){
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
TEST_STARTED(an_end_is_not_that_of_all_at_once)
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

/* Its external end was found by hash, and has a place from now on. */
TEST_FIXTURE(a_forwards_address_comes_into_the_pool)
{
	struct next next;
	uint32_t id;

	fixture.forwards[0] =
		(struct nat_forward){ POOL + 9, INSIDE + 5, 2000,
				      2000,     80,         1 << NAT_TCP };
	fixture.config.n_forwards = 1;
	fixture_start();
	id = fixture_find_in(TCP, POOL + 9, 2000);
	next_init(&next);
	next.pool[0].last = POOL + 9;
	reload(&next);
	assert_int_equal(fixture_find_in(TCP, POOL + 9, 2000), id);
	assert_int_equal(fixture.maps->ports->n_static, 1);
	next.config.n_forwards = 0;
	reload(&next);
	assert_int_equal(fixture.maps->ports->n_static, 0);
	assert_int_equal(fixture_find_in(TCP, POOL + 9, 2000), MR_FLOW_NONE);
}

/* Another host behind a port, and another port of a host. */
TEST_FIXTURE(forwards_change_hands)
{
	struct nat_ports *ports;
	struct next next;
	uint32_t id;

	fixture.forwards[0] = (struct nat_forward){ POOL, INSIDE + 5,  80, 80,
						    80,   1 << NAT_TCP };
	fixture.forwards[1] = (struct nat_forward){ POOL, INSIDE + 6,  81, 81,
						    81,   1 << NAT_TCP };
	fixture.config.n_forwards = 2;
	fixture_start();
	fixture_map(TCP, INSIDE + 7, 80);
	ports = fixture.maps->ports;
	next_init(&next);
	next.forwards[0].inside_addr = INSIDE + 7;
	next.forwards[1].outside_first = next.forwards[1].outside_last = 82;
	reload(&next);
	assert_ptr_equal(fixture.maps->ports, ports);
	id = fixture_find_in(TCP, POOL, 80);
	assert_int_equal(fixture_find_out(TCP, INSIDE + 7, 80), id);
	assert_int_equal(fixture_port(id), 80);
	assert_int_equal(fixture_find_out(TCP, INSIDE + 5, 80), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(TCP, POOL, 81), MR_FLOW_NONE);
	id = fixture_find_in(TCP, POOL, 82);
	assert_int_equal(fixture_find_out(TCP, INSIDE + 6, 81), id);
	assert_int_equal(fixture_stats().n_mappings, 2);
	assert_int_equal(fixture_stats().n_quarantined, 1);
	fixture_at(1200);
	next.config.n_forwards = 0;
	reload(&next);
	assert_int_equal(fixture_stats().n_mappings, 0);
	assert_int_equal(fixture_stats().n_subscribers, 0);
}

/* No room for one of them: the old configuration stays in force. */
TEST_FIXTURE(static_ones_are_made_before_others_end)
{
	struct mr_reason why;
	struct next next;
	uint32_t id, n = 0;

	fixture.forwards[0] = (struct nat_forward){ POOL, INSIDE + 5,  80, 80,
						    80,   1 << NAT_TCP };
	fixture.config.n_forwards = 1;
	fixture.config.max_mappings = 10;
	fixture_start();
	id = fixture_find_in(TCP, POOL, 80);
	/* Others take all numbers. */
	for (struct nat_tuple end = { .proto = GRE, .realm = 1 };
	     nat_other_add(fixture.maps, &end, id) == 0; end.addr++)
		n++;
	assert_int_equal(nat_other_add(fixture.maps,
				       &(struct nat_tuple){ .realm = 2 }, id),
			 -ENOSPC);
	next_init(&next);
	next.forwards[0] = (struct nat_forward){
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

TEST_FIXTURE(what_is_no_longer_allowed_ends)
{
	struct next next;
	uint32_t n_kept = 0;

	fixture.pool[0].last = POOL + 1;
	fixture.config.logs_sessions = true;
	fixture.config.passes_other_protocols = true;
	fixture_start();
	for (uint32_t i = 0; i < 100; i++)
		fixture_map(UDP, INSIDE + i, 1);
	fixture_map(GRE, INSIDE + 1, 0);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t id = fixture_find_out(UDP, INSIDE + i, 1);

		n_kept += fixture_addr(id) == POOL && fixture_port(id) < 40000;
	}
	fixture.n_events = 0;
	next_init(&next);
	next.pool[0].last = POOL;
	next.config.ports.last = 39999;
	next.subscribers[0].mask = 0xffffffc0;
	next.config.passes_other_protocols = false;
	reload(&next);
	assert_int_equal(fixture_stats().n_mappings, n_kept);
	assert_int_equal(fixture_stats().n_subscribers, n_kept);
	assert_int_equal(fixture.n_events, 101 - n_kept);
	assert_int_equal(fixture.events[0].what, NAT_LOG_MAPPING_END);
	assert_int_equal(fixture_find_out(GRE, INSIDE + 1, 0), MR_FLOW_NONE);
}

TEST_FIXTURE(static_ones_come_go_and_stay)
{
	struct next next;
	uint32_t id, inside, outside, host;

	fixture.forwards[0] = (struct nat_forward){ POOL, INSIDE + 5,  80, 80,
						    80,   1 << NAT_TCP };
	fixture.forwards[1] = (struct nat_forward){ POOL, INSIDE + 6,  81, 81,
						    80,   1 << NAT_TCP };
	fixture.config.n_forwards = 2;
	fixture_start();
	id = fixture_find_in(TCP, POOL, 80);
	fixture_out(id, REMOTE, 9, SYN | ACK);
	fixture_out(id, REMOTE, 10, SYN | ACK);
	/* In the way of what comes: by inside end, outside end, and host. */
	inside = fixture_map(UDP, INSIDE + 7, 53);
	outside = fixture_map(UDP, INSIDE + 8, 1);
	host = fixture_map(UDP, INSIDE + 9, 1);
	next_init(&next);
	next.forwards[1] = (struct nat_forward){
		POOL, INSIDE + 7, 53, 53, 53, 1 << NAT_UDP
	};
	next.forwards[2] = (struct nat_forward){
		POOL, INSIDE + 7,  fixture_port(outside), fixture_port(outside),
		99,   1 << NAT_UDP
	};
	next.config.n_forwards = 3;
	next.one_to_ones[0] = (struct nat_one_to_one){ POOL + 1, INSIDE + 9 };
	next.config.n_one_to_ones = 1;
	reload(&next);
	assert_int_equal(fixture_find_in(TCP, POOL, 80), id);
	assert_int_equal(nat_map_at(fixture.maps, id)->tcp_state,
			 NAT_TCP_ANSWERED);
	assert_int_equal(fixture_stats().n_sessions, 1);
	assert_int_equal(fixture_find_in(TCP, POOL, 81), MR_FLOW_NONE);
	assert_int_equal(fixture_find_out(TCP, INSIDE + 6, 80), MR_FLOW_NONE);
	inside = fixture_find_out(UDP, INSIDE + 7, 53);
	assert_int_equal(fixture_port(inside), 53);
	assert_int_equal(fixture_find_out(UDP, INSIDE + 8, 1), MR_FLOW_NONE);
	assert_int_equal(
		fixture_find_in(UDP, POOL, next.forwards[2].outside_first),
		fixture_find_out(UDP, INSIDE + 7, 99));
	host = fixture_find_out(UDP, INSIDE + 9, 1);
	assert_int_equal(fixture_addr(host), POOL + 1);
	assert_int_equal(fixture_find_in(ICMP, POOL + 1, 1), host);
	assert_int_equal(fixture_stats().n_mappings, 4);
	/* And all of them go. */
	next.config.n_forwards = next.config.n_one_to_ones = 0;
	reload(&next);
	assert_int_equal(fixture_stats().n_mappings, 0);
	assert_int_equal(fixture_stats().n_subscribers, 0);
	assert_int_equal(fixture_find_in(ICMP, POOL + 1, 1), MR_FLOW_NONE);
}

TEST_STARTED(a_shorter_timer_counts_at_once)
{
	struct next next;
	uint32_t id;

	fixture_map(UDP, INSIDE, 1);
	id = fixture_map(TCP, INSIDE, 1);
	for (uint16_t i = 0; i < 2; i++) {
		fixture_out(id, REMOTE, i, SYN);
		fixture_in(id, REMOTE, i, SYN);
	}
	next_init(&next);
	next.config.timeouts.udp_s = 120;
	next.config.timeouts.tcp_open_s = 7000;
	reload(&next);
	assert_int_equal(fixture_at(1120), 0);
	assert_int_equal(fixture_at(1121), 1);
	assert_int_equal(fixture_at(8000), 0);
	assert_int_equal(fixture_at(8001), 1);
}

TEST_FIXTURE(filters_change_with_what_they_know)
{
	struct next next;
	uint32_t udp, tcp;

	fixture.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS;
	fixture_start();
	udp = fixture_map(UDP, INSIDE, 1);
	tcp = fixture_map(TCP, INSIDE, 1);
	for (uint32_t i = 0; i < 3; i++) {
		fixture_out(udp, REMOTE + i, 1, 0);
		fixture_out(tcp, REMOTE + i, 1, SYN);
	}
	next_init(&next);
	next.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
	next.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
	reload(&next);
	assert_int_equal(fixture_stats().n_sessions, 2);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(fixture_in(tcp, REMOTE + i, 99, SYN), NAT_OK);
		fixture_out(udp, REMOTE + i, 1, 0);
		assert_int_equal(fixture_in(udp, REMOTE + i, 1, 0), NAT_OK);
		assert_int_equal(fixture_in(udp, REMOTE + i, 2, 0),
				 NAT_DROP_FILTERED);
	}
	assert_int_equal(fixture_in(tcp, REMOTE + 3, 99, SYN),
			 NAT_DROP_UNSOLICITED_SYN);
	next_init(&next);
	next.config.filtering[NAT_UDP] = NAT_FILTER_NONE;
	reload(&next);
	assert_int_equal(fixture_in(tcp, REMOTE + 3, 99, SYN), NAT_OK);
	assert_int_equal(fixture_in(udp, REMOTE + 3, 99, 0), NAT_OK);
	assert_int_equal(fixture_stats().n_sessions, 2);
	assert_int_equal(fixture_at(1301), 2);
	assert_int_equal(fixture_stats().n_sessions, 0);
}

/* Their owners are told to the log again; whose do not fit any more, end. */
TEST_FIXTURE(blocks_change_their_size)
{
	struct next next;
	uint32_t n_ended;

	fixture.config.ports.block = 64;
	fixture_start();
	for (uint32_t i = 0; i < 40; i++)
		fixture_map(UDP, INSIDE + i, 1);
	for (uint32_t i = 0; i < 40; i += 2)
		nat_maps_close(fixture.maps,
			       fixture_find_out(UDP, INSIDE + i, 1), 1000);
	assert_int_equal(fixture.n_events, 40);
	next_init(&next);
	next.config.ports.block = 4096;
	reload(&next);
	n_ended = 20 - (uint32_t)fixture_stats().n_mappings;
	assert_in_range(n_ended, 4, 19); /* there are 16 blocks */
	for (uint32_t i = 40; i < 80; i++)
		assert_int_equal(fixture.events[i].what, NAT_LOG_BLOCK_END);
	assert_int_equal(fixture.events[80].what, NAT_LOG_BLOCK_BEGIN);
	fixture_at(1301);
	fixture_at(1500);
	assert_int_equal(fixture_stats().n_subscribers, 0);
	assert_int_equal(fixture_stats().n_quarantined, 0);
	fixture_check_ports();
	/* And none at all. */
	fixture_map(UDP, INSIDE, 1);
	next_init(&next);
	next.config.ports.block = 0;
	reload(&next);
	assert_int_equal(fixture_stats().n_mappings, 1);
}

TEST_FIXTURE(a_bad_configuration_leaves_all_as_it_was)
{
	struct mr_reason why;
	struct next next;
	uint32_t id;

	fixture.config.max_mappings = 10;
	fixture_start();
	id = fixture_map(UDP, INSIDE, 1);
	next_init(&next);
	next.config.max_mappings = 11;
	assert_int_equal(
		nat_maps_reload(fixture.maps, &next.config, 1000, &why),
		-EINVAL);
	assert_reason_has(&why, "more than 10 mappings");
	next_init(&next);
	next.config.max_sessions *= 2;
	assert_int_equal(
		nat_maps_reload(fixture.maps, &next.config, 1000, NULL),
		-EINVAL);
	next_init(&next);
	next.forwards[0] =
		(struct nat_forward){ POOL, INSIDE, 1, 9000, 1, 1 << NAT_TCP };
	next.config.n_forwards = 1;
	assert_int_equal(
		nat_maps_reload(fixture.maps, &next.config, 1000, &why),
		-EINVAL);
	assert_reason_has(&why, "9000 static mappings need a restart");
	next.forwards[0].outside_last = 9;
	next.forwards[1] = next.forwards[0];
	next.config.n_forwards = 2;
	assert_int_equal(
		nat_maps_reload(fixture.maps, &next.config, 1000, &why),
		-EINVAL);
	assert_reason_has(&why, "twice");
	next_init(&next);
	next.config.ports.block = 100;
	assert_int_equal(
		nat_maps_reload(fixture.maps, &next.config, 1000, &why),
		-EINVAL);
	assert_int_equal(fixture_find_back(id), id);
	assert_int_equal(fixture_stats().n_mappings, 1);
	/* Lower limits hold for what comes. */
	next_init(&next);
	next.config.max_mappings = 1;
	reload(&next);
	assert_int_equal(fixture_open(UDP, INSIDE, 2, &id),
			 NAT_DROP_TABLE_FULL);
}
