/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/virtio/virtio_frame.c: what is asked of the device, and entries that
 * cannot be sent; and a device that writes what it likes, to virtio_tx.c.
 */
#include "support/udp_packet.h"
#include "tx_side.h"

/* A UDP packet whose sum is partial. */
static struct mr_frame make_udp(void)
{
	struct mr_frame frame = fake_frame(128, sizeof(udp_packet), 0);

	memcpy(mr_frame_data(fake.harness.base, &frame), udp_packet,
	       sizeof(udp_packet));
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	return frame;
}

FAKE_TEST(a_partial_sum_is_the_devices, .features = virtio_bit(VIRTIO_F_CSUM))
{
	const struct mr_meta meta = { .valid = MR_META_CSUM,
				      .csum_start_bytes = 20,
				      .csum_offset_bytes = 4 };
	struct fake_chain chain;
	struct virtio_header header;
	struct mr_frame frame;

	frame = make_udp();
	assert_int_equal(transmit(&frame, 1), 1);
	header = next_header(&chain);
	assert_int_equal(chain.n, 1);
	assert_int_equal(header.flags, VIRTIO_HEADER_NEEDS_CSUM);
	assert_int_equal(header.csum_start, 34);
	assert_int_equal(header.csum_offset, 6);
	assert_int_equal(header.n_buffers, 0);
	use(&chain);
	/* By metadata, and shared: the page stays as it is. */
	frame = make_udp();
	assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	assert_int_equal(
		mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame, &meta, 1),
		1);
	header = next_header(&chain);
	assert_int_equal(chain.n, 2);
	assert_int_equal(header.flags, VIRTIO_HEADER_NEEDS_CSUM);
	assert_int_equal(header.csum_start, 20);
	assert_int_equal(header.csum_offset, 4);
	use(&chain);
	transmit(NULL, 0);
	mr_frame_free_bulk(fake.cache, &frame, 1);
	/* Zero headers are zero again behind it. */
	frame = fake_frame(0, 60, 0);
	assert_int_equal(transmit(&frame, 1), 1);
	header = next_header(&chain);
	assert_is_zero(&header);
	use(&chain);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_CSUM_DEVICE], 2);
}

/* Without the feature it is finished here, in a copy if others look on. */
FAKE_TEST(without_csum_a_partial_sum_is_finished)
{
	struct fake_chain chain;
	struct mr_frame frame, twin;
	const uint8_t *bytes;

	for (uint32_t is_shared = 0; is_shared < 2; is_shared++) {
		struct virtio_header header;

		frame = twin = make_udp();
		if (is_shared)
			assert_int_equal(mr_frame_ref(fake.cache, &twin, 1), 0);
		assert_int_equal(transmit(&frame, 1), 1);
		header = next_header(&chain);
		assert_is_zero(&header);
		assert_int_equal(chain.n, 1);
		bytes = chain.parts[0].bytes + 12;
		assert_int_equal(bytes[UDP_FIELD], UDP_SUM_HIGH);
		assert_int_equal(bytes[UDP_FIELD + 1], UDP_SUM_LOW);
		use(&chain);
		if (is_shared) {
			bytes = mr_frame_data(fake.harness.base, &twin);
			assert_int_equal(bytes[UDP_FIELD], 0x14);
			mr_frame_free_bulk(fake.cache, &twin, 1);
		}
	}
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_CSUM_SOFTWARE], 2);
}

struct gso_case {
	uint64_t features;
	uint16_t gso_type;
	uint32_t n_bytes;
	bool is_partial;
	int drop; /* -1: it is sent */
	uint8_t said;
	uint16_t header_bytes;
};

RING_TEST(frames_to_be_cut_say_how)
{
	const uint64_t csum = virtio_bit(VIRTIO_F_CSUM);
	const uint64_t tso4 = csum | virtio_bit(VIRTIO_F_HOST_TSO4);
	const uint64_t tso6 = csum | virtio_bit(VIRTIO_F_HOST_TSO6);
	const uint64_t uso = csum | virtio_bit(VIRTIO_F_HOST_USO);
	const struct gso_case cases[] = {
		{ tso4, MR_GSO_TCPV4, 3000, true, -1, 1, 34 + 24 },
		{ tso6, MR_GSO_TCPV6, 3000, true, -1, 4, 34 + 24 },
		{ uso, MR_GSO_UDP, 3000, true, -1, 5, 34 + 8 },
		/* Not of this device: the library looks, and it is no packet.
		 */
		{ tso6, MR_GSO_TCPV4, 3000, true, MR_TX_DROP_INVALID, 0, 0 },
		{ tso6, MR_GSO_TCPV4, 1000, true, MR_TX_DROP_INVALID, 0, 0 },
		{ tso4, MR_GSO_TCPV6, 3000, true, MR_TX_DROP_INVALID, 0, 0 },
		{ csum, MR_GSO_UDP, 3000, true, MR_TX_DROP_INVALID, 0, 0 },
		{ tso4, 77, 3000, true, MR_TX_DROP_INVALID, 0, 0 },
		/* Segments without sums there are not. */
		{ tso4, MR_GSO_TCPV4, 3000, false, MR_TX_DROP_TOO_LONG, 0, 0 },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gso_case *c = &cases[i];
		const struct mr_meta meta = {
			.valid = MR_META_CSUM | MR_META_GSO,
			.csum_start_bytes = 34,
			.csum_offset_bytes = 16,
			.gso_bytes = 1000,
			.gso_type = c->gso_type,
		};
		struct fake_chain chain;
		struct virtio_header header;
		struct mr_frame frame;

		fake_open((struct fake_config){ .features = c->features });
		frame = fake_frame(128, c->n_bytes, 0);
		/* A TCP header of 24 bytes. */
		mr_frame_data(fake.harness.base, &frame)[34 + 12] = 0x60;
		frame.flags = c->is_partial ? MR_FRAME_CSUM_PARTIAL : 0;
		assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache,
						  &frame, &meta, 1),
				 1);
		if (c->drop >= 0) {
			assert_int_equal(fake_tx_stats().drops[c->drop], 1);
			fake_close();
			continue;
		}
		header = next_header(&chain);
		assert_int_equal(header.flags, VIRTIO_HEADER_NEEDS_CSUM);
		assert_int_equal(header.gso_type, c->said);
		assert_int_equal(header.gso_bytes, c->said != 0 ? 1000 : 0);
		assert_int_equal(header.header_bytes, c->header_bytes);
		use(&chain);
		fake_close();
	}
}

/* Frames that are out, by their entries, and what is said of them. */
static const struct {
	uint32_t not_of; /* rings that cannot say so */
	uint32_t n_entries[4];
	uint32_t id, n_times, n_jumped;
} broken[] = {
	/* Not out: behind the last, the last place, none. */
	{ F_IN_ORDER, { 1, 1, 2 }, 4, 1, 0 },
	{ F_IN_ORDER, { 1, 1, 2 }, FAKE_RING - 1, 1, 0 },
	{ F_IN_ORDER, { 1, 1, 2 }, FAKE_RING, 1, 0 },
	{ F_IN_ORDER, { 1, 1, 2 }, 0xffff, 1, 0 },
	/* Inside a chain; used twice; an index that jumps. */
	{ F_IN_ORDER, { 4 }, 1, 1, 0 },
	{ F_IN_ORDER, { 1, 1, 1, 1 }, 2, 2, 0 },
	{ F_PACKED, { 1, 1, 1, 1 }, 0, 1, 4 },
};

RING_TEST(what_cannot_be_used_breaks_the_queue)
{
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct mr_frame frames[4];
		uint32_t n = 0;

		if (ring_kind & broken[i].not_of)
			continue;
		fake_open((struct fake_config){ 0 });
		for (uint32_t k = 0; n < 4; n += broken[i].n_entries[k++])
			make_long(frames + n, broken[i].n_entries[k], 0);
		assert_int_equal(transmit(frames, 4), 4);
		fake_queue(TX)->used_pos += (uint16_t)broken[i].n_jumped;
		for (uint32_t k = 0; k < broken[i].n_times; k++)
			fake_use(TX, broken[i].id, 0, 1);
		transmit(NULL, 0);
		assert_int_equal(fake.txq->state, VIRTIO_BROKEN);
		make_long(frames, 1, 0);
		assert_int_equal(transmit(frames, 1), 0);
		mr_frame_free_bulk(fake.cache, frames, 1);
		fake_close();
	}
}

FAKE_TEST_IF(0, F_IN_ORDER, a_broken_queue_is_reset_and_counts_its_loss,
	     .features = virtio_bit(VIRTIO_F_RING_RESET))
{
	struct mr_frame frames[8];
	struct fake_chain chain;

	for (uint32_t round = 1; round < 5; round++) {
		for (uint32_t i = 0; i < 4; i++)
			make_long(frames + 2 * i, 2, (uint8_t)i);
		assert_int_equal(transmit(frames, 8), 8);
		fake_use(TX, 0x7fff, 0, 1);
		transmit(NULL, 0);
		assert_int_equal(fake.txq->state, VIRTIO_BROKEN);
		assert_int_equal(mr_port_poll(fake.harness.port), 1);
		assert_int_equal(fake_tx_stats().drops[MR_TX_DROP_DEVICE],
				 4 * round);
		make_long(frames, 3, 9);
		assert_int_equal(transmit(frames, 3), 3);
		take_frame(180, 9, &chain);
		use(&chain);
		transmit(NULL, 0);
		assert_int_equal(fake_tx_stats().completed, round);
	}
}

struct invalid_case {
	uint64_t add_to_addr;
	uint32_t n_bytes;
	enum mr_tx_drop drop;
	bool is_page; /* the address is of a page, which must come back */
};

FAKE_TEST(invalid_entries_are_named_drops)
{
	static const struct invalid_case cases[] = {
		{ 0, 0, MR_TX_DROP_INVALID, true },
		{ 0, 13, MR_TX_DROP_INVALID, true },
		{ UINT64_C(1) << 40, 60, MR_TX_DROP_INVALID, false },
		{ UINT64_C(1) << 63, 60, MR_TX_DROP_INVALID, false },
		{ 0 - UINT64_C(4096) * 4096, 60, MR_TX_DROP_INVALID, false },
		{ 0, 1519, MR_TX_DROP_TOO_LONG, true },
		{ 0, UINT32_MAX, MR_TX_DROP_TOO_LONG, true },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_frame frames[3];
		struct fake_chain chain;
		const uint64_t n_before = fake_tx_stats().drops[cases[i].drop];
		struct mr_frame saved;

		make_long(frames, 1, 1);
		make_long(frames + 1, 1, 0);
		make_long(frames + 2, 1, 2);
		saved = frames[1];
		frames[1].addr += cases[i].add_to_addr;
		frames[1].len = cases[i].n_bytes;
		assert_int_equal(transmit(frames, 3), 3);
		take_frame(60, 1, &chain);
		use(&chain);
		take_frame(60, 2, &chain);
		use(&chain);
		assert_int_equal(fake_take(TX).n, 0);
		assert_int_equal(fake_tx_stats().drops[cases[i].drop],
				 n_before + 1);
		if (!cases[i].is_page)
			mr_frame_free_bulk(fake.cache, &saved, 1);
	}
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().pending, 0);
	/* Addresses of no page were given to the pool, which counts them. */
	fake.n_invalid = 3;
}

FAKE_TEST(a_frame_of_too_many_entries_is_a_named_drop)
{
	struct mr_frame frames[MR_MAX_SEGS + 2];
	struct fake_chain chain;

	make_long(frames, MR_MAX_SEGS + 1, 0);
	make_long(frames + MR_MAX_SEGS + 1, 1, 5);
	assert_int_equal(transmit(frames, MR_MAX_SEGS + 2), MR_MAX_SEGS + 2);
	take_frame(60, 5, &chain);
	assert_int_equal(fake_tx_stats().drops[MR_TX_DROP_TOO_LONG], 1);
	use(&chain);
}

/* mr_port_poll() may be writing its ring. */
FAKE_TEST(a_broken_queue_is_not_touched)
{
	struct mr_frame frame;

	make_long(&frame, 1, 0);
	assert_int_equal(transmit(&frame, 1), 1);
	fake.txq->base.queue.fd = 0x7fffffff;
	assert_int_equal(mr_queue_arm(&fake.txq->base.queue), 0);
	fake.txq->state = VIRTIO_BROKEN;
	assert_int_equal(transmit(NULL, 0), 0);
	assert_true(fake_wants_interrupt(TX));
	fake.txq->state = VIRTIO_RUNS;
	transmit(NULL, 0);
	assert_false(fake_wants_interrupt(TX));
}

/* Nor is it posted to, in the burst that finds it so. */
FAKE_TEST(the_burst_that_breaks_a_queue_sends_nothing,
	  .features = virtio_bit(VIRTIO_F_RING_RESET))
{
	struct mr_frame frames[FAKE_RING];
	const struct mr_frame *refused = &frames[FAKE_RING / 2];

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i <= FAKE_RING / 2; i++)
			frames[i] = fake_frame(128, 60, 0);
		assert_int_equal(transmit(frames, FAKE_RING / 2),
				 FAKE_RING / 2);
		/* An index that jumps; a packed ring has but ids. */
		if (!(ring_kind & F_PACKED))
			fake_queue(TX)->used_pos += FAKE_RING;
		fake_use(TX, 0x7fff, 0, 1);
		assert_int_equal(transmit(refused, 1), 0);
		assert_int_equal(fake.txq->state, VIRTIO_BROKEN);
		assert_int_equal(fake_tx_stats().accepted,
				 (round + 1) * FAKE_RING / 2);
		assert_int_equal(mr_port_poll(fake.harness.port), 1);
		assert_int_equal(fake_tx_stats().pending, 0);
		mr_frame_free_bulk(fake.cache, refused, 1);
	}
}
