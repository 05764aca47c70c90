/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/intel/intel_filter.c, intel_irq.c and intel_stats.c: what
 * the device is told while it runs, and what it tells. Which frames its
 * filters accept: test/conformance/control_test.c.
 */
#include <unistd.h>

#include "intel.h"
#include "model/held_nic.h"

HELD_TEST(addresses_have_their_places)
{
	static const uint8_t own[6] = { 2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee };
	uint8_t macs[16][6] = { 0 };
	struct mr_reason reason;

	/* The 82576 has pools, and one of them. */
	assert_int_equal(*held_reg(INTEL_RAH),
			 INTEL_RAH_AV | INTEL_RAH_POOL_1 | 0x0504);
	for (uint8_t i = 0; i < 16; i++)
		memcpy(macs[i], (uint8_t[]){ 2, 0, 0, 0, 0, i }, 6);
	assert_int_equal(mr_port_set_mac(held.harness.port, own, NULL), 0);
	assert_int_equal(
		mr_port_set_mac_filter(held.harness.port, macs, 15, &reason),
		0);
	assert_int_equal(*held_reg(INTEL_RAH + 15 * 8),
			 INTEL_RAH_AV | INTEL_RAH_POOL_1 | 0x0e00);
	assert_int_equal(
		mr_port_set_mac_filter(held.harness.port, macs, 16, &reason),
		-ENOSPC);
	assert_reason_has(&reason, "15 unicast");
	/* A shorter list: the rest is gone, and the own address stays. */
	assert_int_equal(
		mr_port_set_mac_filter(held.harness.port, macs, 1, NULL), 0);
	assert_int_equal(*held_reg(INTEL_RAL), 0xccbbaa02);
	assert_int_equal(*held_reg(INTEL_RAH + 8) & INTEL_RAH_AV, INTEL_RAH_AV);
	assert_int_equal(*held_reg(INTEL_RAH + 16), 0);
}

TEST(options_set_which_frames_are_received)
{
	static const struct {
		const char *options;
		uint32_t modes;
	} cases[] = {
		{ NULL, 0 },
		{ "promisc", INTEL_RCTL_UPE | INTEL_RCTL_MPE },
		{ "promisc=off,allmulti=on,vlan=off", INTEL_RCTL_MPE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		held_open((struct held_config){ .options = cases[i].options });
		assert_int_equal(*held_reg(INTEL_RCTL),
				 INTEL_RCTL_EN | INTEL_RCTL_BAM |
					 INTEL_RCTL_SECRC | INTEL_RCTL_LPE |
					 cases[i].modes);
		assert_int_equal(*held_reg(INTEL_CTRL) & INTEL_CTRL_VME, 0);
		assert_int_equal(*held_reg(INTEL_VET), MR_ETHER_VLAN);
		held_close();
	}
}

/* igb uses 3072 bytes of a page; the 82574 only knows long frames or not. */
TEST(the_largest_mtu_is_that_of_buffers_and_device)
{
	static const struct {
		uint16_t device_id;
		uint32_t mtu_bytes;
		int err;
		uint32_t limit; /* RLPML, or RCTL.LPE */
		const char *words;
	} cases[] = {
		{ HELD_82576, 3054, 0, 3076, "" },
		{ HELD_82576, 3055, -EINVAL, 1522, "mtu=3055" },
		{ HELD_82576, 9217, -EINVAL, 1522, "9216" },
		{ HELD_82574, 1500, 0, 0, "" },
		{ HELD_82574, 1501, 0, INTEL_RCTL_LPE, "" },
		{ HELD_82574, 2031, -EINVAL, 0, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool is_igb = cases[i].device_id == HELD_82576;
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_reason why = { "" };

		held_open((struct held_config){ .device_id =
							cases[i].device_id });
		assert_int_equal(mr_port_set_mtu(held.harness.port,
						 cases[i].mtu_bytes, &why),
				 cases[i].err);
		assert_reason_has(&why, cases[i].words);
		assert_int_equal(is_igb ?
					 *held_reg(INTEL_RLPML) :
					 *held_reg(INTEL_RCTL) & INTEL_RCTL_LPE,
				 cases[i].limit);
		assert_int_equal(mr_port_info(held.harness.port, &info), 0);
		assert_int_equal(info.mtu_bytes,
				 cases[i].err == 0 ? cases[i].mtu_bytes : 1500);
		held_close();
	}
}

static uint64_t count_of(const char *name)
{
	struct mr_named_count counts[32];
	const uint32_t n = mr_port_device_stats(held.harness.port, counts, 32);

	for (uint32_t i = 0; i < n; i++)
		if (strcmp(counts[i].name, name) == 0)
			return counts[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

/* Registers are cleared by reading, and are all in 64 bits here. */
HELD_TEST(the_devices_counts_add_up, .options = "queues=2")
{
	struct mr_named_count drops[4];

	for (uint64_t round = 1; round <= 3; round++) {
		*held_reg(0x4074) = 0xfffffffe;
		held_set_bytes(0x3fffffff0);
		assert_int_equal(count_of("gprc"), round * 0xfffffffe);
		held_set_bytes(0);
		assert_int_equal(count_of("gorc"), round * 0x3fffffff0);
	}
	*held_reg(0x4010) = 7;
	assert_int_equal(mr_port_device_drops(held.harness.port, drops, 4), 4);
	assert_string_equal(drops[0].name, "rx_missed");
	assert_int_equal(drops[0].value, 7);
	assert_int_equal(count_of("mpc"), 7);
	/* Room for fewer is filled, and no more. */
	drops[1].value = 99;
	assert_int_equal(mr_port_device_drops(held.harness.port, drops, 1), 4);
	assert_int_equal(drops[1].value, 99);
}

/* Another thread, between the reading of a register and its clearing. */
static void read_beside(void)
{
	struct mr_named_count drops[4];

	held.read_hook_offset = 0;
	mr_port_device_drops(held.harness.port, drops, 4);
	assert_int_equal(drops[1].value, 0);
}

/* The I210 does not clear what a full queue dropped: it is told to. */
HELD_TEST(drops_of_full_queues_count_once, .device_id = HELD_I210,
	  .options = "queues=2")
{
	struct mr_named_count drops[4];

	held_set_drops(1, 9);
	held.read_hook_offset = intel_rx_ring(1) + INTEL_RQDPC;
	held.hook = read_beside;
	for (int i = 0; i < 3; i++) {
		mr_port_device_drops(held.harness.port, drops, 4);
		assert_string_equal(drops[1].name, "rx_queue_full");
		assert_int_equal(drops[1].value, 9);
	}
	held_set_drops(1, 2);
	mr_port_device_drops(held.harness.port, drops, 4);
	assert_int_equal(drops[1].value, 11);
}

static struct mr_link link_of(void)
{
	struct mr_link link = { 0 };

	assert_int_equal(mr_port_link(held.harness.port, &link), 0);
	return link;
}

static void fire(int fd)
{
	const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

HELD_TEST(a_change_of_the_link_is_an_event)
{
	assert_int_equal(mr_port_poll(held.harness.port), 0);
	for (int i = 0; i < 4; i++) {
		const bool is_up = i % 2 == 1;

		assert_int_equal(link_of().is_up, !is_up);
		held_set_link(is_up);
		/* Its vector fires, and goes off: it is switched on again. */
		*held_reg(INTEL_EIMS) = 0;
		fire(held.harness.m->irq_fds[2]);
		assert_int_equal(mr_port_poll(held.harness.port), 1);
		assert_int_equal(*held_reg(INTEL_EIMS), 1u << 2);
		assert_int_equal(link_of().speed_mbps, is_up ? 1000 : 0);
		assert_int_equal(mr_port_poll(held.harness.port), 0);
	}
}

static uint32_t written(uint32_t i, uint32_t offset)
{
	for (; i < held.n_writes; i++)
		if (held.offsets[i] == offset)
			return held.values[i];
	fail_msg("0x%x was not written", offset);
	return 0;
}

/* The 82574's vector of the link fires for overruns, too: not in a row. */
TEST(other_interrupt_causes_are_cleared_and_moderated)
{
	uint32_t at;

	held_open((struct held_config){ .device_id = HELD_82574,
					.options = "itr=0" });
	assert_int_equal(*held_reg(INTEL_EITR_82574 + 4 * 1), 0);
	assert_int_equal(*held_reg(INTEL_EITR_82574 + 4 * 2), 32000);
	mr_port_poll(held.harness.port);
	at = held.n_writes;
	fire(held.harness.m->irq_fds[2]);
	assert_int_equal(mr_port_poll(held.harness.port), 0);
	assert_int_equal(written(at, INTEL_ICR), 0x01070244);
	assert_int_equal(written(at, INTEL_IMS), 0x01000004);
	held_close();

	held_open((struct held_config){ .options = "itr=3" });
	assert_int_equal(*held_reg(INTEL_EITR + 4 * 1),
			 INTEL_EITR_CNT_IGNR | 3 << 2);
	assert_int_equal(*held_reg(INTEL_EITR + 4 * 2),
			 INTEL_EITR_CNT_IGNR | 8000 << 2);
	held_close();
}

static void assert_told_nothing(struct mr_port *port)
{
	static const uint8_t mac[1][6] = { { 2, 1, 2, 3, 4, 5 } };
	struct mr_named_count counts[32];

	assert_int_equal(mr_port_set_allmulti(port, 1, NULL), -ENODEV);
	assert_int_equal(mr_port_set_mtu(port, 1400, NULL), -ENODEV);
	assert_int_equal(mr_port_set_mac(port, mac[0], NULL), -ENODEV);
	assert_int_equal(mr_port_set_mac_filter(port, mac, 1, NULL), -ENODEV);
	assert_int_equal(mr_port_device_drops(port, counts, 32), 4);
	assert_int_equal(counts[0].value, 0);
}

/* Who finds that it is gone, and what there is of it then: nothing more. */
TEST(a_removed_device_is_one_event)
{
	enum { POLL, CONTROL, ARM, ASKED_BACK, BUS_ERROR, N };

	for (int who = 0; who < N; who++) {
		struct mr_reason why = { "" };
		struct mr_frame frame;
		uint64_t n_writes;

		held_open((struct held_config){ 0 });
		assert_int_equal(mr_port_poll(held.harness.port), 0);
		*held_reg(0x4010) = 5;
		if (who < ASKED_BACK)
			held_set_gone(true);
		if (who == CONTROL)
			assert_int_equal(
				mr_port_set_promisc(held.harness.port, 1, NULL),
				-ENODEV);
		if (who == ARM)
			assert_int_equal(mr_queue_arm(&held.harness.rxq->queue),
					 0);
		if (who >= ASKED_BACK)
			fire(who == ASKED_BACK ? held.harness.m->req_fd :
						 held.harness.m->err_fd);
		n_writes = held.harness.m->n_bar_writes;
		assert_int_equal(mr_port_poll(held.harness.port), 1);
		assert_int_equal(link_of().is_gone, 1);
		assert_int_equal(link_of().is_up, 0);
		assert_int_equal(link_of().speed_mbps, 0);
		assert_int_equal(mr_port_poll(held.harness.port), 0);
		assert_int_equal(
			mr_port_set_promisc(held.harness.port, 1, &why),
			-ENODEV);
		assert_reason_has(&why, who == BUS_ERROR ? "error on the bus" :
							   "gone");
		assert_told_nothing(held.harness.port);
		assert_int_equal(mr_queue_arm(&held.harness.rxq->queue), 0);
		assert_int_equal(mr_queue_arm(&held.harness.txq->queue), 0);
		frame = held_frame(60);
		assert_int_equal(mr_tx_burst(held.harness.txq,
					     held.harness.cache, &frame, 1),
				 1);
		assert_int_equal(harness_tx_stats(&held.harness)
					 .drops[MR_TX_DROP_PORT_GONE],
				 1);
		mr_port_close(held.harness.port);
		held.harness.port = NULL;
		assert_int_equal(held.harness.m->n_bar_writes, n_writes);
		held_close();
	}
}

/* Bytes of the key as they lie in the registers; entries from the lowest on. */
static void check_rss(uint32_t key_word, uint32_t reta_word, uint32_t mrqc)
{
	assert_int_equal(*held_reg(INTEL_RSSRK + 36), key_word);
	assert_int_equal(*held_reg(INTEL_RETA + 31 * 4), reta_word);
	assert_int_equal(*held_reg(INTEL_MRQC), mrqc);
}

TEST(rss_is_written_to_the_registers)
{
	static const uint32_t queues[4] = { 1, 1, 1, 0 };
	static const uint8_t key[40] = { [36] = 1, 2, 3, 4 };
	const uint32_t addrs = INTEL_MRQC_IPV4 | INTEL_MRQC_IPV6;
	const uint32_t ports = addrs | INTEL_MRQC_TCPV4 | INTEL_MRQC_TCPV6 |
			       INTEL_MRQC_TCPV6_EX;
	const uint32_t igb =
		ports | INTEL_MRQC_UDPV4 | INTEL_MRQC_UDPV6 | INTEL_MRQC_ENABLE;
	struct mr_rss_config config = { .size = sizeof(config) };
	struct mr_reason why;

	held_open((struct held_config){ .options = "queues=2" });
	check_rss(0xfa01acbe, 0x01000100, igb);
	assert_int_equal(mr_port_set_rss(held.harness.port, &config, NULL), 0);
	check_rss(0x5a6d5a6d, 0x01000100, igb);
	config.keep = MR_RSS_KEEP_KEY;
	config.fields = MR_RSS_FIELDS_ADDRS;
	config.table = queues;
	config.n_entries = 4;
	assert_int_equal(mr_port_set_rss(held.harness.port, &config, NULL), 0);
	check_rss(0x5a6d5a6d, 0x00010101, addrs | INTEL_MRQC_ENABLE);
	config = (struct mr_rss_config){ .size = sizeof(config),
					 .keep = MR_RSS_KEEP_TABLE,
					 .key = key,
					 .n_key_bytes = 39 };
	assert_int_equal(mr_port_set_rss(held.harness.port, &config, &why),
			 -EINVAL);
	assert_reason_has(&why, "a key of 39 bytes: the device's has 40");
	config.n_key_bytes = 40;
	assert_int_equal(mr_port_set_rss(held.harness.port, &config, NULL), 0);
	check_rss(0x04030201, 0x00010101, addrs | INTEL_MRQC_ENABLE);
	held_close();

	held_open((struct held_config){ .device_id = HELD_82574,
					.options = "queues=2,rss=symmetric" });
	check_rss(0x5a6d5a6d, 0x80008000, ports | INTEL_MRQC_ENABLE_82574);
	config.fields = MR_RSS_FIELDS_PORTS;
	assert_int_equal(mr_port_set_rss(held.harness.port, &config, &why),
			 -ENOTSUP);
	assert_reason_has(&why, "the 82574 does not hash the ports of UDP");
	held_close();
}
