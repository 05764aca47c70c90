/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/virtio/virtio_receive.h above a device that the test plays,
 * and that may write anything. What each ring delivers is the conformance
 * suite's to check.
 */
#include "rings.h"
#include "support/rx_script.h"

enum { RX = 0, MAX_DATA = 4096 - 128 };

static uint32_t receive_frames(struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst(&fake.rxq->base, fake.cache, frames, n);
}

static void assert_bytes(const struct mr_frame *frame, uint8_t seed)
{
	const uint8_t *bytes = mr_frame_data(fake.harness.base, frame);

	for (uint32_t i = 0; i < frame->len; i++)
		assert_int_equal(bytes[i], (uint8_t)(seed + i));
}

/* The device fills a buffer with a plain frame and uses it at once. */
static uint32_t deliver(uint32_t n_bytes, uint8_t seed)
{
	const struct fake_chain chain = fake_receive(n_bytes, seed, NULL);

	fake_use(RX, chain.id, n_bytes + fake.port->header_bytes, 1);
	return chain.id;
}

/* A frame of n buffers, the last with n_last bytes; its place in ids[]. */
static void deliver_merged(uint32_t n, uint32_t n_last, uint32_t n_said,
			   uint32_t *ids)
{
	const struct virtio_header header = { .n_buffers = (uint16_t)n_said };

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t n_bytes = i + 1 < n ? MAX_DATA : n_last;
		struct fake_chain chain;
		uint8_t *bytes;

		if (i == 0) {
			chain = fake_receive(n_bytes, 0, &header);
		} else {
			chain = fake_take(RX);
			bytes = chain.parts[0].bytes;
			for (uint32_t k = 0; k < n_bytes; k++)
				bytes[k] = (uint8_t)(i + k);
		}
		ids[i] = chain.id;
	}
}

static void use_merged(const uint32_t *ids, uint32_t n, uint32_t n_last)
{
	for (uint32_t i = 0; i < n; i++)
		fake_use(RX, ids[i],
			 (i + 1 < n ? MAX_DATA : n_last) + (i == 0 ? 12 : 0),
			 1);
}

/* ---- scripts: frames of one buffer or several ---- */

/* The first buffer of the current frame, and how many it has so far. */
static struct fake_chain first;
static uint32_t n_given, which_bad;

/* Bad frames of one buffer: lengths, header included, and counts. */
static const struct {
	uint32_t n_bytes, n_said;
} bad_frames[] = {
	{ 0, 1 },
	{ 11, 1 },
	{ 12, 1 },
	{ 12 + 13, 1 },
	{ 12 + MAX_DATA + 1, 1 },
	{ UINT32_MAX, 1 },
	/* Counts: only with frames of several buffers. */
	{ 12 + 60, 0 },
	{ 12 + 60, FAKE_RING + 1 },
	{ 12 + 60, 0xffff },
};
/* And of buffers inside a frame. */
static const uint32_t bad_lengths[] = { 0, MAX_DATA + 12 + 1, UINT32_MAX };

/* The count is in the first buffer, which the driver has not read yet. */
static void give_part(uint32_t n_bytes, bool is_end)
{
	struct virtio_header header = { .n_buffers = 1 };
	struct fake_chain chain = fake_take(RX);
	uint32_t n_header = 0;

	assert_int_equal(chain.n, 1);
	if (n_given++ == 0) {
		first = chain;
		n_header = fake.port->header_bytes;
	}
	header.n_buffers = (uint16_t)(n_given + !is_end);
	memcpy(first.parts[0].bytes, &header, sizeof(uint16_t) * 6);
	if (is_end)
		n_given = 0;
	fake_use(RX, chain.id, n_header + n_bytes, 1);
}

static void give_buffer(bool is_end)
{
	give_part(is_end ? RX_SCRIPT_END_BYTES : MAX_DATA - 12, is_end);
}

static void give_bad(void)
{
	const struct virtio_header header = {
		.n_buffers = (uint16_t)bad_frames[which_bad].n_said
	};

	if (n_given > 0)
		give_part(bad_lengths[which_bad % 3], false);
	else
		fake_use(RX, fake_receive(60, 0, &header).id,
			 bad_frames[which_bad].n_bytes, 1);
}

static const struct {
	bool is_merged;
	uint32_t n_bad; /* of bad_frames */
	struct rx_script script;
} scripts[] = {
	/* Between good ones, which arrive. */
	{ false,
	  6,
	  { .script = "e b e 2b e R32=3", .delivered = 3, .invalid = 3 } },
	{ true,
	  9,
	  { .script = "e b e m b e e R32=3", .delivered = 3, .invalid = 2 } },
	/* One that is not complete, or does not fit, waits. */
	{ true, 1, { .script = "e 4m R32=1 R32=0 e R32=5", .delivered = 2 } },
	{ true,
	  1,
	  { .script = "9m e 9m e 9m e R19=10 R19=10 R19=10 R19=0",
	    .delivered = 3 } },
	/* One of too many buffers is consumed as it comes. */
	{ true,
	  1,
	  { .script = "17m e R64=18 24m R18=0 R18=0 R18=0 e e R18=0 R18=1",
	    .delivered = 2,
	    .too_long = 1 } },
	/* No pages: the rest waits in the ring. */
	{ false,
	  1,
	  { .script = "P 10e R32=3 R28=0 p R28=7",
	    .delivered = 10,
	    .pool_empty = 2 } },
};

RING_TEST(frames_of_a_device_are_received_or_a_named_drop)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		for (which_bad = 0; which_bad < scripts[i].n_bad; which_bad++) {
			fake_open((struct fake_config){
				.features =
					scripts[i].is_merged ?
						virtio_bit(VIRTIO_F_MRG_RXBUF) :
						0,
				.n_pages = RX_SCRIPT_PAGES });
			rx_script_run(
				&scripts[i].script,
				&(struct rx_double){ .rxq = fake.harness.rxq,
						     .cache = fake.cache,
						     .give = give_buffer,
						     .give_bad = give_bad });
			fake_close();
		}
}

/* Without IN_ORDER a device may use buffers in whatever order. */
FAKE_TEST_IF(0, F_IN_ORDER, buffers_come_back_in_any_order)
{
	struct mr_frame frames[8];

	for (uint32_t round = 0; round < 40; round++) {
		uint32_t ids[8];

		for (uint32_t i = 0; i < 8; i++)
			ids[i] = fake_receive(60, (uint8_t)i, NULL).id;
		for (uint32_t i = 8; i-- > 0;)
			fake_use(RX, ids[i], 72, 1);
		assert_int_equal(receive_frames(frames, 8), 8);
		for (uint32_t i = 0; i < 8; i++)
			assert_bytes(&frames[i], (uint8_t)(7 - i));
		mr_frame_free_bulk(fake.cache, frames, 8);
	}
}

/* One that the device keeps is not made available again with the others. */
FAKE_TEST_IF(0, F_IN_ORDER, a_kept_buffer_is_not_posted_again)
{
	struct mr_frame frames[8];
	struct fake_chain kept;

	kept = fake_take(RX);
	for (uint32_t i = 0; i < 8; i++)
		deliver(60, (uint8_t)i);
	assert_int_equal(receive_frames(frames, 8), 8);
	mr_frame_free_bulk(fake.cache, frames, 8);
	for (uint32_t i = 1; i < FAKE_RING; i++) {
		const struct fake_chain chain = fake_take(RX);

		assert_int_equal(chain.n, 1);
		assert_int_not_equal(chain.id, kept.id);
	}
}

FAKE_TEST_IF(F_IN_ORDER, 0, a_batch_larger_than_the_burst_waits,
	     .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[18];
	uint32_t id = 0;

	for (uint32_t i = 0; i < 30; i++)
		id = fake_receive(MAX_DATA, (uint8_t)i, NULL).id;
	fake_use_batch(RX, id, MAX_DATA + 12, 30, 30);
	assert_int_equal(receive_frames(frames, 18), 18);
	mr_frame_free_bulk(fake.cache, frames, 18);
	assert_int_equal(receive_frames(frames, 18), 12);
	assert_bytes(&frames[11], 29);
	mr_frame_free_bulk(fake.cache, frames, 12);
}

/* Headers that a device of ours does not write: what offload_test.c of the
 * models leaves. */
static const struct header_case {
	struct virtio_header header;
	uint32_t flags, valid;
} header_cases[] = {
	{ { .flags = VIRTIO_HEADER_NEEDS_CSUM,
	    .gso_type = VIRTIO_GSO_TCPV6 | VIRTIO_GSO_ECN,
	    .gso_bytes = 1400,
	    .csum_start = 34,
	    .csum_offset = 64,
	    .n_buffers = 1 },
	  MR_FRAME_CSUM_PARTIAL,
	  MR_META_CSUM | MR_META_GSO },
	/* One byte past the end: not to be followed. */
	{ { .flags = VIRTIO_HEADER_NEEDS_CSUM,
	    .csum_start = 34,
	    .csum_offset = 65,
	    .n_buffers = 1 },
	  MR_FRAME_CSUM_PARTIAL,
	  0 },
	{ { .flags = 0xfc,
	    .n_buffers = 1,
	    .hash = 0x12345678,
	    .hash_report = 2 },
	  0,
	  MR_META_RSS_HASH },
	{ { .n_buffers = 1 }, 0, 0 },
};

RING_TEST(headers_become_flags_and_metadata)
{
	enum { N = sizeof(header_cases) / sizeof(header_cases[0]) };

	for (int is_merged = 0; is_merged < 2; is_merged++) {
		struct mr_frame frames[32];
		struct mr_meta meta[32];

		fake_open((struct fake_config){
			.features =
				virtio_bit(VIRTIO_F_HASH_REPORT) |
				virtio_bit(is_merged ? VIRTIO_F_MRG_RXBUF :
						       VIRTIO_F_GUEST_CSUM) });
		for (uint32_t i = 0; i < N; i++)
			fake_use(RX,
				 fake_receive(100, (uint8_t)i,
					      &header_cases[i].header)
					 .id,
				 120, 1);
		memset(meta, 0x5a, sizeof(meta));
		assert_int_equal(mr_rx_burst_meta(&fake.rxq->base, fake.cache,
						  frames, meta, 32),
				 N);
		for (uint32_t i = 0; i < N; i++) {
			assert_int_equal(frames[i].flags,
					 header_cases[i].flags);
			assert_int_equal(frames[i].len, 100);
			assert_bytes(&frames[i], (uint8_t)i);
			assert_int_equal(meta[i].valid, header_cases[i].valid);
		}
		assert_int_equal(meta[0].csum_start_bytes, 34);
		assert_int_equal(meta[0].csum_offset_bytes, 64);
		assert_int_equal(meta[0].gso_type, MR_GSO_TCPV6);
		assert_int_equal(meta[0].gso_bytes, 1400);
		assert_int_equal(meta[2].rss_hash, 0x12345678);
		assert_int_equal(meta[2].hash_type,
				 MR_HASH_IPV4 | MR_HASH_L4 | MR_HASH_TCP);
		mr_frame_free_bulk(fake.cache, frames, N);
		fake_close();
	}
}

FAKE_TEST(the_device_does_not_get_the_tailroom, .tailroom_bytes = 100)
{
	struct fake_chain chain;

	chain = fake_take(RX);
	assert_int_equal(chain.parts[0].len, 4096 - 128 - 100 + 12);
}

FAKE_TEST(the_device_is_notified_once_and_only_if_it_asks)
{
	struct mr_frame frames[32];

	assert_int_equal(fake_n_bells(RX), 1); /* a ring of buffers */
	if (ring_kind & F_EVENT_IDX)
		fake_want_event(RX, FAKE_RING);
	for (uint32_t i = 0; i < 20; i++)
		deliver(60, 0);
	mr_frame_free_bulk(fake.cache, frames, receive_frames(frames, 32));
	assert_int_equal(fake_n_bells(RX), 2);
	tell_nothing(RX, 1000);
	for (uint32_t i = 0; i < 20; i++)
		deliver(60, 0);
	mr_frame_free_bulk(fake.cache, frames, receive_frames(frames, 32));
	assert_int_equal(fake_n_bells(RX), 2);
	/* An empty burst has nothing to tell. */
	fake_suppress(RX, false);
	assert_int_equal(receive_frames(frames, 32), 0);
	assert_int_equal(fake_n_bells(RX), 2);
	assert_int_equal(fake_rx_stats().events[MR_RX_EVENT_WAKEUP], 2);
}

/* At each distance to the event, and across the end of the numbers. */
FAKE_TEST_IF(F_EVENT_IDX, 0, the_device_is_notified_at_the_index_it_asked_for)
{
	struct mr_frame frames[32];

	for (uint32_t i = 0, at = FAKE_RING; i < 6000; i++, at += 10) {
		const uint64_t n_before = fake_n_bells(RX);
		const uint32_t ahead = i % 20;

		fake_want_event(RX, (uint16_t)(at + ahead));
		for (uint32_t k = 0; k < 10; k++)
			deliver(60, 0);
		assert_int_equal(receive_frames(frames, 32), 10);
		mr_frame_free_bulk(fake.cache, frames, 10);
		assert_int_equal(fake_n_bells(RX) - n_before, ahead < 10);
	}
}

FAKE_TEST(arming_asks_for_an_interrupt_until_the_next_burst)
{
	struct mr_frame frames[32];
	struct mr_queue *queue;

	queue = &fake.rxq->base.queue;
	queue->fd = -1;
	assert_int_equal(mr_queue_arm(queue), 1); /* it has no interrupt */
	queue->fd = 0x7fffffff;
	for (uint32_t i = 0; i < 200; i++) {
		assert_false(fake_wants_interrupt(RX));
		assert_int_equal(mr_queue_arm(queue), 0);
		assert_true(fake_wants_interrupt(RX));
		assert_int_equal(mr_queue_arm(queue), 0);
		deliver(60, 0);
		assert_int_equal(mr_queue_arm(queue), 1);
		assert_int_equal(receive_frames(frames, 32), 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
	}
}

/* ---- a device that cannot be trusted ---- */

/* In the first buffer or later: nothing of the frame is delivered, or lost. */
RING_TEST(an_unknown_id_breaks_the_queue)
{
	static const uint32_t none[] = { FAKE_RING, FAKE_RING + 1, 0x7fff,
					 0xffff };
	struct mr_frame frames[32];
	uint32_t ids[4];

	for (uint32_t bad = 0; bad < 4; bad++) {
		fake_open((struct fake_config){
			.features = virtio_bit(VIRTIO_F_MRG_RXBUF) });
		deliver(60, 1);
		deliver_merged(4, 60, 4, ids);
		ids[bad] = none[bad];
		use_merged(ids, 4, 60);
		assert_int_equal(receive_frames(frames, 32), 1);
		assert_bytes(&frames[0], 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(receive_frames(frames, 32), 0);
		assert_int_equal(fake.rxq->state, VIRTIO_BROKEN);
		assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_INVALID], 1);
		fake_close();
	}
}

FAKE_TEST_IF(0, F_PACKED, an_index_that_jumps_breaks_the_queue)
{
	struct mr_frame frames[8];

	fake_queue(RX)->used_pos += FAKE_RING;
	fake_use(RX, 0, 72, 1);
	assert_int_equal(receive_frames(frames, 8), 0);
	assert_int_equal(fake.rxq->state, VIRTIO_BROKEN);
}

/* An id ahead says that buffers are full: no frame is that long. */
RING_TEST_IF(F_IN_ORDER, 0, an_impossible_batch_breaks_the_queue)
{
	struct mr_frame frames[8];

	fake_open((struct fake_config){ 0 });
	for (uint32_t i = 0; i < 4; i++)
		fake_receive(60, (uint8_t)i, NULL);
	fake_use_batch(RX, 3, 72, 4, 4);
	assert_int_equal(receive_frames(frames, 8), 0);
	assert_int_equal(fake.rxq->state, VIRTIO_BROKEN);
	fake_close();

	/* With this MTU one is. */
	fake_open((struct fake_config){ 0 });
	assert_int_equal(mr_port_set_mtu(fake.harness.port,
					 MAX_DATA - VIRTIO_LINK_BYTES, NULL),
			 0);
	for (uint32_t i = 0; i < 4; i++)
		fake_receive(i < 3 ? MAX_DATA : 60, (uint8_t)i, NULL);
	fake_use_batch(RX, 3, 72, 4, 4);
	assert_int_equal(receive_frames(frames, 8), 4);
	mr_frame_free_bulk(fake.cache, frames, 4);
	fake_close();
}

/* The same buffer twice in a frame: two pages leave, two pages came. */
FAKE_TEST_IF(0, F_IN_ORDER, a_buffer_used_twice_costs_no_page,
	     .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[32];
	uint32_t ids[3];

	deliver_merged(3, 60, 3, ids);
	fake_use(RX, ids[0], MAX_DATA + 12, 1);
	fake_use(RX, ids[0], MAX_DATA, 1);
	fake_use(RX, ids[0], 60, 1);
	assert_int_equal(receive_frames(frames, 32), 3);
	assert_true(frames[0].addr / 4096 != frames[1].addr / 4096);
	assert_true(frames[1].addr / 4096 != frames[2].addr / 4096);
	mr_frame_free_bulk(fake.cache, frames, 3);
}

/* The poll thread found the device gone while a burst looked at its ring. */
RING_TEST(a_removed_queue_stays_removed)
{
	uint32_t queue_state = VIRTIO_GONE;

	virtio_break(&queue_state);
	assert_int_equal(queue_state, VIRTIO_GONE);
	queue_state = VIRTIO_RUNS;
	virtio_break(&queue_state);
	assert_int_equal(queue_state, VIRTIO_BROKEN);
	queue_state = VIRTIO_NO_LINK;
	virtio_break(&queue_state);
	assert_int_equal(queue_state, VIRTIO_BROKEN);
}

/* mr_port_poll() may be writing its ring. */
FAKE_TEST(a_broken_queue_is_not_touched)
{
	struct mr_frame frames[4];

	fake.rxq->base.queue.fd = 0x7fffffff;
	assert_int_equal(mr_queue_arm(&fake.rxq->base.queue), 0);
	fake.rxq->state = VIRTIO_BROKEN;
	assert_int_equal(receive_frames(frames, 4), 0);
	assert_true(fake_wants_interrupt(RX));
	fake.rxq->state = VIRTIO_RUNS;
	assert_int_equal(receive_frames(frames, 4), 0);
	assert_false(fake_wants_interrupt(RX));
}

/* Until its burst has ended: mr_port_poll() resets it in that moment. */
FAKE_TEST(a_queue_is_its_users_until_the_burst_has_ended,
	  .features = virtio_bit(VIRTIO_F_RING_RESET))
{
	struct mr_frame frames[8];

	fake.polls_at_bells = true;
	for (uint32_t i = 0; i < 3; i++) {
		const uint64_t n_bells = fake_n_bells(RX);

		if (ring_kind & F_EVENT_IDX)
			fake_want_event(RX, FAKE_RING);
		deliver(60, 1);
		fake_receive(60, 2, NULL);
		fake_use(RX, 0x7fff, 72, 1);
		assert_int_equal(receive_frames(frames, 8), 1);
		assert_int_equal(fake_n_bells(RX), n_bells + 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(receive_frames(frames, 8), 0);
		fake.polls_at_bells = false;
		assert_int_equal(mr_port_poll(fake.harness.port), 1);
		fake.polls_at_bells = true;
	}
}

/* A batch is seen from its end: QEMU and vhost write its first one last. */
FAKE_TEST_IF(F_PACKED, 0, used_buffer_waits_for_the_unused_one_before_it)
{
	struct mr_frame frames[8];

	for (uint32_t round = 0; round < 40; round++) {
		struct vnet_queue *const q = fake_queue(RX);
		uint32_t ids[4];

		for (uint32_t i = 0; i < 4; i++)
			ids[i] = fake_receive(60, (uint8_t)i, NULL).id;
		/* The last two of the four, and none before them. */
		q->used_pos += 2;
		fake_use(RX, ids[2], 72, 1);
		fake_use(RX, ids[3], 72, 1);
		q->used_pos -= 4;
		assert_int_equal(receive_frames(frames, 4), 0);
		fake_use(RX, ids[0], 72, 1);
		assert_int_equal(receive_frames(frames, 4), 1);
		assert_bytes(&frames[0], 0);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(receive_frames(frames, 3), 0);
		fake_use(RX, ids[1], 72, 1);
		q->used_pos += 2;
		assert_int_equal(receive_frames(frames, 8), 3);
		for (uint32_t i = 0; i < 3; i++)
			assert_bytes(&frames[i], (uint8_t)(i + 1));
		mr_frame_free_bulk(fake.cache, frames, 3);
	}
}

/* Of n_said buffers; of the first four, the second is marked last. */
static void deliver_with_gap(uint32_t n_said, uint32_t *ids)
{
	struct vnet_queue *const q = fake_queue(RX);

	deliver_merged(4, 10, n_said, ids);
	fake_use(RX, ids[0], MAX_DATA + 12, 1);
	q->used_pos++;
	fake_use(RX, ids[2], MAX_DATA, 1);
	fake_use(RX, ids[3], 10, 1);
	q->used_pos -= 3;
}

static void close_gap(const uint32_t *ids)
{
	struct vnet_queue *const q = fake_queue(RX);

	fake_use(RX, ids[1], MAX_DATA, 1);
	q->used_pos += 2;
}

FAKE_TEST_IF(F_PACKED, F_IN_ORDER, a_long_frame_with_a_gap_waits,
	     .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[32];
	uint32_t ids[4];

	for (uint32_t round = 0; round < 40; round++) {
		deliver_with_gap(4, ids);
		assert_int_equal(receive_frames(frames, 32), 0);
		close_gap(ids);
		assert_int_equal(receive_frames(frames, 32), 4);
		for (uint32_t i = 0; i < 4; i++)
			assert_bytes(&frames[i], (uint8_t)i);
		mr_frame_free_bulk(fake.cache, frames, 4);
	}
}

FAKE_TEST_IF(F_PACKED, F_IN_ORDER, what_is_thrown_away_is_used_first,
	     .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[32];
	uint32_t ids[4];

	deliver_with_gap(MR_MAX_SEGS + 1, ids);
	assert_int_equal(receive_frames(frames, 32), 0);
	assert_int_equal(receive_frames(frames, 32), 0);
	assert_int_equal(fake.rxq->n_skip, MR_MAX_SEGS);
	close_gap(ids);
	assert_int_equal(receive_frames(frames, 32), 0);
	assert_int_equal(fake.rxq->n_skip, MR_MAX_SEGS - 3);
}
