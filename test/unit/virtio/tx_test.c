/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/virtio/virtio_tx.c above a fake device.
 */
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tx_side.h"

RING_TEST(plain_frames_leave_with_their_header_in_front)
{
	struct mr_frame frames[40];
	uint32_t n_sent = 0;
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t round = 0; round < 60; round++) {
		const uint32_t n = 1 + round % 40;

		for (uint32_t i = 0; i < n; i++)
			frames[i] = fake_frame(&fake, 12 + i, 60 + i,
					       (uint8_t)(round + i));
		assert_int_equal(transmit(&fake, frames, n), n);
		for (uint32_t i = 0; i < n; i++) {
			struct fake_chain chain;
			const struct virtio_header header = take_frame(
				&fake, 60 + i, (uint8_t)(round + i), &chain);
			const uint8_t *page = (const uint8_t *)fake.bed.base +
					      frames[i].addr / 4096 * 4096;

			assert_is_zero(&header);
			assert_int_equal(chain.n, 1);
			/* No byte of the page but those. */
			for (uint32_t k = 0; k < i; k++)
				assert_int_equal(page[k], 0xee);
			use(&fake, &chain);
		}
		n_sent += n;
		transmit(&fake, NULL, 0);
		assert_int_equal(fake_tx_stats(&fake).completed, n_sent);
	}
	assert_int_equal(fake_tx_stats(&fake).pending, 0);
	fake_close(&fake);
}

RING_TEST(used_ones_are_looked_for_when_some_are_out)
{
	const uint32_t n_lazy = FAKE_RING / 2;
	struct mr_frame frame;
	struct fake_chain chain;
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t i = 0; i < n_lazy; i++) {
		frame = fake_frame(&fake, 128, 60, 0);
		assert_int_equal(transmit(&fake, &frame, 1), 1);
		chain = fake_take(&fake, TX);
		use(&fake, &chain);
		assert_int_equal(fake_tx_stats(&fake).completed, 0);
	}
	frame = fake_frame(&fake, 128, 60, 0);
	assert_int_equal(transmit(&fake, &frame, 1), 1);
	assert_int_equal(fake_tx_stats(&fake).completed, n_lazy);
	assert_int_equal(fake_tx_stats(&fake).pending, 1);
	fake_close(&fake);
}

RING_TEST(a_full_ring_refuses_the_rest)
{
	struct mr_frame frames[FAKE_RING + 10];
	struct fake_chain chain;
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t lap = 0; lap < 3; lap++) {
		for (uint32_t i = 0; i < FAKE_RING + 10; i++)
			frames[i] = fake_frame(&fake, 128, 60, (uint8_t)i);
		assert_int_equal(transmit(&fake, frames, FAKE_RING + 10),
				 FAKE_RING);
		assert_int_equal(transmit(&fake, frames + FAKE_RING, 10), 0);
		for (uint32_t i = 0; i < 5; i++) {
			take_frame(&fake, 60, (uint8_t)i, &chain);
			use(&fake, &chain);
		}
		assert_int_equal(transmit(&fake, frames + FAKE_RING, 10), 5);
		for (uint32_t i = 5; i < FAKE_RING + 5; i++) {
			take_frame(&fake, 60, (uint8_t)i, &chain);
			use(&fake, &chain);
		}
		mr_frame_free_bulk(fake.cache, frames + FAKE_RING + 5, 5);
		transmit(&fake, NULL, 0);
		assert_int_equal(fake_tx_stats(&fake).pending, 0);
	}
	assert_int_equal(fake_tx_stats(&fake).events[MR_TX_EVENT_RING_FULL], 9);
	fake_close(&fake);
}

RING_TEST(a_shared_frame_is_not_written_to)
{
	struct mr_frame frame, twin;
	struct fake_chain chain;
	struct virtio_header header;
	struct fake fake;
	const uint8_t *page;

	open_with(&fake, 0);
	for (uint32_t i = 0; i < 100; i++) {
		frame = twin = fake_frame(&fake, 128, 60, 3);
		page = (const uint8_t *)fake.bed.base + frame.addr - 128;
		assert_int_equal(mr_frame_ref(fake.cache, &twin, 1), 0);
		assert_int_equal(transmit(&fake, &frame, 1), 1);
		header = take_frame(&fake, 60, 3, &chain);
		assert_int_equal(chain.n, 2);
		assert_is_zero(&header);
		for (uint32_t k = 0; k < 128; k++)
			assert_int_equal(page[k], 0xee);
		use(&fake, &chain);
		transmit(&fake, NULL, 0);
		assert_true(mr_frame_is_sole(fake.cache, &twin));
		mr_frame_free_bulk(fake.cache, &twin, 1);
	}
	fake_close(&fake);
}

/* Bytes in front of its buffer are somebody else's. */
RING_TEST(without_headroom_the_header_lies_apart)
{
	struct fake_chain chain;
	struct virtio_header header;
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t offset = 0; offset < 14; offset++) {
		const struct mr_frame frame =
			fake_frame(&fake, offset, 60, (uint8_t)offset);

		assert_int_equal(transmit(&fake, &frame, 1), 1);
		header = take_frame(&fake, 60, (uint8_t)offset, &chain);
		assert_is_zero(&header);
		assert_int_equal(chain.n, offset < 12 ? 2 : 1);
		use(&fake, &chain);
	}
	fake_close(&fake);
}

RING_TEST(a_hash_header_is_longer)
{
	struct fake_chain chain;
	struct virtio_header header;
	struct fake fake;

	open_with(&fake, virtio_bit(VIRTIO_F_HASH_REPORT));
	for (uint32_t offset = 18; offset < 22; offset++) {
		const struct mr_frame frame =
			fake_frame(&fake, offset, 60, (uint8_t)offset);

		assert_int_equal(transmit(&fake, &frame, 1), 1);
		header = take_frame(&fake, 60, (uint8_t)offset, &chain);
		assert_is_zero(&header);
		assert_int_equal(chain.n, offset < 20 ? 2 : 1);
		use(&fake, &chain);
	}
	fake_close(&fake);
}

RING_TEST(chains_wait_for_room)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct fake_chain chain;
	uint32_t n_sent = 0;
	struct fake fake;

	open_with(&fake, 0);
	make_long(&fake, frames, 10, 0);
	while (transmit(&fake, frames, 10) > 0) {
		n_sent++;
		make_long(&fake, frames, 10, (uint8_t)n_sent);
	}
	assert_int_equal(n_sent, 6);
	mr_frame_free_bulk(fake.cache, frames, 10);
	for (uint32_t i = 0; i < n_sent; i++) {
		take_frame(&fake, 600, (uint8_t)i, &chain);
		use(&fake, &chain);
	}
	transmit(&fake, NULL, 0);
	assert_int_equal(fake_tx_stats(&fake).pending, 0);
	fake_close(&fake);
}

/* One place is left, and a shared frame takes two: its header, itself. */
RING_TEST(a_header_apart_waits_for_room)
{
	struct mr_frame frames[FAKE_RING], twin;
	struct fake_chain chain;
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t i = 0; i < FAKE_RING; i++)
		frames[i] = fake_frame(&fake, 128, 60, (uint8_t)i);
	twin = frames[FAKE_RING - 1];
	assert_int_equal(mr_frame_ref(fake.cache, &twin, 1), 0);
	assert_int_equal(transmit(&fake, frames, FAKE_RING), FAKE_RING - 1);
	take_frame(&fake, 60, 0, &chain);
	use(&fake, &chain);
	assert_int_equal(transmit(&fake, &twin, 1), 1);
	for (uint32_t i = 1; i < FAKE_RING; i++)
		take_frame(&fake, 60, (uint8_t)i, &chain);
	assert_int_equal(chain.n, 2);
	mr_frame_free_bulk(fake.cache, &frames[FAKE_RING - 1], 1);
	fake_close(&fake);
}

/* Without IN_ORDER: used in any order, chains among them. */
RING_TEST_IF(0, F_IN_ORDER, used_in_any_order)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct fake_chain chains[6];
	uint32_t n_done = 0;
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < 6; i++) {
			const uint32_t n = round % 2 == 0 ? 1 : 1 + i;

			make_long(&fake, frames, n, (uint8_t)i);
			assert_int_equal(transmit(&fake, frames, n), n);
		}
		for (uint32_t i = 0; i < 6; i++)
			take_frame(&fake, 60 * (round % 2 == 0 ? 1 : 1 + i),
				   (uint8_t)i, &chains[i]);
		/* 3 5 1 0 2 4: what is behind an older one waits for it. */
		for (uint32_t i = 0; i < 6; i++) {
			static const uint8_t order[] = { 3, 5, 1, 0, 2, 4 };
			static const uint8_t n_back[] = { 0, 0, 0, 2, 4, 6 };

			use(&fake, &chains[order[i]]);
			transmit(&fake, NULL, 0);
			assert_int_equal(fake_tx_stats(&fake).completed,
					 n_done + n_back[i]);
		}
		n_done += 6;
	}
	assert_int_equal(fake.txq->n_odd, 0);
	fake_close(&fake);
}

/* With it, one entry stands for all before it. */
RING_TEST_IF(F_IN_ORDER, 0, one_used_entry_stands_for_a_batch)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t round = 0; round < 80; round++) {
		const uint32_t n_frames = 1 + round % 10;
		struct fake_chain chain = { 0 };
		uint32_t n_descs = 0;

		for (uint32_t i = 0; i < n_frames; i++) {
			/* Rounds of plain frames, and rounds with chains. */
			const uint32_t n = round % 3 == 0 ? 1 + i % 4 : 1;

			make_long(&fake, frames, n, 0);
			assert_int_equal(transmit(&fake, frames, n), n);
			chain = fake_take(&fake, TX);
			n_descs += chain.n;
		}
		fake_use_batch(&fake, TX, chain.id, 0, n_frames, n_descs);
		transmit(&fake, NULL, 0);
		assert_int_equal(fake_tx_stats(&fake).pending, 0);
		assert_int_equal(fake.txq->head, fake.txq->tail);
	}
	fake_close(&fake);
}

RING_TEST(pages_cut_in_chunks_leave_too)
{
	struct mr_frame frames[8];
	struct fake_chain chain;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .features = ring_features(),
					       .page_bytes = 8192 });
	for (uint32_t i = 0; i < 8; i++)
		frames[i] = fake_frame(&fake, 8 + i, 60, (uint8_t)i);
	assert_int_equal(transmit(&fake, frames, 8), 8);
	for (uint32_t i = 0; i < 8; i++) {
		take_frame(&fake, 60, (uint8_t)i, &chain);
		assert_int_equal(chain.n, 8 + i < 12 ? 2 : 1);
		use(&fake, &chain);
	}
	fake_close(&fake);
}

RING_TEST(the_bell_is_rung_once_a_burst)
{
	struct mr_frame frames[8];
	struct fake fake;

	open_with(&fake, 0);
	for (uint32_t i = 0; i < 4; i++)
		make_long(&fake, frames + 2 * i, 2, 0);
	assert_int_equal(transmit(&fake, frames, 8), 8);
	assert_int_equal(fake_n_bells(&fake, TX), 1);
	if (ring_features() & virtio_bit(VIRTIO_F_EVENT_IDX))
		fake_want_event(&fake, TX, 40);
	else
		fake_suppress(&fake, TX, true);
	for (uint32_t i = 0; i < 4; i++)
		make_long(&fake, frames + 2 * i, 2, 0);
	assert_int_equal(transmit(&fake, frames, 8), 8);
	transmit(&fake, NULL, 0);
	assert_int_equal(fake_n_bells(&fake, TX), 1);
	fake_close(&fake);
}

/*
 * The device has caught up with us, and its event is of some frames before: it
 * is told all the same, or it would sleep for good.
 */
RING_TEST_IF(F_EVENT_IDX | F_PACKED, 0, the_bell_rings_for_an_event_left_behind)
{
	struct mr_frame frames[16];
	struct fake fake;
	uint64_t n_before;

	open_with(&fake, 0);
	for (uint32_t i = 0; i < 200; i++) {
		const struct mr_frame frame = fake_frame(&fake, 128, 60, 0);
		struct fake_chain chain;

		n_before = fake_n_bells(&fake, TX);
		fake_want_event(&fake, TX, (uint16_t)(i - i % 30));
		assert_int_equal(transmit(&fake, &frame, 1), 1);
		assert_int_equal(fake_n_bells(&fake, TX) - n_before, 1);
		chain = fake_take(&fake, TX);
		use(&fake, &chain);
	}
	/* By all but a ring, and then comes a burst. */
	fake_want_event(&fake, TX, 200 - (FAKE_RING - 8));
	n_before = fake_n_bells(&fake, TX);
	for (uint32_t i = 0; i < 16; i++)
		frames[i] = fake_frame(&fake, 128, 60, 0);
	assert_int_equal(transmit(&fake, frames, 16), 16);
	assert_int_equal(fake_n_bells(&fake, TX) - n_before, 1);
	fake_close(&fake);
}

RING_TEST(without_a_link_nothing_is_taken)
{
	struct fake fake;
	struct mr_frame frame;

	open_with(&fake, 0);
	frame = fake_frame(&fake, 128, 60, 0);
	if (ring_features() & virtio_bit(VIRTIO_F_EVENT_IDX))
		fake_want_event(&fake, TX, 40);
	else
		fake_suppress(&fake, TX, true);
	assert_int_equal(transmit(&fake, &frame, 1), 1);
	assert_int_equal(fake_n_bells(&fake, TX), 0);
	fake_set_link(&fake, false);
	assert_int_equal(mr_queue_arm(&fake.txq->base.queue), 0);
	assert_int_equal(transmit(&fake, &frame, 1), 0);
	assert_int_equal(fake_n_bells(&fake, TX), 0);
	fake_set_link(&fake, true);
	assert_int_equal(mr_queue_arm(&fake.txq->base.queue), 1);
	transmit(&fake, NULL, 0);
	transmit(&fake, NULL, 0);
	assert_int_equal(fake_n_bells(&fake, TX), 1);
	fake_close(&fake);
}

RING_TEST(arming_waits_for_used_frames)
{
	struct mr_frame frame;
	struct fake_chain chain;
	struct fake fake;
	struct mr_queue *queue;

	open_with(&fake, 0);
	queue = &fake.txq->base.queue;
	for (uint32_t i = 0; i < 100; i++) {
		queue->fd = -1;
		assert_int_equal(mr_queue_arm(queue), 0); /* nothing is out */
		make_long(&fake, &frame, 1, 0);
		assert_int_equal(transmit(&fake, &frame, 1), 1);
		assert_int_equal(mr_queue_arm(queue), 1); /* no interrupt */
		queue->fd = 0x7fffffff;
		assert_false(fake_wants_interrupt(&fake, TX));
		assert_int_equal(mr_queue_arm(queue), 0);
		assert_true(fake_wants_interrupt(&fake, TX));
		chain = fake_take(&fake, TX);
		use(&fake, &chain);
		assert_int_equal(mr_queue_arm(queue), 1);
		transmit(&fake, NULL, 0);
		assert_false(fake_wants_interrupt(&fake, TX));
	}
	fake_close(&fake);
}

/* poll() would return at once for ever. */
RING_TEST(arming_takes_what_the_fd_said)
{
	const uint64_t one = 1;
	struct mr_queue *queue;
	struct pollfd poll_fd;
	struct fake fake;

	open_with(&fake, 0);
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
	fake_close(&fake);
}
