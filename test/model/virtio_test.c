/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on what only such devices have: their counters, a control
 * queue, capability lists, sizes of rings.
 */
#include <unistd.h>

#include <millrace/experimental/port_queues.h>

#include "devices.h"

static uint64_t count_of(const struct harness *harness, const char *name)
{
	struct mr_named_count counts[64];
	const uint32_t n = mr_port_device_stats(harness->port, counts, 64);

	assert_true(n <= 64);
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(counts[i].name, name) == 0)
			return counts[i].value;
	fail_msg("no counter named %s", name);
	return 0;
}

DEVICE_TEST(ON_VIRTIO, device_counts_are_read)
{
	const struct vnet_faults refuses = { .ctrl_refuses = true };
	struct mr_named_count one = { "none", 99 };
	struct harness harness;

	device_make(&harness, NULL);
	device_open(&harness, "");
	assert_int_equal(mr_port_device_stats(harness.port, NULL, 0),
			 6 + 6 + 2);
	assert_int_equal(mr_port_device_stats(harness.port, &one, 1), 14);
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
	/* No longer reported: as before. */
	vnet_set_faults(harness.v, &refuses);
	harness_send(&harness, 2);
	harness_collect(&harness);
	assert_int_equal(count_of(&harness, "tx_packets"), 80);
	device_heal(&harness);
	assert_int_equal(count_of(&harness, "tx_packets"), 82);
	device_end(&harness);
}

DEVICE_TEST(ON_SPLIT, counts_add_up_all_queues_and_follow_the_features)
{
	const struct vnet_config without = {
		.features = vnet_all_features() & ~VNET_BIT(VNET_DEVICE_STATS),
	};
	struct mr_named_count one;
	struct harness harness;

	device_make(&harness, NULL);
	device_open(&harness, "queues=2,csum=on");
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);
	harness.txq = mr_port_txq(harness.port, 1);
	assert_int_equal(harness_send(&harness, 3), 3);
	assert_int_equal(harness_collect(&harness), 3);
	assert_int_equal(count_of(&harness, "rx_packets"), 5);
	assert_int_equal(count_of(&harness, "rx_csum_none"), 5);
	assert_int_equal(count_of(&harness, "tx_packets"), 3);
	device_end(&harness);
	device_make(&harness, &without);
	device_open(&harness, "");
	assert_int_equal(mr_port_device_stats(harness.port, &one, 1), 0);
	device_end(&harness);
}

/* Without counters, and with everything else: the request is forgotten. */
DEVICE_TEST(ON_SPLIT | ON_PACKED, device_that_does_not_report_counts_is_opened)
{
	const struct vnet_faults silent = { .query_hangs = true };
	struct harness harness;

	device_make(&harness, NULL);
	vnet_set_faults(harness.v, &silent);
	device_open(&harness, "");
	assert_true(vnet_stats(harness.v).n_faults > 0);
	assert_false(vnet_state(harness.v).features &
		     VNET_BIT(VNET_DEVICE_STATS));
	assert_int_equal(mr_port_device_stats(harness.port, NULL, 0), 0);
	assert_int_equal(mr_port_set_promisc(harness.port, 1, NULL), 0);
	assert_true(vnet_state(harness.v).promisc);
	for (uint32_t i = 0; i < 200; i++) {
		harness_inject(&harness, 3);
		assert_int_equal(harness_drain(&harness), 3);
		assert_int_equal(harness_send(&harness, 2), 2);
		assert_int_equal(harness_collect(&harness), 2);
	}
	device_end(&harness);
}

/*
 * Replies without end, longer than the room for them, or too short; types that
 * were not requested, or come twice. No count falls, or exceeds the truth.
 */
DEVICE_TEST(ON_PACKED_IN_ORDER,
	    counts_of_a_device_that_lies_are_taken_with_care)
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
		device_make(&harness, NULL);
		device_open(&harness, "csum=on");
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
		device_heal(&harness);
		assert_int_equal(count_of(&harness, "rx_packets"), 205);
		assert_int_equal(count_of(&harness, "rx_csum_none"), 205);
		device_end(&harness);
	}
}

/* It says OK and writes nothing: another queue's answer is not reused. */
DEVICE_TEST(ON_SPLIT, an_answer_that_is_missing_is_not_the_one_before_it)
{
	struct vnet_faults faults = { .rx_stats_only = true };
	struct harness harness;

	device_make(&harness, NULL);
	vnet_set_faults(harness.v, &faults);
	device_open(&harness, "queues=2");
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);
	assert_int_equal(count_of(&harness, "rx_packets"), 5);
	faults.no_results = true;
	vnet_set_faults(harness.v, &faults);
	assert_int_equal(count_of(&harness, "rx_packets"), 5);
	assert_true(vnet_stats(harness.v).n_faults > 0);
	device_end(&harness);
}

/* If no other command comes first: refused is what needs one. */
DEVICE_TEST(ON_PACKED, port_works_if_its_control_queue_does_not_answer)
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

	device_make(&harness, &config);
	vnet_set_faults(harness.v, &hangs);
	device_open(&harness, "");
	assert_int_equal(mr_port_device_stats(harness.port, NULL, 0), 0);
	assert_int_equal(mr_port_set_mac(harness.port, mac, &why), -EIO);
	assert_reason_has(&why, "does not respond");
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);
	mr_port_close(harness.port);
	/* One that refuses is a device without counters. */
	vnet_set_faults(harness.v, &no);
	device_open(&harness, "");
	assert_int_equal(mr_port_device_stats(harness.port, NULL, 0), 0);
	device_end(&harness);
}

DEVICE_TEST(ON_SPLIT | ON_PACKED, rss_is_what_was_set_last)
{
	static const uint32_t table[2] = { 1, 0 };
	static const uint8_t key[40] = { [39] = 7 };
	const struct vnet_config two_queues = { .n_pairs = 2, .rss_table = 64 };
	const struct vnet_faults no = { .ctrl_refuses = true };
	struct mr_rss_config config = { .size = sizeof(config),
					.keep = MR_RSS_KEEP_TABLE,
					.fields = MR_RSS_FIELDS_ADDRS,
					.key = key,
					.n_key_bytes = sizeof(key) };
	struct mr_reason why = { "" };
	struct harness harness;

	device_make(&harness, &two_queues);
	device_open(&harness, "queues=2");
	assert_int_equal(vnet_state(harness.v).hash_types, 0x3f);
	assert_int_equal(mr_port_set_rss(harness.port, &config, &why), 0);
	assert_int_equal(vnet_state(harness.v).hash_types, 0x9);
	assert_memory_equal(vnet_state(harness.v).key, key, sizeof(key));
	/* What is refused is not part of what is set next. */
	vnet_set_faults(harness.v, &no);
	config = (struct mr_rss_config){ .size = sizeof(config) };
	assert_int_equal(mr_port_set_rss(harness.port, &config, &why), -EIO);
	device_heal(&harness);
	config.keep = MR_RSS_KEEP_KEY;
	config.table = table;
	config.n_entries = 2;
	assert_int_equal(mr_port_set_rss(harness.port, &config, &why), 0);
	assert_int_equal(vnet_state(harness.v).hash_types, 0x9);
	assert_memory_equal(vnet_state(harness.v).key, key, sizeof(key));
	config.n_entries = 65;
	config.table = (uint32_t[65]){ 0 };
	assert_int_equal(mr_port_set_rss(harness.port, &config, &why), -EINVAL);
	assert_reason_has(&why, "table of 65 entries: the device's has 64");
	mr_port_close(harness.port);
	device_open(&harness, "queues=2,rss=off");
	assert_int_equal(mr_port_set_rss(harness.port, &config, &why),
			 -ENOTSUP);
	assert_reason_has(&why, "rss=on requires it");
	device_end(&harness);
}

/* The reason names the ring, whichever option set its size. */
DEVICE_TEST(ON_SPLIT, ring_that_the_device_does_not_have_is_refused)
{
	const char *const ring = "rx ring of 1024: the device has at most 256";
	struct harness harness;

	device_make(&harness, NULL);
	device_refuses(&harness, "ring=1024", ring);
	device_refuses(&harness, "rx-ring=1024", ring);
	device_refuses(&harness, "tx-ring=1024", "tx ring of 1024");
	device_open(&harness, "ring=256");
	device_end(&harness);
}

DEVICE_TEST(ON_PACKED_IN_ORDER, slow_or_restless_device_is_waited_for)
{
	static const struct vnet_faults slow[] = {
		{ .reset_reads = 20 },
		{ .generation_changes = true },
		{ .link_flaps = true },
	};
	struct harness harness;

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		const uint64_t start_ms = harness_now_ms();

		device_make(&harness, NULL);
		vnet_set_faults(harness.v, &slow[i]);
		device_open(&harness, "");
		assert_true(harness_now_ms() - start_ms <
			    test_limit_ms(DEVICE_OPEN_MS));
		device_heal(&harness);
		harness_inject(&harness, 5);
		assert_int_equal(harness_drain(&harness), 5);
		device_end(&harness);
	}
}

/* Each list of capabilities: refused, or used if it is good enough. */
DEVICE_TEST(ON_PACKED_IN_ORDER, capability_lists_are_input)
{
	const uint64_t needs_registers =
		VNET_BIT(VNET_RING_RESET) | VNET_BIT(VNET_NOTIF_CONFIG_DATA);
	struct harness harness;

	for (uint32_t caps = 0; caps < VNET_N_CAPS; caps++) {
		const struct vnet_config config = { .caps = caps };

		device_make(&harness, &config);
		if (caps == VNET_CAPS_GOOD || caps == VNET_CAPS_LOOP ||
		    caps == VNET_CAPS_UNKNOWN || caps == VNET_CAPS_TWICE ||
		    caps == VNET_CAPS_UNUSABLE || caps == VNET_CAPS_OLD) {
			device_open(&harness, "");
			assert_int_equal((vnet_state(harness.v).features &
					  needs_registers) != 0,
					 caps != VNET_CAPS_OLD);
			harness_inject(&harness, 5);
			assert_int_equal(harness_drain(&harness), 5);
		} else {
			device_refuses(&harness, "", "");
		}
		device_end(&harness);
	}
}

DEVICE_TEST(ON_SPLIT, mtu_above_the_devices_is_refused)
{
	struct mr_reason why = { "" };
	struct harness harness;

	device_make(&harness, NULL);
	device_refuses(&harness, "mtu=1501", "the device takes at most 1500");
	device_open(&harness, "mtu=1400");
	assert_int_equal(mr_port_set_mtu(harness.port, 1501, &why), -EINVAL);
	assert_reason_has(&why, "the device takes at most 1500");
	assert_int_equal(mr_port_set_mtu(harness.port, 1500, &why), 0);
	device_end(&harness);
}

/* Memory is locked in whole OS pages. */
static uint64_t paged(uint64_t n_bytes)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

	return (n_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/* Rings are locked like the region. */
DEVICE_TEST(ON_SPLIT, locked_bytes_are_of_rings_too)
{
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_region_stats stats = { .size = sizeof(stats) };
	struct harness harness;

	device_make(&harness, NULL);
	device_open(&harness, "rx-ring=256,tx-ring=256");
	assert_int_equal(mr_region_stats(harness.region, &stats), 0);
	assert_int_equal(mr_port_info(harness.port, &info), 0);
	/* Two rings: 16, 2 and 8 bytes per entry, and their heads; a header
	 * per tx entry, and one of zeros; and the control queue. */
	assert_int_equal(info.locked_bytes,
			 stats.n_bytes + 2 * paged(256 * (16 + 2 + 8) + 130) +
				 paged(257 * 32) + paged(64 * (16 + 2 + 8)) +
				 paged(4096));
	device_end(&harness);
}

/* Three laps of a ring of several OS pages: no entry is on two. */
DEVICE_TEST(ON_SPLIT | ON_SPLIT_IN_ORDER, used_entries_are_never_torn)
{
	enum { RING = 1024, N_AT_ONCE = 64 };
	const struct vnet_config config = { .queue_size = RING };
	const struct vnet_faults torn = { .tears_entries = true };
	struct harness harness;

	device_make(&harness, &config);
	vnet_set_faults(harness.v, &torn);
	device_open(&harness, "ring=1024");
	for (uint32_t n = 0; n < 3 * RING; n += N_AT_ONCE) {
		harness_inject(&harness, N_AT_ONCE);
		assert_int_equal(harness_drain(&harness), N_AT_ONCE);
	}
	assert_int_equal(invariants_sum(harness_rx_stats(&harness).drops), 0);
	device_end(&harness);
}

int main(void)
{
	return devices_run(ON_VIRTIO);
}
