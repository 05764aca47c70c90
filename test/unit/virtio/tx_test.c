/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/virtio/virtio_tx.c above a fake device.
 */
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tx_side.h"

FAKE_TEST(plain_frames_leave_with_their_header_in_front)
{
	struct mr_frame frames[40];
	uint32_t n_sent = 0;

	for (uint32_t round = 0; round < 60; round++) {
		const uint32_t n = 1 + round % 40;

		for (uint32_t i = 0; i < n; i++)
			frames[i] = fake_frame(12 + i, 60 + i,
					       (uint8_t)(round + i));
		assert_int_equal(transmit(frames, n), n);
		for (uint32_t i = 0; i < n; i++) {
			struct fake_chain chain;
			const struct virtio_header header = take_frame(
				60 + i, (uint8_t)(round + i), &chain);
			const uint8_t *page =
				(const uint8_t *)fake.harness.base +
				frames[i].addr / 4096 * 4096;

			assert_is_zero(&header);
			assert_int_equal(chain.n, 1);
			/* No byte of the page but those. */
			for (uint32_t k = 0; k < i; k++)
				assert_int_equal(page[k], 0xee);
			use(&chain);
		}
		n_sent += n;
		transmit(NULL, 0);
		assert_int_equal(fake_tx_stats().completed, n_sent);
	}
	assert_int_equal(fake_tx_stats().pending, 0);
}

FAKE_TEST(used_ones_are_looked_for_when_some_are_out)
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

FAKE_TEST(a_full_ring_refuses_the_rest)
{
	struct mr_frame frames[FAKE_RING + 10];
	struct fake_chain chain;

	for (uint32_t lap = 0; lap < 3; lap++) {
		for (uint32_t i = 0; i < FAKE_RING + 10; i++)
			frames[i] = fake_frame(128, 60, (uint8_t)i);
		assert_int_equal(transmit(frames, FAKE_RING + 10), FAKE_RING);
		assert_int_equal(transmit(frames + FAKE_RING, 10), 0);
		for (uint32_t i = 0; i < 5; i++) {
			take_frame(60, (uint8_t)i, &chain);
			use(&chain);
		}
		assert_int_equal(transmit(frames + FAKE_RING, 10), 5);
		for (uint32_t i = 5; i < FAKE_RING + 5; i++) {
			take_frame(60, (uint8_t)i, &chain);
			use(&chain);
		}
		mr_frame_free_bulk(fake.cache, frames + FAKE_RING + 5, 5);
		transmit(NULL, 0);
		assert_int_equal(fake_tx_stats().pending, 0);
	}
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_RING_FULL], 9);
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

FAKE_TEST(without_headroom_the_header_lies_apart)
{
	send_at_offsets(0, 13, 12);
}

FAKE_TEST(a_hash_header_is_longer, .features = virtio_bit(VIRTIO_F_HASH_REPORT))
{
	send_at_offsets(18, 21, 20);
}

FAKE_TEST(pages_cut_in_chunks_leave_too, .page_bytes = 8192)
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
FAKE_TEST(a_header_apart_waits_for_room)
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
FAKE_TEST_IF(0, F_IN_ORDER, used_in_any_order)
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

/* With it, one entry stands for all before it. */
FAKE_TEST_IF(F_IN_ORDER, 0, one_used_entry_stands_for_a_batch)
{
	struct mr_frame frames[MR_MAX_SEGS];

	for (uint32_t round = 0; round < 80; round++) {
		const uint32_t n_frames = 1 + round % 10;
		struct fake_chain chain = { 0 };
		uint32_t n_descs = 0;

		for (uint32_t i = 0; i < n_frames; i++) {
			/* Rounds of plain frames, and rounds with chains. */
			const uint32_t n = round % 3 == 0 ? 1 + i % 4 : 1;

			make_long(frames, n, 0);
			assert_int_equal(transmit(frames, n), n);
			chain = fake_take(TX);
			n_descs += chain.n;
		}
		fake_use_batch(TX, chain.id, 0, n_frames, n_descs);
		transmit(NULL, 0);
		assert_int_equal(fake_tx_stats().pending, 0);
		assert_int_equal(fake.txq->head, fake.txq->tail);
	}
}

FAKE_TEST(the_bell_is_rung_once_a_burst)
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
FAKE_TEST_IF(F_EVENT_IDX | F_PACKED, 0, the_bell_rings_for_an_event_left_behind)
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

FAKE_TEST(without_a_link_nothing_is_taken)
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
FAKE_TEST(arming_takes_what_the_fd_said)
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
