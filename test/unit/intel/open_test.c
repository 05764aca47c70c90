/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/intel/intel.c, intel_hw.c and intel_queue.c: options, and
 * what is left where opening fails. The order in which a device is told is the
 * model's to watch.
 */
#include "intel.h"
#include "model/held_nic.h"
#include "support/port_pages.h"

/* By the name that a refusal has, each id is its chip. */
TEST(a_missing_feature_of_a_device_is_refused)
{
	static const struct {
		struct held_config config;
		const char *options;
		int err;
		const char *words;
	} cases[] = {
		{ { 0 }, "queues=17", -EINVAL, "16" },
		{ { 0 }, "queues=0", -EINVAL, "queues" },
		{ { .device_id = HELD_82574 },
		  "queues=3",
		  -EINVAL,
		  "has at most 2" },
		{ { .device_id = HELD_I210 },
		  "queues=5",
		  -EINVAL,
		  "has at most 4" },
		{ { 0 }, "mtu=9217", -EINVAL, "9216" },
		{ { .device_id = HELD_82574 }, "mtu=9213", -EINVAL, "9212" },
		{ { 0 }, "mtu=9000,sg=off", -EINVAL, "9018" },
		{ { .device_id = HELD_82574 },
		  "head-wb=on",
		  -ENOTSUP,
		  "head write-back" },
		{ { 0 }, "sg=maybe", -EINVAL, "maybe" },
		{ { 0 }, "itr=8192", -EINVAL, "itr" },
		{ { 0 }, "speed=10", -EINVAL, "speed" },
		{ { 0 }, "vlan=maybe", -EINVAL, "vlan" },
		{ { 0 }, "promisc=maybe", -EINVAL, "promisc" },
		{ { 0 }, "allmulti=2", -EINVAL, "allmulti" },
		{ { .page_bytes = 2048, .tailroom_bytes = 1000 },
		  NULL,
		  -EINVAL,
		  "2152" },
		{ { .device_id = 0x10d3 }, "mtu=9217", -EINVAL, "82574 takes" },
		{ { .device_id = 0x10c9 }, "mtu=9217", -EINVAL, "82576 takes" },
		{ { .device_id = 0x10e8 }, "mtu=9217", -EINVAL, "82576 takes" },
		{ { .device_id = 0x1521 }, "mtu=9217", -EINVAL, "I350 takes" },
		{ { .device_id = 0x1533 }, "mtu=9217", -EINVAL, "I210 takes" },
		{ { .device_id = 0x157b }, "mtu=9217", -EINVAL, "I210 takes" },
		{ { .device_id = 0x1539 }, "mtu=9217", -EINVAL, "I211 takes" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason why = { "" };

		held_prepare(cases[i].config);
		assert_int_equal(held_try(cases[i].options, &why),
				 cases[i].err);
		assert_reason_has(&why, cases[i].words);
		assert_int_equal(held.n_writes, 0); /* nothing was changed */
		held_close();
	}
}

TEST(rings_are_powers_of_two)
{
	static const struct {
		const char *spec, *words; /* NULL: the pages that it needs */
		uint32_t n_pages;
	} cases[] = {
		{ "vfio:held,rx-ring=100", "rx-ring", 0 },
		{ "vfio:held,tx-ring=96", "power of two", 0 },
		{ "vfio:held,tx-ring=8192", "tx-ring", 0 },
		{ "vfio:held,rx-ring=128,queues=2", NULL, (128 + 512) * 2 },
		{ "vfio:held,ring=1024,tx-ring=64", NULL, 1024 + 64 },
	};
	struct mr_reason why;
	uint32_t n = 0;

	held_prepare((struct held_config){ 0 });
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(pages_for_port(held.harness.ctx, cases[i].spec,
					       &n, &why),
				 cases[i].words != NULL ? -EINVAL : 0);
		if (cases[i].words != NULL)
			assert_reason_has(&why, cases[i].words);
		else
			assert_int_equal(n, cases[i].n_pages);
	}
	assert_int_equal(mr_port_takes_option(held.harness.ctx, "vfio:held",
					      "ring", NULL),
			 1);
	held_close();
}

/* RCTL.BSEX and BSIZE of the 82574. */
static uint32_t size_bits(uint32_t n_bytes)
{
	return n_bytes == 1024	? 1u << 16 :
	       n_bytes == 2048	? 0 :
	       n_bytes == 4096	? 1u << 25 | 3u << 16 :
	       n_bytes == 8192	? 1u << 25 | 2u << 16 :
				  1u << 25 | 1u << 16;
}

/* Headroom, tailroom and the device's units decide what a buffer has. */
TEST(buffers_have_the_room_a_page_leaves)
{
	static const struct {
		struct held_config config;
		uint32_t buf_bytes;
		bool has_sg;
	} cases[] = {
		{ { 0 }, 3072, false },
		{ { .device_id = HELD_82574 }, 2048, false },
		{ { .page_bytes = 2048 }, 1024, true },
		{ { .device_id = HELD_82574, .page_bytes = 2048 },
		  1024,
		  true },
		{ { .page_bytes = 2048, .options = "mtu=1006" }, 1024, false },
		{ { .page_bytes = 2048, .options = "mtu=1007" }, 1024, true },
		{ { .page_bytes = 8192 }, 7168, false },
		{ { .page_bytes = 8192, .options = "mtu=9000" }, 7168, true },
		{ { .page_bytes = 16384, .options = "mtu=9000" }, 15360, false },
		{ { .page_bytes = 32768, .options = "mtu=9000" }, 31744, false },
		{ { .device_id = HELD_82574, .page_bytes = 8192 }, 4096, false },
		{ { .device_id = HELD_82574, .page_bytes = 16384,
		    .options = "mtu=9000" }, 8192, true },
		{ { .device_id = HELD_82574, .page_bytes = 32768,
		    .options = "mtu=9000" }, 16384, false },
		{ { .tailroom_bytes = 2000 }, 1024, true },
		{ { .options = "sg=on" }, 3072, true },
		{ { .options = "mtu=9216" }, 3072, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t n = cases[i].buf_bytes;
		struct mr_port_info info = { .size = sizeof(info) };

		held_open(cases[i].config);
		assert_int_equal(held.intel->buf_bytes, n);
		assert_int_equal(mr_port_info(held.harness.port, &info), 0);
		assert_int_equal(info.has_sg, cases[i].has_sg);
		assert_int_equal(held.harness.rxq->n_min,
				 cases[i].has_sg ? MR_MAX_SEGS : 1);
		if (cases[i].config.device_id == HELD_82574)
			assert_int_equal(*held_reg(INTEL_RCTL) &
						 (1u << 25 | 3u << 16),
					 size_bits(n));
		else
			assert_int_equal(
				*held_reg(intel_rx_ring(0) + INTEL_SRRCTL),
				INTEL_SRRCTL_ADV_ONEBUF | n / 1024);
		held_close();
	}
}

/* Each queue has its vectors, if there are enough, and its share of hashes. */
static const struct {
	uint16_t device_id;
	const char *options;
	uint32_t n_vectors; /* 0: as many as it has */
	bool has_tx;
	uint32_t regs[3][2]; /* offset, value */
} queue_cases[] = {
	/* 82576: rx in the lowest byte, tx in the next. */
	{ HELD_82576,
	  "queues=3",
	  0,
	  true,
	  { { INTEL_IVAR + 4, 0x8481 },
	    { INTEL_IVAR_MISC, 0x8600 },
	    { INTEL_RETA, 0x00020100 } } },
	/* I210: two queues a word. */
	{ HELD_I210,
	  "queues=4",
	  0,
	  false,
	  { { INTEL_IVAR, 0x00810080 },
	    { INTEL_IVAR + 4, 0x00830082 },
	    { INTEL_IVAR_MISC, 0x8400 } } },
	/* 82574: fields of 4 bits; the queue is bit 7 of an entry. */
	{ HELD_82574,
	  "queues=2",
	  0,
	  true,
	  { { INTEL_IVAR_82574, 0x800cba98 },
	    { INTEL_RETA, 0x80008000 },
	    { INTEL_EIAC_82574, 0x00f00000 } } },
	/* EICR has 25 bits, however many vectors a device has. */
	{ HELD_82576,
	  "queues=12",
	  40,
	  true,
	  { { INTEL_EIAC, (1u << 25) - 1 },
	    { INTEL_IVAR_MISC, 0x9800 },
	    { INTEL_RETA, 0x03020100 } } },
	{ HELD_82576,
	  "queues=13",
	  40,
	  false,
	  { { INTEL_EIAC, (1u << 14) - 1 },
	    { INTEL_IVAR_MISC, 0x8d00 },
	    { INTEL_RETA, 0x03020100 } } },
};

TEST(each_queue_has_its_own_interrupt_and_ring)
{
	for (size_t i = 0; i < sizeof(queue_cases) / sizeof(queue_cases[0]);
	     i++) {
		struct mr_port *port;
		uint32_t n;

		held_prepare((struct held_config){
			.device_id = queue_cases[i].device_id });
		if (queue_cases[i].n_vectors != 0)
			held_set_vectors(queue_cases[i].n_vectors);
		assert_int_equal(held_try(queue_cases[i].options, NULL), 0);
		port = held.harness.port;
		n = held.intel->n_queues;
		for (uint32_t q = 0; q < n; q++) {
			assert_int_equal(mr_port_rxq(port, q)->queue.fd,
					 held.harness.m->irq_fds[q]);
			assert_int_equal(
				mr_port_txq(port, q)->queue.fd,
				queue_cases[i].has_tx ?
					held.harness.m->irq_fds[n + q] :
					-1);
		}
		for (int k = 0; k < 3; k++)
			assert_int_equal(*held_reg(queue_cases[i].regs[k][0]),
					 queue_cases[i].regs[k][1]);
		held_close();
	}
}

/* What Linux sets in an 82574 against its errata. */
HELD_TEST(errata_of_the_82574_are_heeded, .device_id = HELD_82574)
{
	assert_int_equal(*held_reg(0x3828), 0x01410000);
	assert_int_equal(*held_reg(INTEL_GCR), 1u << 22);
	assert_int_equal(*held_reg(0x5b64), 1);
	assert_int_equal(*held_reg(INTEL_CTRL_EXT),
			 1u << 22 | INTEL_CTRL_EXT_EIAME |
				 INTEL_CTRL_EXT_DRV_LOAD);
}

static int refuse_irqs(void *device, uint32_t n, const int *fds)
{
	(void)device, (void)fds;
	return n > 0 ? -EIO : 0;
}

TEST(a_machine_without_interrupts_is_polled)
{
	held_prepare((struct held_config){ 0 });
	held.backend.set_irqs = refuse_irqs;
	assert_int_equal(held_try(NULL, NULL), 0);
	assert_int_equal(held.harness.rxq->queue.fd, -1);
	assert_int_equal(mr_queue_arm(&held.harness.rxq->queue), 1);
	assert_int_equal(*held_reg(INTEL_GPIE), 0);
	held_close();
}

/* Firmware of an 82574 has the PHY for a while, or for good. */
TEST(the_phy_is_requested_until_firmware_releases_it)
{
	uint32_t n_lines[2];

	for (int is_for_good = 0; is_for_good < 2; is_for_good++) {
		bool has_told = false;

		held_prepare((struct held_config){ .device_id = HELD_82574 });
		held.n_mdio_refused = is_for_good ? UINT32_MAX : 9;
		assert_int_equal(held_try(NULL, NULL), 0);
		for (uint32_t i = 0; i < held.n_writes; i++)
			has_told |= held.offsets[i] == INTEL_MDIC;
		/* Nothing is told to a PHY that is not ours; the port opens. */
		assert_int_equal(has_told, !is_for_good);
		assert_int_equal(*held_reg(INTEL_EXTCNF_CTRL), 0);
		n_lines[is_for_good] = held.harness.allocator.n_lines;
		held_close();
	}
	assert_int_equal(n_lines[1], n_lines[0] + 1); /* says so */
}

TEST(a_queue_that_does_not_start_is_an_error)
{
	struct mr_reason why = { "" };

	held_prepare((struct held_config){ 0 });
	held_stop_queues();
	assert_int_equal(held_try(NULL, &why), -EIO);
	assert_reason_has(&why, "queue 0");
	assert_int_equal(held_in_flight(), 0);
	held_close();
}

/* A cable that is out is no error. */
TEST(opening_does_not_wait_for_the_link)
{
	struct mr_port *port;

	held_prepare((struct held_config){ 0 });
	held_set_link(false);
	assert_int_equal(held_try(NULL, NULL), 0);
	port = held.harness.port;
	assert_false(harness_is_up(&held.harness));
	assert_int_equal(mr_ports_wait_link(&port, 1, 1), -ETIMEDOUT);
	held_set_link(true);
	assert_int_equal(mr_ports_wait_link(&port, 1, 60000), 0);
	assert_true(harness_is_up(&held.harness));
	held_close();
}

TEST(an_invalid_mac_address_is_not_used)
{
	struct mr_port_info info = { .size = sizeof(info) };

	held_prepare((struct held_config){ 0 });
	held_set_mac((const uint8_t[6]){ 0 });
	assert_int_equal(held_try(NULL, NULL), 0);
	assert_int_equal(mr_port_info(held.harness.port, &info), 0);
	assert_int_equal(info.has_mac, 0);
	assert_int_equal(*held_reg(INTEL_RAH), 0);
	held_close();
}

static void go(void)
{
	held_set_gone(true);
}

/* Behind a write of each of these; the device is looked at before it is open */
TEST(a_device_removed_while_it_is_opened_is_an_error)
{
	static const uint32_t at[] = { INTEL_TCTL, INTEL_EIMC, INTEL_EIMS };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct mr_reason why = { "" };

		held_prepare((struct held_config){ 0 });
		held.hook_offset = at[i];
		held.hook = go;
		assert_int_equal(held_try(NULL, &why), -ENODEV);
		assert_reason_has(&why, "gone");
		assert_int_equal(held_in_flight(), 0);
		held_close();
	}
}

/* Mapping k fails, k = 1, 2, ... until all succeed. */
TEST(a_failed_mapping_leaves_nothing_open)
{
	uint32_t k = 0;
	int err;

	do {
		held_prepare((struct held_config){ 0 });
		held.harness.m->max_maps = k++;
		err = held_try("queues=2", NULL);
		assert_int_equal(held.harness.m->is_open, err == 0);
		held_close();
		assert_true(k < 100);
	} while (err < 0);
	assert_true(k > 5); /* the region, and four rings */
}
