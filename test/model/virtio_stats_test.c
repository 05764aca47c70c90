/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device counts, by mr_port_device_stats() of the virtio driver. */
#include "virtio_bed.h"

static uint64_t count_of(const struct bed *bed, const char *name)
{
	struct mr_named_count counts[64];
	const uint32_t n = mr_port_device_stats(bed->port, counts, 64);

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
	struct bed bed;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		vbed_make(&bed, &config);
		bed_open(&bed, vbed_rings[k]);
		assert_int_equal(mr_port_device_stats(bed.port, NULL, 0),
				 6 + 6 + 2);
		assert_int_equal(mr_port_device_stats(bed.port, &one, 1), 14);
		assert_string_equal(one.name, "rx_notifications");
		for (uint32_t i = 0; i < 40; i++) {
			bed_inject(&bed, 3);
			assert_int_equal(bed_drain(&bed), 3);
			bed_send(&bed, 2);
			bed_collect(&bed);
		}
		assert_int_equal(count_of(&bed, "rx_packets"), 120);
		assert_int_equal(count_of(&bed, "rx_bytes"), 120 * 60);
		assert_int_equal(count_of(&bed, "tx_packets"), 80);
		assert_int_equal(count_of(&bed, "tx_bytes"), 80 * 60);
		assert_int_equal(count_of(&bed, "tx_csum_none"), 80);
		/* Not told any more: as it was. */
		vnet_set_faults(bed.v, &refuses);
		bed_send(&bed, 2);
		bed_collect(&bed);
		assert_int_equal(count_of(&bed, "tx_packets"), 80);
		vbed_heal(&bed);
		assert_int_equal(count_of(&bed, "tx_packets"), 82);
		vbed_end(&bed);
	}
}

TEST(counts_are_of_all_queues_and_of_what_was_negotiated)
{
	const struct vnet_config config = { .n_pairs = 2 };
	const struct vnet_config without = {
		.features = vnet_all_features() & ~VNET_BIT(VNET_DEVICE_STATS),
	};
	struct mr_named_count one;
	struct bed bed;

	vbed_make(&bed, &config);
	bed_open(&bed, "queues=2,csum=on");
	bed_inject(&bed, 5);
	assert_int_equal(bed_drain(&bed), 5);
	bed.txq = mr_port_txq(bed.port, 1);
	assert_int_equal(bed_send(&bed, 3), 3);
	assert_int_equal(bed_collect(&bed), 3);
	assert_int_equal(count_of(&bed, "rx_packets"), 5);
	assert_int_equal(count_of(&bed, "rx_csum_none"), 5);
	assert_int_equal(count_of(&bed, "tx_packets"), 3);
	vbed_end(&bed);
	vbed_make(&bed, &without);
	bed_open(&bed, "");
	assert_int_equal(mr_port_device_stats(bed.port, &one, 1), 0);
	vbed_end(&bed);
}

/* Without them, and with all else: what it was asked is forgotten. */
TEST(device_that_is_silent_of_its_counts_is_opened)
{
	const struct vnet_config config = { .n_pairs = 2 };
	const struct vnet_faults silent = { .query_hangs = true };
	struct bed bed;

	/* Each takes as long as an answer is waited for: split, and packed. */
	for (uint32_t k = 0; k < VBED_N_RINGS; k += 2) {
		vbed_make(&bed, &config);
		vnet_set_faults(bed.v, &silent);
		bed_open(&bed, vbed_rings[k]);
		assert_true(vnet_stats(bed.v).n_faults > 0);
		assert_false(vnet_state(bed.v).features &
			     VNET_BIT(VNET_DEVICE_STATS));
		assert_int_equal(mr_port_device_stats(bed.port, NULL, 0), 0);
		assert_int_equal(mr_port_set_promisc(bed.port, 1, NULL), 0);
		assert_true(vnet_state(bed.v).promisc);
		for (uint32_t i = 0; i < 200; i++) {
			bed_inject(&bed, 3);
			assert_int_equal(bed_drain(&bed), 3);
			assert_int_equal(bed_send(&bed, 2), 2);
			assert_int_equal(bed_collect(&bed), 2);
		}
		vbed_end(&bed);
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
	struct bed bed;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		vbed_make(&bed, &(const struct vnet_config){ 0 });
		bed_open(&bed, "csum=on");
		bed_inject(&bed, 5);
		assert_int_equal(bed_drain(&bed), 5);
		n_last = n_before = count_of(&bed, "rx_packets");
		assert_int_equal(n_before, 5);
		vnet_set_faults(bed.v, &lies[i]);
		for (uint32_t k = 0; k < 200; k++) {
			bed_inject(&bed, 1);
			assert_int_equal(bed_drain(&bed), 1);
			n_now = count_of(&bed, "rx_packets");
			assert_in_range(n_now, n_last, 5 + k + 1);
			assert_int_equal(count_of(&bed, "rx_drops"), 0);
			n_last = n_now;
		}
		assert_true(vnet_stats(bed.v).n_faults > 0);
		/* One right answer among them is enough. */
		assert_int_equal(n_now > n_before,
				 lies[i].bad_sizes + lies[i].bad_types > 1);
		vbed_heal(&bed);
		assert_int_equal(count_of(&bed, "rx_packets"), 205);
		assert_int_equal(count_of(&bed, "rx_csum_none"), 205);
		vbed_end(&bed);
	}
}

/* It says OK and writes nothing: what another queue's answer left is none. */
TEST(an_answer_that_is_missing_is_not_the_one_before_it)
{
	const struct vnet_config config = { .n_pairs = 2 };
	struct vnet_faults faults = { .rx_stats_only = true };
	struct bed bed;

	vbed_make(&bed, &config);
	vnet_set_faults(bed.v, &faults);
	bed_open(&bed, "queues=2");
	bed_inject(&bed, 5);
	assert_int_equal(bed_drain(&bed), 5);
	assert_int_equal(count_of(&bed, "rx_packets"), 5);
	faults.no_results = true;
	vnet_set_faults(bed.v, &faults);
	assert_int_equal(count_of(&bed, "rx_packets"), 5);
	assert_true(vnet_stats(bed.v).n_faults > 0);
	vbed_end(&bed);
}
