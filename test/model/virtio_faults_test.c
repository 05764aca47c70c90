/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on a device that does not keep the specification: it says
 * so, counts each loss by name, gives every page back, and ends in time.
 */
#include <unistd.h>

#include "virtio_bed.h"

/* An open waits for an answer, 2 s, and for two resets at most. */
enum { ROUNDS = 60, DEADLINE_MS = 7000 };

/* With all features, and the faults that are given. */
static void make_with_mtu(struct bed *bed, uint16_t mtu_bytes,
			  const struct model_faults *faults,
			  const struct vnet_faults *more)
{
	const struct vnet_config config = { .n_pairs = 2,
					    .mtu_bytes = mtu_bytes };

	vbed_make(bed, &config);
	if (faults != NULL)
		model_set_faults(bed->m, faults);
	if (more != NULL)
		vnet_set_faults(bed->v, more);
}

static void make(struct bed *bed, const struct model_faults *faults,
		 const struct vnet_faults *more)
{
	make_with_mtu(bed, 1500, faults, more);
}

/* Opening fails: in time, with one line of reason, and all is as before. */
static void refuses(struct bed *bed, const char *options, const char *words)
{
	const uint64_t n_free = bed_free_pages(bed);
	const int32_t n_out = bed->allocator.n_out;
	const uint64_t start_ms = bed_now_ms();
	struct mr_reason why = { "" };
	const int err = bed_try_open(bed, options, &why);

	if (err >= 0)
		fail_msg("'%s' was opened; expected: %s", options, words);
	assert_true(why.text[0] != '\0');
	assert_reason_has(&why, words);
	assert_true(bed_now_ms() - start_ms < test_limit_ms(DEADLINE_MS));
	assert_int_equal(bed_free_pages(bed), n_free);
	assert_int_equal(bed->allocator.n_out, n_out);
	assert_null(bed->port);
}

/* Begun anew without its counts, which it does not tell, it does not come up.
 */
static const struct vnet_faults no_reset = { .reset_reads = UINT32_MAX };
static const struct vnet_faults no_features = { .refuses_features = true };
static const struct vnet_faults no_queues = { .queues_missing = true };

TEST(device_that_does_not_come_up_is_refused)
{
	static const struct {
		struct model_faults faults;
		struct vnet_faults more;
		const char *options, *words;
	} cases[] = {
		{ { .reset_never_ends = 1 },
		  { .reset_reads = 0 },
		  "",
		  "reset" },
		{ { .all_ones = 1 }, { .reset_reads = 0 }, "", "ffff:ffff" },
		{ { 0 }, { .refuses_features = true }, "", "refuses" },
		{ { 0 }, { .queues_missing = true }, "", "queue" },
		{ { 0 }, { .ctrl_refuses = true }, "queues=2", "queues" },
		{ { 0 }, { .ctrl_hangs = true }, "queues=2", "queues" },
		{ { 0 }, { .reset_reads = UINT32_MAX }, "", "reset" },
		{ { 0 },
		  { .query_hangs = true, .behind_query = &no_reset },
		  "",
		  "reset" },
		{ { 0 },
		  { .query_hangs = true, .behind_query = &no_features },
		  "",
		  "refuses" },
		{ { 0 },
		  { .query_hangs = true, .behind_query = &no_queues },
		  "",
		  "queue" },
	};
	struct bed bed;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make(&bed, &cases[i].faults, &cases[i].more);
		refuses(&bed, cases[i].options, cases[i].words);
		/* And as soon as it is well, it works. */
		vbed_heal(&bed);
		bed_open(&bed, cases[i].options);
		bed_inject(&bed, 5);
		assert_int_equal(bed_drain(&bed), 5);
		vbed_end(&bed);
	}
}

/* Where no other command comes before: what needs one is refused. */
TEST(control_queue_that_does_not_answer_is_done_without)
{
	const struct vnet_config config = {
		.features = vnet_all_features() & ~VNET_BIT(VNET_MQ) &
			    ~VNET_BIT(VNET_RSS) & ~VNET_BIT(VNET_CTRL_RX) &
			    ~VNET_BIT(VNET_CTRL_RX_EXTRA),
	};
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 7 };
	const struct vnet_faults hangs = { .ctrl_hangs = true };
	const struct vnet_faults no = { .ctrl_refuses = true };
	struct mr_reason why = { "" };
	struct bed bed;

	vbed_make(&bed, &config);
	vnet_set_faults(bed.v, &hangs);
	bed_open(&bed, "");
	assert_int_equal(mr_port_device_stats(bed.port, NULL, 0), 0);
	assert_int_equal(mr_port_set_mac(bed.port, mac, &why), -EIO);
	assert_reason_has(&why, "does not answer");
	bed_inject(&bed, 5);
	assert_int_equal(bed_drain(&bed), 5);
	mr_port_close(bed.port);
	/* One that refuses is a device that does not count. */
	vnet_set_faults(bed.v, &no);
	bed_open(&bed, "");
	assert_int_equal(mr_port_device_stats(bed.port, NULL, 0), 0);
	vbed_end(&bed);
}

/* By what it is: whichever of the options said so. */
TEST(ring_that_the_device_does_not_have_is_refused)
{
	const char *const ring = "rx ring of 1024: the device has at most 256";
	struct bed bed;

	make(&bed, NULL, NULL);
	refuses(&bed, "ring=1024", ring);
	refuses(&bed, "rx-ring=1024", ring);
	refuses(&bed, "tx-ring=1024", "tx ring of 1024");
	bed_open(&bed, "ring=256");
	vbed_end(&bed);
}

TEST(slow_or_restless_device_is_waited_for)
{
	static const struct vnet_faults slow[] = {
		{ .reset_reads = 20 },
		{ .generation_changes = true },
		{ .link_flaps = true },
	};
	struct bed bed;

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		const uint64_t start_ms = bed_now_ms();

		make(&bed, NULL, &slow[i]);
		bed_open(&bed, "");
		mr_port_poll(bed.port);
		assert_true(bed_now_ms() - start_ms <
			    test_limit_ms(DEADLINE_MS));
		vbed_heal(&bed);
		bed_inject(&bed, 5);
		assert_int_equal(bed_drain(&bed), 5);
		vbed_end(&bed);
	}
}

/* Each list of capabilities: refused, or used where it is good enough. */
TEST(capability_lists_are_input)
{
	const uint64_t needs_registers =
		VNET_BIT(VNET_RING_RESET) | VNET_BIT(VNET_NOTIF_CONFIG_DATA);
	struct bed bed;

	for (uint32_t caps = 0; caps < VNET_N_CAPS; caps++) {
		const struct vnet_config config = { .caps = caps };

		vbed_make(&bed, &config);
		if (caps == VNET_CAPS_GOOD || caps == VNET_CAPS_LOOP ||
		    caps == VNET_CAPS_UNKNOWN || caps == VNET_CAPS_TWICE ||
		    caps == VNET_CAPS_UNUSABLE || caps == VNET_CAPS_OLD) {
			bed_open(&bed, "");
			assert_int_equal((vnet_state(bed.v).features &
					  needs_registers) != 0,
					 caps != VNET_CAPS_OLD);
			bed_inject(&bed, 5);
			assert_int_equal(bed_drain(&bed), 5);
		} else {
			refuses(&bed, "", "");
		}
		vbed_end(&bed);
	}
}

/* Some traffic each way, and what an application does beside it. */
static void run_traffic(struct bed *bed, uint32_t n_rounds)
{
	for (uint32_t i = 0; i < n_rounds; i++) {
		bed_inject(bed, 1 + i % 20);
		bed_send(bed, 1 + i % BED_BURST);
		bed_drain(bed);
		bed_collect(bed);
		mr_port_poll(bed->port);
		bed_check_laws(bed);
	}
}

/* What a fault leads to: the drop that it is counted as, in either way. */
struct fault_case {
	const char *name;
	struct model_faults faults;
	struct vnet_faults more;
	bool is_rx_drop, is_tx_drop; /* MR_RX_DROP_INVALID, _TX_DROP_DEVICE */
	bool is_mended;              /* afterwards frames pass again */
	uint16_t mtu_bytes;          /* 0: 1500 */
};

static void try_fault(const struct fault_case *c, const char *rings,
		      const char *options)
{
	char spec[128];
	struct bed bed;
	uint64_t n_before;

	snprintf(spec, sizeof(spec), "%s%s", rings, options);
	make_with_mtu(&bed, c->mtu_bytes, NULL, NULL);
	bed_open(&bed, spec);
	model_set_faults(bed.m, &c->faults);
	vnet_set_faults(bed.v, &c->more);
	run_traffic(&bed, ROUNDS);
	assert_true(vnet_stats(bed.v).n_faults > 0);
	if (c->is_rx_drop && bed_rx_stats(&bed).drops[MR_RX_DROP_INVALID] == 0)
		fail_msg("%s, %s: no drop", c->name, spec);
	if (c->is_tx_drop)
		assert_true(bed_tx_stats(&bed).drops[MR_TX_DROP_DEVICE] > 0);
	vbed_heal(&bed);
	run_traffic(&bed, 5);
	n_before = bed_rx_stats(&bed).delivered;
	run_traffic(&bed, ROUNDS);
	if (c->is_mended && bed_rx_stats(&bed).delivered == n_before)
		fail_msg("%s, %s: nothing is received behind it", c->name,
			 spec);
	/* What a device said wrong in a ring, it may have said of anything. */
	model_forgive(bed.m);
	vbed_end(&bed);
}

TEST(wrong_completions_are_counted_and_mended)
{
	static const struct fault_case cases[] = {
		{ .name = "bad id 7",
		  .faults.bad_id = 7,
		  .is_rx_drop = true,
		  .is_mended = true },
		{ .name = "bad length 7",
		  .faults.bad_length = 7,
		  .is_rx_drop = true,
		  .is_mended = true },
		{ .name = "wrong completion 7",
		  .faults.wrong_completion = 7,
		  .is_mended = true },
		{ .name = "doubled 7", .more.doubled = 7, .is_mended = true },
		{ .name = "idx jumps 7",
		  .more.idx_jumps = 7,
		  .is_mended = true },
		{ .name = "reordered 3",
		  .more.reordered = 3,
		  .is_mended = true },
		{ .name = "bad header 3",
		  .more.bad_header = 3,
		  .is_mended = true },
		{ .name = "bad hash 1",
		  .faults.bad_hash = 1,
		  .is_mended = true },
		{ .name = "dma unmapped 5",
		  .faults.dma_unmapped = 5,
		  .is_mended = true },
		{ .name = "bad id 1", .faults.bad_id = 1, .is_mended = true },
		{ .name = "bad length 1",
		  .faults.bad_length = 1,
		  .is_rx_drop = true,
		  .is_mended = true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
			struct fault_case c = cases[i];

			if (c.more.idx_jumps != 0 && k >= 2)
				continue; /* packed rings have no index */
			if (c.more.reordered != 0 && k % 2 == 1)
				continue; /* in order */
			/* In order, each id there is ends a batch. */
			if (k % 2 == 1 && (c.faults.wrong_completion != 0 ||
					   c.more.doubled != 0))
				c.is_mended = false;
			try_fault(&c, vbed_rings[k], "");
			try_fault(&c, vbed_rings[k], ",hash=on,csum=on");
		}
}

TEST(wrong_counts_of_merged_frames_are_counted)
{
	static const struct fault_case cases[] = {
		{ .name = "bad count 5",
		  .faults.bad_count = 5,
		  .is_rx_drop = true,
		  .mtu_bytes = 9000 },
		{ .name = "bad count 1",
		  .faults.bad_count = 1,
		  .is_rx_drop = true,
		  .mtu_bytes = 9000 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t k = 0; k < VBED_N_RINGS; k++)
			try_fault(&cases[i], vbed_rings[k], "");
}

TEST(late_completions_are_waited_for)
{
	const struct model_faults late = { .late_completions = 5000 };
	struct mr_tx_stats stats;
	struct bed bed;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&bed, NULL, NULL);
		bed_open(&bed, vbed_rings[k]);
		model_set_faults(bed.m, &late);
		while (bed_send(&bed, BED_BURST) == BED_BURST)
			bed_collect(&bed);
		assert_true(bed_tx_stats(&bed).pending > 0);
		bed_check_laws(&bed);
		for (int i = 0; i < 6000; i++)
			model_step(bed.m);
		bed_collect(&bed);
		for (int i = 0; i < 6000; i++)
			model_step(bed.m);
		mr_tx_burst(bed.txq, bed.cache, NULL, 0);
		stats = bed_tx_stats(&bed);
		assert_int_equal(stats.pending, 0);
		assert_int_equal(stats.completed, stats.accepted);
		vbed_end(&bed);
	}
}

/* Unplugged in the middle of traffic. */
TEST(device_that_is_gone_is_said_to_be)
{
	const struct model_faults gone = { .all_ones = 1 };
	struct mr_link link = { 0 };
	struct bed bed;
	uint64_t start_ms;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&bed, NULL, NULL);
		bed_open(&bed, vbed_rings[k]);
		run_traffic(&bed, 10);
		model_set_faults(bed.m, &gone);
		start_ms = bed_now_ms();
		run_traffic(&bed, 20);
		model_request(bed.m);
		mr_port_poll(bed.port);
		assert_int_equal(mr_port_link(bed.port, &link), 0);
		assert_true(link.is_gone && !link.is_up);
		bed_send(&bed, 5);
		assert_true(bed_tx_stats(&bed).drops[MR_TX_DROP_PORT_GONE] > 0);
		bed_check_laws(&bed);
		mr_port_close(bed.port);
		bed.port = NULL;
		assert_true(bed_now_ms() - start_ms <
			    test_limit_ms(DEADLINE_MS));
		vbed_heal(&bed);
		model_forgive(bed.m); /* writes to it had no effect */
		vbed_end(&bed);
	}
}

/* AER: what it did with what it has, nobody knows. Opening begins anew. */
TEST(device_with_an_error_on_the_bus_is_given_up)
{
	struct mr_link link = { 0 };
	struct bed bed;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&bed, NULL, NULL);
		bed_open(&bed, vbed_rings[k]);
		run_traffic(&bed, 10);
		model_pci_error(bed.m);
		assert_int_equal(mr_port_poll(bed.port), 1);
		assert_int_equal(mr_port_link(bed.port, &link), 0);
		assert_true(link.is_gone && !link.is_up);
		bed_send(&bed, 5);
		assert_int_equal(bed_tx_stats(&bed).drops[MR_TX_DROP_PORT_GONE],
				 5);
		bed_check_laws(&bed);
		mr_port_close(bed.port);
		bed_open(&bed, vbed_rings[k]);
		run_traffic(&bed, 10);
		assert_true(bed_rx_stats(&bed).delivered > 0);
		vbed_end(&bed);
	}
}

TEST(mtu_above_the_devices_is_refused)
{
	struct mr_reason why = { "" };
	struct bed bed;

	make(&bed, NULL, NULL);
	refuses(&bed, "mtu=1501", "the device takes at most 1500");
	bed_open(&bed, "mtu=1400");
	assert_int_equal(mr_port_set_mtu(bed.port, 1501, &why), -EINVAL);
	assert_reason_has(&why, "the device takes at most 1500");
	assert_int_equal(mr_port_set_mtu(bed.port, 1500, &why), 0);
	vbed_end(&bed);
}

/* As it is locked: in whole pages. */
static uint64_t paged(uint64_t n_bytes)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

	return (n_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/* Rings are locked as the region is. */
TEST(locked_bytes_are_of_rings_too)
{
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_region_stats stats = { .size = sizeof(stats) };
	struct bed bed;

	make(&bed, NULL, NULL);
	bed_open(&bed, "rx-ring=256,tx-ring=256,packed=off");
	assert_int_equal(mr_region_stats(bed.region, &stats), 0);
	assert_int_equal(mr_port_info(bed.port, &info), 0);
	/* Two rings: 16, 2 and 8 bytes an entry, and what is beside these. */
	/* A header of each to be sent, one of zeros; and the control queue. */
	assert_int_equal(info.locked_bytes,
			 stats.n_bytes + 2 * paged(256 * (16 + 2 + 8) + 130) +
				 paged(257 * 32) + paged(64 * (16 + 2 + 8)) +
				 paged(4096));
	vbed_end(&bed);
}

/* DEVICE_NEEDS_RESET: everything of it has to begin anew. */
TEST(device_that_needs_a_reset_loses_no_page)
{
	const struct vnet_faults faults = { .needs_reset = 40 };
	struct bed bed;
	uint64_t n_before;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&bed, NULL, &faults);
		bed_open(&bed, vbed_rings[k]);
		run_traffic(&bed, 20);
		mr_port_poll(bed.port);
		n_before = bed_rx_stats(&bed).delivered;
		run_traffic(&bed, 20);
		assert_true(bed_rx_stats(&bed).delivered > n_before ||
			    !bed_is_up(&bed));
		vbed_end(&bed);
	}
}

TEST(lost_and_spurious_interrupts_lose_no_frame)
{
	const struct model_faults lost = { .lost_irqs = 1 };
	const struct model_faults spurious = { .spurious_irqs = 1 };
	struct bed bed;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&bed, NULL, NULL);
		bed_open(&bed, vbed_rings[k]);
		assert_int_equal(mr_queue_arm(&bed.rxq->queue), 0);
		model_set_faults(bed.m, &lost);
		bed_inject(&bed, 3);
		/* No wake-up; who asks again is told that there is work. */
		assert_int_equal(mr_queue_arm(&bed.rxq->queue), 1);
		assert_int_equal(bed_drain(&bed), 3);

		model_set_faults(bed.m, &spurious);
		for (int i = 0; i < 100; i++) {
			mr_queue_arm(&bed.rxq->queue);
			model_step(bed.m);
			mr_port_poll(bed.port);
			assert_int_equal(bed_drain(&bed), 0);
		}
		bed_inject(&bed, 3);
		assert_int_equal(bed_drain(&bed), 3);
		vbed_end(&bed);
	}
}

TEST(device_without_vectors_is_refused)
{
	const struct vnet_faults faults = { .refuses_vectors = true };
	struct mr_reason why = { "" };
	struct bed bed;

	make(&bed, NULL, &faults);
	assert_int_equal(bed_try_open(&bed, "", &why), -EIO);
	assert_reason_has(&why, "interrupt");
	vbed_end(&bed);
}

/* Three laps of a ring of several pages: no entry of it lies on two. */
TEST(used_entries_are_never_torn)
{
	enum { RING = 1024, N_AT_ONCE = 64 };
	const struct vnet_config config = {
		.features = vnet_all_features() & ~VNET_BIT(VNET_RING_PACKED),
		.queue_size = RING,
	};
	const struct vnet_faults torn = { .tears_entries = true };
	struct bed bed;

	for (uint32_t i = 0; i < 2; i++) {
		vbed_make(&bed, &config);
		vnet_set_faults(bed.v, &torn);
		bed_open(&bed, i == 0 ? "ring=1024,in-order=off" :
					"ring=1024,in-order=on");
		for (uint32_t n = 0; n < 3 * RING; n += N_AT_ONCE) {
			bed_inject(&bed, N_AT_ONCE);
			assert_int_equal(bed_drain(&bed), N_AT_ONCE);
		}
		assert_int_equal(laws_sum(bed_rx_stats(&bed).drops), 0);
		vbed_end(&bed);
	}
}
