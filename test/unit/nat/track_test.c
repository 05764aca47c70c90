/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/track.c and session.c: filters, sessions, and TCP's
 * time.
 */
#include "rig.h"

TEST_RIG(a_permit_ends_with_its_last_session)
{
	uint32_t id;

	rig.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
	rig_start(&rig);
	id = rig_map(&rig, TCP, INSIDE, 1);
	rig_out(&rig, id, REMOTE, 1, SYN);
	rig_in(&rig, id, REMOTE, 1, SYN | ACK); /* keeps the mapping */
	rig_out(&rig, id, REMOTE + 1, 1, SYN);
	rig_at(&rig, 1100);
	rig_out(&rig, id, REMOTE + 1, 2, SYN);
	rig_at(&rig, 1241); /* the first of the two is gone */
	assert_int_equal(rig_stats(&rig).n_sessions, 1);
	assert_int_equal(rig_in(&rig, id, REMOTE + 1, 9, SYN), NAT_OK);
	rig_at(&rig, 1341);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
	assert_int_equal(rig_in(&rig, id, REMOTE + 1, 9, SYN),
			 NAT_DROP_UNSOLICITED_SYN);
	assert_int_equal(rig_in(&rig, id, REMOTE, 9, SYN), NAT_OK);
}

/* A UDP filter forgets what was not sent to for as long as a mapping lasts. */
TEST_RIG(filters_forget_in_time)
{
	uint32_t id;

	rig.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS;
	rig_start(&rig);
	id = rig_map(&rig, UDP, INSIDE, 1);
	rig_out(&rig, id, REMOTE, 1, 0);
	rig_out(&rig, id, REMOTE + 1, 1, 0);
	rig_at(&rig, 1200);
	rig_out(&rig, id, REMOTE + 2, 1, 0);
	assert_int_equal(rig_stats(&rig).n_sessions, 2);
	assert_int_equal(rig_at(&rig, 1300), 0);
	assert_int_equal(rig_in(&rig, id, REMOTE, 1, 0), NAT_OK);
	assert_int_equal(rig_in(&rig, id, REMOTE + 1, 1, 0), NAT_OK);
	rig_at(&rig, 1301);
	assert_int_equal(rig_in(&rig, id, REMOTE, 1, 0), NAT_DROP_FILTERED);
	assert_int_equal(rig_in(&rig, id, REMOTE + 1, 1, 0), NAT_DROP_FILTERED);
	assert_false(nat_maps_may_in(rig.maps, id, htonl(REMOTE)));
	assert_int_equal(rig_in(&rig, id, REMOTE + 2, 1, 0), NAT_OK);
	assert_int_equal(rig_stats(&rig).n_sessions, 1);
	/* The place of the first one is taken again. */
	rig_out(&rig, id, REMOTE + 3, 1, 0);
	assert_int_equal(rig_stats(&rig).n_sessions, 1);
	/* And it ends as a whole. */
	assert_int_equal(rig_at(&rig, 1601) + rig_at(&rig, 1602), 1);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
}

TEST(inbound_refreshes_sessions_where_wanted)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		uint32_t id;

		rig_init(&rig);
		rig.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
		rig.config.refreshes_inbound = wanted;
		rig_start(&rig);
		id = rig_map(&rig, UDP, INSIDE, 1);
		rig_out(&rig, id, REMOTE, 1, 0);
		rig_out(&rig, id, REMOTE, 2, 0);
		rig_at(&rig, 1200);
		rig_in(&rig, id, REMOTE, 1, 0);
		rig_in(&rig, id, REMOTE, 2, 0);
		rig_out(&rig, id, REMOTE, 3, 0); /* keeps the mapping */
		rig_at(&rig, 1400);
		assert_int_equal(rig_in(&rig, id, REMOTE, 1, 0),
				 wanted ? NAT_OK : NAT_DROP_FILTERED);
		assert_int_equal(rig_in(&rig, id, REMOTE, 2, 0),
				 wanted ? NAT_OK : NAT_DROP_FILTERED);
		rig_end(&rig);
	}
}

/* Removed from the middle and from both ends of the mapping's list. */
TEST_RIG(sessions_end_in_any_order)
{
	uint32_t id, n = 50;

	rig.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
	rig_start(&rig);
	id = rig_map(&rig, UDP, INSIDE, 1);
	rig_out(&rig, id, REMOTE, 999, 0);
	for (uint16_t i = 0; i < 50; i++)
		rig_out(&rig, id, REMOTE, i, 0);
	for (uint16_t i = 0; i < 50; i++) {
		uint32_t one = nat_further_find(
			rig.maps, id, remote(REMOTE, (uint16_t)(i * 7 % 50)));

		assert_int_not_equal(one, MR_FLOW_NONE);
		nat_further_remove(rig.maps, one);
		assert_int_equal(nat_map_at(rig.maps, id)->n_sessions, --n);
		assert_int_equal(
			nat_further_has_addr(rig.maps, id, htonl(REMOTE)),
			n > 0);
	}
	assert_int_equal(nat_map_at(rig.maps, id)->sessions, 0);
}
