/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/virtio/virtio_receive.h above a fake device. */
#include <string.h>

#include "rx_side.h"

/* The whole ring at once, taken in bursts. */
FAKE_TEST(a_full_ring_is_received_in_bursts)
{
	struct mr_frame frames[FAKE_RING];

	for (uint32_t lap = 0; lap < 3; lap++) {
		for (uint32_t i = 0; i < FAKE_RING; i++)
			deliver(100, (uint8_t)i);
		assert_int_equal(fake_take(RX).n, 0);
		for (uint32_t i = 0; i < FAKE_RING; i += 16) {
			assert_int_equal(receive(frames, 16), 16);
			for (uint32_t k = 0; k < 16; k++)
				assert_bytes(&frames[k], (uint8_t)(i + k));
			/* Pool's headroom and no more in front. */
			assert_int_equal(frames[0].addr % 4096, 128);
			mr_frame_free_bulk(fake.cache, frames, 16);
		}
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
		assert_int_equal(receive(frames, 8), 8);
		for (uint32_t i = 0; i < 8; i++)
			assert_bytes(&frames[i], (uint8_t)(7 - i));
		mr_frame_free_bulk(fake.cache, frames, 8);
	}
}

/* One that the device keeps is not made available again with the others. */
FAKE_TEST_IF(0, F_IN_ORDER, a_buffer_that_is_kept_is_not_given_twice)
{
	struct mr_frame frames[8];
	struct fake_chain kept;

	kept = fake_take(RX);
	for (uint32_t i = 0; i < 8; i++)
		deliver(60, (uint8_t)i);
	assert_int_equal(receive(frames, 8), 8);
	mr_frame_free_bulk(fake.cache, frames, 8);
	for (uint32_t i = 1; i < FAKE_RING; i++) {
		const struct fake_chain chain = fake_take(RX);

		assert_int_equal(chain.n, 1);
		assert_int_not_equal(chain.id, kept.id);
	}
}

/* With it, one entry stands for all before it, which are full. */
FAKE_TEST_IF(F_IN_ORDER, 0, one_entry_stands_for_a_batch,
	     .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[32];

	for (uint32_t round = 0; round < 40; round++) {
		const uint32_t n = 1 + round % 20;
		uint32_t id = 0, n_rx;

		for (uint32_t i = 0; i < n; i++)
			id = fake_receive(i + 1 < n ? MAX_DATA : 99, (uint8_t)i,
					  NULL)
				     .id;
		fake_use_batch(RX, id, 99 + 12, n, n);
		n_rx = receive(frames, 32);
		assert_int_equal(n_rx, n);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(frames[i].len,
					 i + 1 < n ? MAX_DATA : 99);
			assert_bytes(&frames[i], (uint8_t)i);
		}
		mr_frame_free_bulk(fake.cache, frames, n);
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
	assert_int_equal(receive(frames, 18), 18);
	mr_frame_free_bulk(fake.cache, frames, 18);
	assert_int_equal(receive(frames, 18), 12);
	assert_bytes(&frames[11], 29);
	mr_frame_free_bulk(fake.cache, frames, 12);
}

/* ---- frames of several buffers ---- */

FAKE_TEST(a_frame_that_has_not_all_come_waits,
	  .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[32];
	uint32_t ids[5];

	deliver(60, 1);
	deliver_merged(5, 10, 5, ids);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(receive(frames, 32), i == 0 ? 1 : 0);
		mr_frame_free_bulk(fake.cache, frames, i == 0);
		fake_use(RX, ids[i],
			 i == 0 ? MAX_DATA + 12 :
			 i < 4  ? MAX_DATA :
				  10,
			 1);
	}
	assert_int_equal(receive(frames, 32), 5);
	mr_frame_free_bulk(fake.cache, frames, 5);
}

FAKE_TEST(a_frame_that_does_not_fit_waits,
	  .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[32];
	uint32_t ids[10];

	for (uint32_t i = 0; i < 3; i++) {
		deliver_merged(10, 10, 10, ids);
		use_merged(ids, 10, 10);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(receive(frames, 19), 10);
		mr_frame_free_bulk(fake.cache, frames, 10);
	}
	assert_int_equal(receive(frames, 19), 0);
}

/* Consumed as it comes, and nothing behind it is lost. */
FAKE_TEST(a_frame_that_is_too_long_is_a_named_drop,
	  .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	struct mr_frame frames[32];
	uint32_t ids[40];

	for (uint32_t round = 0; round < 4; round++) {
		uint32_t n_rx = 0;

		deliver_merged(40, 10, 40, ids);
		use_merged(ids, 25, MAX_DATA);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(receive(frames, 18), 0);
		for (uint32_t i = 25; i < 40; i++)
			fake_use(RX, ids[i], 100, 1);
		deliver(60, 5);
		for (uint32_t i = 0; i < 4 && n_rx == 0; i++)
			n_rx = receive(frames, 18);
		assert_int_equal(n_rx, 1);
		assert_bytes(&frames[0], 5);
		mr_frame_free_bulk(fake.cache, frames, 1);
	}
	assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_TOO_LONG], 4);
	assert_int_equal(fake_rx_stats().delivered, 4);
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

static void check_headers(uint64_t more)
{
	struct mr_frame frames[32];
	struct mr_meta meta[32];

	fake_open((struct fake_config){
		.features = more | virtio_bit(VIRTIO_F_HASH_REPORT) });
	for (uint32_t i = 0; i < N_HEADERS; i++) {
		const uint32_t id =
			fake_receive(100, (uint8_t)i, &header_cases[i].header)
				.id;

		fake_use(RX, id, 120, 1);
	}
	memset(meta, 0x5a, sizeof(meta));
	assert_int_equal(
		mr_rx_burst_meta(&fake.rxq->base, fake.cache, frames, meta, 32),
		N_HEADERS);
	for (uint32_t i = 0; i < N_HEADERS; i++) {
		assert_int_equal(frames[i].flags, header_cases[i].flags);
		assert_int_equal(frames[i].len, 100);
		assert_bytes(&frames[i], (uint8_t)i);
		assert_int_equal(meta[i].valid, header_cases[i].valid);
	}
	assert_int_equal(meta[2].csum_start_bytes, 34);
	assert_int_equal(meta[2].csum_offset_bytes, 16);
	assert_int_equal(meta[3].gso_type, MR_GSO_TCPV6);
	assert_int_equal(meta[3].gso_bytes, 1400);
	assert_int_equal(meta[5].rss_hash, 0x12345678);
	assert_int_equal(meta[5].hash_type,
			 MR_HASH_IPV4 | MR_HASH_L4 | MR_HASH_TCP);
	mr_frame_free_bulk(fake.cache, frames, N_HEADERS);
	fake_close();
}

RING_TEST(headers_become_flags_and_metadata)
{
	check_headers(virtio_bit(VIRTIO_F_GUEST_CSUM));
	check_headers(virtio_bit(VIRTIO_F_MRG_RXBUF));
}

FAKE_TEST(without_headers_metadata_says_nothing)
{
	struct mr_frame frames[32];
	struct mr_meta meta[32];

	memset(meta, 0x5a, sizeof(meta));
	deliver(60, 0);
	deliver(60, 0);
	assert_int_equal(
		mr_rx_burst_meta(&fake.rxq->base, fake.cache, frames, meta, 32),
		2);
	assert_int_equal(meta[0].valid | meta[1].valid, 0);
	mr_frame_free_bulk(fake.cache, frames, 2);
}

/* ---- pages, bells, sleep ---- */

FAKE_TEST(without_pages_frames_wait_in_the_ring, .n_pages = 512)
{
	struct mr_frame frames[32], held[FAKE_PAGES];
	uint32_t n_held = 0, n_rx, n = 0;

	do {
		while (fake_rx_stats().delivered + FAKE_RING > n)
			deliver(60, (uint8_t)n++);
		n_rx = receive(frames, 32);
		memcpy(held + n_held, frames, n_rx * sizeof(frames[0]));
		n_held += n_rx;
	} while (n_rx > 0);
	assert_true(n_held >= 512 - FAKE_RING);
	assert_true(fake_rx_stats().events[MR_RX_EVENT_POOL_EMPTY] > 0);
	mr_frame_free_bulk(fake.cache, held, n_held);
	/* Nothing was lost: the whole ring comes now, in order. */
	for (uint32_t i = n_held; i < n; i += n_rx) {
		n_rx = receive(frames, 32);
		assert_true(n_rx > 0);
		for (uint32_t k = 0; k < n_rx; k++)
			assert_bytes(&frames[k], (uint8_t)(i + k));
		mr_frame_free_bulk(fake.cache, frames, n_rx);
	}
}

FAKE_TEST(tailroom_is_not_for_the_device, .tailroom_bytes = 100)
{
	struct fake_chain chain;

	chain = fake_take(RX);
	assert_int_equal(chain.parts[0].len, 4096 - 128 - 100 + 12);
}

FAKE_TEST(the_bell_is_rung_once_and_only_if_wanted)
{
	struct mr_frame frames[32];

	assert_int_equal(fake_n_bells(RX), 1); /* a ring of buffers */
	if (ring_kind & F_EVENT_IDX)
		fake_want_event(RX, FAKE_RING);
	for (uint32_t i = 0; i < 20; i++)
		deliver(60, 0);
	mr_frame_free_bulk(fake.cache, frames, receive(frames, 32));
	assert_int_equal(fake_n_bells(RX), 2);
	tell_nothing(RX, 1000);
	for (uint32_t i = 0; i < 20; i++)
		deliver(60, 0);
	mr_frame_free_bulk(fake.cache, frames, receive(frames, 32));
	assert_int_equal(fake_n_bells(RX), 2);
	/* An empty burst has nothing to tell. */
	fake_suppress(RX, false);
	assert_int_equal(receive(frames, 32), 0);
	assert_int_equal(fake_n_bells(RX), 2);
	assert_int_equal(fake_rx_stats().events[MR_RX_EVENT_WAKEUP], 2);
}

/* At each distance to the event, and across the end of the numbers. */
FAKE_TEST_IF(F_EVENT_IDX, 0, the_bell_rings_where_the_device_asked)
{
	struct mr_frame frames[32];

	for (uint32_t i = 0, at = FAKE_RING; i < 6000; i++, at += 10) {
		const uint64_t n_before = fake_n_bells(RX);
		const uint32_t ahead = i % 20;

		fake_want_event(RX, (uint16_t)(at + ahead));
		for (uint32_t k = 0; k < 10; k++)
			deliver(60, 0);
		assert_int_equal(receive(frames, 32), 10);
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
		assert_int_equal(receive(frames, 32), 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
	}
}
