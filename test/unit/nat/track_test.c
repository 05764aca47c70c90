/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/track.c and session.c: filters, sessions, and TCP's
 * time.
 */
#include "fixture.h"

TEST_FIXTURE(a_permit_ends_with_its_last_session)
{
	uint32_t id;

	fixture.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
	fixture_start();
	id = fixture_map(TCP, INSIDE, 1);
	fixture_out(id, REMOTE, 1, SYN);
	fixture_in(id, REMOTE, 1, SYN | ACK); /* keeps the mapping */
	fixture_out(id, REMOTE + 1, 1, SYN);
	fixture_at(1100);
	fixture_out(id, REMOTE + 1, 2, SYN);
	fixture_at(1241); /* the first of the two is gone */
	assert_int_equal(fixture_stats().n_sessions, 1);
	assert_int_equal(fixture_in(id, REMOTE + 1, 9, SYN), NAT_OK);
	fixture_at(1341);
	assert_int_equal(fixture_stats().n_sessions, 0);
	assert_int_equal(fixture_in(id, REMOTE + 1, 9, SYN),
			 NAT_DROP_UNSOLICITED_SYN);
	assert_int_equal(fixture_in(id, REMOTE, 9, SYN), NAT_OK);
}

/* A UDP filter forgets what was not sent to for as long as a mapping lasts. */
TEST_FIXTURE(filters_forget_in_time)
{
	uint32_t id;

	fixture.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS;
	fixture_start();
	id = fixture_map(UDP, INSIDE, 1);
	fixture_out(id, REMOTE, 1, 0);
	fixture_out(id, REMOTE + 1, 1, 0);
	fixture_at(1200);
	fixture_out(id, REMOTE + 2, 1, 0);
	assert_int_equal(fixture_stats().n_sessions, 2);
	assert_int_equal(fixture_at(1300), 0);
	assert_int_equal(fixture_in(id, REMOTE, 1, 0), NAT_OK);
	assert_int_equal(fixture_in(id, REMOTE + 1, 1, 0), NAT_OK);
	fixture_at(1301);
	assert_int_equal(fixture_in(id, REMOTE, 1, 0), NAT_DROP_FILTERED);
	assert_int_equal(fixture_in(id, REMOTE + 1, 1, 0), NAT_DROP_FILTERED);
	assert_false(nat_maps_may_in(fixture.maps, id, htonl(REMOTE)));
	assert_int_equal(fixture_in(id, REMOTE + 2, 1, 0), NAT_OK);
	assert_int_equal(fixture_stats().n_sessions, 1);
	/* The place of the first one is taken again. */
	fixture_out(id, REMOTE + 3, 1, 0);
	assert_int_equal(fixture_stats().n_sessions, 1);
	/* And it ends as a whole. */
	assert_int_equal(fixture_at(1601) + fixture_at(1602), 1);
	assert_int_equal(fixture_stats().n_sessions, 0);
}

TEST(inbound_refreshes_sessions_where_wanted)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		uint32_t id;

		fixture_init();
		fixture.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
		fixture.config.refreshes_inbound = wanted;
		fixture_start();
		id = fixture_map(UDP, INSIDE, 1);
		fixture_out(id, REMOTE, 1, 0);
		fixture_out(id, REMOTE, 2, 0);
		fixture_at(1200);
		fixture_in(id, REMOTE, 1, 0);
		fixture_in(id, REMOTE, 2, 0);
		fixture_out(id, REMOTE, 3, 0); /* keeps the mapping */
		fixture_at(1400);
		assert_int_equal(fixture_in(id, REMOTE, 1, 0),
				 wanted ? NAT_OK : NAT_DROP_FILTERED);
		assert_int_equal(fixture_in(id, REMOTE, 2, 0),
				 wanted ? NAT_OK : NAT_DROP_FILTERED);
		fixture_end();
	}
}

/* Removed from the middle and from both ends of the mapping's list. */
TEST_FIXTURE(sessions_end_in_any_order)
{
	uint32_t id, n = 50;

	fixture.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
	fixture_start();
	id = fixture_map(UDP, INSIDE, 1);
	fixture_out(id, REMOTE, 999, 0);
	for (uint16_t i = 0; i < 50; i++)
		fixture_out(id, REMOTE, i, 0);
	for (uint16_t i = 0; i < 50; i++) {
		uint32_t one = nat_further_find(
			fixture.maps, id,
			remote(REMOTE, (uint16_t)(i * 7 % 50)));

		assert_int_not_equal(one, MR_FLOW_NONE);
		nat_further_remove(fixture.maps, one);
		assert_int_equal(nat_map_at(fixture.maps, id)->n_sessions, --n);
		assert_int_equal(
			nat_further_has_addr(fixture.maps, id, htonl(REMOTE)),
			n > 0);
	}
	assert_int_equal(nat_map_at(fixture.maps, id)->sessions, 0);
}
