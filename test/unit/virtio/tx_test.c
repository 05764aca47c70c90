/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/virtio/virtio_tx.c and virtio_frame.c above a device that
 * the test plays, and that may write anything. That frames leave intact is the
 * conformance suite's to check.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rings.h"
#include "support/udp_packet.h"

enum { TX = 1 };

static uint32_t transmit(const struct mr_frame *frames, uint32_t n)
{
	return mr_tx_burst(&fake.txq->base, fake.cache, frames, n);
}

/* What the device reads of a chain, in one piece; its bytes. */
static uint32_t read_chain(const struct fake_chain *chain, uint8_t *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < chain->n; i++) {
		assert_false(chain->parts[i].is_written);
		memcpy(out + n, chain->parts[i].bytes, chain->parts[i].len);
		n += chain->parts[i].len;
	}
	return n;
}

/* The device takes the next frame; its header is returned. */
static struct virtio_header take_frame(uint32_t n_bytes, uint8_t seed,
				       struct fake_chain *ret)
{
	const uint32_t n_header = fake.port->header_bytes;
	struct virtio_header header = { 0 };
	uint8_t bytes[70000];

	*ret = fake_take(TX);
	assert_true(ret->n > 0);
	assert_int_equal(read_chain(ret, bytes), n_header + n_bytes);
	memcpy(&header, bytes, n_header);
	for (uint32_t i = 0; i < n_bytes; i++)
		assert_int_equal(bytes[n_header + i], (uint8_t)(seed + i));
	return header;
}

static void assert_is_zero(const struct virtio_header *header)
{
	static const struct virtio_header zero;

	assert_memory_equal(header, &zero, sizeof(zero));
}

static void use(const struct fake_chain *chain)
{
	fake_use(TX, chain->id, 0, chain->n);
}

/* A frame of n entries of 60 bytes, one pattern over all of them. */
static void make_long(struct mr_frame *frames, uint32_t n, uint8_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		frames[i] = fake_frame(128, 60, (uint8_t)(seed + 60 * i));
		frames[i].flags = i + 1 < n ? MR_FRAME_MORE : 0;
	}
}

/* Of the next chain, without a look at the data. */
static struct virtio_header next_header(struct fake_chain *ret)
{
	struct virtio_header header = { 0 };
	uint8_t bytes[70000];

	*ret = fake_take(TX);
	read_chain(ret, bytes);
	memcpy(&header, bytes, fake.port->header_bytes);
	return header;
}

FAKE_TEST(used_frames_are_collected_when_half_the_ring_is_posted)
{
	const uint32_t n_lazy = FAKE_RING / 2;
	struct mr_frame frame;
	struct fake_chain chain;

	for (uint32_t i = 0; i < n_lazy; i++) {
		frame = fake_frame(128, 60, 0);
		assert_int_equal(transmit(&frame, 1), 1);
		chain = fake_take(TX);
		use(&chain);
		assert_int_equal(fake_tx_stats().completed, 0);
	}
	frame = fake_frame(128, 60, 0);
	assert_int_equal(transmit(&frame, 1), 1);
	assert_int_equal(fake_tx_stats().completed, n_lazy);
	assert_int_equal(fake_tx_stats().pending, 1);
}

FAKE_TEST(a_shared_frame_is_not_written_to)
{
	struct mr_frame frame, twin;
	struct fake_chain chain;
	struct virtio_header header;
	const uint8_t *page;

	for (uint32_t i = 0; i < 100; i++) {
		frame = twin = fake_frame(128, 60, 3);
		page = (const uint8_t *)fake.harness.base + frame.addr - 128;
		assert_int_equal(mr_frame_ref(fake.cache, &twin, 1), 0);
		assert_int_equal(transmit(&frame, 1), 1);
		header = take_frame(60, 3, &chain);
		assert_int_equal(chain.n, 2);
		assert_is_zero(&header);
		for (uint32_t k = 0; k < 128; k++)
			assert_int_equal(page[k], 0xee);
		use(&chain);
		transmit(NULL, 0);
		assert_true(mr_frame_is_exclusive(fake.cache, &twin));
		mr_frame_free_bulk(fake.cache, &twin, 1);
	}
}

/* Bytes in front of its buffer are somebody else's. */
static void send_at_offsets(uint32_t first, uint32_t last, uint32_t n_header)
{
	struct fake_chain chain;
	struct virtio_header header;

	for (uint32_t offset = first; offset <= last; offset++) {
		const struct mr_frame frame =
			fake_frame(offset, 60, (uint8_t)offset);

		assert_int_equal(transmit(&frame, 1), 1);
		header = take_frame(60, (uint8_t)offset, &chain);
		assert_is_zero(&header);
		assert_int_equal(chain.n, offset < n_header ? 2 : 1);
		use(&chain);
	}
}

FAKE_TEST(without_headroom_the_header_is_in_other_memory)
{
	send_at_offsets(0, 13, 12);
}

FAKE_TEST(a_hash_header_is_longer, .features = virtio_bit(VIRTIO_F_HASH_REPORT))
{
	send_at_offsets(18, 21, 20);
}

FAKE_TEST(larger_pages_leave_too, .page_bytes = 8192)
{
	send_at_offsets(8, 15, 12);
}

FAKE_TEST(chains_wait_for_room)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct fake_chain chain;
	uint32_t n_sent = 0;

	make_long(frames, 10, 0);
	while (transmit(frames, 10) > 0) {
		n_sent++;
		make_long(frames, 10, (uint8_t)n_sent);
	}
	assert_int_equal(n_sent, 6);
	mr_frame_free_bulk(fake.cache, frames, 10);
	for (uint32_t i = 0; i < n_sent; i++) {
		take_frame(600, (uint8_t)i, &chain);
		use(&chain);
	}
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().pending, 0);
}

/* One place is left, and a shared frame takes two: its header, itself. */
FAKE_TEST(a_separate_header_waits_for_room)
{
	struct mr_frame frames[FAKE_RING], twin;
	struct fake_chain chain;

	for (uint32_t i = 0; i < FAKE_RING; i++)
		frames[i] = fake_frame(128, 60, (uint8_t)i);
	twin = frames[FAKE_RING - 1];
	assert_int_equal(mr_frame_ref(fake.cache, &twin, 1), 0);
	assert_int_equal(transmit(frames, FAKE_RING), FAKE_RING - 1);
	take_frame(60, 0, &chain);
	use(&chain);
	assert_int_equal(transmit(&twin, 1), 1);
	for (uint32_t i = 1; i < FAKE_RING; i++)
		take_frame(60, (uint8_t)i, &chain);
	assert_int_equal(chain.n, 2);
	mr_frame_free_bulk(fake.cache, &frames[FAKE_RING - 1], 1);
}

/* Without IN_ORDER: used in any order, chains among them. */
FAKE_TEST_IF(0, F_IN_ORDER, frames_may_be_used_in_any_order)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct fake_chain chains[6];
	uint32_t n_done = 0;

	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < 6; i++) {
			const uint32_t n = round % 2 == 0 ? 1 : 1 + i;

			make_long(frames, n, (uint8_t)i);
			assert_int_equal(transmit(frames, n), n);
		}
		for (uint32_t i = 0; i < 6; i++)
			take_frame(60 * (round % 2 == 0 ? 1 : 1 + i),
				   (uint8_t)i, &chains[i]);
		/* 3 5 1 0 2 4: what is behind an older one waits for it. */
		for (uint32_t i = 0; i < 6; i++) {
			static const uint8_t order[] = { 3, 5, 1, 0, 2, 4 };
			static const uint8_t n_back[] = { 0, 0, 0, 2, 4, 6 };

			use(&chains[order[i]]);
			transmit(NULL, 0);
			assert_int_equal(fake_tx_stats().completed,
					 n_done + n_back[i]);
		}
		n_done += 6;
	}
	assert_int_equal(fake.txq->n_odd, 0);
}

FAKE_TEST(the_device_is_notified_once_per_burst)
{
	struct mr_frame frames[8];

	for (uint32_t i = 0; i < 4; i++)
		make_long(frames + 2 * i, 2, 0);
	assert_int_equal(transmit(frames, 8), 8);
	assert_int_equal(fake_n_bells(TX), 1);
	tell_nothing(TX, 40);
	for (uint32_t i = 0; i < 4; i++)
		make_long(frames + 2 * i, 2, 0);
	assert_int_equal(transmit(frames, 8), 8);
	transmit(NULL, 0);
	assert_int_equal(fake_n_bells(TX), 1);
}

/*
 * The device has caught up with us, and its event is of some frames before: it
 * is told all the same, or it would sleep for good.
 */
FAKE_TEST_IF(F_EVENT_IDX | F_PACKED, 0, the_device_is_notified_of_a_passed_index)
{
	struct mr_frame frames[16];
	uint64_t n_before;

	for (uint32_t i = 0; i < 200; i++) {
		const struct mr_frame frame = fake_frame(128, 60, 0);
		struct fake_chain chain;

		n_before = fake_n_bells(TX);
		fake_want_event(TX, (uint16_t)(i - i % 30));
		assert_int_equal(transmit(&frame, 1), 1);
		assert_int_equal(fake_n_bells(TX) - n_before, 1);
		chain = fake_take(TX);
		use(&chain);
	}
	/* By all but a ring, and then comes a burst. */
	fake_want_event(TX, 200 - (FAKE_RING - 8));
	n_before = fake_n_bells(TX);
	for (uint32_t i = 0; i < 16; i++)
		frames[i] = fake_frame(128, 60, 0);
	assert_int_equal(transmit(frames, 16), 16);
	assert_int_equal(fake_n_bells(TX) - n_before, 1);
}

FAKE_TEST(without_a_link_no_frame_is_accepted)
{
	struct mr_frame frame;

	frame = fake_frame(128, 60, 0);
	tell_nothing(TX, 40);
	assert_int_equal(transmit(&frame, 1), 1);
	assert_int_equal(fake_n_bells(TX), 0);
	fake_set_link(false);
	assert_int_equal(mr_queue_arm(&fake.txq->base.queue), 0);
	assert_int_equal(transmit(&frame, 1), 0);
	assert_int_equal(fake_n_bells(TX), 0);
	fake_set_link(true);
	assert_int_equal(mr_queue_arm(&fake.txq->base.queue), 1);
	transmit(NULL, 0);
	transmit(NULL, 0);
	assert_int_equal(fake_n_bells(TX), 1);
}

FAKE_TEST(arming_waits_for_used_frames)
{
	struct mr_frame frame;
	struct fake_chain chain;
	struct mr_queue *queue;

	queue = &fake.txq->base.queue;
	for (uint32_t i = 0; i < 100; i++) {
		queue->fd = -1;
		assert_int_equal(mr_queue_arm(queue), 0); /* nothing is out */
		make_long(&frame, 1, 0);
		assert_int_equal(transmit(&frame, 1), 1);
		assert_int_equal(mr_queue_arm(queue), 1); /* no interrupt */
		queue->fd = 0x7fffffff;
		assert_false(fake_wants_interrupt(TX));
		assert_int_equal(mr_queue_arm(queue), 0);
		assert_true(fake_wants_interrupt(TX));
		chain = fake_take(TX);
		use(&chain);
		assert_int_equal(mr_queue_arm(queue), 1);
		transmit(NULL, 0);
		assert_false(fake_wants_interrupt(TX));
	}
}

/* poll() would return at once for ever. */
FAKE_TEST(arming_clears_the_fd)
{
	const uint64_t one = 1;
	struct mr_queue *queue;
	struct pollfd poll_fd;

	queue = &fake.txq->base.queue;
	queue->fd = eventfd(0, EFD_NONBLOCK);
	poll_fd = (struct pollfd){ queue->fd, POLLIN, 0 };
	for (uint32_t queue_state = VIRTIO_RUNS; queue_state <= VIRTIO_NO_LINK;
	     queue_state++) {
		fake.txq->state = queue_state;
		assert_int_equal(write(queue->fd, &one, sizeof(one)), 8);
		assert_int_equal(mr_queue_arm(queue), 0);
		assert_int_equal(poll(&poll_fd, 1, 0), 0);
	}
	close(queue->fd);
}

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

RING_TEST(headers_tell_how_to_segment_frames)
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

RING_TEST(an_unusable_buffer_breaks_the_queue)
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

/* Without a whole header, outside the region, of too many entries. */
FAKE_TEST(frames_outside_the_region_are_a_named_drop)
{
	struct mr_frame frames[MR_MAX_SEGS + 1];

	frames[0] = fake_frame(128, 13, 0);
	frames[1] = (struct mr_frame){ .addr = UINT64_C(1) << 40, .len = 60 };
	assert_int_equal(transmit(frames, 2), 2);
	assert_int_equal(fake_tx_stats().drops[MR_TX_DROP_INVALID], 2);
	make_long(frames, MR_MAX_SEGS + 1, 0);
	assert_int_equal(transmit(frames, MR_MAX_SEGS + 1), MR_MAX_SEGS + 1);
	assert_int_equal(fake_tx_stats().drops[MR_TX_DROP_TOO_LONG], 1);
	assert_int_equal(fake_take(TX).n, 0);
	fake.n_invalid = 1;
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
