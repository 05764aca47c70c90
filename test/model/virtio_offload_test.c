/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on the model: checksums, segments, hashes, queues, and what
 * it tells the device, each checked at the other side. And devices that offer
 * any part of what there is.
 */
#include "virtio_harness.h"

static void make(struct harness *harness, uint64_t features, uint32_t n_pairs)
{
	const struct vnet_config config = { .features = features,
					    .n_pairs = n_pairs,
					    .mtu_bytes = 9000 };

	vharness_make(harness, &config);
}

static const struct packet_kind kinds[] = {
	{ .n_payload = 1000 },
	{ .is_v6 = true, .n_payload = 1 },
	{ .is_udp = true, .n_payload = 999 },
	{ .is_v6 = true, .is_udp = true, .n_payload = 1400 },
};

/* Metadata of a packet whose sum is to be finished. */
static struct mr_meta meta_of(const struct packet_kind *kind)
{
	return (struct mr_meta){
		.valid = MR_META_CSUM,
		.csum_start_bytes = (uint16_t)packet_l4(kind),
		.csum_offset_bytes = kind->is_udp ? 6 : 16,
	};
}

/* Send one packet with a partial sum; all entries are taken. */
static void send_partial(struct harness *harness, const uint8_t *bytes,
			 uint32_t n_bytes, struct mr_meta first)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct mr_meta meta[MR_MAX_SEGS] = { first };
	const uint32_t n = harness_frame(harness, bytes, n_bytes, frames);

	frames[0].flags |= MR_FRAME_CSUM_PARTIAL;
	assert_int_equal(
		mr_tx_burst_meta(harness->txq, harness->cache, frames, meta, n),
		n);
	model_step(harness->m);
}

static void send_each_kind(struct harness *harness)
{
	uint8_t bytes[2048], got[WIRE_MAX_BYTES];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const uint32_t n = packet_of(bytes, &kinds[i], true);

		send_partial(harness, bytes, n, meta_of(&kinds[i]));
		assert_int_equal(
			model_wire_receive(harness->wire, 1, got, sizeof(got)),
			n);
		assert_true(packet_is_right(got, n));
	}
}

TEST(partial_sums_are_finished_on_the_way)
{
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&harness, 0, 1);
		harness_open(&harness, vharness_rings[k]);
		send_each_kind(&harness);
		assert_int_equal(vnet_stats(harness.v).n_summed, 4);
		vharness_end(&harness);
		/* By the driver, for a device that cannot. */
		make(&harness, vnet_all_features() & ~VNET_BIT(VNET_CSUM), 1);
		harness_open(&harness, vharness_rings[k]);
		send_each_kind(&harness);
		assert_int_equal(vnet_stats(harness.v).n_summed, 0);
		vharness_end(&harness);
	}
}

/* The pieces of one packet: each is right, and together its payload. */
static void receive_pieces(struct harness *harness,
			   const struct packet_kind *kind, const uint8_t *whole,
			   uint32_t mss)
{
	const uint32_t n_headers = packet_headers(kind);
	uint8_t bytes[WIRE_MAX_BYTES];
	uint32_t n_done = 0, n;

	while ((n = model_wire_receive(harness->wire, 1, bytes,
				       sizeof(bytes))) > 0) {
		assert_true(packet_is_right(bytes, n));
		assert_true(n - n_headers <= mss);
		assert_memory_equal(bytes + n_headers,
				    whole + n_headers + n_done, n - n_headers);
		if (!kind->is_udp)
			assert_int_equal(
				packet_be32(bytes + packet_l4(kind) + 4),
				packet_be32(whole + packet_l4(kind) + 4) +
					n_done);
		n_done += n - n_headers;
	}
	assert_int_equal(n_done, kind->n_payload);
}

TEST(long_frames_leave_in_segments)
{
	static const uint32_t lens[] = { 100, 1460, 3000, 9000, 60000 };
	static uint8_t bytes[65536];
	struct harness harness;

	for (uint32_t k = 0; k < 2 * VBED_N_RINGS; k++) {
		/* And by the library, for a device that cannot. */
		const bool is_lacking = k >= VBED_N_RINGS;

		make(&harness,
		     is_lacking ?
			     vnet_all_features() & ~(VNET_BIT(VNET_HOST_TSO4) |
						     VNET_BIT(VNET_HOST_TSO6) |
						     VNET_BIT(VNET_HOST_USO)) :
			     0,
		     1);
		harness_open(&harness, vharness_rings[k % VBED_N_RINGS]);
		for (uint32_t i = 0; i < 4 * 5; i++) {
			const struct packet_kind kind = {
				.is_v6 = i & 1,
				.is_udp = i >> 1 & 1,
				.n_payload = lens[i / 4],
			};
			const uint32_t n = packet_of(bytes, &kind, true);
			struct mr_meta meta = meta_of(&kind);

			meta.valid |= MR_META_GSO;
			meta.gso_bytes = 1400;
			meta.gso_type = kind.is_udp ? MR_GSO_UDP :
					kind.is_v6  ? MR_GSO_TCPV6 :
						      MR_GSO_TCPV4;
			send_partial(&harness, bytes, n, meta);
			receive_pieces(&harness, &kind, bytes, 1400);
		}
		if (!is_lacking)
			assert_int_equal(vnet_stats(harness.v).n_sent, 20);
		assert_int_equal(vnet_stats(harness.v).n_segmented > 0,
				 !is_lacking);
		vharness_end(&harness);
	}
}

/* Receive one frame; its entries and metadata. */
static uint32_t receive(struct harness *harness, struct mr_frame *frames,
			struct mr_meta *meta)
{
	const uint32_t n = mr_rx_burst_meta(harness->rxq, harness->cache,
					    frames, meta, HARNESS_BURST);

	assert_true(n > 0);
	assert_int_equal(mr_frame_n_entries(frames), n);
	return n;
}

TEST(sums_that_the_device_checked_are_flagged)
{
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	uint8_t bytes[2048];
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		char options[64];

		make(&harness, 0, 1);
		snprintf(options, sizeof(options), "%s,csum=on",
			 vharness_rings[k]);
		harness_open(&harness, options);
		for (uint32_t i = 0; i < 8; i++) {
			const struct packet_kind *kind = &kinds[i / 2];
			const bool is_partial = i % 2 == 1;
			const uint32_t n = packet_of(bytes, kind, is_partial);
			const struct vnet_offload offload = {
				.flags = VNET_NEEDS_CSUM,
				.csum_start = (uint16_t)packet_l4(kind),
				.csum_offset = kind->is_udp ? 6 : 16,
			};

			if (is_partial)
				assert_true(vnet_inject(harness.v, bytes, n,
							&offload));
			else
				model_wire_send(harness.wire, 1, bytes, n);
			assert_int_equal(receive(&harness, frames, meta), 1);
			assert_int_equal(frames[0].len, n);
			assert_int_equal(frames[0].flags,
					 is_partial ? MR_FRAME_CSUM_PARTIAL :
						      MR_FRAME_CSUM_VALID);
			if (is_partial) {
				assert_true(meta[0].valid & MR_META_CSUM);
				assert_int_equal(meta[0].csum_start_bytes,
						 packet_l4(kind));
			}
			mr_frame_free_bulk(harness.cache, frames, 1);
		}
		vharness_end(&harness);
	}
}

/* What a device cannot leave to the driver, it finishes; no flag then. */
TEST(sums_are_right_where_they_are_not_flagged)
{
	const struct vnet_offload offload = { .flags = VNET_NEEDS_CSUM,
					      .csum_start = 34,
					      .csum_offset = 16 };
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	uint8_t bytes[2048];
	struct harness harness;
	uint32_t n;

	make(&harness, 0, 1);
	harness_open(&harness, "csum=off");
	n = packet_of(bytes, &kinds[0], true);
	assert_true(vnet_inject(harness.v, bytes, n, &offload));
	assert_int_equal(receive(&harness, frames, meta), 1);
	assert_int_equal(frames[0].flags, 0);
	assert_true(packet_is_right(harness.base + frames[0].addr, n));
	mr_frame_free_bulk(harness.cache, frames, 1);
	vharness_end(&harness);
}

TEST(merged_segments_arrive_as_one_frame)
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

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		char options[64];
		uint32_t n_entries;

		make(&harness, 0, 1);
		snprintf(options, sizeof(options), "%s,tso=on",
			 vharness_rings[k]);
		harness_open(&harness, options);
		assert_true(vnet_inject(harness.v, bytes, n, &offload));
		n_entries = receive(&harness, frames, meta);
		assert_true(n_entries > 9);
		assert_int_equal(harness_copy(&harness, frames, got), n);
		assert_memory_equal(got, bytes, n);
		assert_true(meta[0].valid & MR_META_GSO);
		assert_int_equal(meta[0].gso_bytes, 1448);
		assert_int_equal(meta[0].gso_type, MR_GSO_TCPV4);
		mr_frame_free_bulk(harness.cache, frames, n_entries);
		vharness_end(&harness);
	}
}

TEST(hashes_are_the_devices)
{
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	uint8_t bytes[2048];
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		char options[64];

		make(&harness, 0, 1);
		snprintf(options, sizeof(options), "%s,hash=on",
			 vharness_rings[k]);
		harness_open(&harness, options);
		for (uint16_t port = 0; port < 20; port++) {
			struct packet_kind kind = kinds[port % 4];
			const struct vnet_state now = vnet_state(harness.v);
			uint16_t type;
			uint32_t n;

			kind.from_port = port;
			n = packet_of(bytes, &kind, false);
			model_wire_send(harness.wire, 1, bytes, n);
			assert_int_equal(receive(&harness, frames, meta), 1);
			assert_int_equal(frames[0].len, n);
			assert_memory_equal(harness.base + frames[0].addr,
					    bytes, n);
			assert_true(meta[0].valid & MR_META_RSS_HASH);
			assert_int_equal(meta[0].rss_hash,
					 vnet_hash(now.key, now.hash_types,
						   bytes, n, &type));
			mr_frame_free_bulk(harness.cache, frames, 1);
		}
		vharness_end(&harness);
	}
}

/* Flows go to all queues, each flow to one. */
static void flows_are_spread(const char *options, bool has_rss)
{
	struct mr_frame frames[HARNESS_BURST];
	uint32_t last = 0;
	uint8_t bytes[2048];
	struct harness harness;

	make(&harness, 0, 4);
	harness_open(&harness, options);
	assert_int_equal(vnet_state(harness.v).has_rss, has_rss);
	assert_int_equal(vnet_state(harness.v).n_active_pairs, 4);
	for (uint32_t i = 0; i < 400; i++) {
		const struct packet_kind kind = {
			.n_payload = 10,
			.from_port = (uint16_t)(i / 2),
		};
		const uint32_t n = packet_of(bytes, &kind, false);
		uint32_t queue = 4;

		model_wire_send(harness.wire, 1, bytes, n);
		for (uint32_t q = 0; q < 4; q++) {
			const uint32_t n_got = mr_rx_burst(
				mr_port_rxq(harness.port, q), harness.cache,
				frames, HARNESS_BURST);

			assert_true(n_got <= 1);
			queue = n_got == 1 ? q : queue;
			mr_frame_free_bulk(harness.cache, frames, n_got);
		}
		assert_true(queue < 4);
		if (i % 2 == 1) /* the same flow as before */
			assert_int_equal(queue, last);
		last = queue;
	}
	for (uint32_t q = 0; q < 4; q++)
		assert_true(vnet_stats(harness.v).n_pair[q] > 40);
	vharness_end(&harness);
}

TEST(flows_are_spread_over_queues)
{
	flows_are_spread("queues=4,rx-ring=64,tx-ring=64,rss=on", true);
	flows_are_spread("queues=4,rx-ring=64,tx-ring=64,rss=off", false);
	flows_are_spread("queues=4,rx-ring=64,tx-ring=64,hash=on", true);
}

/* RSS by itself is no more than the device can; asked for, it is refused. */
TEST(small_rss_table_leaves_the_choice_to_the_device)
{
	const struct vnet_config config = { .n_pairs = 4, .rss_table = 2 };
	struct mr_reason why = { "" };
	struct harness harness;

	vharness_make(&harness, &config);
	assert_int_equal(
		harness_try_open(&harness,
				 "queues=4,rx-ring=64,tx-ring=64,rss=on", &why),
		-ENOTSUP);
	assert_reason_has(&why, "rss=off");
	harness_open(&harness, "queues=4,rx-ring=64,tx-ring=64");
	assert_false(vnet_state(harness.v).features & VNET_BIT(VNET_RSS));
	assert_int_equal(vnet_state(harness.v).n_active_pairs, 4);
	vharness_end(&harness);
}

/* One frame at most would be no waiting at all. */
TEST(coalescing_by_time_is_not_ended_by_one_frame)
{
	struct mr_reason why = { "" };
	struct vnet_state now;
	struct harness harness;

	make(&harness, 0, 1);
	assert_int_equal(harness_try_open(&harness, "rx-frames=30", &why),
			 -EINVAL);
	assert_reason_has(&why, "also set rx-usecs");
	assert_int_equal(harness_try_open(&harness, "tx-frames=30", &why),
			 -EINVAL);
	assert_reason_has(&why, "also set tx-usecs");
	harness_open(&harness,
		     "rx-usecs=20,tx-usecs=40,ring=64,tx-ring=128,promisc=off");
	now = vnet_state(harness.v);
	assert_int_equal(now.coal_max_usecs[0], 20);
	assert_int_equal(now.coal_max_packets[0], 64);
	assert_int_equal(now.coal_max_usecs[1], 40);
	assert_int_equal(now.coal_max_packets[1], 128);
	assert_false(now.promisc);
	vharness_end(&harness);
}

TEST(settings_reach_the_device)
{
	static const uint8_t mac[6] = { 2, 9, 9, 9, 9, 9 };
	static const uint8_t macs[3][6] = { { 2, 1, 1, 1, 1, 1 },
					    { 1, 0, 0x5e, 0, 0, 1 },
					    { 2, 1, 1, 1, 1, 2 } };
	struct vnet_state now;
	struct harness harness;

	make(&harness, 0, 1);
	harness_open(&harness,
		     "rx-usecs=20,rx-frames=30,tx-usecs=40,tx-frames=50");
	now = vnet_state(harness.v);
	assert_int_equal(now.coal_max_usecs[0], 20);
	assert_int_equal(now.coal_max_packets[0], 30);
	assert_int_equal(now.coal_max_usecs[1], 40);
	assert_int_equal(now.coal_max_packets[1], 50);
	assert_int_equal(mr_port_set_promisc(harness.port, 1, NULL), 0);
	assert_true(vnet_state(harness.v).promisc);
	assert_int_equal(mr_port_set_promisc(harness.port, 0, NULL), 0);
	assert_false(vnet_state(harness.v).promisc);
	assert_int_equal(mr_port_set_allmulti(harness.port, 1, NULL), 0);
	assert_true(vnet_state(harness.v).allmulti);
	assert_int_equal(mr_port_set_mac(harness.port, mac, NULL), 0);
	now = vnet_state(harness.v);
	assert_memory_equal(now.mac, mac, 6);
	assert_int_equal(mr_port_set_mac_filter(harness.port, macs, 3, NULL),
			 0);
	now = vnet_state(harness.v);
	assert_int_equal(now.n_unicast, 2);
	assert_int_equal(now.n_multicast, 1);
	vharness_end(&harness);
}

TEST(announcement_is_acknowledged)
{
	struct harness harness;

	make(&harness, 0, 1);
	harness_open(&harness, "");
	vnet_announce(harness.v);
	assert_true(vnet_state(harness.v).wants_announcement);
	assert_true(mr_port_poll(harness.port) > 0);
	assert_false(vnet_state(harness.v).wants_announcement);
	vharness_end(&harness);
}

TEST(device_past_the_iommu_is_refused)
{
	struct mr_reason why = { "" };
	struct harness harness;

	make(&harness, vnet_all_features() & ~VNET_BIT(VNET_ACCESS_PLATFORM),
	     1);
	assert_int_equal(harness_try_open(&harness, "", &why), -ENOTSUP);
	assert_reason_has(&why, "ACCESS_PLATFORM");
	vharness_end(&harness);
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

/* Any part of the features, whether it makes sense or not. */
TEST(any_device_can_be_driven)
{
	const uint64_t must =
		VNET_BIT(VNET_VERSION_1) | VNET_BIT(VNET_ACCESS_PLATFORM);
	uint64_t random = 88172645463325252u;
	struct harness harness;

	for (int i = 0; i < 400; i++) {
		struct vnet_config config = { .n_pairs = 1 };

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		config.features = (vnet_all_features() & random) | must;
		config.polls_tx = i % 3 == 0;
		config.one_doorbell = i % 5 == 0;
		config.multiplier = 4u << i % 7;
		config.is_transitional = i % 2 == 0;
		config.caps = i % 4 == 0 ? VNET_CAPS_UNKNOWN : VNET_CAPS_GOOD;
		vharness_make(&harness, &config);
		harness_open(&harness, "");
		exchange(&harness, 600);
		vharness_end(&harness);
	}
}

TEST(rings_of_any_size_go_round)
{
	struct harness harness;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++)
		for (uint32_t size = 32; size <= VNET_MAX_RING; size *= 2) {
			const struct vnet_config config = { .queue_size =
								    size };

			vharness_make(&harness, &config);
			harness_open(&harness, vharness_rings[k]);
			exchange(&harness, 3 * size + 7);
			vharness_end(&harness);
		}
}
