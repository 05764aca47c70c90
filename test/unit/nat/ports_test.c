/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/ports/ports.c and hold_down.c: ports that are held down. */
#include "fixture.h"

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
