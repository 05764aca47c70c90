/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/ports/ports.c and quarantine.c: which port is given to
 * whom. */
#include "fixture.h"

TEST_FIXTURE(the_inside_port_is_kept_if_it_is_free)
{
	uint32_t id;

	fixture.config.ports.keeps_port = true;
	fixture_start();
	assert_int_equal(fixture_port(fixture_map(UDP, INSIDE + 1, 5000)),
			 5000);
	assert_int_not_equal(fixture_port(fixture_map(UDP, INSIDE + 2, 5000)),
			     5000);
	/* Out of the range. */
	id = fixture_map(UDP, INSIDE + 1, 53);
	assert_in_range(fixture_port(id), 1024, 65535);
	id = fixture_map(UDP, INSIDE + 1, 0);
	assert_in_range(fixture_port(id), 1024, 65535);
	assert_int_equal(fixture_port(fixture_map(UDP, INSIDE + 1, 65535)),
			 65535);
}

TEST_FIXTURE(low_ports_stay_low_where_there_are_some)
{
	uint32_t id;

	fixture.config.ports.first = 1;
	fixture.config.ports.keeps_class = true;
	fixture_start();
	for (uint32_t i = 0; i < 1023; i++) {
		id = fixture_map(UDP, INSIDE + i, 500);
		assert_in_range(fixture_port(id), 1, 1023);
		id = fixture_map(UDP, INSIDE + i, 5000);
		assert_in_range(fixture_port(id), 1024, 65535);
	}
	/* They are used up; any port is better than none. */
	id = fixture_map(UDP, INSIDE + 2000, 500);
	assert_in_range(fixture_port(id), 1024, 65535);
}

TEST_FIXTURE(port_0_is_never_given)
{
	struct nat_ports_stats stats;
	uint32_t id;

	fixture.config.ports.first = 0;
	fixture.config.ports.last = 63;
	fixture_start();
	for (uint32_t i = 0; i < 63; i++) {
		id = fixture_map(ICMP, INSIDE + i, 0);
		assert_in_range(fixture_port(id), 1, 63);
	}
	assert_int_equal(fixture_open(ICMP, INSIDE + 64, 0, &id),
			 NAT_DROP_NO_PORT);
	nat_ports_stats(fixture.maps->ports, &stats);
	assert_int_equal(stats.n_all, 3 * 63);
}

TEST_FIXTURE(without_pairing_all_addresses_fill_up)
{
	uint32_t id;

	fixture.pool[0].last = POOL + 19; /* more than are compared */
	fixture.config.ports.last = 1024 + 9;
	fixture.config.is_paired = false;
	fixture_start();
	for (uint32_t i = 0; i < 200; i++)
		fixture_map(UDP, INSIDE, (uint16_t)i);
	assert_int_equal(fixture_open(UDP, INSIDE, 200, &id), NAT_DROP_NO_PORT);
	fixture_check_ports();
}

TEST_FIXTURE(a_pool_of_none_gives_none)
{
	uint32_t id;

	fixture.config.n_pool = 0;
	fixture.config.passes_other_protocols = true;
	fixture_start();
	assert_int_equal(fixture_open(UDP, INSIDE, 1, &id), NAT_DROP_NO_PORT);
	assert_int_equal(fixture_open(GRE, INSIDE, 0, &id), NAT_DROP_NO_PORT);
	assert_int_equal(fixture_find_in(UDP, POOL, 1024), MR_FLOW_NONE);
}

TEST_FIXTURE(ranges_that_leave_nothing_are_refused)
{
	struct mr_reason why;

	fixture.config.ports.last = 1024 + 63;
	assert_int_equal(fixture_try(1, 3, &why), 0); /* slice 16 */
	nat_maps_destroy(fixture.maps);
	fixture.maps = NULL;
	assert_int_equal(fixture_try(2, 3, &why), -EINVAL);
	assert_reason_has(&why, "1024 to 1087 leave none for worker 2 of 3");
	fixture.config.ports.last = 65535;
	fixture.pool[0] = (struct nat_range){ 0x01000000, 0x01000000 + 20000 };
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	assert_reason_has(&why, "20001 external addresses are more");
	fixture.pool[0] = (struct nat_range){ 0, UINT32_MAX };
	assert_int_equal(fixture_try(0, 1, &why), -EINVAL);
	assert_reason_has(&why, "all of IPv4");
}

/* Batches are fewer than seconds: nothing may be freed early for it. */
TEST_FIXTURE(a_quarantine_that_nobody_empties_keeps_what_it_has)
{
	fixture.config.timeouts.hold_down_s = 5;
	fixture_start();
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t id = fixture_map(UDP, INSIDE, (uint16_t)i);

		nat_maps_close(fixture.maps, id, 1000 + i);
	}
	assert_int_equal(fixture_stats().n_quarantined, 20);
	/* Freed at 1000 and up; the newest batch is of 1019. */
	nat_ports_release(fixture.maps->ports, 1006, 100);
	assert_int_equal(fixture_stats().n_quarantined, 19);
	nat_ports_release(fixture.maps->ports, 1024, 100);
	assert_in_range(fixture_stats().n_quarantined, 1, 19);
	nat_ports_release(fixture.maps->ports, 1025, 100);
	assert_int_equal(fixture_stats().n_quarantined, 0);
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
	assert_int_equal(fixture_stats().n_quarantined, 0);
	fixture_check_ports();
	fixture_end();
}
