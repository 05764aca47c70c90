/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/track.c and session.c: filters, sessions, and TCP's
 * time.
 */
#include "rig.h"

TEST_STARTED(without_a_filter_anyone_may_send)
{
	static const uint8_t protos[] = { UDP, TCP, ICMP };

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t id = rig_map(&rig, protos[i], INSIDE, 1);

		assert_int_equal(rig_in(&rig, id, REMOTE, 9, SYN), NAT_OK);
		assert_int_equal(rig_in(&rig, id, REMOTE, 9, ACK), NAT_OK);
		assert_true(nat_maps_may_in(rig.maps, id, htonl(REMOTE)));
	}
	/* A stranger has made no session. */
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
}

/* First and further remote ends alike. */
TEST(filters_let_in_who_was_sent_to)
{
	static const uint8_t protos[] = { UDP, TCP };

	for (uint32_t i = 0; i < 4; i++) {
		bool is_by_port = i & 1;
		uint32_t p = i / 2;
		enum nat_reason other_port =
			!is_by_port      ? NAT_OK :
			protos[p] == TCP ? NAT_DROP_UNSOLICITED_SYN :
					   NAT_DROP_FILTERED;
		enum nat_reason stranger = protos[p] == TCP ?
						   NAT_DROP_UNSOLICITED_SYN :
						   NAT_DROP_FILTERED;
		uint32_t id;

		rig_init(&rig);
		rig.config.filtering[p] = is_by_port ? NAT_FILTER_ADDRESS_PORT :
						       NAT_FILTER_ADDRESS;
		rig_start(&rig);
		id = rig_map(&rig, protos[p], INSIDE, 1);
		assert_int_equal(rig_in(&rig, id, REMOTE, 80, SYN), stranger);
		for (uint32_t k = 0; k < 5; k++)
			assert_int_equal(rig_out(&rig, id, REMOTE + k, 80, SYN),
					 NAT_OK);
		assert_int_equal(rig_stats(&rig).n_sessions, 4);
		for (uint32_t k = 0; k < 5; k++) {
			assert_int_equal(rig_in(&rig, id, REMOTE + k, 80, SYN),
					 NAT_OK);
			assert_int_equal(rig_in(&rig, id, REMOTE + k, 81, SYN),
					 other_port);
			assert_true(nat_maps_may_in(rig.maps, id,
						    htonl(REMOTE + k)));
		}
		assert_int_equal(rig_in(&rig, id, REMOTE + 5, 80, SYN),
				 stranger);
		assert_int_equal(rig_in(&rig, id, REMOTE + 5, 80, ACK),
				 NAT_DROP_FILTERED);
		assert_int_equal(rig_in(&rig, id, REMOTE + 5, 80, SYN | ACK),
				 NAT_DROP_FILTERED);
		assert_false(nat_maps_may_in(rig.maps, id, htonl(REMOTE + 5)));
		/* Packets in have made none. */
		assert_int_equal(rig_stats(&rig).n_sessions, 4);
		rig_end(&rig);
	}
}

TEST_RIG(icmp_is_filtered_by_address)
{
	uint32_t id;

	rig.config.filtering[NAT_ICMP] = NAT_FILTER_ADDRESS_PORT;
	rig_start(&rig);
	id = rig_map(&rig, ICMP, INSIDE, 77);
	rig_out(&rig, id, REMOTE, 0, 0);
	rig_out(&rig, id, REMOTE + 1, 0, 0);
	assert_int_equal(rig_in(&rig, id, REMOTE, 0, 0), NAT_OK);
	assert_int_equal(rig_in(&rig, id, REMOTE + 1, 0, 0), NAT_OK);
	assert_int_equal(rig_in(&rig, id, REMOTE + 2, 0, 0), NAT_DROP_FILTERED);
}

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

TEST(tcp_is_refreshed_by_what_goes_out)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		uint32_t id;

		rig_init(&rig);
		rig.config.refreshes_inbound = wanted;
		rig_start(&rig);
		id = rig_map(&rig, TCP, INSIDE, 1);
		rig_out(&rig, id, REMOTE, 80, SYN);
		rig_in(&rig, id, REMOTE, 80, SYN | ACK);
		rig_at(&rig, 5000);
		rig_out(&rig, id, REMOTE, 80, ACK);
		rig_at(&rig, 9000);
		rig_in(&rig, id, REMOTE, 80, ACK);
		assert_int_equal(rig_at(&rig, 5000 + 7440), 0);
		assert_int_equal(rig_at(&rig, 5000 + 7441), !wanted);
		assert_int_equal(rig_at(&rig, 9000 + 7441), wanted);
		rig_end(&rig);
	}
}

/* RFC 7857: no RST deletes, and another one does not make it last. */
TEST_STARTED(an_rst_is_waited_for_once)
{
	uint32_t id;

	id = rig_map(&rig, TCP, INSIDE, 1);
	rig_out(&rig, id, REMOTE, 80, SYN);
	rig_in(&rig, id, REMOTE, 80, SYN | ACK);
	rig_in(&rig, id, REMOTE, 80, RST);
	rig_at(&rig, 1200);
	assert_int_equal(rig_in(&rig, id, REMOTE, 80, RST), NAT_OK);
	assert_int_equal(rig_out(&rig, id, REMOTE, 80, RST), NAT_OK);
	assert_int_equal(rig_at(&rig, 1240), 0);
	assert_int_equal(rig_at(&rig, 1241), 1);
}

TEST_STARTED(strays_pass_a_mapping_and_leave_no_trace)
{
	uint32_t id;

	id = rig_map(&rig, TCP, INSIDE, 1);
	rig_at(&rig, 1100);
	assert_int_equal(rig_out(&rig, id, REMOTE, 80, RST), NAT_OK);
	assert_int_equal(rig_out(&rig, id, REMOTE, 80, ACK), NAT_OK);
	assert_int_equal(rig_in(&rig, id, REMOTE, 80, ACK), NAT_OK);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
	assert_int_equal(rig_at(&rig, 1241), 1);
}

/* REQ-11 of RFC 6888: what is there is not disturbed. */
TEST_RIG(session_limits_hold)
{
	uint32_t a, b;

	rig.config.max_sessions = 3;
	rig.config.max_sessions_per_subscriber = 2;
	rig_start(&rig);
	a = rig_map(&rig, TCP, INSIDE, 1);
	b = rig_map(&rig, TCP, INSIDE + 1, 1);
	for (uint16_t i = 0; i < 3; i++)
		assert_int_equal(rig_out(&rig, a, REMOTE, i, SYN), NAT_OK);
	assert_int_equal(rig_out(&rig, a, REMOTE, 9, SYN), NAT_DROP_QUOTA);
	for (uint16_t i = 0; i < 2; i++)
		assert_int_equal(rig_out(&rig, b, REMOTE, i, SYN), NAT_OK);
	assert_int_equal(rig_out(&rig, b, REMOTE, 9, SYN), NAT_DROP_TABLE_FULL);
	assert_int_equal(rig_out(&rig, b, REMOTE, 1, ACK), NAT_OK);
	assert_int_equal(rig_stats(&rig).n_sessions, 3);
	nat_maps_close(rig.maps, a, rig.now_s);
	assert_int_equal(rig_stats(&rig).n_sessions, 1);
	assert_int_equal(rig_out(&rig, b, REMOTE, 9, SYN), NAT_OK);
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
