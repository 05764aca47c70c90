/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/static.c, and of address-only mappings (open.c). */
#include "fixture.h"

static void forward(uint32_t outside_addr, uint16_t first, uint16_t last,
		    uint32_t inside_addr, uint16_t inside_first,
		    uint8_t proto_mask)
{
	fixture.forwards[fixture.config.n_forwards++] =
		(struct nat_forward){ outside_addr, inside_addr,  first,
				      last,         inside_first, proto_mask };
}

TEST_FIXTURE(a_forward_works_both_ways_and_for_ever)
{
	struct nat_ports_stats ports;

	/* In the range of ports, below it, and not an address of the pool. */
	forward(POOL, 8000, 8009, INSIDE + 5, 80, 1 << NAT_TCP | 1 << NAT_UDP);
	forward(POOL, 443, 443, INSIDE + 5, 443, 1 << NAT_TCP);
	forward(POOL + 7, 22, 22, INSIDE + 5, 22, 1 << NAT_TCP);
	fixture_start();
	for (uint16_t i = 0; i < 10; i++) {
		uint32_t id = fixture_find_in(TCP, POOL, (uint16_t)(8000 + i));

		assert_int_not_equal(id, MR_FLOW_NONE);
		assert_int_equal(
			fixture_find_out(TCP, INSIDE + 5, (uint16_t)(80 + i)),
			id);
		assert_int_equal(
			fixture_map(TCP, INSIDE + 5, (uint16_t)(80 + i)), id);
		assert_int_equal(nat_map_at(fixture.maps, id)->flags,
				 NAT_MAP_STATIC);
		assert_int_equal(fixture_in(id, REMOTE, 1, SYN), NAT_OK);
		assert_int_equal(fixture_out(id, REMOTE, 1, SYN | ACK), NAT_OK);
	}
	assert_int_equal(fixture_find_in(UDP, POOL, 8003),
			 fixture_find_out(UDP, INSIDE + 5, 83));
	assert_int_equal(fixture_find_in(TCP, POOL, 443),
			 fixture_find_out(TCP, INSIDE + 5, 443));
	assert_int_equal(fixture_find_in(TCP, POOL + 7, 22),
			 fixture_find_out(TCP, INSIDE + 5, 22));
	assert_int_equal(fixture_find_in(UDP, POOL, 443), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(TCP, POOL, 8010), MR_FLOW_NONE);
	assert_int_equal(fixture_at(100000), 0);
	assert_int_equal(fixture_stats().n_mappings, 22);
	nat_ports_stats(fixture.maps->ports, &ports);
	assert_int_equal(ports.n_static, 20);
	fixture_check_ports();
}

TEST_FIXTURE(forwarded_ports_are_never_given_out)
{
	uint32_t id;

	fixture.config.ports.last = 1024 + 99;
	forward(POOL, 1030, 1059, INSIDE + 5, 1030, 1 << NAT_UDP);
	fixture_start();
	for (uint32_t i = 0; i < 70; i++) {
		uint16_t port = fixture_port(fixture_map(UDP, INSIDE + i, 9));

		assert_false(port >= 1030 && port <= 1059);
	}
	assert_int_equal(fixture_open(UDP, INSIDE + 99, 9, &id),
			 NAT_DROP_NO_PORT);
}

/* Paired: what the host opens comes from where it is reached. */
TEST_FIXTURE(who_is_forwarded_to_is_paired_with_that_address)
{
	fixture.pool[0].last = POOL + 15;
	forward(POOL + 11, 80, 80, INSIDE + 5, 80, 1 << NAT_TCP);
	fixture_start();
	for (uint16_t i = 0; i < 20; i++)
		assert_int_equal(fixture_addr(fixture_map(UDP, INSIDE + 5, i)),
				 POOL + 11);
}

/* Who may come to a forward is said by having one. Filtered or not, what a host
 * talks to from there is known for a time. */
TEST_FIXTURE(a_forward_has_no_filter_and_its_sessions_end)
{
	uint32_t id;

	for (uint32_t proto = 0; proto < NAT_PROTOS; proto++)
		fixture.config.filtering[proto] = NAT_FILTER_ADDRESS_PORT;
	forward(POOL, 2000, 2000, INSIDE + 5, 80, 1 << NAT_TCP | 1 << NAT_UDP);
	fixture_start();
	id = fixture_find_in(UDP, POOL, 2000);
	assert_int_equal(fixture_in(id, REMOTE, 1, 0), NAT_OK);
	assert_true(nat_maps_may_in(fixture.maps, id, htonl(REMOTE)));
	id = fixture_find_in(TCP, POOL, 2000);
	assert_int_equal(fixture_in(id, REMOTE, 1, SYN), NAT_OK);
	assert_true(nat_maps_may_in(fixture.maps, id, htonl(REMOTE)));
	assert_int_equal(fixture_stats().n_sessions, 0);
	fixture_out(id, REMOTE, 1, SYN);
	fixture_out(id, REMOTE + 1, 1, SYN);
	assert_int_equal(fixture_stats().n_sessions, 1); /* besides the first */
	fixture_at(1241);
	assert_int_equal(fixture_stats().n_sessions, 0);
	/* Closing ends sessions, not what the configuration has. */
	fixture_out(id, REMOTE, 1, SYN);
	fixture_out(id, REMOTE, 2, SYN);
	nat_maps_close(fixture.maps, id, fixture.now_s);
	assert_int_equal(fixture_find_in(TCP, POOL, 2000), id);
	assert_int_equal(nat_map_at(fixture.maps, id)->remote.addr, 0);
	assert_int_equal(fixture_stats().n_sessions, 0);
}

TEST_FIXTURE(one_to_one_is_for_all_protocols_and_ports)
{
	static const uint8_t protos[] = { UDP, TCP, ICMP, GRE };
	uint32_t id;

	fixture.pool[0].last = POOL + 1;
	fixture.one_to_ones[fixture.config.n_one_to_ones++] =
		(struct nat_one_to_one){ POOL + 1, INSIDE + 5 };
	fixture.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
	fixture_start();
	id = fixture_find_in(UDP, POOL + 1, 12345);
	assert_int_not_equal(id, MR_FLOW_NONE);
	assert_int_equal(nat_map_at(fixture.maps, id)->flags,
			 NAT_MAP_STATIC | NAT_MAP_ADDRESS);
	assert_int_equal(nat_map_at(fixture.maps, id)->port_delta % 0xffff, 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(fixture_find_in(protos[i], POOL + 1, 7), id);
		assert_int_equal(fixture_find_out(protos[i], INSIDE + 5, 9),
				 id);
		assert_int_equal(fixture_map(protos[i], INSIDE + 5, 9), id);
		assert_int_equal(fixture_in(id, REMOTE, 7, ACK), NAT_OK);
		assert_int_equal(fixture_out(id, REMOTE, 7, ACK), NAT_OK);
	}
	assert_true(nat_maps_may_in(fixture.maps, id, htonl(REMOTE)));
	assert_int_equal(fixture_find_out(UDP, INSIDE + 6, 9), MR_FLOW_NONE);
	/* The address is nobody else's. */
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(
			fixture_addr(fixture_map(UDP, INSIDE + 9 + i, 1)),
			POOL);
	assert_int_equal(fixture_stats().n_sessions, 0);
}

TEST_FIXTURE(what_is_given_twice_is_refused)
{
	struct mr_reason why;

	forward(POOL, 80, 90, INSIDE + 5, 80, 1 << NAT_TCP);
	forward(POOL, 90, 90, INSIDE + 6, 80, 1 << NAT_TCP);
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	assert_reason_has(&why, "outside address 203.0.113.0 port 90");
	fixture.forwards[1].outside_first = fixture.forwards[1].outside_last =
		91;
	fixture.forwards[1].inside_addr = INSIDE + 5;
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	assert_reason_has(&why, "inside address 10.0.0.5 port 80");
	fixture.forwards[1].proto_mask = 1 << NAT_UDP;
	assert_int_equal(fixture_try(0, 1, &why), 0);
}

/* Each worker has all of them, whosever slice the port is in. */
TEST(every_worker_has_all_forwards)
{
	for (uint32_t shard = 0; shard < 4; shard++) {
		fixture_init();
		forward(POOL, 2000, 2299, INSIDE + 5, 2000, 1 << NAT_UDP);
		assert_int_equal(fixture_try(shard, 4, NULL), 0);
		for (uint16_t port = 2000; port < 2300; port++)
			assert_int_equal(
				fixture_find_in(UDP, POOL, port),
				fixture_find_out(UDP, INSIDE + 5, port));
		assert_int_equal(fixture_stats().n_mappings, 300);
		fixture_check_ports();
		fixture_end();
	}
}

TEST_FIXTURE(other_protocols_get_an_address_to_themselves)
{
	uint32_t a, b, c;

	fixture.pool[0].last = POOL + 1;
	fixture.config.passes_other_protocols = true;
	fixture_start();
	a = fixture_map(GRE, INSIDE + 1, 0);
	assert_int_equal(nat_map_at(fixture.maps, a)->flags, NAT_MAP_ADDRESS);
	b = fixture_map(GRE, INSIDE + 2, 0);
	assert_int_not_equal(fixture_addr(a), fixture_addr(b));
	assert_int_equal(fixture_open(GRE, INSIDE + 3, 0, &c),
			 NAT_DROP_NO_PORT);
	c = fixture_map(50, INSIDE + 3, 0); /* ESP */
	assert_int_equal(fixture_find_back(a), a);
	assert_int_equal(fixture_find_back(b), b);
	assert_int_equal(fixture_find_back(c), c);
	assert_int_equal(fixture_in(a, REMOTE, 0, 0), NAT_OK);
	fixture_at(1200);
	assert_int_equal(fixture_out(a, REMOTE, 0, 0), NAT_OK);
	assert_int_equal(fixture_at(1301), 2);
	assert_int_equal(fixture_find_back(a), a);
	fixture_map(GRE, INSIDE + 3, 0);
	assert_int_equal(fixture_at(1501), 1);
}

/* Of an external address one worker has them, as anyone can compute. */
TEST(other_protocols_are_shared_out_by_address)
{
	for (uint32_t shard = 0; shard < 2; shard++) {
		uint32_t id;

		fixture_init();
		fixture.pool[0].last = POOL + 3;
		fixture.config.passes_other_protocols = true;
		assert_int_equal(fixture_try(shard, 2, NULL), 0);
		for (uint32_t i = 0; i < 2; i++) {
			id = fixture_map(GRE, INSIDE + i, 0);
			assert_int_equal(nat_other_shard(fixture_addr(id), 2),
					 shard);
		}
		assert_int_equal(fixture_open(GRE, INSIDE + 2, 0, &id),
				 NAT_DROP_NO_PORT);
		fixture_end();
	}
}
