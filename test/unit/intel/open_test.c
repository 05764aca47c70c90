/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/intel/intel.c, intel_hw.c and intel_queue.c: options, the
 * order in which a device is told, and what is left where opening fails.
 */
#include "fake_nic.h"

static void refused(const struct fake_config config, const char *options,
		    int err, const char *words)
{
	struct mr_reason reason;
	struct fake fake;

	fake_prepare(&fake, config);
	assert_int_equal(fake_try(&fake, options, &reason), err);
	assert_reason_has(&reason, words);
	assert_int_equal(fake.nic.n_writes, 0); /* nothing was changed */
	fake_close(&fake);
}

TEST(what_a_device_does_not_have_is_refused)
{
	const struct fake_config igb = { 0 };
	const struct fake_config e1000e = { .device_id = FAKE_82574 };
	const struct fake_config i210 = { .device_id = FAKE_I210 };

	refused(igb, "queues=17", -EINVAL, "16");
	refused(igb, "queues=0", -EINVAL, "queues");
	refused(e1000e, "queues=3", -EINVAL, "which is 2");
	refused(i210, "queues=5", -EINVAL, "which is 4");
	refused(igb, "mtu=9217", -EINVAL, "9216");
	refused(e1000e, "mtu=9213", -EINVAL, "9212");
	refused(igb, "mtu=9000,sg=off", -EINVAL, "9018");
	refused(e1000e, "head-wb=on", -ENOTSUP, "head write-back");
	refused(igb, "sg=maybe", -EINVAL, "maybe");
	refused(igb, "itr=8192", -EINVAL, "itr");
	refused(igb, "speed=10", -EINVAL, "speed");
	refused(igb, "vlan=maybe", -EINVAL, "vlan");
	refused(igb, "promisc=maybe", -EINVAL, "promisc");
	refused(igb, "allmulti=2", -EINVAL, "allmulti");
}

/* By the name that a refusal has. */
TEST(each_id_is_its_chip)
{
	static const struct {
		uint16_t device_id;
		const char *words;
	} cases[] = {
		{ 0x10d3, "82574 takes" },
		{ 0x10c9, "82576 takes" },
		{ 0x10e8, "82576 takes" },
		{ 0x1521, "I350 takes" },
		{ 0x1533, "I210 takes" },
		{ 0x157b, "I210 takes" },
		{ 0x1539, "I211 takes" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused((struct fake_config){ .device_id = cases[i].device_id },
			"mtu=9217", -EINVAL, cases[i].words);
}

TEST(rings_are_powers_of_two)
{
	const struct mr_port_config config = { .size = sizeof(config) };
	struct mr_port_config c = config;
	struct mr_reason reason;
	struct mr_port *port;
	struct fake fake;
	uint32_t n;

	fake_prepare(&fake, (struct fake_config){ 0 });
	c.pool = fake.f.pool;
	assert_int_equal(mr_port_open(fake.f.ctx, "vfio:nic,rx-ring=100", &c,
				      &port, &reason),
			 -EINVAL);
	assert_reason_has(&reason, "rx-ring");
	assert_int_equal(mr_port_open(fake.f.ctx, "vfio:nic,tx-ring=96", &c,
				      &port, &reason),
			 -EINVAL);
	assert_reason_has(&reason, "power of two");
	assert_int_equal(mr_port_open(fake.f.ctx, "vfio:nic,tx-ring=8192", &c,
				      &port, &reason),
			 -EINVAL);
	assert_int_equal(mr_port_need_pages(fake.f.ctx,
					    "vfio:nic,rx-ring=128,queues=2",
					    4096, &n, NULL),
			 0);
	assert_int_equal(n, (128 + 512) * 2);
	assert_int_equal(mr_port_need_pages(fake.f.ctx,
					    "vfio:nic,ring=1024,tx-ring=64",
					    4096, &n, NULL),
			 0);
	assert_int_equal(n, 1024 + 64);
	assert_int_equal(
		mr_port_takes_option(fake.f.ctx, "vfio:nic", "ring", NULL), 1);
	fake_close(&fake);
}

/* Headroom, tailroom and the device's units decide what a buffer has. */
TEST(buffers_are_what_a_chunk_leaves)
{
	static const struct {
		struct fake_config config;
		uint32_t buf_bytes;
		bool has_sg;
	} cases[] = {
		{ { 0 }, 3072, false },
		{ { .device_id = FAKE_82574 }, 2048, false },
		{ { .chunk_bytes = 2048 }, 1024, true },
		{ { .device_id = FAKE_82574, .chunk_bytes = 2048 },
		  1024,
		  true },
		{ { .chunk_bytes = 2048, .options = "mtu=1006" }, 1024, false },
		{ { .chunk_bytes = 2048, .options = "mtu=1007" }, 1024, true },
		{ { .tailroom_bytes = 2000 }, 1024, true },
		{ { .options = "sg=on" }, 3072, true },
		{ { .options = "mtu=9216" }, 3072, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_port_info info = { .size = sizeof(info) };
		struct fake fake;

		fake_open(&fake, cases[i].config);
		assert_int_equal(fake.intel->buf_bytes, cases[i].buf_bytes);
		assert_int_equal(mr_port_info(fake.port, &info), 0);
		assert_int_equal(info.has_sg, cases[i].has_sg);
		assert_int_equal(fake.rxq->n_min,
				 cases[i].has_sg ? MR_MAX_SEGS : 1);
		if (cases[i].config.device_id == FAKE_82574)
			assert_int_equal(*fake_reg(&fake, INTEL_RCTL) &
						 (3u << 16),
					 cases[i].buf_bytes == 2048 ?
						 INTEL_RCTL_SZ_2048 :
						 INTEL_RCTL_SZ_1024);
		else
			assert_int_equal(*fake_reg(&fake, intel_rx_ring(0) +
								  INTEL_SRRCTL),
					 INTEL_SRRCTL_ADV_ONEBUF |
						 cases[i].buf_bytes / 1024);
		fake_close(&fake);
	}
	refused((struct fake_config){ .chunk_bytes = 2048,
				      .tailroom_bytes = 1000 },
		NULL, -EINVAL, "2152");
}

/* The order of reference/drivers.md 6.6. */
TEST(a_device_is_told_in_order)
{
	static const uint32_t order[] = {
		INTEL_IMC,           INTEL_EIMC,          INTEL_RCTL,
		INTEL_TCTL,          INTEL_CTRL,          INTEL_IMC,
		INTEL_CTRL_EXT,      INTEL_CTRL,          INTEL_MDIC,
		INTEL_RAL,           INTEL_MTA,           INTEL_VFTA,
		0x2800 + INTEL_DBAL, 0x2800 + INTEL_DCTL, 0x3800 + INTEL_TDWBAL,
		0x3800 + INTEL_DCTL, INTEL_RETA,          INTEL_RXCSUM,
		INTEL_MRQC,          INTEL_RCTL,          INTEL_TCTL,
		0x2800 + INTEL_DT,   INTEL_GPIE,          INTEL_EIMS,
	};
	struct fake fake;
	uint32_t at = 0;

	fake_open(&fake, (struct fake_config){ 0 });
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		at = fake_find_write(&fake, at, order[i]) + 1;
	assert_true(fake.nic.values[fake_find_write(&fake, 0, INTEL_CTRL)] &
		    INTEL_CTRL_RST);
	assert_int_equal(*fake_reg(&fake, 0x2800 + INTEL_DT), FAKE_RING - 1);
	assert_true(soft_command(&fake.nic.pci) & SOFT_MASTER);
	assert_int_equal(*fake_reg(&fake, 0x3800 + INTEL_TDWBAL) & 3, 1);
	fake_close(&fake);
}

/* Each queue has its rings, its vectors and its share of the hashes. */
TEST(queues_are_apart)
{
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "queues=3" });
	for (uint32_t q = 0; q < 3; q++) {
		assert_int_equal(
			*fake_reg(&fake, intel_rx_ring(q) + INTEL_SRRCTL),
			INTEL_SRRCTL_DROP_EN | INTEL_SRRCTL_ADV_ONEBUF | 3);
		/* 82576: rx in the lowest byte, tx in the next. */
		assert_int_equal(*fake_reg(&fake, INTEL_IVAR + 4 * q),
				 (0x80 | q) | (0x83 + q) << 8);
		assert_int_equal(mr_port_rxq(fake.port, q)->queue.fd,
				 fake.nic.pci.irq_fds[q]);
		assert_int_equal(mr_port_txq(fake.port, q)->queue.fd,
				 fake.nic.pci.irq_fds[3 + q]);
	}
	assert_int_equal(*fake_reg(&fake, INTEL_IVAR_MISC), 0x8600);
	assert_int_equal(*fake_reg(&fake, INTEL_EIAC), 0x7f);
	assert_int_equal(*fake_reg(&fake, INTEL_RETA), 0x00020100);
	assert_int_equal(*fake_reg(&fake, INTEL_RETA + 4), 0x01000201);
	assert_int_equal(*fake_reg(&fake, INTEL_RSSRK), 0xda565a6d);
	fake_receive_on(&fake, 2, 0, INTEL_RX_EOP, 60, 0);
	fake_close(&fake);

	/* I210: two queues a word. Too few vectors: tx has none. */
	fake_prepare(&fake, (struct fake_config){ .device_id = FAKE_I210 });
	fake.nic.pci.most_irqs = 5;
	fake.nic.pci.config[0x42] = 4;
	assert_int_equal(fake_try(&fake, "queues=4", NULL), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_IVAR), 0x00810080);
	assert_int_equal(*fake_reg(&fake, INTEL_IVAR + 4), 0x00830082);
	assert_int_equal(*fake_reg(&fake, INTEL_IVAR_MISC), 0x8400);
	fake_close(&fake);

	/* 82574: fields of 4 bits; the queue is bit 7 of an entry. */
	fake_open(&fake, (struct fake_config){ .device_id = FAKE_82574,
					       .options = "queues=2" });
	assert_int_equal(*fake_reg(&fake, INTEL_IVAR_82574), 0x800cba98);
	assert_int_equal(*fake_reg(&fake, INTEL_RETA), 0x80008000);
	assert_int_equal(*fake_reg(&fake, INTEL_EIAC_82574), 0x00f00000);
	assert_int_equal(*fake_reg(&fake, INTEL_IMS), 0x01000004);
	assert_int_equal(*fake_reg(&fake, INTEL_RFCTL), INTEL_RFCTL_EXTEN);
	assert_int_equal(*fake_reg(&fake, 0x3828), 0x01410000);
	assert_int_equal(*fake_reg(&fake, INTEL_TARC0), 1u << 26);
	assert_int_equal(*fake_reg(&fake, INTEL_GCR), 1u << 22);
	assert_int_equal(*fake_reg(&fake, 0x5b64), 1);
	assert_int_equal(*fake_reg(&fake, INTEL_CTRL_EXT),
			 1u << 22 | INTEL_CTRL_EXT_EIAME |
				 INTEL_CTRL_EXT_DRV_LOAD);
	fake_close(&fake);
}

/* EICR has 25 bits, however many vectors the device says it has. */
TEST(vectors_are_no_more_than_eicr_has_bits)
{
	static const struct {
		const char *options;
		uint32_t n_vectors;
	} cases[] = { { "queues=12", 25 }, { "queues=13", 14 } };

	for (size_t i = 0; i < 2; i++) {
		const uint32_t n = cases[i].n_vectors;
		struct fake fake;

		fake_prepare(&fake, (struct fake_config){ 0 });
		fake.nic.pci.config[0x42] = SOFT_MAX_IRQS - 1;
		assert_int_equal(fake_try(&fake, cases[i].options, NULL), 0);
		assert_int_equal(*fake_reg(&fake, INTEL_EIAC), (1u << n) - 1);
		assert_int_equal(*fake_reg(&fake, INTEL_IVAR_MISC),
				 (0x80 | (n - 1)) << 8);
		assert_true(fake.rxq->queue.fd >= 0);
		assert_int_equal(fake.txq->queue.fd >= 0, n == 25);
		fake_close(&fake);
	}
}

TEST(a_machine_without_interrupts_is_polled)
{
	struct fake fake;

	fake_prepare(&fake, (struct fake_config){ 0 });
	fake.nic.pci.irq_err = -EIO;
	assert_int_equal(fake_try(&fake, NULL, NULL), 0);
	assert_int_equal(fake.rxq->queue.fd, -1);
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 1);
	assert_int_equal(*fake_reg(&fake, INTEL_GPIE), 0);
	fake_close(&fake);
}

TEST(a_reset_that_does_not_end_is_an_error)
{
	struct mr_reason reason;
	struct fake fake;

	fake_prepare(&fake, (struct fake_config){ 0 });
	fake.nic.has_reset = false;
	assert_int_equal(fake_try(&fake, NULL, &reason), -EIO);
	assert_reason_has(&reason, "reset");
	fake_close(&fake);
}

static bool wrote(const struct fake *fake, uint32_t offset)
{
	for (uint32_t i = 0; i < fake->nic.n_writes; i++)
		if (fake->nic.offsets[i] == offset)
			return true;
	return false;
}

/* Firmware of an 82574 has the PHY for a while, or for good. */
TEST(the_phy_is_asked_for_until_firmware_lets_go)
{
	struct fake fake;
	uint32_t n_lines;

	fake_prepare(&fake, (struct fake_config){ .device_id = FAKE_82574 });
	fake.nic.n_mdio_refused = 9;
	assert_int_equal(fake_try(&fake, NULL, NULL), 0);
	assert_int_equal(fake.nic.n_mdio_refused, 0);
	assert_true(wrote(&fake, INTEL_MDIC));
	assert_int_equal(*fake_reg(&fake, INTEL_EXTCNF_CTRL), 0);
	n_lines = fake.f.allocator.n_lines;
	fake_close(&fake);

	/* Nothing is told to a PHY that is not ours; the port opens. */
	fake_prepare(&fake, (struct fake_config){ .device_id = FAKE_82574 });
	fake.nic.n_mdio_refused = UINT32_MAX;
	assert_int_equal(fake_try(&fake, NULL, NULL), 0);
	assert_false(wrote(&fake, INTEL_MDIC));
	assert_int_equal(fake.f.allocator.n_lines, n_lines + 1); /* says so */
	fake_close(&fake);
}

TEST(a_queue_that_does_not_start_is_an_error)
{
	struct mr_reason reason;
	struct fake fake;

	fake_prepare(&fake, (struct fake_config){ 0 });
	fake.nic.has_queues = false;
	assert_int_equal(fake_try(&fake, NULL, &reason), -EIO);
	assert_reason_has(&reason, "queue 0");
	assert_in_flight(fake.f.pool, 0);
	fake_close(&fake);
}

/* A cable that is out is no error, and is not waited for without end. */
TEST(without_a_link_it_is_open)
{
	struct mr_link link;
	struct fake fake;
	uint32_t n_lines;
	uint64_t slept_ms;

	fake_open(&fake, (struct fake_config){ 0 });
	n_lines = fake.f.allocator.n_lines;
	fake_close(&fake);
	fake_prepare(&fake, (struct fake_config){ 0 });
	fake.nic.has_link = false;
	slept_ms = fake_slept_ms();
	assert_int_equal(fake_try(&fake, "link-wait=3000", NULL), 0);
	assert_in_range(fake_slept_ms() - slept_ms, 3000, 3100);
	assert_int_equal(fake.f.allocator.n_lines, n_lines + 1); /* says so */
	assert_int_equal(mr_port_link(fake.port, &link), 0);
	assert_int_equal(link.is_up, 0);
	fake_close(&fake);
}

TEST(an_address_that_is_none_is_not_used)
{
	struct mr_port_info info = { .size = sizeof(info) };
	struct fake fake;

	fake_prepare(&fake, (struct fake_config){ 0 });
	*fake_reg(&fake, INTEL_RAL) = *fake_reg(&fake, INTEL_RAH) = 0;
	assert_int_equal(fake_try(&fake, NULL, NULL), 0);
	assert_int_equal(mr_port_info(fake.port, &info), 0);
	assert_int_equal(info.has_mac, 0);
	assert_int_equal(*fake_reg(&fake, INTEL_RAH), 0);
	fake_close(&fake);
}

static void go(void *opaque)
{
	((struct fake *)opaque)->nic.pci.is_gone = true;
}

/* Behind a write of each of these; the device is looked at before it is open */
TEST(a_device_that_goes_while_it_is_opened_is_an_error)
{
	static const uint32_t at[] = { INTEL_TCTL, INTEL_EIMC, INTEL_EIMS };
	struct mr_reason reason;
	struct fake fake;

	fake_prepare(&fake, (struct fake_config){ 0 });
	go(&fake);
	assert_true(fake_try(&fake, NULL, &reason) < 0);
	fake_close(&fake);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		fake_prepare(&fake, (struct fake_config){ 0 });
		fake.nic.hook_offset = at[i];
		fake.nic.hook = go;
		fake.nic.hook_opaque = &fake;
		fake.nic.takes_writes = true; /* they go nowhere */
		assert_int_equal(fake_try(&fake, NULL, &reason), -ENODEV);
		assert_reason_has(&reason, "gone");
		assert_in_flight(fake.f.pool, 0);
		fake_close(&fake);
	}
}

/* Allocation k fails, k = 1, 2, ... until all succeed. */
TEST(nothing_is_left_where_memory_runs_out)
{
	uint32_t k = 1;
	int err;

	do {
		struct mr_reason reason;
		struct fake fake;

		fake_prepare(&fake, (struct fake_config){ 0 });
		fake.f.allocator.n_calls = 0;
		fake.f.allocator.fail_at = k++;
		err = fake_try(&fake, "queues=2", &reason);
		fake.f.allocator.fail_at = 0;
		if (err < 0)
			assert_int_equal(err, -ENOMEM);
		fake_close(&fake);
		assert_true(k < 100);
	} while (err < 0);
	assert_true(k > 8);
}

TEST(nothing_is_left_where_a_mapping_fails)
{
	uint32_t k = 1;
	int err;

	do {
		struct mr_reason reason;
		struct fake fake;

		fake_prepare(&fake, (struct fake_config){ 0 });
		fake.nic.pci.map_err = -EIO;
		fake.nic.pci.map_fails_at = k++;
		err = fake_try(&fake, "queues=2", &reason);
		fake_close(&fake);
		assert_true(k < 20);
	} while (err < 0);
	assert_true(k > 5); /* the region, and four rings */
}

TEST(a_pool_that_is_too_small_is_refused)
{
	struct mr_reason reason;
	struct fake fake;

	fake_prepare(&fake, (struct fake_config){ 0 });
	assert_int_equal(fake_try(&fake, "queues=16", &reason), -ENOMEM);
	fake_close(&fake);
}
