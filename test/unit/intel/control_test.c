/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/intel/intel_filter.c, intel_irq.c and intel_stats.c: what
 * the device is told while it runs, and what it tells.
 */
#include "fake_nic.h"

TEST(addresses_are_compared_or_looked_up)
{
	static const uint8_t macs[][6] = {
		{ 2, 1, 2, 3, 4, 5 },
		{ 1, 0, 0x5e, 0, 0, 0xfb }, /* bits 47 to 36: 0xfb0 */
		{ 2, 9, 8, 7, 6, 5 },
	};
	static const uint8_t own[6] = { 2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee };
	struct mr_port_info info = { .size = sizeof(info) };
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(mr_port_info(fake.port, &info), 0);
	assert_memory_equal(info.mac, "\x52\x00\x02\x03\x04\x05", 6);
	assert_int_equal(*fake_reg(&fake, INTEL_RAH),
			 INTEL_RAH_AV | INTEL_RAH_POOL_1 | 0x0504);

	assert_int_equal(mr_port_set_mac(fake.port, own, NULL), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RAL), 0xccbbaa02);
	assert_int_equal(mr_port_set_mac_filter(fake.port, macs, 3, NULL), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RAL + 8), 0x03020102);
	assert_int_equal(*fake_reg(&fake, INTEL_RAL + 16), 0x07080902);
	assert_int_equal(*fake_reg(&fake, INTEL_RAH + 16),
			 INTEL_RAH_AV | INTEL_RAH_POOL_1 | 0x0506);
	assert_int_equal(*fake_reg(&fake, INTEL_MTA + 4 * (0xfb0 / 32)),
			 1u << (0xfb0 % 32));

	/* A shorter list: the rest is gone. */
	assert_int_equal(mr_port_set_mac_filter(fake.port, macs + 2, 1, NULL),
			 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RAL + 8), 0x07080902);
	assert_int_equal(*fake_reg(&fake, INTEL_RAH + 16), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_MTA + 4 * (0xfb0 / 32)), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RAL), 0xccbbaa02);
	fake_close(&fake);
}

TEST(more_addresses_than_there_are_places_are_refused)
{
	uint8_t macs[16][6] = { 0 };
	struct mr_reason reason;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .device_id = FAKE_I210 });
	for (uint8_t i = 0; i < 16; i++) {
		macs[i][0] = 2;
		macs[i][5] = i;
	}
	assert_int_equal(mr_port_set_mac_filter(fake.port, macs, 15, &reason),
			 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RAH + 15 * 8),
			 INTEL_RAH_AV | 0x0e00);
	assert_int_equal(mr_port_set_mac_filter(fake.port, macs, 16, &reason),
			 -ENOSPC);
	assert_reason_has(&reason, "15 unicast");
	fake_close(&fake);
}

TEST(all_frames_or_all_groups)
{
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(*fake_reg(&fake, INTEL_RCTL) &
				 (INTEL_RCTL_UPE | INTEL_RCTL_MPE),
			 0);
	assert_int_equal(mr_port_set_promisc(fake.port, 1, NULL), 0);
	assert_int_equal(mr_port_set_allmulti(fake.port, 1, NULL), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RCTL),
			 INTEL_RCTL_EN | INTEL_RCTL_BAM | INTEL_RCTL_SECRC |
				 INTEL_RCTL_LPE | INTEL_RCTL_UPE |
				 INTEL_RCTL_MPE);
	assert_int_equal(mr_port_set_promisc(fake.port, 0, NULL), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RCTL) &
				 (INTEL_RCTL_UPE | INTEL_RCTL_MPE),
			 INTEL_RCTL_MPE);
	fake_close(&fake);

	fake_open(&fake, (struct fake_config){ .options = "promisc" });
	assert_int_equal(*fake_reg(&fake, INTEL_RCTL) &
				 (INTEL_RCTL_UPE | INTEL_RCTL_MPE),
			 INTEL_RCTL_UPE | INTEL_RCTL_MPE);
	fake_close(&fake);

	fake_open(&fake,
		  (struct fake_config){
			  .options = "promisc=off,allmulti=on,vlan=off" });
	assert_int_equal(*fake_reg(&fake, INTEL_RCTL) &
				 (INTEL_RCTL_UPE | INTEL_RCTL_MPE),
			 INTEL_RCTL_MPE);
	assert_int_equal(*fake_reg(&fake, INTEL_CTRL) & INTEL_CTRL_VME, 0);
	fake_close(&fake);
}

TEST(an_mtu_is_what_buffers_and_device_take)
{
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_reason reason;
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(*fake_reg(&fake, INTEL_RLPML), 1522);
	/* 3072 bytes of a chunk are the device's. */
	assert_int_equal(mr_port_set_mtu(fake.port, 3054, &reason), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RLPML), 3076);
	assert_int_equal(mr_port_info(fake.port, &info), 0);
	assert_int_equal(info.mtu_bytes, 3054);
	frame = fake_frame(&fake, 3072);
	assert_int_equal(mr_tx_burst(fake.txq, fake.cache, &frame, 1), 1);
	assert_int_equal(fake_send(&fake), 1);
	assert_int_equal(mr_port_set_mtu(fake.port, 3055, &reason), -EINVAL);
	assert_reason_has(&reason, "mtu=3055");
	assert_int_equal(mr_port_set_mtu(fake.port, 9217, &reason), -EINVAL);
	assert_reason_has(&reason, "9216");
	assert_int_equal(*fake_reg(&fake, INTEL_RLPML), 3076);
	fake_close(&fake);

	/* The 82574 knows long frames or not, and 2 KiB. */
	fake_open(&fake, (struct fake_config){ .device_id = FAKE_82574 });
	assert_int_equal(*fake_reg(&fake, INTEL_RCTL) & INTEL_RCTL_LPE, 0);
	assert_int_equal(mr_port_set_mtu(fake.port, 1501, &reason), 0);
	assert_int_not_equal(*fake_reg(&fake, INTEL_RCTL) & INTEL_RCTL_LPE, 0);
	assert_int_equal(mr_port_set_mtu(fake.port, 1500, &reason), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RCTL) & INTEL_RCTL_LPE, 0);
	assert_int_equal(mr_port_set_mtu(fake.port, 2031, &reason), -EINVAL);
	assert_int_equal(*fake_reg(&fake, INTEL_RLPML), 0);
	fake_close(&fake);
}

TEST(nothing_is_told_to_a_device_that_is_gone)
{
	static const uint8_t mac[1][6] = { { 2, 1, 2, 3, 4, 5 } };
	struct mr_named_count counts[32];
	struct mr_reason reason;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	*fake_reg(&fake, 0x4010) = 5;
	fake.nic.pci.is_gone = true;
	assert_int_equal(mr_port_set_promisc(fake.port, 1, &reason), -ENODEV);
	assert_reason_has(&reason, "gone");
	assert_int_equal(mr_port_set_allmulti(fake.port, 1, NULL), -ENODEV);
	assert_int_equal(mr_port_set_mtu(fake.port, 1400, NULL), -ENODEV);
	assert_int_equal(mr_port_set_mac(fake.port, mac[0], NULL), -ENODEV);
	assert_int_equal(mr_port_set_mac_filter(fake.port, mac, 1, NULL),
			 -ENODEV);
	assert_int_equal(mr_port_device_drops(fake.port, counts, 32), 4);
	assert_int_equal(counts[0].value, 0);
	fake_close(&fake);
}

static uint64_t count_of(struct fake *fake, const char *name)
{
	struct mr_named_count counts[32];
	const uint32_t n = mr_port_device_stats(fake->port, counts, 32);

	for (uint32_t i = 0; i < n; i++)
		if (strcmp(counts[i].name, name) == 0)
			return counts[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

/* Registers are cleared by reading, and are all in 64 bits here. */
TEST(the_devices_counts_add_up)
{
	struct mr_named_count drops[4];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "queues=2" });
	for (uint64_t round = 1; round <= 3; round++) {
		*fake_reg(&fake, 0x4074) = 0xfffffffe;
		*fake_reg(&fake, 0x4088) = 0xfffffff0;
		*fake_reg(&fake, 0x408c) = 3;
		*fake_reg(&fake, intel_rx_ring(1) + INTEL_RQDPC) = 0;
		assert_int_equal(count_of(&fake, "gprc"), round * 0xfffffffe);
		assert_int_equal(count_of(&fake, "gorc"), round * 0x3fffffff0);
	}
	*fake_reg(&fake, 0x4010) = 7;
	assert_int_equal(mr_port_device_drops(fake.port, drops, 4), 4);
	assert_string_equal(drops[0].name, "rx_missed");
	assert_int_equal(drops[0].value, 7);
	assert_int_equal(count_of(&fake, "mpc"), 7);
	/* Room for fewer is filled, and no more. */
	drops[1].value = 99;
	assert_int_equal(mr_port_device_drops(fake.port, drops, 1), 4);
	assert_int_equal(drops[1].value, 99);
	fake_close(&fake);
}

/* The I210 does not clear what a full queue dropped: it is told to. */
TEST(drops_of_full_queues_count_once)
{
	struct mr_named_count drops[4];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .device_id = FAKE_I210,
					       .options = "queues=2" });
	*fake_reg(&fake, intel_rx_ring(1) + INTEL_RQDPC) = 9;
	for (int i = 0; i < 3; i++) {
		mr_port_device_drops(fake.port, drops, 4);
		assert_string_equal(drops[1].name, "rx_queue_full");
		assert_int_equal(drops[1].value, 9);
	}
	fake_close(&fake);
}

/* Another thread, between the reading of a register and its clearing. */
static void read_beside(void *opaque)
{
	struct fake *fake = opaque;
	struct mr_named_count drops[4];

	fake->nic.read_hook_offset = 0;
	mr_port_device_drops(fake->port, drops, 4);
	assert_int_equal(drops[1].value, 0);
}

TEST(two_readers_do_not_count_a_drop_twice)
{
	struct mr_named_count drops[4];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .device_id = FAKE_I210 });
	*fake_reg(&fake, intel_rx_ring(0) + INTEL_RQDPC) = 9;
	fake.nic.read_hook_offset = intel_rx_ring(0) + INTEL_RQDPC;
	fake.nic.hook = read_beside;
	fake.nic.hook_opaque = &fake;
	for (int i = 0; i < 2; i++) {
		mr_port_device_drops(fake.port, drops, 4);
		assert_int_equal(drops[1].value, 9);
	}
	*fake_reg(&fake, intel_rx_ring(0) + INTEL_RQDPC) = 2;
	mr_port_device_drops(fake.port, drops, 4);
	assert_int_equal(drops[1].value, 11);
	fake_close(&fake);
}

static void fire(int fd)
{
	const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

TEST(a_change_of_the_link_is_an_event)
{
	struct mr_link link;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	*fake_reg(&fake, INTEL_STATUS) = 2u << 6; /* 1000 */
	assert_int_equal(mr_port_poll(fake.port), 0);
	assert_int_equal(mr_port_link(fake.port, &link), 0);
	assert_int_equal(link.is_up, 1);
	assert_int_equal(link.speed_mbps, 1000);

	/* Its vector fires, and goes off: it is switched on again. */
	fake.nic.has_link = false;
	*fake_reg(&fake, INTEL_EIMS) = 0;
	fire(fake.nic.pci.irq_fds[2]);
	assert_int_equal(mr_port_poll(fake.port), 1);
	assert_int_equal(*fake_reg(&fake, INTEL_EIMS), 1u << 2);
	assert_int_equal(mr_port_link(fake.port, &link), 0);
	assert_int_equal(link.is_up, 0);
	assert_int_equal(link.speed_mbps, 0);
	assert_int_equal(mr_port_poll(fake.port), 0);
	fake.nic.has_link = true;
	*fake_reg(&fake, INTEL_STATUS) = INTEL_STATUS_SPEED_100;
	assert_int_equal(mr_port_poll(fake.port), 1);
	assert_int_equal(mr_port_link(fake.port, &link), 0);
	assert_int_equal(link.speed_mbps, 100);
	fake_close(&fake);
}

/* The 82574's vector of the link fires for overruns, too: not in a row. */
TEST(other_causes_are_cleared_and_moderated)
{
	struct fake fake;
	uint32_t at;

	fake_open(&fake, (struct fake_config){ .device_id = FAKE_82574,
					       .options = "itr=0" });
	assert_int_equal(*fake_reg(&fake, INTEL_EITR_82574 + 4 * 1), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_EITR_82574 + 4 * 2), 32000);
	at = fake.nic.n_writes;
	fire(fake.nic.pci.irq_fds[2]);
	assert_int_equal(mr_port_poll(fake.port), 0);
	at = fake_find_write(&fake, at, INTEL_ICR);
	assert_int_equal(fake.nic.values[at], 0x01070244);
	at = fake_find_write(&fake, at, INTEL_IMS);
	assert_int_equal(fake.nic.values[at], 0x01000004);
	fake_close(&fake);

	fake_open(&fake, (struct fake_config){ .options = "itr=3" });
	assert_int_equal(*fake_reg(&fake, INTEL_EITR + 4 * 1),
			 INTEL_EITR_CNT_IGNR | 3 << 2);
	assert_int_equal(*fake_reg(&fake, INTEL_EITR + 4 * 2),
			 INTEL_EITR_CNT_IGNR | 8000 << 2);
	fake_close(&fake);
}

/* The kernel wants it back: nothing more is written to it. */
TEST(a_device_that_is_asked_back_is_gone)
{
	struct mr_reason why = { "" };
	struct mr_link link;
	struct mr_frame frame;
	struct fake fake;
	uint32_t n_writes;

	fake_open(&fake, (struct fake_config){ 0 });
	fire(fake.nic.pci.req_fd);
	n_writes = fake.nic.n_writes;
	assert_int_equal(mr_port_poll(fake.port), 1);
	assert_int_equal(mr_port_link(fake.port, &link), 0);
	assert_int_equal(link.is_gone, 1);
	frame = fake_frame(&fake, 60);
	assert_int_equal(mr_tx_burst(fake.txq, fake.cache, &frame, 1), 1);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_PORT_GONE], 1);
	fake_close(&fake);
	assert_int_equal(fake.nic.n_writes, n_writes);

	/* After an error on the bus it is not believed either. */
	fake_open(&fake, (struct fake_config){ 0 });
	fire(fake.nic.pci.err_fd);
	assert_int_equal(mr_port_poll(fake.port), 1);
	assert_non_null(strstr(fake.f.allocator.last_line, "error on the bus"));
	assert_int_equal(mr_port_link(fake.port, &link), 0);
	assert_int_equal(link.is_gone, 1);
	assert_int_equal(mr_port_poll(fake.port), 0);
	assert_int_equal(mr_port_set_promisc(fake.port, 1, &why), -ENODEV);
	assert_non_null(strstr(why.text, "error on the bus"));
	fake_close(&fake);
}

/* Who finds that it is gone: its poll, a control call, or a worker's arm. */
TEST(a_device_that_is_gone_is_one_event)
{
	for (int who = 0; who < 3; who++) {
		struct mr_link link;
		struct fake fake;

		fake_open(&fake, (struct fake_config){ 0 });
		assert_int_equal(mr_port_poll(fake.port), 0);
		fake.nic.takes_writes = fake.nic.pci.is_gone = true;
		if (who == 1)
			assert_int_equal(
				mr_port_set_promisc(fake.port, 1, NULL),
				-ENODEV);
		if (who == 2)
			assert_int_equal(mr_queue_arm(&fake.rxq->queue), 0);
		assert_int_equal(mr_port_poll(fake.port), 1);
		assert_int_equal(mr_port_link(fake.port, &link), 0);
		assert_int_equal(link.is_gone, 1);
		assert_int_equal(link.is_up, 0);
		assert_int_equal(link.speed_mbps, 0);
		assert_int_equal(mr_port_poll(fake.port), 0);
		fake_close(&fake);
	}
}
