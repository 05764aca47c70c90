/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/age.c: when things end, and what makes them last.
 */
#include "rig.h"

TEST(nothing_ends_early_nor_a_tick_late)
{
	static const struct {
		uint8_t proto;
		uint32_t lasts_s;
	} rows[] = { { UDP, 300 }, { TCP, 240 }, { ICMP, 60 } };

	for (uint32_t i = 0; i < 3; i++) {
		rig_init(&rig);
		rig_start(&rig);
		rig_map(&rig, rows[i].proto, INSIDE + 1, 1);
		/* It may have been opened late in its second. */
		for (uint32_t s = 0; s <= rows[i].lasts_s; s++)
			assert_int_equal(rig_at(&rig, 1000 + s), 0);
		assert_int_equal(rig_at(&rig, 1000 + rows[i].lasts_s + 1), 1);
		assert_int_equal(rig_stats(&rig).n_mappings, 0);
		assert_int_equal(rig_stats(&rig).n_subscribers, 0);
		assert_int_equal(rig_stats(&rig).expired, 1);
		rig_end(&rig);
	}
}

TEST_STARTED(packets_out_make_it_last)
{
	uint32_t id;

	id = rig_map(&rig, UDP, INSIDE + 1, 1);
	for (uint32_t i = 1; i <= 10; i++) {
		assert_int_equal(rig_at(&rig, 1000 + 290 * i), 0);
		assert_int_equal(rig_out(&rig, id, REMOTE + i, 53, 0), NAT_OK);
	}
	assert_int_equal(rig_at(&rig, 1000 + 2900 + 300), 0);
	assert_int_equal(rig_at(&rig, 1000 + 2900 + 301), 1);
}

TEST(packets_in_do_so_if_it_is_wanted)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		uint32_t id;

		rig_init(&rig);
		rig.config.refreshes_inbound = wanted;
		rig_start(&rig);
		id = rig_map(&rig, UDP, INSIDE + 1, 1);
		rig_at(&rig, 1200);
		assert_int_equal(rig_in(&rig, id, REMOTE, 53, 0), NAT_OK);
		assert_int_equal(rig_at(&rig, 1301), !wanted);
		assert_int_equal(rig_at(&rig, 1501), wanted);
		rig_end(&rig);
	}
}

TEST_STARTED(a_call_does_a_bounded_part)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++)
		rig_map(&rig, UDP, INSIDE + 1, (uint16_t)i);
	for (uint32_t i = 0; i < 16; i++) {
		uint32_t here = nat_maps_expire(rig.maps, 1301);

		assert_in_range(here, 1, 64);
		n += here;
		assert_int_equal(nat_maps_is_behind(rig.maps), n < 1000);
	}
	/* Ports are due at once, too, and further sessions. */
	nat_maps_expire(rig.maps, 1301 + 122);
	assert_true(nat_maps_is_behind(rig.maps));
	rig_at(&rig, 1301 + 122);
	assert_false(nat_maps_is_behind(rig.maps));
	for (uint32_t i = 0; i < 200; i++)
		rig_out(&rig, rig_map(&rig, TCP, INSIDE + 1, 1), REMOTE + i, 80,
			SYN);
	nat_maps_expire(rig.maps, rig.now_s + 241);
	assert_true(nat_maps_is_behind(rig.maps));
	assert_int_equal(n, 1000);
}

TEST_RIG(a_freed_port_waits_and_comes_back)
{
	struct nat_ports_stats stats;
	uint32_t id;

	rig.config.ports.last = 1024 + 99;
	rig_start(&rig);
	for (uint32_t i = 0; i < 100; i++)
		rig_map(&rig, UDP, INSIDE + 1, (uint16_t)i);
	assert_int_equal(rig_open(&rig, UDP, INSIDE + 1, 100, &id),
			 NAT_DROP_NO_PORT);
	assert_int_equal(rig_at(&rig, 1301), 100);
	assert_int_equal(rig_stats(&rig).n_quarantined, 100);
	assert_int_equal(rig_open(&rig, UDP, INSIDE + 1, 100, &id),
			 NAT_DROP_NO_PORT);
	rig_at(&rig, 1301 + 120);
	assert_int_equal(rig_open(&rig, UDP, INSIDE + 1, 100, &id),
			 NAT_DROP_NO_PORT);
	rig_at(&rig, 1301 + 121);
	assert_int_equal(rig_stats(&rig).n_quarantined, 0);
	nat_ports_stats(rig.maps->ports, &stats);
	assert_int_equal(stats.n_free, stats.n_all);
	for (uint32_t i = 0; i < 100; i++)
		rig_map(&rig, UDP, INSIDE + 1, (uint16_t)i);
	rig_check_ports(&rig);
}
