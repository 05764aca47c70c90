/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What our drivers request of a device, as its peer sees it: hashes, queues,
 * settings, and checksums on receive; on transmit, test/conformance/caps_test.c
 * tests them. The models record no violation.
 */
#include "devices.h"

static void make_device(struct harness *harness, uint64_t features,
			uint32_t n_pairs)
{
	const struct vnet_config config = { .features = features,
					    .n_pairs = n_pairs,
					    .mtu_bytes = 9000 };

	device_make(harness, &config);
}

static const struct packet_kind kinds[] = {
	{ .n_payload = 1000 },
	{ .is_v6 = true, .n_payload = 1 },
	{ .is_udp = true, .n_payload = 999 },
	{ .is_v6 = true, .is_udp = true, .n_payload = 1400 },
};

/* The next frame; its entries and metadata. */
static uint32_t receive_frame(struct harness *harness, struct mr_frame *frames,
			      struct mr_meta *meta)
{
	const uint32_t n = mr_rx_burst_meta(harness->rxq, harness->cache,
					    frames, meta, HARNESS_BURST);

	assert_true(n > 0);
	assert_int_equal(mr_frame_n_entries(frames), n);
	return n;
}

/* Good packets, packets with a wrong checksum, and what a peer left partial. */
DEVICE_TEST(ON_ALL, sums_that_the_device_checked_are_flagged)
{
	enum { GOOD, BAD_L4, BAD_IP, PARTIAL };
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	uint8_t bytes[2048];
	struct harness harness;

	make_device(&harness, 0, 1);
	device_open(&harness, device->chip == NULL ? "csum=on" : "");
	for (uint32_t i = 0; i < 4 * 4; i++) {
		const struct packet_kind *kind = &kinds[i / 4];
		const uint32_t n = packet_of(bytes, kind, i % 4 == PARTIAL);
		const struct vnet_offload offload = {
			.flags = VNET_NEEDS_CSUM,
			.csum_start = (uint16_t)packet_l4(kind),
			.csum_offset = kind->is_udp ? 6 : 16,
		};

		/* Virtio devices check neither, and wires have no partial. */
		if ((i % 4 == BAD_IP && (harness.v != NULL || kind->is_v6)) ||
		    (i % 4 == PARTIAL && harness.v == NULL))
			continue;
		bytes[n - 1] ^= i % 4 == BAD_L4;
		bytes[22] ^= i % 4 == BAD_IP;
		if (i % 4 == PARTIAL)
			assert_true(vnet_inject(harness.v, bytes, n, &offload));
		else
			model_wire_send(harness.wire, 1, bytes, n);
		assert_int_equal(receive_frame(&harness, frames, meta), 1);
		assert_int_equal(frames[0].len, n);
		assert_int_equal(frames[0].flags,
				 i % 4 == GOOD    ? MR_FRAME_CSUM_VALID :
				 i % 4 == PARTIAL ? MR_FRAME_CSUM_PARTIAL :
						    0);
		if (i % 4 == PARTIAL) {
			assert_true(meta[0].valid & MR_META_CSUM);
			assert_int_equal(meta[0].csum_start_bytes,
					 packet_l4(kind));
		}
		mr_frame_free_bulk(harness.cache, frames, 1);
	}
	device_end(&harness);
}

/* What a device may not leave to the driver, it completes; without a flag. */
DEVICE_TEST(ON_SPLIT, sums_are_right_where_they_are_not_flagged)
{
	const struct vnet_offload offload = { .flags = VNET_NEEDS_CSUM,
					      .csum_start = 34,
					      .csum_offset = 16 };
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	uint8_t bytes[2048];
	struct harness harness;
	uint32_t n;

	make_device(&harness, 0, 1);
	device_open(&harness, "csum=off");
	n = packet_of(bytes, &kinds[0], true);
	assert_true(vnet_inject(harness.v, bytes, n, &offload));
	assert_int_equal(receive_frame(&harness, frames, meta), 1);
	assert_int_equal(frames[0].flags, 0);
	assert_true(packet_is_right(harness.base + frames[0].addr, n));
	mr_frame_free_bulk(harness.cache, frames, 1);
	device_end(&harness);
}

DEVICE_TEST(ON_VIRTIO, merged_segments_arrive_as_one_frame)
{
	const struct packet_kind kind = { .n_payload = 40000 };
	const struct vnet_offload offload = {
		.flags = VNET_NEEDS_CSUM,
		.gso_type = VNET_GSO_TCPV4,
		.hdr_len = 54,
		.gso_size = 1448,
		.csum_start = 34,
		.csum_offset = 16,
	};
	static uint8_t bytes[65536], got[65536];
	const uint32_t n = packet_of(bytes, &kind, true);
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	struct harness harness;
	uint32_t n_entries;

	make_device(&harness, 0, 1);
	device_open(&harness, "tso=on");
	assert_true(vnet_inject(harness.v, bytes, n, &offload));
	n_entries = receive_frame(&harness, frames, meta);
	assert_true(n_entries > 9);
	assert_int_equal(harness_copy(&harness, frames, got), n);
	assert_memory_equal(got, bytes, n);
	assert_true(meta[0].valid & MR_META_GSO);
	assert_int_equal(meta[0].gso_bytes, 1448);
	assert_int_equal(meta[0].gso_type, MR_GSO_TCPV4);
	mr_frame_free_bulk(harness.cache, frames, n_entries);
	device_end(&harness);
}

/* The hash that the device computes with the driver's key. */
static uint32_t hash_of(const struct harness *harness, const uint8_t *bytes,
			uint32_t n)
{
	const struct packet p = packet_parse(bytes, n);
	uint8_t key[PACKET_KEY_BYTES];
	uint16_t type;

	if (harness->v != NULL) {
		const struct vnet_state now = vnet_state(harness->v);

		return vnet_hash(now.key, now.hash_types, bytes, n, &type);
	}
	/* RSSRK. */
	for (uint32_t k = 0; k < PACKET_KEY_BYTES; k++)
		key[k] = (uint8_t)(harness->nic->regs[(0x5c80 + k) / 4] >>
				   8 * (k % 4));
	return packet_hash(key, bytes, &p, true);
}

/* The queue, if any, that has a frame. */
static uint32_t receive_on(struct harness *harness, uint32_t n_queues,
			   struct mr_frame *frame, struct mr_meta *meta)
{
	uint32_t queue = n_queues;

	for (uint32_t q = 0; q < n_queues; q++)
		if (mr_rx_burst_meta(mr_port_rxq(harness->port, q),
				     harness->cache, frame, meta, 1) == 1) {
			assert_int_equal(queue, n_queues);
			queue = q;
		}
	assert_true(queue < n_queues);
	return queue;
}

/* And each flow leaves through its own queue. */
DEVICE_TEST(ON_ALL, hashes_and_queues_are_the_devices)
{
	const bool is_virtio = device->chip == NULL;
	const uint32_t n_queues = is_virtio ? 4 : device->chip->n_queues;
	uint32_t n_of[16] = { 0 };
	uint8_t bytes[2048], got[WIRE_MAX_BYTES];
	struct harness harness;
	char options[64];

	make_device(&harness, VNET_BIT(VNET_MRG_RXBUF) ^ vnet_all_features(),
		    4);
	snprintf(options, sizeof(options), "queues=%u,ring=64%s", n_queues,
		 is_virtio ? ",mtu=1500,hash=on" : "");
	device_open(&harness, options);
	for (uint32_t i = 0; i < 50 * n_queues; i++) {
		struct packet_kind kind = kinds[is_virtio ? i % 4 : i % 2];
		struct mr_frame frame;
		struct mr_meta meta;
		uint32_t n, q;

		kind.from_port = (uint16_t)(1000 + i * 7);
		n = packet_of(bytes, &kind, false);
		model_wire_send(harness.wire, 1, bytes, n);
		q = receive_on(&harness, n_queues, &frame, &meta);
		assert_int_equal(frame.len, n);
		assert_memory_equal(harness.base + frame.addr, bytes, n);
		assert_true(meta.valid & MR_META_RSS_HASH);
		assert_int_equal(meta.rss_hash, hash_of(&harness, bytes, n));
		assert_int_equal(meta.rss_hash % n_queues, q);
		assert_int_equal(mr_tx_burst(mr_port_txq(harness.port, q),
					     harness.cache, &frame, 1),
				 1);
		model_step(harness.m);
		assert_int_equal(
			model_wire_receive(harness.wire, 1, got, sizeof(got)),
			n);
		assert_memory_equal(got, bytes, n);
		n_of[q]++;
	}
	for (uint32_t q = 0; q < n_queues; q++)
		assert_in_range(n_of[q], 20, 90);
	device_end(&harness);
}

/* Without RSS the device chooses: each flow has one queue. */
DEVICE_TEST(ON_VIRTIO, flows_are_spread_over_queues)
{
	struct mr_frame frame;
	struct mr_meta meta;
	uint32_t last = 0;
	uint8_t bytes[2048];
	struct harness harness;

	make_device(&harness, 0, 4);
	device_open(&harness,
		    "queues=4,rx-ring=64,tx-ring=64,rss=keep,mtu=1500");
	assert_false(vnet_state(harness.v).has_rss);
	assert_int_equal(vnet_state(harness.v).n_active_pairs, 4);
	for (uint32_t i = 0; i < 400; i++) {
		const struct packet_kind kind = {
			.n_payload = 10,
			.from_port = (uint16_t)(i / 2),
		};
		uint32_t q;

		model_wire_send(harness.wire, 1, bytes,
				packet_of(bytes, &kind, false));
		q = receive_on(&harness, 4, &frame, &meta);
		mr_frame_free_bulk(harness.cache, &frame, 1);
		if (i % 2 == 1) /* the same flow as before */
			assert_int_equal(q, last);
		last = q;
	}
	for (uint32_t q = 0; q < 4; q++)
		assert_true(vnet_stats(harness.v).n_pair[q] > 40);
	device_end(&harness);
}

/* RSS=auto requires no more than the device supports; rss=on is refused. */
DEVICE_TEST(ON_SPLIT, small_rss_table_leaves_the_choice_to_the_device)
{
	const struct vnet_config config = { .n_pairs = 4, .rss_table = 2 };
	struct mr_reason why = { "" };
	struct harness harness;

	device_make(&harness, &config);
	assert_int_equal(device_try_open(&harness,
					 "queues=4,ring=64,rss=symmetric",
					 &why),
			 -ENOTSUP);
	assert_reason_has(&why, "rss=off");
	device_open(&harness, "queues=4,ring=64");
	assert_false(vnet_state(harness.v).features & VNET_BIT(VNET_RSS));
	assert_int_equal(vnet_state(harness.v).n_active_pairs, 4);
	device_end(&harness);
}

/* By default, a ring of frames: after one frame, nothing would wait. */
DEVICE_TEST(ON_SPLIT, interrupts_are_coalesced_as_requested)
{
	static const struct {
		const char *options, *refusal; /* NULL: none */
		uint32_t rx[2], tx[2];         /* time, frames */
	} cases[] = {
		{ "rx-frames=30", "also set rx-usecs", { 0 }, { 0 } },
		{ "tx-frames=30", "also set tx-usecs", { 0 }, { 0 } },
		{ "rx-usecs=20,tx-usecs=40,ring=64,tx-ring=128",
		  NULL,
		  { 20, 64 },
		  { 40, 128 } },
		{ "rx-usecs=20,rx-frames=30,tx-usecs=40,tx-frames=50",
		  NULL,
		  { 20, 30 },
		  { 40, 50 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason why = { "" };
		struct harness harness;
		struct vnet_state now;
		int err;

		make_device(&harness, 0, 1);
		err = device_try_open(&harness, cases[i].options, &why);
		assert_int_equal(err, cases[i].refusal != NULL ? -EINVAL : 0);
		if (err < 0)
			assert_reason_has(&why, cases[i].refusal);
		now = vnet_state(harness.v);
		assert_int_equal(now.coal_max_usecs[0], cases[i].rx[0]);
		assert_int_equal(now.coal_max_packets[0], cases[i].rx[1]);
		assert_int_equal(now.coal_max_usecs[1], cases[i].tx[0]);
		assert_int_equal(now.coal_max_packets[1], cases[i].tx[1]);
		device_end(&harness);
	}
}

DEVICE_TEST(ON_SPLIT, device_that_bypasses_the_iommu_is_refused)
{
	struct mr_reason why = { "" };
	struct harness harness;

	make_device(&harness,
		    vnet_all_features() & ~VNET_BIT(VNET_ACCESS_PLATFORM), 1);
	assert_int_equal(device_try_open(&harness, "", &why), -ENOTSUP);
	assert_reason_has(&why, "ACCESS_PLATFORM");
	device_end(&harness);
}

/* Traffic each way, checked byte for byte. */
static void exchange(struct harness *harness, uint32_t n)
{
	struct mr_frame frames[HARNESS_BURST];
	uint8_t bytes[128], got[WIRE_MAX_BYTES];

	for (uint32_t i = 0; i < n; i++) {
		const struct packet_kind kind = { .n_payload = 1 + i % 60 };
		const uint32_t n_bytes = packet_of(bytes, &kind, false);

		assert_true(model_wire_send(harness->wire, 1, bytes, n_bytes));
		assert_int_equal(mr_rx_burst(harness->rxq, harness->cache,
					     frames, HARNESS_BURST),
				 1);
		assert_int_equal(harness_copy(harness, frames, got), n_bytes);
		assert_memory_equal(got, bytes, n_bytes);
		assert_int_equal(
			mr_tx_burst(harness->txq, harness->cache, frames, 1),
			1);
		model_step(harness->m);
		assert_int_equal(
			model_wire_receive(harness->wire, 1, got, sizeof(got)),
			n_bytes);
		assert_memory_equal(got, bytes, n_bytes);
	}
}

/* Any subset of the features, whether it makes sense or not. The model blames a
 * driver that accepts more, or an incomplete set. */
DEVICE_TEST(ON_SPLIT, any_device_can_be_driven)
{
	static const char *const options[] = { "", "csum=on", "tso=on",
					       "hash=on" };
	const uint64_t must =
		VNET_BIT(VNET_VERSION_1) | VNET_BIT(VNET_ACCESS_PLATFORM);
	uint64_t random = 88172645463325252u;
	uint32_t n_refused = 0;

	for (int i = 0; i < 600; i++) {
		struct vnet_config config = { .n_pairs = 1 };
		struct mr_reason why = { "" };
		struct harness harness;
		int err;

		config.features =
			(vnet_all_features() & test_random_u64(&random)) | must;
		config.polls_tx = i % 3 == 0;
		config.one_doorbell = i % 5 == 0;
		config.multiplier = 4u << i % 7;
		config.is_transitional = i % 2 == 0;
		config.caps = i % 4 == 0 ? VNET_CAPS_UNKNOWN : VNET_CAPS_GOOD;
		device_make(&harness, &config);
		/* What an option requires may be missing. */
		err = harness_try_open(&harness, options[i / 4 % 4], &why);
		if (i / 4 % 4 == 0 || err >= 0)
			exchange(&harness, 400);
		n_refused += err < 0;
		if (err < 0 && err != -ENOTSUP && err != -EINVAL)
			fail_msg("%s: %s", options[i / 4 % 4], why.text);
		device_end(&harness);
	}
	assert_in_range(n_refused, 100, 500);
}

DEVICE_TEST(ON_VIRTIO, rings_of_any_size_go_round)
{
	struct harness harness;

	for (uint32_t size = 32; size <= VNET_MAX_RING; size *= 2) {
		const struct vnet_config config = { .queue_size = size };

		device_make(&harness, &config);
		device_open(&harness, "");
		exchange(&harness, 3 * size + 7);
		device_end(&harness);
	}
}

int main(void)
{
	return devices_run(ON_ALL);
}
