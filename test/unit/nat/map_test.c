/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping and ports: lookups by burst, work that is bounded,
 * ports in hold-down, and memory that runs out. */
#include "fixture.h"

/* Longer than a table's own bursts, and not all of it there. */
TEST_STARTED(lookups_take_any_burst)
{
	enum { N = 3 * MR_FLOW_BURST_MAX + 7 };
	static struct nat_tuple inside[N], outside[N];
	static uint32_t ids[N], found[N];

	for (uint32_t i = 0; i < N; i++) {
		inside[i] = tuple(UDP, INSIDE + i, 7);
		ids[i] = MR_FLOW_NONE;
		outside[i] = tuple(UDP, POOL, 1);
		if (i % 3 == 0)
			continue;
		ids[i] = fixture_map(UDP, INSIDE + i, 7);
		outside[i] =
			tuple(UDP, fixture_addr(ids[i]), fixture_port(ids[i]));
	}
	nat_maps_find_out(fixture.maps, inside, N, found);
	assert_memory_equal(found, ids, sizeof(ids));
	nat_maps_find_in(fixture.maps, outside, N, found);
	assert_memory_equal(found, ids, sizeof(ids));
}

/* Whatever allocation fails, it is said, and nothing is left. */
TEST(memory_may_run_out_at_create)
{
	uint32_t fail_at = 0;
	int err;

	do {
		struct mr_reason why = { "" };

		fixture_init();
		fixture.allocator.fail_at =
			fixture.allocator.n_calls + ++fail_at;
		err = fixture_try(0, 1, &why);
		if (err != 0) {
			assert_int_equal(err, -ENOMEM);
			assert_string_not_equal(why.text, "");
			fixture.maps = NULL;
		}
		fixture_end();
	} while (err != 0);
	assert_true(fail_at > 5);
}

TEST_STARTED(a_call_expires_a_bounded_number)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++)
		fixture_map(UDP, INSIDE + 1, (uint16_t)i);
	for (uint32_t i = 0; i < 16; i++) {
		uint32_t here = nat_maps_expire(fixture.maps, 1301);

		assert_in_range(here, 1, 64);
		n += here;
		assert_int_equal(nat_maps_is_behind(fixture.maps), n < 1000);
	}
	/* Ports are due at once, too, and further sessions. */
	nat_maps_expire(fixture.maps, 1301 + 122);
	assert_true(nat_maps_is_behind(fixture.maps));
	fixture_at(1301 + 122);
	assert_false(nat_maps_is_behind(fixture.maps));
	for (uint32_t i = 0; i < 200; i++)
		fixture_out(fixture_map(TCP, INSIDE + 1, 1), REMOTE + i, 80,
			    SYN);
	nat_maps_expire(fixture.maps, fixture.now_s + 241);
	assert_true(nat_maps_is_behind(fixture.maps));
	assert_int_equal(n, 1000);
}

/* Batches are fewer than seconds: nothing may be freed early for it. */
TEST_FIXTURE(ports_stay_in_hold_down_until_they_are_released)
{
	fixture.config.timeouts.hold_down_s = 5;
	fixture_start();
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t id = fixture_map(UDP, INSIDE, (uint16_t)i);

		nat_maps_close(fixture.maps, id, 1000 + i);
	}
	assert_int_equal(fixture_stats().n_hold_down, 20);
	/* Freed at 1000 and up; the newest batch is of 1019. */
	nat_ports_release(fixture.maps->ports, 1006, 100);
	assert_int_equal(fixture_stats().n_hold_down, 19);
	nat_ports_release(fixture.maps->ports, 1024, 100);
	assert_in_range(fixture_stats().n_hold_down, 1, 19);
	nat_ports_release(fixture.maps->ports, 1025, 100);
	assert_int_equal(fixture_stats().n_hold_down, 0);
	fixture_check_ports();
}

TEST(release_is_bounded_and_0_means_none)
{
	fixture_init();
	fixture_start();
	for (uint32_t i = 0; i < 10; i++)
		nat_maps_close(fixture.maps,
			       fixture_map(UDP, INSIDE, (uint16_t)i), 1000);
	assert_int_equal(nat_ports_release(fixture.maps->ports, 2000, 3), 3);
	assert_int_equal(nat_ports_release(fixture.maps->ports, 2000, 3), 3);
	assert_int_equal(nat_ports_release(fixture.maps->ports, 2000, 9), 4);
	fixture_end();
	fixture_init();
	fixture.config.timeouts.hold_down_s = 0;
	fixture_start();
	nat_maps_close(fixture.maps, fixture_map(UDP, INSIDE, 1), 1000);
	assert_int_equal(fixture_stats().n_hold_down, 0);
	fixture_check_ports();
	fixture_end();
}
