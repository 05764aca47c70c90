/* SPDX-License-Identifier: BSD-3-Clause */
/* drivers/virtio/virtio_receive.h and a device that writes what it likes. */
#include <poll.h>

#include "rx_side.h"

struct length {
	uint32_t n_bytes; /* header included */
	bool is_good;
};

FAKE_TEST(lengths_are_checked)
{
	static const struct length lengths[] = {
		{ 0, false },
		{ 11, false },
		{ 12, false },
		{ 12 + 13, false },
		{ 12 + 14, true },
		{ 12 + MAX_DATA, true },
		{ 12 + MAX_DATA + 1, false },
		{ UINT32_MAX, false },
	};
	enum { N = sizeof(lengths) / sizeof(lengths[0]) };
	struct mr_frame frames[2 * N];
	uint32_t n_good = 0;

	for (uint32_t lap = 0; lap < 20; lap++) {
		n_good = 0;
		/* Between each two a good one, which must arrive. */
		for (uint32_t i = 0; i < N; i++) {
			const uint32_t id = fake_receive(60, 0, NULL).id;

			fake_use(RX, id, lengths[i].n_bytes, 1);
			deliver(61, 7);
			n_good += 1 + lengths[i].is_good;
		}
		assert_int_equal(receive(frames, 2 * N), n_good);
		assert_int_equal(frames[0].len, 61);
		assert_bytes(&frames[0], 7);
		mr_frame_free_bulk(fake.cache, frames, n_good);
	}
	assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_INVALID],
			 20 * (2 * N - n_good));
}

RING_TEST(an_id_that_is_none_breaks_the_queue)
{
	static const uint32_t ids[] = { FAKE_RING, FAKE_RING + 1, 0x7fff,
					0xffff };
	struct mr_frame frames[8];

	for (uint32_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		fake_open((struct fake_config){ 0 });
		deliver(60, 1);
		fake_receive(60, 2, NULL);
		fake_use(RX, ids[i], 72, 1);
		deliver(60, 3);
		assert_int_equal(receive(frames, 8), 1);
		assert_bytes(&frames[0], 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(receive(frames, 8), 0);
		assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_INVALID], 1);
		assert_int_equal(fake.rxq->state, VIRTIO_BROKEN);
		fake_close();
	}
}

FAKE_TEST_IF(0, F_PACKED, an_index_that_jumps_breaks_the_queue)
{
	struct mr_frame frames[8];

	fake_queue(RX)->used_pos += FAKE_RING;
	fake_use(RX, 0, 72, 1);
	assert_int_equal(receive(frames, 8), 0);
	assert_int_equal(fake.rxq->state, VIRTIO_BROKEN);
}

/* An id ahead says that buffers are full: no frame is that long. */
RING_TEST_IF(F_IN_ORDER, 0, a_batch_that_cannot_be_breaks_the_queue)
{
	struct mr_frame frames[8];

	fake_open((struct fake_config){ 0 });
	for (uint32_t i = 0; i < 4; i++)
		fake_receive(60, (uint8_t)i, NULL);
	fake_use_batch(RX, 3, 72, 4, 4);
	assert_int_equal(receive(frames, 8), 0);
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
	assert_int_equal(receive(frames, 8), 4);
	mr_frame_free_bulk(fake.cache, frames, 4);
	fake_close();
}

FAKE_TEST(counts_that_make_no_sense_are_dropped,
	  .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	static const uint32_t counts[] = { 0, FAKE_RING + 1, 0xffff };
	struct mr_frame frames[32];
	uint32_t id;

	for (uint32_t i = 0; i < 3; i++) {
		deliver_merged(1, 60, counts[i], &id);
		fake_use(RX, id, 72, 1);
	}
	deliver(60, 5);
	assert_int_equal(receive(frames, 32), 1);
	assert_bytes(&frames[0], 5);
	mr_frame_free_bulk(fake.cache, frames, 1);
	assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_INVALID], 3);
}

/* Found in the middle of a frame: nothing of it is delivered, or lost. */
RING_TEST(an_id_that_is_none_in_a_frame_breaks_the_queue)
{
	struct mr_frame frames[32];
	uint32_t ids[4];

	for (uint32_t bad = 1; bad < 4; bad++) {
		fake_open((struct fake_config){
			.features = virtio_bit(VIRTIO_F_MRG_RXBUF) });
		deliver(60, 1);
		deliver_merged(4, 60, 4, ids);
		ids[bad] = FAKE_RING;
		use_merged(ids, 4, 60);
		assert_int_equal(receive(frames, 32), 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(fake.rxq->state, VIRTIO_BROKEN);
		assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_INVALID], 1);
		fake_close();
	}
}

/* Longer than what was posted, or empty, anywhere in a frame. */
FAKE_TEST(lengths_in_a_frame_are_checked,
	  .features = virtio_bit(VIRTIO_F_MRG_RXBUF))
{
	static const uint32_t lengths[] = { 0, MAX_DATA + 12 + 1, UINT32_MAX };
	struct mr_frame frames[32];
	uint32_t ids[3];

	for (uint32_t i = 0; i < 3; i++) {
		deliver_merged(3, 60, 3, ids);
		fake_use(RX, ids[0], MAX_DATA + 12, 1);
		fake_use(RX, ids[1], lengths[i], 1);
		fake_use(RX, ids[2], 60, 1);
		deliver(60, 9);
		assert_int_equal(receive(frames, 32), 1);
		assert_bytes(&frames[0], 9);
		mr_frame_free_bulk(fake.cache, frames, 1);
	}
	assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_INVALID], 3);
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
	assert_int_equal(receive(frames, 32), 3);
	assert_true(frames[0].addr / 4096 != frames[1].addr / 4096);
	assert_true(frames[1].addr / 4096 != frames[2].addr / 4096);
	mr_frame_free_bulk(fake.cache, frames, 3);
}

FAKE_TEST(a_broken_queue_is_reset_and_goes_on,
	  .features = virtio_bit(VIRTIO_F_RING_RESET))
{
	struct mr_frame frames[32];

	for (uint32_t i = 0; i < 5; i++) {
		deliver(60, 1);
		fake_receive(60, 1, NULL);
		fake_use(RX, 0x7fff, 72, 1);
		mr_frame_free_bulk(fake.cache, frames, receive(frames, 32));
		assert_int_equal(receive(frames, 32), 0);
		assert_int_equal(mr_port_poll(fake.harness.port), 1);
		for (uint32_t k = 0; k < FAKE_RING; k++)
			deliver(60, (uint8_t)k);
		assert_int_equal(fake_take(RX).n, 0);
		for (uint32_t k = 0; k < 2; k++) {
			assert_int_equal(receive(frames, 32), 32);
			assert_bytes(&frames[0], (uint8_t)(32 * k));
			mr_frame_free_bulk(fake.cache, frames, 32);
		}
	}
	/* And if that does not work either, it is over. */
	fake_receive(60, 1, NULL);
	fake_use(RX, 0x7fff, 72, 1);
	assert_int_equal(receive(frames, 32), 0);
	fake_set_gone();
	mr_port_poll(fake.harness.port);
	assert_int_equal(fake.rxq->state, VIRTIO_GONE);
}

/* The poll thread found the device gone while a burst looked at its ring. */
RING_TEST(a_queue_that_is_gone_stays_gone)
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
	assert_int_equal(receive(frames, 4), 0);
	assert_true(fake_wants_interrupt(RX));
	fake.rxq->state = VIRTIO_RUNS;
	assert_int_equal(receive(frames, 4), 0);
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
		assert_int_equal(receive(frames, 8), 1);
		assert_int_equal(fake_n_bells(RX), n_bells + 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(receive(frames, 8), 0);
		fake.polls_at_bells = false;
		assert_int_equal(mr_port_poll(fake.harness.port), 1);
		fake.polls_at_bells = true;
	}
}

static uint64_t still(void *opaque)
{
	(void)opaque;
	return 1;
}

/* Who sleeps on the port's fd alone, and whose clock stands still. */
FAKE_TEST_IF(F_PACKED | F_IN_ORDER | F_EVENT_IDX, 0,
	     a_reset_that_hangs_wakes_until_it_is_given_up,
	     .features = virtio_bit(VIRTIO_F_RING_RESET), .clock = still)
{
	struct mr_frame frames[4];
	struct pollfd fd = { .events = POLLIN };
	int n_polls = 0;
	const struct vnet_faults hangs = { .queue_reset_hangs = true };

	fd.fd = mr_port_fd(fake.harness.port);
	assert_int_equal(poll(&fd, 1, 0), 0);
	fake_receive(60, 1, NULL);
	fake_use(RX, 0x7fff, 72, 1);
	assert_int_equal(receive(frames, 4), 0);
	vnet_set_faults(fake.v, &hangs);
	assert_int_equal(mr_port_poll(fake.harness.port), 0);
	while (!fake.port->is_gone) {
		assert_int_equal(poll(&fd, 1, 1000), 1);
		mr_port_poll(fake.harness.port);
		n_polls++;
	}
	assert_true(n_polls >= 10);
	assert_int_equal(poll(&fd, 1, 20), 0);
}

/* A batch is seen from its end: QEMU and vhost write its first one last. */
FAKE_TEST_IF(F_PACKED, 0, a_used_buffer_behind_one_that_is_not_waits)
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
		assert_int_equal(receive(frames, 4), 0);
		fake_use(RX, ids[0], 72, 1);
		assert_int_equal(receive(frames, 4), 1);
		assert_bytes(&frames[0], 0);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(receive(frames, 3), 0);
		fake_use(RX, ids[1], 72, 1);
		q->used_pos += 2;
		assert_int_equal(receive(frames, 8), 3);
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
		assert_int_equal(receive(frames, 32), 0);
		close_gap(ids);
		assert_int_equal(receive(frames, 32), 4);
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
	assert_int_equal(receive(frames, 32), 0);
	assert_int_equal(receive(frames, 32), 0);
	assert_int_equal(fake.rxq->n_skip, MR_MAX_SEGS);
	close_gap(ids);
	assert_int_equal(receive(frames, 32), 0);
	assert_int_equal(fake.rxq->n_skip, MR_MAX_SEGS - 3);
}
