/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/age.c: when things end, and what makes them last.
 */
#include "fixture.h"

TEST_STARTED(a_call_does_a_bounded_part)
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
