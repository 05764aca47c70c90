/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/virtio/virtio_receive.h above a fake device. */
#include <string.h>

#include "rx_side.h"

static void frames_arrive_in_order_lap_after_lap(void **state)
{
	struct mr_frame frames[32];
	uint32_t n_sent = 0, n_received = 0;
	struct fake fake;

	open_with(&fake, state, 0);
	for (uint32_t round = 0; round < 100; round++) {
		const uint32_t n = 1 + round % 32;
		uint32_t n_rx;

		for (uint32_t i = 0; i < n; i++, n_sent++)
			deliver(&fake, 60 + n_sent % 1000, (uint8_t)n_sent);
		n_rx = receive(&fake, frames, 32);
		assert_int_equal(n_rx, n);
		for (uint32_t i = 0; i < n_rx; i++, n_received++) {
			assert_int_equal(frames[i].len, 60 + n_received % 1000);
			assert_int_equal(frames[i].flags, 0);
			/* Pool's headroom and no more in front. */
			assert_int_equal(frames[i].addr % 4096, 128);
			assert_bytes(&fake, &frames[i], (uint8_t)n_received);
		}
		mr_frame_free_bulk(fake.cache, frames, n_rx);
		assert_int_equal(receive(&fake, frames, 32), 0);
	}
	assert_int_equal(fake_rx_stats(&fake).delivered, n_sent);
	fake_close(&fake);
}

/* The whole ring at once, taken in bursts. */
static void a_full_ring_is_received_in_bursts(void **state)
{
	struct mr_frame frames[FAKE_RING];
	struct fake fake;

	open_with(&fake, state, 0);
	for (uint32_t lap = 0; lap < 3; lap++) {
		for (uint32_t i = 0; i < FAKE_RING; i++)
			deliver(&fake, 100, (uint8_t)i);
		assert_int_equal(fake_take(&fake, RX).n, 0);
		for (uint32_t i = 0; i < FAKE_RING; i += 16) {
			assert_int_equal(receive(&fake, frames, 16), 16);
			for (uint32_t k = 0; k < 16; k++)
				assert_bytes(&fake, &frames[k],
					     (uint8_t)(i + k));
			mr_frame_free_bulk(fake.cache, frames, 16);
		}
	}
	fake_close(&fake);
}

/* Without IN_ORDER a device may use buffers in whatever order. */
static void buffers_come_back_in_any_order(void **state)
{
	struct mr_frame frames[8];
	struct fake fake;

	open_with(&fake, state, 0);
	for (uint32_t round = 0; round < 40; round++) {
		uint32_t ids[8];

		for (uint32_t i = 0; i < 8; i++)
			ids[i] = fake_receive(&fake, 60, (uint8_t)i, NULL).id;
		for (uint32_t i = 8; i-- > 0;)
			fake_use(&fake, RX, ids[i], 72, 1);
		assert_int_equal(receive(&fake, frames, 8), 8);
		for (uint32_t i = 0; i < 8; i++)
			assert_bytes(&fake, &frames[i], (uint8_t)(7 - i));
		mr_frame_free_bulk(fake.cache, frames, 8);
	}
	fake_close(&fake);
}

/* One that the device keeps is not made available again with the others. */
static void a_buffer_that_is_kept_is_not_given_twice(void **state)
{
	struct mr_frame frames[8];
	struct fake_chain kept;
	struct fake fake;

	open_with(&fake, state, 0);
	kept = fake_take(&fake, RX);
	for (uint32_t i = 0; i < 8; i++)
		deliver(&fake, 60, (uint8_t)i);
	assert_int_equal(receive(&fake, frames, 8), 8);
	mr_frame_free_bulk(fake.cache, frames, 8);
	for (uint32_t i = 1; i < FAKE_RING; i++) {
		const struct fake_chain chain = fake_take(&fake, RX);

		assert_int_equal(chain.n, 1);
		assert_int_not_equal(chain.id, kept.id);
	}
	fake_close(&fake);
}

/* With it, one entry stands for all before it, which are full. */
static void one_entry_stands_for_a_batch(void **state)
{
	struct mr_frame frames[32];
	struct fake fake;

	open_with(&fake, state, virtio_bit(VIRTIO_F_MRG_RXBUF));
	for (uint32_t round = 0; round < 40; round++) {
		const uint32_t n = 1 + round % 20;
		uint32_t id = 0, n_rx;

		for (uint32_t i = 0; i < n; i++)
			id = fake_receive(&fake, i + 1 < n ? MAX_DATA : 99,
					  (uint8_t)i, NULL)
				     .id;
		fake_use_batch(&fake, RX, id, 99 + 12, n, n);
		n_rx = receive(&fake, frames, 32);
		assert_int_equal(n_rx, n);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(frames[i].len,
					 i + 1 < n ? MAX_DATA : 99);
			assert_bytes(&fake, &frames[i], (uint8_t)i);
		}
		mr_frame_free_bulk(fake.cache, frames, n);
	}
	fake_close(&fake);
}

static void a_batch_larger_than_the_burst_waits(void **state)
{
	struct mr_frame frames[18];
	uint32_t id = 0;
	struct fake fake;

	open_with(&fake, state, virtio_bit(VIRTIO_F_MRG_RXBUF));
	for (uint32_t i = 0; i < 30; i++)
		id = fake_receive(&fake, MAX_DATA, (uint8_t)i, NULL).id;
	fake_use_batch(&fake, RX, id, MAX_DATA + 12, 30, 30);
	assert_int_equal(receive(&fake, frames, 18), 18);
	mr_frame_free_bulk(fake.cache, frames, 18);
	assert_int_equal(receive(&fake, frames, 18), 12);
	assert_bytes(&fake, &frames[11], 29);
	mr_frame_free_bulk(fake.cache, frames, 12);
	fake_close(&fake);
}

/* ---- frames of several buffers ---- */

static void long_frames_arrive_whole(void **state)
{
	struct mr_frame frames[32];
	uint32_t ids[MR_MAX_SEGS];
	struct fake fake;

	open_with(&fake, state, virtio_bit(VIRTIO_F_MRG_RXBUF));
	for (uint32_t round = 0; round < 60; round++) {
		const uint32_t n = 1 + round % MR_MAX_SEGS;

		deliver_merged(&fake, n, 33, n, ids);
		use_merged(&fake, ids, n, 33);
		deliver(&fake, 60, 99);
		assert_int_equal(receive(&fake, frames, 32), n + 1);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(frames[i].len,
					 i + 1 < n ? MAX_DATA : 33);
			assert_int_equal(frames[i].flags,
					 i + 1 < n ? MR_FRAME_MORE : 0);
			assert_bytes(&fake, &frames[i], (uint8_t)i);
		}
		assert_bytes(&fake, &frames[n], 99);
		mr_frame_free_bulk(fake.cache, frames, n + 1);
	}
	assert_int_equal(fake_rx_stats(&fake).delivered, 120);
	fake_close(&fake);
}

static void a_frame_that_has_not_all_come_waits(void **state)
{
	struct mr_frame frames[32];
	uint32_t ids[5];
	struct fake fake;

	open_with(&fake, state, virtio_bit(VIRTIO_F_MRG_RXBUF));
	deliver(&fake, 60, 1);
	deliver_merged(&fake, 5, 10, 5, ids);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(receive(&fake, frames, 32), i == 0 ? 1 : 0);
		mr_frame_free_bulk(fake.cache, frames, i == 0);
		fake_use(&fake, RX, ids[i],
			 i == 0 ? MAX_DATA + 12 :
			 i < 4  ? MAX_DATA :
				  10,
			 1);
	}
	assert_int_equal(receive(&fake, frames, 32), 5);
	mr_frame_free_bulk(fake.cache, frames, 5);
	fake_close(&fake);
}

static void a_frame_that_does_not_fit_waits(void **state)
{
	struct mr_frame frames[32];
	uint32_t ids[10];
	struct fake fake;

	open_with(&fake, state, virtio_bit(VIRTIO_F_MRG_RXBUF));
	for (uint32_t i = 0; i < 3; i++) {
		deliver_merged(&fake, 10, 10, 10, ids);
		use_merged(&fake, ids, 10, 10);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(receive(&fake, frames, 19), 10);
		mr_frame_free_bulk(fake.cache, frames, 10);
	}
	assert_int_equal(receive(&fake, frames, 19), 0);
	fake_close(&fake);
}

/* Consumed as it comes, and nothing behind it is lost. */
static void a_frame_that_is_too_long_is_a_named_drop(void **state)
{
	struct mr_frame frames[32];
	uint32_t ids[40];
	struct fake fake;

	open_with(&fake, state, virtio_bit(VIRTIO_F_MRG_RXBUF));
	for (uint32_t round = 0; round < 4; round++) {
		uint32_t n_rx = 0;

		deliver_merged(&fake, 40, 10, 40, ids);
		use_merged(&fake, ids, 25, MAX_DATA);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(receive(&fake, frames, 18), 0);
		for (uint32_t i = 25; i < 40; i++)
			fake_use(&fake, RX, ids[i], 100, 1);
		deliver(&fake, 60, 5);
		for (uint32_t i = 0; i < 4 && n_rx == 0; i++)
			n_rx = receive(&fake, frames, 18);
		assert_int_equal(n_rx, 1);
		assert_bytes(&fake, &frames[0], 5);
		mr_frame_free_bulk(fake.cache, frames, 1);
	}
	assert_int_equal(fake_rx_stats(&fake).drops[MR_RX_DROP_TOO_LONG], 4);
	assert_int_equal(fake_rx_stats(&fake).delivered, 4);
	fake_close(&fake);
}

/* ---- headers ---- */

struct header_case {
	struct virtio_header header;
	uint32_t flags, valid;
};

/* What a frame of 100 bytes becomes by its header. */
static const struct header_case header_cases[] = {
	{ { .n_buffers = 1 }, 0, 0 },
	{ { .flags = VIRTIO_HEADER_DATA_VALID, .n_buffers = 1 },
	  MR_FRAME_CSUM_VALID,
	  0 },
	{ { .flags = VIRTIO_HEADER_NEEDS_CSUM,
	    .csum_start = 34,
	    .csum_offset = 16,
	    .n_buffers = 1 },
	  MR_FRAME_CSUM_PARTIAL,
	  MR_META_CSUM },
	{ { .flags = VIRTIO_HEADER_NEEDS_CSUM,
	    .gso_type = VIRTIO_GSO_TCPV6 | VIRTIO_GSO_ECN,
	    .gso_bytes = 1400,
	    .csum_start = 34,
	    .csum_offset = 64,
	    .n_buffers = 1 },
	  MR_FRAME_CSUM_PARTIAL,
	  MR_META_CSUM | MR_META_GSO },
	/* One byte behind the end: not to be followed. */
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
};

enum { N_HEADERS = sizeof(header_cases) / sizeof(header_cases[0]) };

static void check_headers(void **state, uint64_t more)
{
	struct mr_frame frames[32];
	struct mr_meta meta[32];
	struct fake fake;

	open_with(&fake, state, more | virtio_bit(VIRTIO_F_HASH_REPORT));
	for (uint32_t i = 0; i < N_HEADERS; i++) {
		const uint32_t id = fake_receive(&fake, 100, (uint8_t)i,
						 &header_cases[i].header)
					    .id;

		fake_use(&fake, RX, id, 120, 1);
	}
	memset(meta, 0x5a, sizeof(meta));
	assert_int_equal(
		mr_rx_burst_meta(&fake.rxq->base, fake.cache, frames, meta, 32),
		N_HEADERS);
	for (uint32_t i = 0; i < N_HEADERS; i++) {
		assert_int_equal(frames[i].flags, header_cases[i].flags);
		assert_int_equal(frames[i].len, 100);
		assert_bytes(&fake, &frames[i], (uint8_t)i);
		assert_int_equal(meta[i].valid, header_cases[i].valid);
	}
	assert_int_equal(meta[2].csum_start_bytes, 34);
	assert_int_equal(meta[2].csum_offset_bytes, 16);
	assert_int_equal(meta[3].gso_type, MR_GSO_TCPV6);
	assert_int_equal(meta[3].gso_bytes, 1400);
	assert_int_equal(meta[5].rss_hash, 0x12345678);
	mr_frame_free_bulk(fake.cache, frames, N_HEADERS);
	fake_close(&fake);
}

static void headers_become_flags_and_metadata(void **state)
{
	check_headers(state, virtio_bit(VIRTIO_F_GUEST_CSUM));
	check_headers(state, virtio_bit(VIRTIO_F_MRG_RXBUF));
}

static void without_headers_metadata_says_nothing(void **state)
{
	struct mr_frame frames[32];
	struct mr_meta meta[32];
	struct fake fake;

	open_with(&fake, state, 0);
	memset(meta, 0x5a, sizeof(meta));
	deliver(&fake, 60, 0);
	deliver(&fake, 60, 0);
	assert_int_equal(
		mr_rx_burst_meta(&fake.rxq->base, fake.cache, frames, meta, 32),
		2);
	assert_int_equal(meta[0].valid | meta[1].valid, 0);
	mr_frame_free_bulk(fake.cache, frames, 2);
	fake_close(&fake);
}

/* ---- pages, bells, sleep ---- */

static void without_pages_frames_wait_in_the_ring(void **state)
{
	struct mr_frame frames[32], held[FAKE_PAGES];
	uint32_t n_held = 0, n_rx, n = 0;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .features = *(uint64_t *)*state,
					       .n_pages = 512 });
	do {
		while (fake_rx_stats(&fake).delivered + FAKE_RING > n)
			deliver(&fake, 60, (uint8_t)n++);
		n_rx = receive(&fake, frames, 32);
		memcpy(held + n_held, frames, n_rx * sizeof(frames[0]));
		n_held += n_rx;
	} while (n_rx > 0);
	assert_true(n_held >= 512 - FAKE_RING);
	assert_true(fake_rx_stats(&fake).events[MR_RX_EVENT_POOL_EMPTY] > 0);
	mr_frame_free_bulk(fake.cache, held, n_held);
	/* Nothing was lost: the whole ring comes now, in order. */
	for (uint32_t i = n_held; i < n; i += n_rx) {
		n_rx = receive(&fake, frames, 32);
		assert_true(n_rx > 0);
		for (uint32_t k = 0; k < n_rx; k++)
			assert_bytes(&fake, &frames[k], (uint8_t)(i + k));
		mr_frame_free_bulk(fake.cache, frames, n_rx);
	}
	fake_close(&fake);
}

static void tailroom_is_not_for_the_device(void **state)
{
	struct fake_chain chain;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .features = *(uint64_t *)*state,
					       .tailroom_bytes = 100 });
	chain = fake_take(&fake, RX);
	assert_int_equal(chain.parts[0].len, 4096 - 128 - 100 + 12);
	fake_close(&fake);
}

static void the_bell_is_rung_once_and_only_if_wanted(void **state)
{
	struct mr_frame frames[32];
	struct fake fake;
	const struct fake_queue *q = &fake.queues[RX];

	open_with(&fake, state, 0);
	assert_int_equal(q->n_bells, 1); /* a ring of buffers */
	if (*(uint64_t *)*state & virtio_bit(VIRTIO_F_EVENT_IDX))
		fake_want_event(&fake, RX, FAKE_RING);
	for (uint32_t i = 0; i < 20; i++)
		deliver(&fake, 60, 0);
	mr_frame_free_bulk(fake.cache, frames, receive(&fake, frames, 32));
	assert_int_equal(q->n_bells, 2);
	if (*(uint64_t *)*state & virtio_bit(VIRTIO_F_EVENT_IDX))
		fake_want_event(&fake, RX, 1000);
	else
		fake_suppress(&fake, RX, true);
	for (uint32_t i = 0; i < 20; i++)
		deliver(&fake, 60, 0);
	mr_frame_free_bulk(fake.cache, frames, receive(&fake, frames, 32));
	assert_int_equal(q->n_bells, 2);
	/* An empty burst has nothing to tell. */
	fake_suppress(&fake, RX, false);
	assert_int_equal(receive(&fake, frames, 32), 0);
	assert_int_equal(q->n_bells, 2);
	assert_int_equal(fake_rx_stats(&fake).events[MR_RX_EVENT_WAKEUP], 2);
	fake_close(&fake);
}

/* At each distance to the event, and across the end of the numbers. */
static void the_bell_rings_where_the_device_asked(void **state)
{
	struct mr_frame frames[32];
	struct fake fake;
	const struct fake_queue *q = &fake.queues[RX];

	open_with(&fake, state, 0);
	for (uint32_t i = 0, at = FAKE_RING; i < 6000; i++, at += 10) {
		const uint32_t n_before = q->n_bells;
		const uint32_t ahead = i % 20;

		fake_want_event(&fake, RX, (uint16_t)(at + ahead));
		for (uint32_t k = 0; k < 10; k++)
			deliver(&fake, 60, 0);
		assert_int_equal(receive(&fake, frames, 32), 10);
		mr_frame_free_bulk(fake.cache, frames, 10);
		assert_int_equal(q->n_bells - n_before, ahead < 10);
	}
	fake_close(&fake);
}

static void bells_say_what_was_agreed_on(void **state)
{
	struct mr_frame frames[32];
	uint32_t expected;
	struct fake fake;
	const struct fake_queue *q = &fake.queues[RX];

	open_with(&fake, state, virtio_bit(VIRTIO_F_NOTIFICATION_DATA));
	/* Lap 1 of the ring is behind us: the wrap counter is 0. */
	expected = FAKE_RING << 16;
	if (*(uint64_t *)*state & virtio_bit(VIRTIO_F_RING_PACKED))
		expected = 0;
	assert_int_equal(q->last_bell, expected);
	if (*(uint64_t *)*state & virtio_bit(VIRTIO_F_EVENT_IDX))
		fake_want_event(&fake, RX, FAKE_RING);
	deliver(&fake, 60, 0);
	mr_frame_free_bulk(fake.cache, frames, receive(&fake, frames, 32));
	expected += 1 << 16;
	assert_int_equal(q->last_bell, expected);
	fake_close(&fake);
}

static void arming_asks_for_an_interrupt_until_the_next_burst(void **state)
{
	struct mr_frame frames[32];
	struct fake fake;
	struct mr_queue *queue;

	open_with(&fake, state, 0);
	queue = &fake.rxq->base.queue;
	assert_int_equal(mr_queue_arm(queue), 1); /* it has no interrupt */
	queue->fd = 0x7fffffff;
	for (uint32_t i = 0; i < 200; i++) {
		assert_false(fake_wants_interrupt(&fake, RX));
		assert_int_equal(mr_queue_arm(queue), 0);
		assert_true(fake_wants_interrupt(&fake, RX));
		assert_int_equal(mr_queue_arm(queue), 0);
		deliver(&fake, 60, 0);
		assert_int_equal(mr_queue_arm(queue), 1);
		assert_int_equal(receive(&fake, frames, 32), 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
	}
	fake_close(&fake);
}

int main(void)
{
	static const struct ring_test tests[] = {
		{ "frames arrive in order, lap after lap", 0, 0,
		  frames_arrive_in_order_lap_after_lap },
		{ "a full ring is received in bursts", 0, 0,
		  a_full_ring_is_received_in_bursts },
		{ "buffers come back in any order", 0, F_IN_ORDER,
		  buffers_come_back_in_any_order },
		{ "a buffer that is kept is not given twice", 0, F_IN_ORDER,
		  a_buffer_that_is_kept_is_not_given_twice },
		{ "one entry stands for a batch", F_IN_ORDER, 0,
		  one_entry_stands_for_a_batch },
		{ "a batch larger than the burst waits", F_IN_ORDER, 0,
		  a_batch_larger_than_the_burst_waits },
		{ "long frames arrive whole", 0, 0, long_frames_arrive_whole },
		{ "a frame that has not all come waits", 0, 0,
		  a_frame_that_has_not_all_come_waits },
		{ "a frame that does not fit waits", 0, 0,
		  a_frame_that_does_not_fit_waits },
		{ "a frame that is too long is a named drop", 0, 0,
		  a_frame_that_is_too_long_is_a_named_drop },
		{ "headers become flags and metadata", 0, 0,
		  headers_become_flags_and_metadata },
		{ "without headers metadata says nothing", 0, 0,
		  without_headers_metadata_says_nothing },
		{ "without pages frames wait in the ring", 0, 0,
		  without_pages_frames_wait_in_the_ring },
		{ "tailroom is not for the device", 0, 0,
		  tailroom_is_not_for_the_device },
		{ "the bell is rung once, and only if wanted", 0, 0,
		  the_bell_is_rung_once_and_only_if_wanted },
		{ "the bell rings where the device asked", F_EVENT_IDX, 0,
		  the_bell_rings_where_the_device_asked },
		{ "bells say what was agreed on", 0, 0,
		  bells_say_what_was_agreed_on },
		{ "arming asks for an interrupt until the next burst", 0, 0,
		  arming_asks_for_an_interrupt_until_the_next_burst },
	};

	return run_on_rings(tests, sizeof(tests) / sizeof(tests[0]));
}
