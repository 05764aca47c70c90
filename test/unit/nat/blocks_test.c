/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/ports/blocks.c: RFC 6888 REQ-14, RFC 7422, and the log. */
#include "fixture.h"

/* It stays the subscriber's as long as a port of it waits. */
TEST_FIXTURE(a_block_ends_behind_the_quarantine)
{
	uint32_t id, first;

	fixture.config.ports.block = 64;
	fixture.config.ports.max_blocks = 1;
	fixture_start();
	first = fixture_port(fixture_map(UDP, INSIDE + 1, 1)) & ~63u;
	assert_int_equal(fixture_at(1301), 1);
	assert_int_equal(fixture.n_events, 1);
	assert_int_equal(fixture_stats().n_subscribers, 1);
	/* Who comes back before goes on with it. */
	id = fixture_map(UDP, INSIDE + 1, 2);
	assert_int_equal(fixture_port(id) & ~63u, first);
	assert_int_equal(fixture_at(1602), 1);
	fixture_at(1602 + 120);
	assert_int_equal(fixture.n_events, 1);
	fixture_at(1602 + 121);
	assert_int_equal(fixture.n_events, 2);
	assert_int_equal(fixture.events[1].what, NAT_LOG_BLOCK_END);
	assert_int_equal(fixture.events[1].inside_addr, htonl(INSIDE + 1));
	assert_int_equal(ntohs(fixture.events[1].outside_port), first);
	assert_int_equal(fixture.events[1].n_ports, 64);
	assert_int_equal(fixture_stats().n_subscribers, 0);
	fixture_check_ports();
}

/* As many as there are; then none, until one comes back. */
TEST_FIXTURE(blocks_run_out_and_come_back)
{
	static bool has[1024];
	uint32_t id;

	memset(has, 0, sizeof(has));
	fixture.config.ports.block = 64;
	fixture.config.ports.last = 1024 + 10 * 64 - 1;
	fixture.config.timeouts.hold_down_s = 0;
	fixture_start();
	for (uint32_t i = 0; i < 10; i++) {
		id = fixture_map(UDP, INSIDE + i, 1);
		assert_false(has[fixture_port(id) / 64]);
		has[fixture_port(id) / 64] = true;
	}
	assert_int_equal(fixture_open(UDP, INSIDE + 10, 1, &id),
			 NAT_DROP_NO_PORT);
	assert_int_equal(fixture_stats().n_subscribers, 10);
	nat_maps_close(fixture.maps, fixture_find_out(UDP, INSIDE + 3, 1),
		       1000);
	assert_int_equal(fixture_stats().n_subscribers, 9);
	fixture_map(UDP, INSIDE + 10, 1);
	fixture_check_ports();
}

/* Blocks at the edges of the range are smaller, and say so. */
TEST_FIXTURE(blocks_are_cut_by_the_range_and_by_forwards)
{
	uint32_t n = 0, id;

	fixture.config.ports.block = 64;
	fixture.config.ports.max_blocks = 9;
	fixture.config.ports.first = 1050;
	fixture.config.ports.last = 1050 + 99;
	/* All of the block in the middle. */
	fixture.forwards[0] =
		(struct nat_forward){ POOL, INSIDE + 9, 1088,
				      1151, 1,          1 << NAT_UDP };
	fixture.config.n_forwards = 1;
	fixture_start();
	while (fixture_open(UDP, INSIDE + 1, (uint16_t)n, &id) == NAT_OK)
		n++;
	assert_int_equal(n, 1088 - 1050);
	assert_int_equal(fixture.events[0].n_ports, 1088 - 1050);
	assert_int_equal(ntohs(fixture.events[0].outside_port), 1050);
	fixture_check_ports();
}

/* Several workers: a block is in their slices, an event for each. */
TEST_FIXTURE(blocks_of_several_workers_are_logged_by_slice)
{
	uint32_t id;

	fixture.config.ports.block = 256;
	assert_int_equal(fixture_try(1, 2, NULL), 0);
	for (uint16_t i = 0; i < 256; i++) {
		bool is_logged = false;

		id = fixture_map(UDP, INSIDE + 1, i);
		assert_int_equal(fixture.n_events, 4);
		for (uint32_t e = 0; e < 4; e++)
			is_logged |= (fixture_port(id) & ~63) ==
				     ntohs(fixture.events[e].outside_port);
		assert_true(is_logged);
	}
	for (uint32_t e = 0; e < 4; e++)
		assert_int_equal(fixture.events[e].n_ports, 64);
	assert_int_equal(fixture_open(UDP, INSIDE + 1, 256, &id),
			 NAT_DROP_QUOTA);
}

TEST_FIXTURE(the_inside_port_is_kept_within_a_block)
{
	uint32_t first, n_kept = 0;

	fixture.config.ports.block = 64;
	fixture.config.ports.keeps_port = true;
	fixture_start();
	first = fixture_port(fixture_map(UDP, INSIDE + 1, 1)) & ~63u;
	for (uint32_t port = first; port < first + 60; port++)
		n_kept += fixture_port(fixture_map(UDP, INSIDE + 1,
						   (uint16_t)port)) == port;
	/* All but the one that the first mapping has, and whom it displaced. */
	assert_true(n_kept >= 58);
}

/* The block is known without a log, and is the same each time. */
TEST_FIXTURE(deterministic_ports_follow_from_the_address)
{
	uint32_t id;

	fixture.pool[0].last = POOL + 1;
	fixture.subscribers[0] = (struct nat_prefix){ INSIDE, 0xfffffff0 };
	fixture.config.ports.is_deterministic = true;
	fixture.config.ports.block = 4096;
	fixture_start();
	/* 15 whole blocks from 4096 up, then the next address. */
	for (uint32_t i = 0; i < 16; i += 5) {
		for (uint16_t k = 0; k < 100; k++) {
			id = fixture_map(k & 1 ? UDP : TCP, INSIDE + i, k);
			assert_int_equal(fixture_addr(id), POOL + i / 15);
			assert_int_equal(fixture_port(id) / 4096, 1 + i % 15);
		}
	}
	assert_int_equal(fixture.n_events, 0);
	fixture_at(1301);
	fixture_at(1500);
	assert_int_equal(fixture.n_events, 0);
	assert_int_equal(fixture_stats().n_subscribers, 0);
	fixture_check_ports();
}

TEST_FIXTURE(a_deterministic_block_is_all_there_is)
{
	uint32_t id;

	/* Of 8192 ports there are seven, of 16384 only three: four need one. */
	fixture.subscribers[0] = (struct nat_prefix){ INSIDE, 0xfffffffc };
	fixture.config.ports.is_deterministic = true;
	fixture_start();
	for (uint32_t i = 0; i < 8192; i++)
		fixture_map(UDP, INSIDE, (uint16_t)i);
	assert_int_equal(fixture_open(UDP, INSIDE, 9000, &id), NAT_DROP_QUOTA);
	fixture_map(UDP, INSIDE + 3, 9000);
}

TEST_FIXTURE(blocks_that_cannot_be_are_refused)
{
	struct mr_reason why;

	fixture.config.ports.block = 100;
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	assert_reason_has(&why, "a block of 100 ports");
	fixture.config.ports.block = 4;
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	fixture.config.ports.block = 1024;
	assert_int_equal(fixture_try(0, 128, &why), -EINVAL);
	assert_reason_has(&why, "at most the 512 ports");
	fixture.config.ports.is_deterministic = true;
	fixture.subscribers[0].mask = 0xffffffc0;
	assert_int_equal(fixture_try(0, 2, &why), -EINVAL);
	assert_reason_has(&why, "need a single worker, not 2");
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	assert_reason_has(&why, "64 inside addresses");
	assert_reason_has(&why, "63 blocks of 1024");
	fixture.config.ports.block = 0;
	fixture.subscribers[0].mask = 0xff000000;
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	assert_reason_has(&why, "8064 blocks of 8");
}

TEST_FIXTURE(mappings_are_logged_on_request)
{
	uint32_t id;

	fixture.config.logs_sessions = true;
	fixture_start();
	id = fixture_map(TCP, INSIDE + 1, 7);
	assert_int_equal(fixture.n_events, 1);
	assert_int_equal(fixture.events[0].what, NAT_LOG_MAPPING_BEGIN);
	assert_int_equal(fixture.events[0].outside_port,
			 htons(fixture_port(id)));
	assert_int_equal(fixture.events[0].inside_port, htons(7));
	fixture_at(1241);
	assert_int_equal(fixture.n_events, 2);
	assert_int_equal(fixture.events[1].what, NAT_LOG_MAPPING_END);
	assert_int_equal(fixture.events[1].now_s, 1241);
	assert_int_equal(fixture.events[1].inside_addr, htonl(INSIDE + 1));
}

/* A host that is refused a million times is a line a minute. */
TEST_FIXTURE(refusals_are_logged_now_and_then)
{
	uint32_t id;

	fixture.config.max_per_subscriber = 1;
	fixture_start();
	fixture_map(UDP, INSIDE, 1);
	for (uint32_t s = 0; s < 120; s++) {
		fixture.now_s = 1000 + s;
		assert_int_equal(fixture_open(UDP, INSIDE, 2, &id),
				 NAT_DROP_QUOTA);
	}
	assert_int_equal(fixture.n_events, 2);
	assert_int_equal(fixture.events[0].what, NAT_LOG_QUOTA);
	assert_int_equal(fixture.events[1].now_s, 1060);
}
