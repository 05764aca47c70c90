/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the virtio-net model does to packets, and its control queue.
 * virtio_tx.c, virtio_rx.c, virtio_offload.c and virtio_ctrl.c.
 */
#include "packets.h"
#include "virtio_hand.h"

enum { NEEDS_CSUM = 1 };

/* The header of a packet whose sum is partial, and that may be cut up. */
static void fill_header(uint8_t *header, const struct packet_kind *kind,
			uint8_t gso_type, uint16_t gso_size)
{
	memset(header, 0, 12);
	header[0] = NEEDS_CSUM;
	header[1] = gso_type;
	if (gso_type != 0)
		hand_put16(header + 2, (uint16_t)packet_headers(kind));
	hand_put16(header + 4, gso_size);
	hand_put16(header + 6, (uint16_t)packet_l4(kind));
	hand_put16(header + 8, kind->is_udp ? 6 : 16);
}

/* In buffers one behind the other, one descriptor. */
static void send(struct hand *h, const uint8_t *header, const uint8_t *bytes,
		 uint32_t n_bytes)
{
	hand_send(h, 0, header, bytes, n_bytes);
	hand_kick(h, HAND_TX);
}

TEST(checksums_are_completed)
{
	uint8_t bytes[2048], header[12];
	struct hand h = hand_run(VNET_BIT(VNET_CSUM));

	for (uint32_t i = 0; i < 400; i++) {
		const struct packet_kind kind = {
			.is_v6 = i & 1,
			.is_udp = i >> 1 & 1,
			.n_payload = i * 3,
		};
		const uint32_t n = packet_of(bytes, &kind, true);
		uint32_t n_got, n_used;
		uint16_t id;

		fill_header(header, &kind, 0, 0);
		send(&h, header, bytes, n);
		n_got = model_wire_receive(h.wire, 1, bytes, sizeof(bytes));
		assert_int_equal(n_got, n);
		assert_true(packet_is_right(bytes, n_got));
		assert_true(hand_poll(&h, HAND_TX, &id, &n_used));
	}
	assert_int_equal(vnet_stats(h.v).n_summed, 400);
	hand_end(&h);
}

/* Cut @p kind up; each piece is right, and together they are the payload. */
static void cut_up(struct hand *h, const struct packet_kind *kind,
		   uint8_t gso_type, uint16_t gso_size)
{
	static uint8_t whole[65536], bytes[WIRE_MAX_BYTES];
	const uint32_t n_headers = packet_headers(kind), l4 = packet_l4(kind);
	const uint32_t n = packet_of(whole, kind, true);
	uint32_t n_done = 0, n_got, i = 0;
	uint8_t header[12];

	fill_header(header, kind, gso_type, gso_size);
	send(h, header, whole, n);
	while ((n_got = model_wire_receive(h->wire, 1, bytes, sizeof(bytes))) >
	       0) {
		const uint32_t n_part = n_got - n_headers;
		const bool is_last = n_done + n_part == kind->n_payload;

		assert_true(packet_is_right(bytes, n_got));
		assert_true(is_last || n_part == gso_size);
		assert_memory_equal(bytes + n_headers,
				    whole + n_headers + n_done, n_part);
		if (!kind->is_udp) {
			assert_int_equal(packet_be32(bytes + l4 + 4),
					 packet_be32(whole + l4 + 4) + n_done);
			assert_int_equal(bytes[l4 + 13], is_last ? 0x19 : 0x10);
		}
		if (!kind->is_v6)
			assert_int_equal(packet_be16(bytes + 18),
					 packet_be16(whole + 18) + i);
		n_done += n_part;
		i++;
	}
	assert_int_equal(n_done, kind->n_payload);
}

TEST(big_packets_are_cut_up)
{
	const uint32_t lens[] = { 1, 1460, 1461, 2920, 5000, 60000 };
	struct hand h =
		hand_run(VNET_BIT(VNET_CSUM) | VNET_BIT(VNET_HOST_TSO4) |
			 VNET_BIT(VNET_HOST_TSO6) | VNET_BIT(VNET_HOST_USO));

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		const struct packet_kind tcp4 = { .n_payload = lens[i] };
		const struct packet_kind tcp6 = { .is_v6 = true,
						  .n_payload = lens[i] };
		const struct packet_kind udp4 = { .is_udp = true,
						  .n_payload = lens[i] };

		cut_up(&h, &tcp4, VNET_GSO_TCPV4, 1460);
		cut_up(&h, &tcp6, VNET_GSO_TCPV6, 1440);
		cut_up(&h, &udp4, VNET_GSO_UDP_L4, 1400);
	}
	assert_int_equal(vnet_stats(h.v).n_sent, 18);
	hand_end(&h);
}

/* Each header that no driver may send, and what is said of it. */
TEST(wrong_headers_are_blamed)
{
	static const struct {
		uint64_t features;
		uint32_t at;
		uint16_t value;
		const char *words;
	} cases[] = {
		{ 0, 0, 0x0101, "NEEDS_CSUM without" },
		{ 1, 0, 0x0102, "only a device" },
		{ 1, 0, 0x0101, "without its feature" },
		{ 1, 0, 0x8001, "GSO_ECN" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0100, "without NEEDS" },
		{ 1 | VNET_BIT(VNET_HOST_TSO6), 0, 0x0401, "not that of" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0201, "unknown" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 2, 53, "hdr_len" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 4, 0, "gso_size" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 6, 36, "not where" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 8, 4000, "beyond" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 10, 1, "num_buffers" },
	};
	const struct packet_kind kind = { .n_payload = 1000 };
	uint8_t bytes[2048], header[12];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hand h = hand_run(cases[i].features);
		const uint32_t n = packet_of(bytes, &kind, true);

		fill_header(header, &kind, VNET_GSO_TCPV4, 500);
		hand_put16(header + cases[i].at, cases[i].value);
		send(&h, header, bytes, n);
		hand_blamed(&h, cases[i].words);
		assert_int_equal(model_wire_n(h.wire, 1), 0);
		hand_end(&h);
	}
}

TEST(partial_sum_must_be_that_of_the_pseudo_header)
{
	const struct packet_kind kind = { .n_payload = 100 };
	struct hand h = hand_run(VNET_BIT(VNET_CSUM));
	uint8_t bytes[256], header[12];
	const uint32_t n = packet_of(bytes, &kind, true);

	fill_header(header, &kind, 0, 0);
	bytes[34 + 16] ^= 1;
	send(&h, header, bytes, n);
	hand_blamed(&h, "pseudo-header");
	hand_end(&h);
}

static void post_rx(struct hand *h, uint32_t n, uint32_t n_bytes)
{
	for (uint32_t i = 0; i < n; i++)
		hand_post(h, HAND_RX, hand_buffer(h, i), n_bytes, DESC_WRITE);
}

/* A good sum is said to be good only where the driver asked for it. */
TEST(good_sums_are_said_to_be)
{
	const struct packet_kind kind = { .n_payload = 100 };
	uint8_t bytes[256];
	const uint32_t n = packet_of(bytes, &kind, false);

	for (int is_on = 0; is_on < 2; is_on++) {
		struct hand h = hand_run(is_on ? VNET_BIT(VNET_GUEST_CSUM) : 0);

		post_rx(&h, 4, 2048);
		model_wire_send(h.wire, 1, bytes, n);
		assert_int_equal(*hand_buffer(&h, 0),
				 is_on ? VNET_DATA_VALID : 0);
		bytes[60] ^= 1;
		model_wire_send(h.wire, 1, bytes, n);
		assert_int_equal(*hand_buffer(&h, 1), 0);
		bytes[60] ^= 1;
		hand_end(&h);
	}
}

/* One big packet towards a driver that takes those, or does not. */
TEST(big_packets_come_as_they_are_or_cut_up)
{
	const uint64_t guest = VNET_BIT(VNET_GUEST_CSUM) |
			       VNET_BIT(VNET_GUEST_TSO4) |
			       VNET_BIT(VNET_MRG_RXBUF);
	const struct packet_kind kind = { .n_payload = 9000 };
	const struct vnet_offload offload = {
		.flags = VNET_NEEDS_CSUM,
		.gso_type = VNET_GSO_TCPV4,
		.hdr_len = 54,
		.gso_size = 1460,
		.csum_start = 34,
		.csum_offset = 16,
	};
	static uint8_t bytes[65536];
	const uint32_t n = packet_of(bytes, &kind, true);
	struct hand h = hand_run(guest);

	post_rx(&h, 32, 2048);
	assert_true(vnet_inject(h.v, bytes, n, &offload));
	assert_int_equal(*hand_buffer(&h, 0), VNET_NEEDS_CSUM);
	assert_int_equal(hand_get16(hand_buffer(&h, 0) + 4), 1460);
	assert_int_equal(hand_get16(hand_buffer(&h, 0) + 10), 5);
	/* All buffers but the last are full. */
	assert_memory_equal(hand_buffer(&h, 1), bytes + 2048 - 12, 2048);
	assert_int_equal(vnet_stats(h.v).n_merged, 1);
	hand_end(&h);

	h = hand_run(VNET_BIT(VNET_MRG_RXBUF));
	post_rx(&h, 32, 2048);
	assert_true(vnet_inject(h.v, bytes, n, &offload));
	assert_int_equal(vnet_stats(h.v).n_received, 7);
	assert_true(packet_is_right(hand_buffer(&h, 0) + 12, 54 + 1460));
	hand_end(&h);
}

TEST(packets_are_merged_over_small_buffers)
{
	struct hand h = hand_run(VNET_BIT(VNET_MRG_RXBUF));
	uint8_t bytes[1000] = { 2, 0, 0, 0, 0, 1 };
	uint32_t n_bytes = 0, n_total = 0;
	uint16_t id = 0;

	post_rx(&h, 10, 100);
	model_wire_send(h.wire, 1, bytes, 1000);
	assert_false(hand_poll(&h, HAND_RX, &id, &n_bytes)); /* 1012 bytes */
	hand_post(&h, HAND_RX, hand_buffer(&h, 10), 100, DESC_WRITE);
	hand_kick(&h, HAND_RX);
	assert_int_equal(hand_get16(hand_buffer(&h, 0) + 10), 11);
	for (uint32_t i = 0; i < 11; i++) {
		assert_true(hand_poll(&h, HAND_RX, &id, &n_bytes));
		n_total += n_bytes;
	}
	assert_int_equal(n_total, 1012);
	hand_end(&h);
}

TEST(what_fits_no_buffer_is_dropped)
{
	struct hand h = hand_run(0);
	uint8_t bytes[3000] = { 2, 0, 0, 0, 0, 1 };

	post_rx(&h, 4, 2048);
	model_wire_send(h.wire, 1, bytes, sizeof(bytes));
	model_wire_send(h.wire, 1, bytes, 60);
	assert_int_equal(vnet_stats(h.v).n_too_long, 1);
	assert_int_equal(vnet_stats(h.v).n_received, 1);
	hand_end(&h);
}

/* Frames to this address: how many of one arrive. */
static uint64_t arrive(struct hand *h, const uint8_t *mac, uint16_t vlan)
{
	const uint64_t n_before = vnet_stats(h->v).n_received;
	uint8_t bytes[64] = { 0 };
	uint32_t n_used;
	uint16_t id = 0;

	memcpy(bytes, mac, 6);
	if (vlan != 0) {
		bytes[12] = 0x81;
		packet_put16(bytes + 14, vlan);
	}
	model_wire_send(h->wire, 1, bytes, sizeof(bytes));
	if (hand_poll(h, HAND_RX, &id, &n_used))
		hand_post(h, HAND_RX, hand_buffer(h, id), 2048, DESC_WRITE);
	return vnet_stats(h->v).n_received - n_before;
}

TEST(addresses_are_filtered)
{
	static const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 9 };
	static const uint8_t multi[6] = { 1, 0, 0x5e, 0, 0, 1 };
	static const uint8_t all_ones[6] = { 255, 255, 255, 255, 255, 255 };
	const uint8_t on = 1, off = 0;
	uint8_t table[4 + 6 + 4 + 6] = { 1 };
	struct hand h =
		hand_run(VNET_BIT(VNET_CTRL_VQ) | VNET_BIT(VNET_CTRL_RX) |
			 VNET_BIT(VNET_CTRL_MAC_ADDR));

	post_rx(&h, 16, 2048);
	assert_int_equal(arrive(&h, own, 0), 1);
	assert_int_equal(arrive(&h, other, 0), 0);
	assert_int_equal(arrive(&h, multi, 0), 0);
	assert_int_equal(arrive(&h, all_ones, 0), 1);
	assert_int_equal(hand_command(&h, 0, 0, &on, 1), 0);
	assert_int_equal(arrive(&h, other, 0), 1);
	assert_int_equal(hand_command(&h, 0, 0, &off, 1), 0);
	assert_int_equal(hand_command(&h, 0, 1, &on, 1), 0);
	assert_int_equal(arrive(&h, multi, 0), 1);
	assert_int_equal(arrive(&h, other, 0), 0);
	assert_int_equal(hand_command(&h, 0, 1, &off, 1), 0);
	memcpy(table + 4, other, 6);
	table[10] = 1;
	memcpy(table + 14, multi, 6);
	assert_int_equal(hand_command(&h, 1, 0, table, sizeof(table)), 0);
	assert_int_equal(arrive(&h, other, 0), 1);
	assert_int_equal(arrive(&h, multi, 0), 1);
	assert_int_equal(hand_command(&h, 1, 1, other, 6), 0);
	assert_int_equal(arrive(&h, own, 0), 0);
	assert_int_equal(hand_command(&h, 0, 2, &on, 1), 1);
	hand_blamed(&h, "control 0.2");
	hand_end(&h);
}

TEST(vlans_are_filtered)
{
	static const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
	const uint8_t vlan[2] = { 100, 0 };
	struct hand h =
		hand_run(VNET_BIT(VNET_CTRL_VQ) | VNET_BIT(VNET_CTRL_RX) |
			 VNET_BIT(VNET_CTRL_VLAN) | VNET_BIT(VNET_RING_PACKED));

	post_rx(&h, 16, 2048);
	assert_int_equal(arrive(&h, own, 100), 0);
	assert_int_equal(hand_command(&h, 2, 0, vlan, 2), 0);
	assert_int_equal(arrive(&h, own, 100), 1);
	assert_int_equal(arrive(&h, own, 101), 0);
	assert_int_equal(vnet_state(h.v).n_vlans, 1);
	assert_int_equal(hand_command(&h, 2, 1, vlan, 2), 0);
	assert_int_equal(arrive(&h, own, 100), 0);
	hand_end(&h);
}

TEST(commands_that_no_device_takes_are_blamed)
{
	static const struct {
		uint8_t class, number;
		uint32_t n_bytes;
	} cases[] = { { 0, 0, 2 },  { 0, 6, 1 },  { 1, 0, 3 },  { 1, 1, 5 },
		      { 1, 2, 6 },  { 2, 0, 1 },  { 2, 2, 2 },  { 3, 0, 1 },
		      { 4, 0, 2 },  { 4, 1, 10 }, { 4, 1, 12 }, { 4, 2, 12 },
		      { 4, 3, 1 },  { 5, 0, 7 },  { 5, 1, 8 },  { 6, 0, 7 },
		      { 6, 2, 11 }, { 6, 4, 8 },  { 9, 0, 1 } };
	const uint8_t bytes[64] = { 0, 0, 0, 0, 1 };
	const struct vnet_config config = { .features = 0 };
	struct hand h = hand_make(&config);

	hand_start(&h, HAND_ALL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(hand_command(&h, cases[i].class,
					      cases[i].number, bytes,
					      cases[i].n_bytes),
				 1);
		hand_blamed(&h, "control");
	}
	hand_end(&h);
}

TEST(settings_are_kept)
{
	const uint8_t coal[8] = { 7, 0, 0, 0, 50 };
	const uint8_t queue[12] = { 1, 0, 0, 0, 9, 0, 0, 0, 60 };
	const uint8_t offloads[8] = { 1 << VNET_GUEST_CSUM };
	const struct vnet_config config = { .features = 0 };
	struct hand h = hand_make(&config);
	struct vnet_state now;

	hand_start(&h, HAND_ALL);
	assert_int_equal(hand_command(&h, 6, 1, coal, 8), 0);
	assert_int_equal(hand_command(&h, 6, 0, coal, 8), 0);
	assert_int_equal(hand_command(&h, 6, 2, queue, 12), 0);
	assert_int_equal(hand_command(&h, 5, 0, offloads, 8), 0);
	now = vnet_state(h.v);
	assert_int_equal(now.coal_max_packets[0], 7);
	assert_int_equal(now.coal_max_usecs[0], 50);
	assert_int_equal(now.coal_max_packets[1], 9);
	assert_int_equal(now.coal_max_usecs[1], 60);
	assert_int_equal(now.guest_offloads, VNET_BIT(VNET_GUEST_CSUM));
	hand_end(&h);
}

/* A command and room for what it gives; the acknowledgement, and n bytes. */
static uint8_t ask(struct hand *h, uint8_t class, uint8_t number,
		   const void *bytes, uint32_t n_bytes, uint32_t n_room,
		   uint32_t *ret_n)
{
	struct hand_queue *q = &h->queues[HAND_CTRL];
	const uint16_t head = (uint16_t)(q->n_avail % q->size);
	uint8_t *header = hand_buffer(h, 500), *data = hand_buffer(h, 501);
	uint8_t *answer = hand_buffer(h, 502);
	uint16_t id;

	header[0] = class;
	header[1] = number;
	memset(answer, 0xee, n_room);
	hand_desc(h, HAND_CTRL, header, 2, DESC_NEXT);
	if (n_bytes > 0) {
		memcpy(data, bytes, n_bytes);
		hand_desc(h, HAND_CTRL, data, n_bytes, DESC_NEXT);
	}
	hand_desc(h, HAND_CTRL, answer, n_room, DESC_WRITE);
	hand_publish(h, HAND_CTRL, head);
	hand_kick(h, HAND_CTRL);
	assert_true(hand_poll(h, HAND_CTRL, &id, ret_n));
	return class == 6 ? answer[8] : answer[0];
}

/* Behind the acknowledgement; what a get of COAL is, in front of it. */
TEST(results_lie_where_the_specification_has_them)
{
	const uint8_t coal[12] = { 1, 0, 0, 0, 9, 0, 0, 0, 60 };
	const uint8_t tx[16] = { 1, [10] = 1 }, rx[16] = { 0, [8] = 1 };
	const uint8_t bad[16] = { 0, [10] = 1 };
	struct hand h = hand_run(
		VNET_BIT(VNET_CTRL_VQ) | VNET_BIT(VNET_DEVICE_STATS) |
		VNET_BIT(VNET_NOTF_COAL) | VNET_BIT(VNET_VQ_NOTF_COAL));
	const uint8_t *answer = hand_buffer(&h, 502);
	const uint8_t header[12] = { 0 }, bytes[60] = { 2 };
	uint32_t n;

	assert_int_equal(hand_command(&h, 6, 2, coal, 12), 0);
	assert_int_equal(ask(&h, 6, 3, coal, 4, 9, &n), 0);
	assert_int_equal(n, 9);
	assert_memory_equal(answer, coal + 4, 8);

	assert_int_equal(ask(&h, 8, 0, NULL, 0, 9, &n), 0);
	assert_int_equal(n, 9);
	assert_int_equal(hand_get16(answer + 1), 3);
	assert_int_equal(hand_get16(answer + 3), 3);
	send(&h, header, bytes, sizeof(bytes));
	assert_int_equal(ask(&h, 8, 1, tx, 16, 100, &n), 0);
	assert_int_equal(n, 1 + 56);
	assert_int_equal(answer[1], 16);
	assert_int_equal(answer[3], 1);
	assert_int_equal(answer[7], 56);
	assert_int_equal(answer[1 + 8 + 8], 1);
	assert_int_equal(answer[1 + 8 + 16], 60);
	/* Cut off where there is no room for more. */
	assert_int_equal(ask(&h, 8, 1, rx, 16, 20, &n), 0);
	assert_int_equal(n, 20);
	assert_int_equal(ask(&h, 8, 1, bad, 16, 100, &n), 1);
	assert_int_equal(n, 1);
	hand_blamed(&h, "types that the queue has not");
	hand_end(&h);
}

TEST(control_queue_refuses_or_hangs)
{
	const struct vnet_faults refuses = { .ctrl_refuses = true };
	const struct vnet_faults hangs = { .ctrl_hangs = true };
	struct hand h =
		hand_run(VNET_BIT(VNET_CTRL_VQ) | VNET_BIT(VNET_CTRL_RX));
	const uint8_t on = 1;
	uint32_t n_bytes = 0;
	uint16_t id = 0;

	vnet_set_faults(h.v, &refuses);
	assert_int_equal(hand_command(&h, 0, 0, &on, 1), 1);
	assert_false(vnet_state(h.v).promisc);
	vnet_set_faults(h.v, &hangs);
	hand_desc(&h, HAND_CTRL, hand_buffer(&h, 0), 3, DESC_NEXT);
	hand_desc(&h, HAND_CTRL, hand_buffer(&h, 1), 1, DESC_WRITE);
	hand_publish(&h, HAND_CTRL, 3);
	hand_kick(&h, HAND_CTRL);
	assert_false(hand_poll(&h, HAND_CTRL, &id, &n_bytes));
	hand_end(&h);
}

/*
 * "Verifying the RSS Hash Calculation", the vectors that makers of NICs test
 * against (learn.microsoft.com, network drivers).
 */
TEST(hash_is_that_of_the_verification_suite)
{
	static const uint8_t key[VNET_KEY_BYTES] = {
		0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
		0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
		0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
		0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
	};
	struct packet_kind kind = { .from_port = 2794, .to_port = 1766 };
	uint8_t bytes[128];
	uint32_t n = packet_of(bytes, &kind, false);
	uint16_t type;

	memcpy(bytes + 26, "\x42\x09\x95\xbb\xa1\x8e\x64\x50", 8);
	assert_int_equal(vnet_hash(key, 0x3f, bytes, n, &type), 0x51ccc178);
	assert_int_equal(type, 2);
	assert_int_equal(vnet_hash(key, 0x01, bytes, n, &type), 0x323e8fc2);
	assert_int_equal(type, 1);
	assert_int_equal(vnet_hash(key, 0x3c, bytes, n, &type), 0);
	assert_int_equal(type, 0);

	kind.is_v6 = true;
	n = packet_of(bytes, &kind, false);
	memcpy(bytes + 22, "\x3f\xfe\x25\x01\x02\x00\x1f\xff\0\0\0\0\0\0\0\x07",
	       16);
	memcpy(bytes + 38, "\x3f\xfe\x25\x01\x02\x00\x00\x03\0\0\0\0\0\0\0\x01",
	       16);
	assert_int_equal(vnet_hash(key, 0x3f, bytes, n, &type), 0x40207d3d);
	assert_int_equal(type, 5);
	assert_int_equal(vnet_hash(key, 0x08, bytes, n, &type), 0x2cc18cd5);
	assert_int_equal(type, 4);
}

/* As the driver set it: the table and the hash, which is reported. */
TEST(hash_is_reported)
{
	const struct packet_kind kind = { .n_payload = 10, .from_port = 5 };
	const uint64_t features = VNET_BIT(VNET_CTRL_VQ) | VNET_BIT(VNET_RSS) |
				  VNET_BIT(VNET_HASH_REPORT);
	uint8_t rss[4 + 4 + 2 * 2 + 2 + 1 + 40] = { 0x3f, 0, 0, 0, 1 };
	struct hand h = hand_run(features);
	uint8_t bytes[128];
	const uint32_t n = packet_of(bytes, &kind, false);
	uint32_t hash;
	uint16_t type;

	rss[12] = 1;
	rss[14] = 40;
	for (uint32_t i = 0; i < 40; i++)
		rss[15 + i] = (uint8_t)(i * 37 + 1);
	assert_int_equal(hand_command(&h, 4, 1, rss, sizeof(rss)), 0);
	assert_true(vnet_state(h.v).has_rss);
	post_rx(&h, 4, 2048);
	model_wire_send(h.wire, 1, bytes, n);
	memcpy(&hash, hand_buffer(&h, 0) + 12, 4);
	assert_int_equal(hash, vnet_hash(rss + 15, 0x3f, bytes, n, &type));
	assert_int_equal(hand_get16(hand_buffer(&h, 0) + 16), 2);
	assert_memory_equal(hand_buffer(&h, 0) + 20, bytes, n);
	hand_end(&h);
}
