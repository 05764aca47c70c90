/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/static.c, and of address-only mappings (open.c). */
#include "rig.h"

static void forward(struct rig *one, uint32_t outside_addr, uint16_t first,
		    uint16_t last, uint32_t inside_addr, uint16_t inside_first,
		    uint8_t proto_mask)
{
	one->forwards[one->config.n_forwards++] =
		(struct nat_forward){ outside_addr, inside_addr,  first,
				      last,         inside_first, proto_mask };
}

TEST_RIG(a_forward_works_both_ways_and_for_ever)
{
	struct nat_ports_stats ports;

	/* In the range of ports, below it, and not an address of the pool. */
	forward(&rig, POOL, 8000, 8009, INSIDE + 5, 80,
		1 << NAT_TCP | 1 << NAT_UDP);
	forward(&rig, POOL, 443, 443, INSIDE + 5, 443, 1 << NAT_TCP);
	forward(&rig, POOL + 7, 22, 22, INSIDE + 5, 22, 1 << NAT_TCP);
	rig_start(&rig);
	for (uint16_t i = 0; i < 10; i++) {
		uint32_t id =
			rig_find_in(&rig, TCP, POOL, (uint16_t)(8000 + i));

		assert_int_not_equal(id, MR_FLOW_NONE);
		assert_int_equal(
			rig_find_out(&rig, TCP, INSIDE + 5, (uint16_t)(80 + i)),
			id);
		assert_int_equal(
			rig_map(&rig, TCP, INSIDE + 5, (uint16_t)(80 + i)), id);
		assert_int_equal(nat_map_at(rig.maps, id)->flags,
				 NAT_MAP_STATIC);
		assert_int_equal(rig_in(&rig, id, REMOTE, 1, SYN), NAT_OK);
		assert_int_equal(rig_out(&rig, id, REMOTE, 1, SYN | ACK),
				 NAT_OK);
	}
	assert_int_equal(rig_find_in(&rig, UDP, POOL, 8003),
			 rig_find_out(&rig, UDP, INSIDE + 5, 83));
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 443),
			 rig_find_out(&rig, TCP, INSIDE + 5, 443));
	assert_int_equal(rig_find_in(&rig, TCP, POOL + 7, 22),
			 rig_find_out(&rig, TCP, INSIDE + 5, 22));
	assert_int_equal(rig_find_in(&rig, UDP, POOL, 443), MR_FLOW_NONE);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 8010), MR_FLOW_NONE);
	assert_int_equal(rig_at(&rig, 100000), 0);
	assert_int_equal(rig_stats(&rig).n_mappings, 22);
	nat_ports_stats(rig.maps->ports, &ports);
	assert_int_equal(ports.n_static, 20);
	rig_check_ports(&rig);
}

TEST_RIG(forwarded_ports_are_never_given_out)
{
	uint32_t id;

	rig.config.ports.last = 1024 + 99;
	forward(&rig, POOL, 1030, 1059, INSIDE + 5, 1030, 1 << NAT_UDP);
	rig_start(&rig);
	for (uint32_t i = 0; i < 70; i++) {
		uint16_t port =
			rig_port(&rig, rig_map(&rig, UDP, INSIDE + i, 9));

		assert_false(port >= 1030 && port <= 1059);
	}
	assert_int_equal(rig_open(&rig, UDP, INSIDE + 99, 9, &id),
			 NAT_DROP_NO_PORT);
}

/* Paired: what the host opens comes from where it is reached. */
TEST_RIG(who_is_forwarded_to_is_paired_with_that_address)
{
	rig.pool[0].last = POOL + 15;
	forward(&rig, POOL + 11, 80, 80, INSIDE + 5, 80, 1 << NAT_TCP);
	rig_start(&rig);
	for (uint16_t i = 0; i < 20; i++)
		assert_int_equal(
			rig_addr(&rig, rig_map(&rig, UDP, INSIDE + 5, i)),
			POOL + 11);
}

/* Who may come to a forward is said by having one. Filtered or not, what a host
 * talks to from there is known for a time. */
TEST_RIG(a_forward_has_no_filter_and_its_sessions_end)
{
	uint32_t id;

	for (uint32_t proto = 0; proto < NAT_PROTOS; proto++)
		rig.config.filtering[proto] = NAT_FILTER_ADDRESS_PORT;
	forward(&rig, POOL, 2000, 2000, INSIDE + 5, 80,
		1 << NAT_TCP | 1 << NAT_UDP);
	rig_start(&rig);
	id = rig_find_in(&rig, UDP, POOL, 2000);
	assert_int_equal(rig_in(&rig, id, REMOTE, 1, 0), NAT_OK);
	assert_true(nat_maps_may_in(rig.maps, id, htonl(REMOTE)));
	id = rig_find_in(&rig, TCP, POOL, 2000);
	assert_int_equal(rig_in(&rig, id, REMOTE, 1, SYN), NAT_OK);
	assert_true(nat_maps_may_in(rig.maps, id, htonl(REMOTE)));
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
	rig_out(&rig, id, REMOTE, 1, SYN);
	rig_out(&rig, id, REMOTE + 1, 1, SYN);
	assert_int_equal(rig_stats(&rig).n_sessions, 1); /* besides the first */
	rig_at(&rig, 1241);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
	/* Closing ends sessions, not what the configuration has. */
	rig_out(&rig, id, REMOTE, 1, SYN);
	rig_out(&rig, id, REMOTE, 2, SYN);
	nat_maps_close(rig.maps, id, rig.now_s);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 2000), id);
	assert_int_equal(nat_map_at(rig.maps, id)->remote.addr, 0);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
}

TEST_RIG(one_to_one_is_for_all_protocols_and_ports)
{
	static const uint8_t protos[] = { UDP, TCP, ICMP, GRE };
	uint32_t id;

	rig.pool[0].last = POOL + 1;
	rig.one_to_ones[rig.config.n_one_to_ones++] =
		(struct nat_one_to_one){ POOL + 1, INSIDE + 5 };
	rig.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
	rig_start(&rig);
	id = rig_find_in(&rig, UDP, POOL + 1, 12345);
	assert_int_not_equal(id, MR_FLOW_NONE);
	assert_int_equal(nat_map_at(rig.maps, id)->flags,
			 NAT_MAP_STATIC | NAT_MAP_ADDRESS);
	assert_int_equal(nat_map_at(rig.maps, id)->port_delta % 0xffff, 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(rig_find_in(&rig, protos[i], POOL + 1, 7), id);
		assert_int_equal(rig_find_out(&rig, protos[i], INSIDE + 5, 9),
				 id);
		assert_int_equal(rig_map(&rig, protos[i], INSIDE + 5, 9), id);
		assert_int_equal(rig_in(&rig, id, REMOTE, 7, ACK), NAT_OK);
		assert_int_equal(rig_out(&rig, id, REMOTE, 7, ACK), NAT_OK);
	}
	assert_true(nat_maps_may_in(rig.maps, id, htonl(REMOTE)));
	assert_int_equal(rig_find_out(&rig, UDP, INSIDE + 6, 9), MR_FLOW_NONE);
	/* The address is nobody else's. */
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(
			rig_addr(&rig, rig_map(&rig, UDP, INSIDE + 9 + i, 1)),
			POOL);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
}

TEST_RIG(what_is_given_twice_is_refused)
{
	struct mr_reason why;

	forward(&rig, POOL, 80, 90, INSIDE + 5, 80, 1 << NAT_TCP);
	forward(&rig, POOL, 90, 90, INSIDE + 6, 80, 1 << NAT_TCP);
	assert_int_equal(rig_try(&rig, 0, 1, &why), -EINVAL);
	assert_reason_has(&why, "outside address 203.0.113.0 port 90");
	rig.forwards[1].outside_first = rig.forwards[1].outside_last = 91;
	rig.forwards[1].inside_addr = INSIDE + 5;
	assert_int_equal(rig_try(&rig, 0, 1, &why), -EINVAL);
	assert_reason_has(&why, "inside address 10.0.0.5 port 80");
	rig.forwards[1].proto_mask = 1 << NAT_UDP;
	assert_int_equal(rig_try(&rig, 0, 1, &why), 0);
}

/* Each worker has all of them, whosever slice the port is in. */
TEST(every_worker_has_all_forwards)
{
	for (uint32_t shard = 0; shard < 4; shard++) {
		rig_init(&rig);
		forward(&rig, POOL, 2000, 2299, INSIDE + 5, 2000, 1 << NAT_UDP);
		assert_int_equal(rig_try(&rig, shard, 4, NULL), 0);
		for (uint16_t port = 2000; port < 2300; port++)
			assert_int_equal(
				rig_find_in(&rig, UDP, POOL, port),
				rig_find_out(&rig, UDP, INSIDE + 5, port));
		assert_int_equal(rig_stats(&rig).n_mappings, 300);
		rig_check_ports(&rig);
		rig_end(&rig);
	}
}

TEST_RIG(other_protocols_get_an_address_to_themselves)
{
	uint32_t a, b, c;

	rig.pool[0].last = POOL + 1;
	rig.config.passes_other_protocols = true;
	rig_start(&rig);
	a = rig_map(&rig, GRE, INSIDE + 1, 0);
	assert_int_equal(nat_map_at(rig.maps, a)->flags, NAT_MAP_ADDRESS);
	b = rig_map(&rig, GRE, INSIDE + 2, 0);
	assert_int_not_equal(rig_addr(&rig, a), rig_addr(&rig, b));
	assert_int_equal(rig_open(&rig, GRE, INSIDE + 3, 0, &c),
			 NAT_DROP_NO_PORT);
	c = rig_map(&rig, 50, INSIDE + 3, 0); /* ESP */
	assert_int_equal(rig_find_back(&rig, a), a);
	assert_int_equal(rig_find_back(&rig, b), b);
	assert_int_equal(rig_find_back(&rig, c), c);
	assert_int_equal(rig_in(&rig, a, REMOTE, 0, 0), NAT_OK);
	rig_at(&rig, 1200);
	assert_int_equal(rig_out(&rig, a, REMOTE, 0, 0), NAT_OK);
	assert_int_equal(rig_at(&rig, 1301), 2);
	assert_int_equal(rig_find_back(&rig, a), a);
	rig_map(&rig, GRE, INSIDE + 3, 0);
	assert_int_equal(rig_at(&rig, 1501), 1);
}

/* Of an external address one worker has them, as anyone can compute. */
TEST(other_protocols_are_shared_out_by_address)
{
	for (uint32_t shard = 0; shard < 2; shard++) {
		uint32_t id;

		rig_init(&rig);
		rig.pool[0].last = POOL + 3;
		rig.config.passes_other_protocols = true;
		assert_int_equal(rig_try(&rig, shard, 2, NULL), 0);
		for (uint32_t i = 0; i < 2; i++) {
			id = rig_map(&rig, GRE, INSIDE + i, 0);
			assert_int_equal(nat_other_shard(rig_addr(&rig, id), 2),
					 shard);
		}
		assert_int_equal(rig_open(&rig, GRE, INSIDE + 2, 0, &id),
				 NAT_DROP_NO_PORT);
		rig_end(&rig);
	}
}
