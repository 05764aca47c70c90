/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device counts, by mr_port_device_stats() of the virtio driver. */
#include "virtio_harness.h"

static uint64_t count_of(const struct harness *harness, const char *name)
{
	struct mr_named_count counts[64];
	const uint32_t n = mr_port_device_stats(harness->port, counts, 64);

	assert_true(n <= 64);
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(counts[i].name, name) == 0)
			return counts[i].value;
	fail_msg("the device has no count of %s", name);
	return 0;
}

TEST(device_counts_are_read)
{
	const struct vnet_config config = { .n_pairs = 2 };
	const struct vnet_faults refuses = { .ctrl_refuses = true };
	struct mr_named_count one = { "none", 99 };
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		vharness_make(&harness, &config);
		harness_open(&harness, vharness_rings[k]);
		assert_int_equal(mr_port_device_stats(harness.port, NULL, 0),
				 6 + 6 + 2);
		assert_int_equal(mr_port_device_stats(harness.port, &one, 1),
				 14);
		assert_string_equal(one.name, "rx_notifications");
		for (uint32_t i = 0; i < 40; i++) {
			harness_inject(&harness, 3);
			assert_int_equal(harness_drain(&harness), 3);
			harness_send(&harness, 2);
			harness_collect(&harness);
		}
		assert_int_equal(count_of(&harness, "rx_packets"), 120);
		assert_int_equal(count_of(&harness, "rx_bytes"), 120 * 60);
		assert_int_equal(count_of(&harness, "tx_packets"), 80);
		assert_int_equal(count_of(&harness, "tx_bytes"), 80 * 60);
		assert_int_equal(count_of(&harness, "tx_csum_none"), 80);
		/* Not told any more: as it was. */
		vnet_set_faults(harness.v, &refuses);
		harness_send(&harness, 2);
		harness_collect(&harness);
		assert_int_equal(count_of(&harness, "tx_packets"), 80);
		vharness_heal(&harness);
		assert_int_equal(count_of(&harness, "tx_packets"), 82);
		vharness_end(&harness);
	}
}

TEST(counts_are_of_all_queues_and_of_what_was_negotiated)
{
	const struct vnet_config config = { .n_pairs = 2 };
	const struct vnet_config without = {
		.features = vnet_all_features() & ~VNET_BIT(VNET_DEVICE_STATS),
	};
	struct mr_named_count one;
	struct harness harness;

	vharness_make(&harness, &config);
	harness_open(&harness, "queues=2,csum=on");
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);
	harness.txq = mr_port_txq(harness.port, 1);
	assert_int_equal(harness_send(&harness, 3), 3);
	assert_int_equal(harness_collect(&harness), 3);
	assert_int_equal(count_of(&harness, "rx_packets"), 5);
	assert_int_equal(count_of(&harness, "rx_csum_none"), 5);
	assert_int_equal(count_of(&harness, "tx_packets"), 3);
	vharness_end(&harness);
	vharness_make(&harness, &without);
	harness_open(&harness, "");
	assert_int_equal(mr_port_device_stats(harness.port, &one, 1), 0);
	vharness_end(&harness);
}

/* Without them, and with all else: what it was asked is forgotten. */
TEST(device_that_is_silent_of_its_counts_is_opened)
{
	const struct vnet_config config = { .n_pairs = 2 };
	const struct vnet_faults silent = { .query_hangs = true };
	struct harness harness;

	/* Each takes as long as an answer is waited for: split, and packed. */
	for (uint32_t k = 0; k < VBED_N_RINGS; k += 2) {
		vharness_make(&harness, &config);
		vnet_set_faults(harness.v, &silent);
		harness_open(&harness, vharness_rings[k]);
		assert_true(vnet_stats(harness.v).n_faults > 0);
		assert_false(vnet_state(harness.v).features &
			     VNET_BIT(VNET_DEVICE_STATS));
		assert_int_equal(mr_port_device_stats(harness.port, NULL, 0),
				 0);
		assert_int_equal(mr_port_set_promisc(harness.port, 1, NULL), 0);
		assert_true(vnet_state(harness.v).promisc);
		for (uint32_t i = 0; i < 200; i++) {
			harness_inject(&harness, 3);
			assert_int_equal(harness_drain(&harness), 3);
			assert_int_equal(harness_send(&harness, 2), 2);
			assert_int_equal(harness_collect(&harness), 2);
		}
		vharness_end(&harness);
	}
}

/*
 * Sizes that end nowhere, beyond what there is room for, or too soon; types
 * that were not asked for, or come twice. No count falls, or is more than was.
 */
TEST(counts_of_a_device_that_lies_are_taken_with_care)
{
	static const struct vnet_faults lies[] = {
		{ .bad_sizes = 1 },
		{ .bad_sizes = 6 },
		{ .bad_types = 1 },
		{ .bad_types = 6 },
	};
	uint64_t n_before, n_now = 0, n_last;
	struct harness harness;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		vharness_make(&harness, &(const struct vnet_config){ 0 });
		harness_open(&harness, "csum=on");
		harness_inject(&harness, 5);
		assert_int_equal(harness_drain(&harness), 5);
		n_last = n_before = count_of(&harness, "rx_packets");
		assert_int_equal(n_before, 5);
		vnet_set_faults(harness.v, &lies[i]);
		for (uint32_t k = 0; k < 200; k++) {
			harness_inject(&harness, 1);
			assert_int_equal(harness_drain(&harness), 1);
			n_now = count_of(&harness, "rx_packets");
			assert_in_range(n_now, n_last, 5 + k + 1);
			assert_int_equal(count_of(&harness, "rx_drops"), 0);
			n_last = n_now;
		}
		assert_true(vnet_stats(harness.v).n_faults > 0);
		/* One right answer among them is enough. */
		assert_int_equal(n_now > n_before,
				 lies[i].bad_sizes + lies[i].bad_types > 1);
		vharness_heal(&harness);
		assert_int_equal(count_of(&harness, "rx_packets"), 205);
		assert_int_equal(count_of(&harness, "rx_csum_none"), 205);
		vharness_end(&harness);
	}
}

/* It says OK and writes nothing: what another queue's answer left is none. */
TEST(an_answer_that_is_missing_is_not_the_one_before_it)
{
	const struct vnet_config config = { .n_pairs = 2 };
	struct vnet_faults faults = { .rx_stats_only = true };
	struct harness harness;

	vharness_make(&harness, &config);
	vnet_set_faults(harness.v, &faults);
	harness_open(&harness, "queues=2");
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);
	assert_int_equal(count_of(&harness, "rx_packets"), 5);
	faults.no_results = true;
	vnet_set_faults(harness.v, &faults);
	assert_int_equal(count_of(&harness, "rx_packets"), 5);
	assert_true(vnet_stats(harness.v).n_faults > 0);
	vharness_end(&harness);
}
