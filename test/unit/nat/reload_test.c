/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/reload.c: what lives on, what ends, and nothing by
 * half. */
#include <errno.h>

#include "rig.h"

/* The rig's own configuration may not change under it: another one. */
struct next {
	struct nat_config config;
	struct nat_range pool[4];
	struct nat_prefix subscribers[4];
	struct nat_forward forwards[8];
	struct nat_one_to_one one_to_ones[4];
};

static void next_init(struct next *next, const struct rig *one)
{
	next->config = one->config;
	memcpy(next->pool, one->pool, sizeof(next->pool));
	memcpy(next->subscribers, one->subscribers, sizeof(next->subscribers));
	memcpy(next->forwards, one->forwards, sizeof(next->forwards));
	memcpy(next->one_to_ones, one->one_to_ones, sizeof(next->one_to_ones));
	next->config.pool = next->pool;
	next->config.subscribers = next->subscribers;
	next->config.forwards = next->forwards;
	next->config.one_to_ones = next->one_to_ones;
}

static void reload(struct rig *one, struct next *next)
{
	struct mr_reason why = { "" };

	if (nat_maps_reload(one->maps, &next->config, one->now_s, &why) != 0)
		fail_msg("%s", why.text);
	rig_check_ports(one);
}

TEST_RIG(the_same_again_changes_nothing)
{
	struct next next;
	uint32_t ids[3];

	rig.config.ports.block = 64;
	rig.config.ports.max_blocks = 4;
	rig.forwards[0] =
		(struct nat_forward){ POOL, INSIDE + 5, 2000,
				      2009, 1,          1 << NAT_TCP };
	rig.config.n_forwards = 1;
	rig_start(&rig);
	ids[0] = rig_map(&rig, UDP, INSIDE + 1, 1);
	ids[1] = rig_map(&rig, TCP, INSIDE + 1, 1);
	rig_out(&rig, ids[1], REMOTE, 1, SYN);
	rig_out(&rig, ids[1], REMOTE, 2, SYN);
	ids[2] = rig_find_in(&rig, TCP, POOL, 2003);
	rig_out(&rig, ids[2], REMOTE, 1, SYN | ACK);
	nat_maps_close(rig.maps, rig_map(&rig, ICMP, INSIDE + 1, 1), 1000);
	rig.n_events = 0;
	next_init(&next, &rig);
	reload(&rig, &next);
	assert_int_equal(rig.n_events, 0);
	assert_int_equal(rig_find_out(&rig, UDP, INSIDE + 1, 1), ids[0]);
	assert_int_equal(rig_find_back(&rig, ids[0]), ids[0]);
	assert_int_equal(rig_find_back(&rig, ids[1]), ids[1]);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 2003), ids[2]);
	assert_int_equal(nat_map_at(rig.maps, ids[2])->tcp_state,
			 NAT_TCP_ANSWERED);
	assert_int_equal(rig_stats(&rig).n_sessions, 1);
	assert_int_equal(rig_stats(&rig).n_quarantined, 1);
}

/* Another range of ports has all of them entered anew. */
static void live_on_in_a_larger_pool(uint16_t last_port)
{
	struct next next;
	uint32_t ids[100];
	uint16_t ports[100];

	rig_init(&rig);
	rig.config.timeouts.quarantine_s = 200;
	rig_start(&rig);
	for (uint32_t i = 0; i < 100; i++) {
		ids[i] = rig_map(&rig, UDP, INSIDE + i / 3, (uint16_t)i);
		ports[i] = rig_port(&rig, ids[i]);
	}
	for (uint32_t i = 0; i < 50; i++)
		nat_maps_close(rig.maps, ids[i], 1000 + i);
	next_init(&next, &rig);
	next.pool[1] = (struct nat_range){ POOL - 10, POOL - 5 };
	next.config.ports.last = last_port;
	next.config.n_pool = 2;
	rig.now_s = 1060;
	reload(&rig, &next);
	for (uint32_t i = 50; i < 100; i++) {
		assert_int_equal(
			rig_find_out(&rig, UDP, INSIDE + i / 3, (uint16_t)i),
			ids[i]);
		assert_int_equal(rig_find_in(&rig, UDP, POOL, ports[i]),
				 ids[i]);
		/* Still paired. */
		assert_int_equal(
			rig_addr(&rig, rig_map(&rig, TCP, INSIDE + i / 3, 1)),
			POOL);
	}
	/* Quarantine goes on as if nothing had been. */
	assert_int_equal(rig_stats(&rig).n_quarantined, 50);
	rig_at(&rig, 1200);
	assert_int_equal(rig_stats(&rig).n_quarantined, 50);
	rig_at(&rig, 1225);
	assert_int_equal(rig_stats(&rig).n_quarantined, 25);
	rig_at(&rig, 1250);
	assert_int_equal(rig_stats(&rig).n_quarantined, 0);
	/* The hosts of the last 50 are 18. */
	assert_int_equal(rig_at(&rig, 1301), 50 + 18);
	assert_int_equal(rig_stats(&rig).n_subscribers, 0);
	rig_check_ports(&rig);
	rig_end(&rig);
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
		rig_map(&rig, UDP, INSIDE + i, 1);
	ports = rig.maps->ports;
	next_init(&next, &rig);
	reload(&rig, &next);
	next.pool[0].first = POOL - 3;
	next.forwards[0] = (struct nat_forward){
		POOL, INSIDE + 5, 80, 80, 80, 1 << NAT_TCP
	};
	next.config.n_forwards = 1;
	next.config.timeouts.udp_s = 400;
	reload(&rig, &next);
	assert_ptr_equal(rig.maps->ports, ports);
	assert_int_equal(rig.maps->review, NAT_REVIEW_NONE);
	assert_int_equal(rig_port(&rig, rig_find_in(&rig, TCP, POOL, 80)), 80);
	for (uint32_t i = 0; i < 400; i++)
		n_new += rig_addr(&rig, rig_map(&rig, TCP, INSIDE + 6000 + i,
						1)) != POOL;
	assert_in_range(n_new, 200, 400);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t id = rig_find_out(&rig, UDP, INSIDE + i, 1);

		assert_int_equal(rig_addr(&rig, id), POOL);
		assert_int_equal(rig_find_back(&rig, id), id);
	}
	/* And back, with which the ports are made anew. */
	next_init(&next, &rig);
	reload(&rig, &next);
	assert_ptr_not_equal(rig.maps->ports, ports);
	assert_int_equal(rig_stats(&rig).n_mappings, 5400 - n_new);
}

/* What may end is looked at in parts. */
TEST_STARTED(an_end_is_not_that_of_all_at_once)
{
	struct next next;
	uint32_t n_ended, n_calls = 0;

	for (uint32_t i = 0; i < 5000; i++)
		rig_map(&rig, UDP, INSIDE + i, 1);
	next_init(&next, &rig);
	next.subscribers[0].mask = 0xfffffc00;
	reload(&rig, &next);
	assert_int_equal(rig_stats(&rig).n_mappings, 5000);
	for (uint32_t left = 5000; left > 1024; left -= n_ended) {
		n_ended = nat_maps_expire(rig.maps, 1000);
		assert_in_range(n_ended, 0, 1024);
		assert_in_range(n_calls++, 0, 10);
	}
	assert_int_equal(rig_stats(&rig).n_subscribers, 1024);
	assert_int_equal(rig_at(&rig, 1000), 0);
	assert_int_equal(rig.maps->review, NAT_REVIEW_NONE);
}

/* Its external end was found by hash, and has a place from now on. */
TEST_RIG(a_forwards_address_comes_into_the_pool)
{
	struct next next;
	uint32_t id;

	rig.forwards[0] =
		(struct nat_forward){ POOL + 9, INSIDE + 5, 2000,
				      2000,     80,         1 << NAT_TCP };
	rig.config.n_forwards = 1;
	rig_start(&rig);
	id = rig_find_in(&rig, TCP, POOL + 9, 2000);
	next_init(&next, &rig);
	next.pool[0].last = POOL + 9;
	reload(&rig, &next);
	assert_int_equal(rig_find_in(&rig, TCP, POOL + 9, 2000), id);
	assert_int_equal(rig.maps->ports->n_static, 1);
	next.config.n_forwards = 0;
	reload(&rig, &next);
	assert_int_equal(rig.maps->ports->n_static, 0);
	assert_int_equal(rig_find_in(&rig, TCP, POOL + 9, 2000), MR_FLOW_NONE);
}

/* Another host behind a port, and another port of a host. */
TEST_RIG(forwards_change_hands)
{
	struct nat_ports *ports;
	struct next next;
	uint32_t id;

	rig.forwards[0] = (struct nat_forward){
		POOL, INSIDE + 5, 80, 80, 80, 1 << NAT_TCP
	};
	rig.forwards[1] = (struct nat_forward){
		POOL, INSIDE + 6, 81, 81, 81, 1 << NAT_TCP
	};
	rig.config.n_forwards = 2;
	rig_start(&rig);
	rig_map(&rig, TCP, INSIDE + 7, 80);
	ports = rig.maps->ports;
	next_init(&next, &rig);
	next.forwards[0].inside_addr = INSIDE + 7;
	next.forwards[1].outside_first = next.forwards[1].outside_last = 82;
	reload(&rig, &next);
	assert_ptr_equal(rig.maps->ports, ports);
	id = rig_find_in(&rig, TCP, POOL, 80);
	assert_int_equal(rig_find_out(&rig, TCP, INSIDE + 7, 80), id);
	assert_int_equal(rig_port(&rig, id), 80);
	assert_int_equal(rig_find_out(&rig, TCP, INSIDE + 5, 80), MR_FLOW_NONE);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 81), MR_FLOW_NONE);
	id = rig_find_in(&rig, TCP, POOL, 82);
	assert_int_equal(rig_find_out(&rig, TCP, INSIDE + 6, 81), id);
	assert_int_equal(rig_stats(&rig).n_mappings, 2);
	assert_int_equal(rig_stats(&rig).n_quarantined, 1);
	rig_at(&rig, 1200);
	next.config.n_forwards = 0;
	reload(&rig, &next);
	assert_int_equal(rig_stats(&rig).n_mappings, 0);
	assert_int_equal(rig_stats(&rig).n_subscribers, 0);
}

/* No room for one of them: the old configuration stays in force. */
TEST_RIG(static_ones_are_made_before_others_end)
{
	struct mr_reason why;
	struct next next;
	uint32_t id, n = 0;

	rig.forwards[0] = (struct nat_forward){
		POOL, INSIDE + 5, 80, 80, 80, 1 << NAT_TCP
	};
	rig.config.n_forwards = 1;
	rig.config.max_mappings = 10;
	rig_start(&rig);
	id = rig_find_in(&rig, TCP, POOL, 80);
	/* Others take all numbers. */
	for (struct nat_tuple end = { .proto = GRE, .realm = 1 };
	     nat_other_add(rig.maps, &end, id) == 0; end.addr++)
		n++;
	assert_int_equal(
		nat_other_add(rig.maps, &(struct nat_tuple){ .realm = 2 }, id),
		-ENOSPC);
	next_init(&next, &rig);
	next.forwards[0] = (struct nat_forward){
		POOL, INSIDE + 6, 81, 89, 80, 1 << NAT_TCP
	};
	next.config.timeouts.udp_s = 1;
	assert_int_equal(nat_maps_reload(rig.maps, &next.config, 1000, &why),
			 -ENOMEM);
	assert_reason_has(&why, "no memory for static mappings");
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 80), id);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 81), MR_FLOW_NONE);
	assert_int_equal(rig_find_out(&rig, TCP, INSIDE + 6, 80), MR_FLOW_NONE);
	assert_int_equal(rig_stats(&rig).n_mappings, 1);
	assert_int_equal(rig_stats(&rig).n_subscribers, 1);
	assert_int_equal(rig.maps->timeouts.udp_s, 300);
	assert_true(n > 0);
}

TEST_RIG(what_is_no_longer_allowed_ends)
{
	struct next next;
	uint32_t n_kept = 0;

	rig.pool[0].last = POOL + 1;
	rig.config.logs_sessions = true;
	rig.config.passes_other_protocols = true;
	rig_start(&rig);
	for (uint32_t i = 0; i < 100; i++)
		rig_map(&rig, UDP, INSIDE + i, 1);
	rig_map(&rig, GRE, INSIDE + 1, 0);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t id = rig_find_out(&rig, UDP, INSIDE + i, 1);

		n_kept += rig_addr(&rig, id) == POOL &&
			  rig_port(&rig, id) < 40000;
	}
	rig.n_events = 0;
	next_init(&next, &rig);
	next.pool[0].last = POOL;
	next.config.ports.last = 39999;
	next.subscribers[0].mask = 0xffffffc0;
	next.config.passes_other_protocols = false;
	reload(&rig, &next);
	assert_int_equal(rig_stats(&rig).n_mappings, n_kept);
	assert_int_equal(rig_stats(&rig).n_subscribers, n_kept);
	assert_int_equal(rig.n_events, 101 - n_kept);
	assert_int_equal(rig.events[0].what, NAT_LOG_MAPPING_END);
	assert_int_equal(rig_find_out(&rig, GRE, INSIDE + 1, 0), MR_FLOW_NONE);
}

TEST_RIG(static_ones_come_go_and_stay)
{
	struct next next;
	uint32_t id, inside, outside, host;

	rig.forwards[0] = (struct nat_forward){
		POOL, INSIDE + 5, 80, 80, 80, 1 << NAT_TCP
	};
	rig.forwards[1] = (struct nat_forward){
		POOL, INSIDE + 6, 81, 81, 80, 1 << NAT_TCP
	};
	rig.config.n_forwards = 2;
	rig_start(&rig);
	id = rig_find_in(&rig, TCP, POOL, 80);
	rig_out(&rig, id, REMOTE, 9, SYN | ACK);
	rig_out(&rig, id, REMOTE, 10, SYN | ACK);
	/* In the way of what comes: by inside end, outside end, and host. */
	inside = rig_map(&rig, UDP, INSIDE + 7, 53);
	outside = rig_map(&rig, UDP, INSIDE + 8, 1);
	host = rig_map(&rig, UDP, INSIDE + 9, 1);
	next_init(&next, &rig);
	next.forwards[1] = (struct nat_forward){
		POOL, INSIDE + 7, 53, 53, 53, 1 << NAT_UDP
	};
	next.forwards[2] = (struct nat_forward){ POOL,
						 INSIDE + 7,
						 rig_port(&rig, outside),
						 rig_port(&rig, outside),
						 99,
						 1 << NAT_UDP };
	next.config.n_forwards = 3;
	next.one_to_ones[0] = (struct nat_one_to_one){ POOL + 1, INSIDE + 9 };
	next.config.n_one_to_ones = 1;
	reload(&rig, &next);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 80), id);
	assert_int_equal(nat_map_at(rig.maps, id)->tcp_state, NAT_TCP_ANSWERED);
	assert_int_equal(rig_stats(&rig).n_sessions, 1);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 81), MR_FLOW_NONE);
	assert_int_equal(rig_find_out(&rig, TCP, INSIDE + 6, 80), MR_FLOW_NONE);
	inside = rig_find_out(&rig, UDP, INSIDE + 7, 53);
	assert_int_equal(rig_port(&rig, inside), 53);
	assert_int_equal(rig_find_out(&rig, UDP, INSIDE + 8, 1), MR_FLOW_NONE);
	assert_int_equal(
		rig_find_in(&rig, UDP, POOL, next.forwards[2].outside_first),
		rig_find_out(&rig, UDP, INSIDE + 7, 99));
	host = rig_find_out(&rig, UDP, INSIDE + 9, 1);
	assert_int_equal(rig_addr(&rig, host), POOL + 1);
	assert_int_equal(rig_find_in(&rig, ICMP, POOL + 1, 1), host);
	assert_int_equal(rig_stats(&rig).n_mappings, 4);
	/* And all of them go. */
	next.config.n_forwards = next.config.n_one_to_ones = 0;
	reload(&rig, &next);
	assert_int_equal(rig_stats(&rig).n_mappings, 0);
	assert_int_equal(rig_stats(&rig).n_subscribers, 0);
	assert_int_equal(rig_find_in(&rig, ICMP, POOL + 1, 1), MR_FLOW_NONE);
}

TEST_STARTED(a_shorter_timer_counts_at_once)
{
	struct next next;
	uint32_t id;

	rig_map(&rig, UDP, INSIDE, 1);
	id = rig_map(&rig, TCP, INSIDE, 1);
	for (uint16_t i = 0; i < 2; i++) {
		rig_out(&rig, id, REMOTE, i, SYN);
		rig_in(&rig, id, REMOTE, i, SYN);
	}
	next_init(&next, &rig);
	next.config.timeouts.udp_s = 120;
	next.config.timeouts.tcp_open_s = 7000;
	reload(&rig, &next);
	assert_int_equal(rig_at(&rig, 1120), 0);
	assert_int_equal(rig_at(&rig, 1121), 1);
	assert_int_equal(rig_at(&rig, 8000), 0);
	assert_int_equal(rig_at(&rig, 8001), 1);
}

TEST_RIG(filters_change_with_what_they_know)
{
	struct next next;
	uint32_t udp, tcp;

	rig.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS;
	rig_start(&rig);
	udp = rig_map(&rig, UDP, INSIDE, 1);
	tcp = rig_map(&rig, TCP, INSIDE, 1);
	for (uint32_t i = 0; i < 3; i++) {
		rig_out(&rig, udp, REMOTE + i, 1, 0);
		rig_out(&rig, tcp, REMOTE + i, 1, SYN);
	}
	next_init(&next, &rig);
	next.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
	next.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
	reload(&rig, &next);
	assert_int_equal(rig_stats(&rig).n_sessions, 2);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(rig_in(&rig, tcp, REMOTE + i, 99, SYN),
				 NAT_OK);
		rig_out(&rig, udp, REMOTE + i, 1, 0);
		assert_int_equal(rig_in(&rig, udp, REMOTE + i, 1, 0), NAT_OK);
		assert_int_equal(rig_in(&rig, udp, REMOTE + i, 2, 0),
				 NAT_DROP_FILTERED);
	}
	assert_int_equal(rig_in(&rig, tcp, REMOTE + 3, 99, SYN),
			 NAT_DROP_UNSOLICITED_SYN);
	next_init(&next, &rig);
	next.config.filtering[NAT_UDP] = NAT_FILTER_NONE;
	reload(&rig, &next);
	assert_int_equal(rig_in(&rig, tcp, REMOTE + 3, 99, SYN), NAT_OK);
	assert_int_equal(rig_in(&rig, udp, REMOTE + 3, 99, 0), NAT_OK);
	assert_int_equal(rig_stats(&rig).n_sessions, 2);
	assert_int_equal(rig_at(&rig, 1301), 2);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
}

/* Their owners are told to the log again; whose do not fit any more, end. */
TEST_RIG(blocks_change_their_size)
{
	struct next next;
	uint32_t n_ended;

	rig.config.ports.block = 64;
	rig_start(&rig);
	for (uint32_t i = 0; i < 40; i++)
		rig_map(&rig, UDP, INSIDE + i, 1);
	for (uint32_t i = 0; i < 40; i += 2)
		nat_maps_close(rig.maps, rig_find_out(&rig, UDP, INSIDE + i, 1),
			       1000);
	assert_int_equal(rig.n_events, 40);
	next_init(&next, &rig);
	next.config.ports.block = 4096;
	reload(&rig, &next);
	n_ended = 20 - (uint32_t)rig_stats(&rig).n_mappings;
	assert_in_range(n_ended, 4, 19); /* there are 16 blocks */
	for (uint32_t i = 40; i < 80; i++)
		assert_int_equal(rig.events[i].what, NAT_LOG_BLOCK_END);
	assert_int_equal(rig.events[80].what, NAT_LOG_BLOCK_BEGIN);
	rig_at(&rig, 1301);
	rig_at(&rig, 1500);
	assert_int_equal(rig_stats(&rig).n_subscribers, 0);
	assert_int_equal(rig_stats(&rig).n_quarantined, 0);
	rig_check_ports(&rig);
	/* And none at all. */
	rig_map(&rig, UDP, INSIDE, 1);
	next_init(&next, &rig);
	next.config.ports.block = 0;
	reload(&rig, &next);
	assert_int_equal(rig_stats(&rig).n_mappings, 1);
}

TEST_RIG(a_bad_configuration_leaves_all_as_it_was)
{
	struct mr_reason why;
	struct next next;
	uint32_t id;

	rig.config.max_mappings = 10;
	rig_start(&rig);
	id = rig_map(&rig, UDP, INSIDE, 1);
	next_init(&next, &rig);
	next.config.max_mappings = 11;
	assert_int_equal(nat_maps_reload(rig.maps, &next.config, 1000, &why),
			 -EINVAL);
	assert_reason_has(&why, "more than 10 mappings");
	next_init(&next, &rig);
	next.config.max_sessions *= 2;
	assert_int_equal(nat_maps_reload(rig.maps, &next.config, 1000, NULL),
			 -EINVAL);
	next_init(&next, &rig);
	next.forwards[0] =
		(struct nat_forward){ POOL, INSIDE, 1, 9000, 1, 1 << NAT_TCP };
	next.config.n_forwards = 1;
	assert_int_equal(nat_maps_reload(rig.maps, &next.config, 1000, &why),
			 -EINVAL);
	assert_reason_has(&why, "9000 static mappings need a restart");
	next.forwards[0].outside_last = 9;
	next.forwards[1] = next.forwards[0];
	next.config.n_forwards = 2;
	assert_int_equal(nat_maps_reload(rig.maps, &next.config, 1000, &why),
			 -EINVAL);
	assert_reason_has(&why, "twice");
	next_init(&next, &rig);
	next.config.ports.block = 100;
	assert_int_equal(nat_maps_reload(rig.maps, &next.config, 1000, &why),
			 -EINVAL);
	assert_int_equal(rig_find_back(&rig, id), id);
	assert_int_equal(rig_stats(&rig).n_mappings, 1);
	/* Lower limits hold for what comes. */
	next_init(&next, &rig);
	next.config.max_mappings = 1;
	reload(&rig, &next);
	assert_int_equal(rig_open(&rig, UDP, INSIDE, 2, &id),
			 NAT_DROP_TABLE_FULL);
}
