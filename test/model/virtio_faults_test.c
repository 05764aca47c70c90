/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on a device that does not keep the specification: it says
 * so, counts each loss by name, gives every page back, and ends in time.
 */
#include <unistd.h>

#include "virtio_harness.h"

/* An open waits for an answer, 2 s, and for two resets at most. */
enum { ROUNDS = 60, DEADLINE_MS = 7000 };

/* With all features, and the faults that are given. */
static void make_with_mtu(struct harness *harness, uint16_t mtu_bytes,
			  const struct model_faults *faults,
			  const struct vnet_faults *more)
{
	const struct vnet_config config = { .n_pairs = 2,
					    .mtu_bytes = mtu_bytes };

	vharness_make(harness, &config);
	if (faults != NULL)
		model_set_faults(harness->m, faults);
	if (more != NULL)
		vnet_set_faults(harness->v, more);
}

static void make(struct harness *harness, const struct model_faults *faults,
		 const struct vnet_faults *more)
{
	make_with_mtu(harness, 1500, faults, more);
}

/* Opening fails: in time, with one line of reason, and all is as before. */
static void refuses(struct harness *harness, const char *options,
		    const char *words)
{
	const uint64_t n_free = harness_free_pages(harness);
	const int32_t n_out = harness->allocator.n_out;
	const uint64_t start_ms = harness_now_ms();
	struct mr_reason why = { "" };
	const int err = harness_try_open(harness, options, &why);

	if (err >= 0)
		fail_msg("'%s' was opened; expected: %s", options, words);
	assert_true(why.text[0] != '\0');
	assert_reason_has(&why, words);
	assert_true(harness_now_ms() - start_ms < test_limit_ms(DEADLINE_MS));
	assert_int_equal(harness_free_pages(harness), n_free);
	assert_int_equal(harness->allocator.n_out, n_out);
	assert_null(harness->port);
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
	struct harness harness;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make(&harness, &cases[i].faults, &cases[i].more);
		refuses(&harness, cases[i].options, cases[i].words);
		/* And as soon as it is well, it works. */
		vharness_heal(&harness);
		harness_open(&harness, cases[i].options);
		harness_inject(&harness, 5);
		assert_int_equal(harness_drain(&harness), 5);
		vharness_end(&harness);
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
	struct harness harness;

	vharness_make(&harness, &config);
	vnet_set_faults(harness.v, &hangs);
	harness_open(&harness, "");
	assert_int_equal(mr_port_device_stats(harness.port, NULL, 0), 0);
	assert_int_equal(mr_port_set_mac(harness.port, mac, &why), -EIO);
	assert_reason_has(&why, "does not respond");
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);
	mr_port_close(harness.port);
	/* One that refuses is a device that does not count. */
	vnet_set_faults(harness.v, &no);
	harness_open(&harness, "");
	assert_int_equal(mr_port_device_stats(harness.port, NULL, 0), 0);
	vharness_end(&harness);
}

/* By what it is: whichever of the options said so. */
TEST(ring_that_the_device_does_not_have_is_refused)
{
	const char *const ring = "rx ring of 1024: the device has at most 256";
	struct harness harness;

	make(&harness, NULL, NULL);
	refuses(&harness, "ring=1024", ring);
	refuses(&harness, "rx-ring=1024", ring);
	refuses(&harness, "tx-ring=1024", "tx ring of 1024");
	harness_open(&harness, "ring=256");
	vharness_end(&harness);
}

TEST(slow_or_restless_device_is_waited_for)
{
	static const struct vnet_faults slow[] = {
		{ .reset_reads = 20 },
		{ .generation_changes = true },
		{ .link_flaps = true },
	};
	struct harness harness;

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		const uint64_t start_ms = harness_now_ms();

		make(&harness, NULL, &slow[i]);
		harness_open(&harness, "");
		mr_port_poll(harness.port);
		assert_true(harness_now_ms() - start_ms <
			    test_limit_ms(DEADLINE_MS));
		vharness_heal(&harness);
		harness_inject(&harness, 5);
		assert_int_equal(harness_drain(&harness), 5);
		vharness_end(&harness);
	}
}

/* Each list of capabilities: refused, or used where it is good enough. */
TEST(capability_lists_are_input)
{
	const uint64_t needs_registers =
		VNET_BIT(VNET_RING_RESET) | VNET_BIT(VNET_NOTIF_CONFIG_DATA);
	struct harness harness;

	for (uint32_t caps = 0; caps < VNET_N_CAPS; caps++) {
		const struct vnet_config config = { .caps = caps };

		vharness_make(&harness, &config);
		if (caps == VNET_CAPS_GOOD || caps == VNET_CAPS_LOOP ||
		    caps == VNET_CAPS_UNKNOWN || caps == VNET_CAPS_TWICE ||
		    caps == VNET_CAPS_UNUSABLE || caps == VNET_CAPS_OLD) {
			harness_open(&harness, "");
			assert_int_equal((vnet_state(harness.v).features &
					  needs_registers) != 0,
					 caps != VNET_CAPS_OLD);
			harness_inject(&harness, 5);
			assert_int_equal(harness_drain(&harness), 5);
		} else {
			refuses(&harness, "", "");
		}
		vharness_end(&harness);
	}
}

/* Some traffic each way, and what an application does beside it. */
static void run_traffic(struct harness *harness, uint32_t n_rounds)
{
	for (uint32_t i = 0; i < n_rounds; i++) {
		harness_inject(harness, 1 + i % 20);
		harness_send(harness, 1 + i % HARNESS_BURST);
		harness_drain(harness);
		harness_collect(harness);
		mr_port_poll(harness->port);
		harness_check_invariants(harness);
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
	struct harness harness;
	uint64_t n_before;

	snprintf(spec, sizeof(spec), "%s%s", rings, options);
	make_with_mtu(&harness, c->mtu_bytes, NULL, NULL);
	harness_open(&harness, spec);
	model_set_faults(harness.m, &c->faults);
	vnet_set_faults(harness.v, &c->more);
	run_traffic(&harness, ROUNDS);
	assert_true(vnet_stats(harness.v).n_faults > 0);
	if (c->is_rx_drop &&
	    harness_rx_stats(&harness).drops[MR_RX_DROP_INVALID] == 0)
		fail_msg("%s, %s: no drop", c->name, spec);
	if (c->is_tx_drop)
		assert_true(
			harness_tx_stats(&harness).drops[MR_TX_DROP_DEVICE] >
			0);
	vharness_heal(&harness);
	run_traffic(&harness, 5);
	n_before = harness_rx_stats(&harness).delivered;
	run_traffic(&harness, ROUNDS);
	if (c->is_mended && harness_rx_stats(&harness).delivered == n_before)
		fail_msg("%s, %s: nothing is received behind it", c->name,
			 spec);
	/* What a device said wrong in a ring, it may have said of anything. */
	model_forgive(harness.m);
	vharness_end(&harness);
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
			try_fault(&c, vharness_rings[k], "");
			try_fault(&c, vharness_rings[k], ",hash=on,csum=on");
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
			try_fault(&cases[i], vharness_rings[k], "");
}

TEST(late_completions_are_waited_for)
{
	const struct model_faults late = { .late_completions = 5000 };
	struct mr_tx_stats stats;
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&harness, NULL, NULL);
		harness_open(&harness, vharness_rings[k]);
		model_set_faults(harness.m, &late);
		while (harness_send(&harness, HARNESS_BURST) == HARNESS_BURST)
			harness_collect(&harness);
		assert_true(harness_tx_stats(&harness).pending > 0);
		harness_check_invariants(&harness);
		for (int i = 0; i < 6000; i++)
			model_step(harness.m);
		harness_collect(&harness);
		for (int i = 0; i < 6000; i++)
			model_step(harness.m);
		mr_tx_burst(harness.txq, harness.cache, NULL, 0);
		stats = harness_tx_stats(&harness);
		assert_int_equal(stats.pending, 0);
		assert_int_equal(stats.completed, stats.accepted);
		vharness_end(&harness);
	}
}

/* Unplugged in the middle of traffic. */
TEST(device_that_is_gone_is_said_to_be)
{
	const struct model_faults gone = { .all_ones = 1 };
	struct mr_link link = { 0 };
	struct harness harness;
	uint64_t start_ms;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&harness, NULL, NULL);
		harness_open(&harness, vharness_rings[k]);
		run_traffic(&harness, 10);
		model_set_faults(harness.m, &gone);
		start_ms = harness_now_ms();
		run_traffic(&harness, 20);
		model_request(harness.m);
		mr_port_poll(harness.port);
		assert_int_equal(mr_port_link(harness.port, &link), 0);
		assert_true(link.is_gone && !link.is_up);
		harness_send(&harness, 5);
		assert_true(
			harness_tx_stats(&harness).drops[MR_TX_DROP_PORT_GONE] >
			0);
		harness_check_invariants(&harness);
		mr_port_close(harness.port);
		harness.port = NULL;
		assert_true(harness_now_ms() - start_ms <
			    test_limit_ms(DEADLINE_MS));
		vharness_heal(&harness);
		model_forgive(harness.m); /* writes to it had no effect */
		vharness_end(&harness);
	}
}

/* AER: what it did with what it has, nobody knows. Opening begins anew. */
TEST(device_with_an_error_on_the_bus_is_given_up)
{
	struct mr_link link = { 0 };
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&harness, NULL, NULL);
		harness_open(&harness, vharness_rings[k]);
		run_traffic(&harness, 10);
		model_pci_error(harness.m);
		assert_int_equal(mr_port_poll(harness.port), 1);
		assert_int_equal(mr_port_link(harness.port, &link), 0);
		assert_true(link.is_gone && !link.is_up);
		harness_send(&harness, 5);
		assert_int_equal(
			harness_tx_stats(&harness).drops[MR_TX_DROP_PORT_GONE],
			5);
		harness_check_invariants(&harness);
		mr_port_close(harness.port);
		harness_open(&harness, vharness_rings[k]);
		run_traffic(&harness, 10);
		assert_true(harness_rx_stats(&harness).delivered > 0);
		vharness_end(&harness);
	}
}

TEST(mtu_above_the_devices_is_refused)
{
	struct mr_reason why = { "" };
	struct harness harness;

	make(&harness, NULL, NULL);
	refuses(&harness, "mtu=1501", "the device takes at most 1500");
	harness_open(&harness, "mtu=1400");
	assert_int_equal(mr_port_set_mtu(harness.port, 1501, &why), -EINVAL);
	assert_reason_has(&why, "the device takes at most 1500");
	assert_int_equal(mr_port_set_mtu(harness.port, 1500, &why), 0);
	vharness_end(&harness);
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
	struct harness harness;

	make(&harness, NULL, NULL);
	harness_open(&harness, "rx-ring=256,tx-ring=256,packed=off");
	assert_int_equal(mr_region_stats(harness.region, &stats), 0);
	assert_int_equal(mr_port_info(harness.port, &info), 0);
	/* Two rings: 16, 2 and 8 bytes an entry, and what is beside these. */
	/* A header of each to be sent, one of zeros; and the control queue. */
	assert_int_equal(info.locked_bytes,
			 stats.n_bytes + 2 * paged(256 * (16 + 2 + 8) + 130) +
				 paged(257 * 32) + paged(64 * (16 + 2 + 8)) +
				 paged(4096));
	vharness_end(&harness);
}

/* DEVICE_NEEDS_RESET: everything of it has to begin anew. */
TEST(device_that_needs_a_reset_loses_no_page)
{
	const struct vnet_faults faults = { .needs_reset = 40 };
	struct harness harness;
	uint64_t n_before;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&harness, NULL, &faults);
		harness_open(&harness, vharness_rings[k]);
		run_traffic(&harness, 20);
		mr_port_poll(harness.port);
		n_before = harness_rx_stats(&harness).delivered;
		run_traffic(&harness, 20);
		assert_true(harness_rx_stats(&harness).delivered > n_before ||
			    !harness_is_up(&harness));
		vharness_end(&harness);
	}
}

TEST(lost_and_spurious_interrupts_lose_no_frame)
{
	const struct model_faults lost = { .lost_irqs = 1 };
	const struct model_faults spurious = { .spurious_irqs = 1 };
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&harness, NULL, NULL);
		harness_open(&harness, vharness_rings[k]);
		assert_int_equal(mr_queue_arm(&harness.rxq->queue), 0);
		model_set_faults(harness.m, &lost);
		harness_inject(&harness, 3);
		/* No wake-up; who asks again is told that there is work. */
		assert_int_equal(mr_queue_arm(&harness.rxq->queue), 1);
		assert_int_equal(harness_drain(&harness), 3);

		model_set_faults(harness.m, &spurious);
		for (int i = 0; i < 100; i++) {
			mr_queue_arm(&harness.rxq->queue);
			model_step(harness.m);
			mr_port_poll(harness.port);
			assert_int_equal(harness_drain(&harness), 0);
		}
		harness_inject(&harness, 3);
		assert_int_equal(harness_drain(&harness), 3);
		vharness_end(&harness);
	}
}

TEST(device_without_vectors_is_refused)
{
	const struct vnet_faults faults = { .refuses_vectors = true };
	struct mr_reason why = { "" };
	struct harness harness;

	make(&harness, NULL, &faults);
	assert_int_equal(harness_try_open(&harness, "", &why), -EIO);
	assert_reason_has(&why, "interrupt");
	vharness_end(&harness);
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
	struct harness harness;

	for (uint32_t i = 0; i < 2; i++) {
		vharness_make(&harness, &config);
		vnet_set_faults(harness.v, &torn);
		harness_open(&harness, i == 0 ? "ring=1024,in-order=off" :
						"ring=1024,in-order=on");
		for (uint32_t n = 0; n < 3 * RING; n += N_AT_ONCE) {
			harness_inject(&harness, N_AT_ONCE);
			assert_int_equal(harness_drain(&harness), N_AT_ONCE);
		}
		assert_int_equal(
			invariants_sum(harness_rx_stats(&harness).drops), 0);
		vharness_end(&harness);
	}
}
