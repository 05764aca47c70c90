/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a driver does wrong in the rings of the virtio-net model, and what the
 * model says of it. virtio_ring.c, virtio_split.c and virtio_packed.c.
 */
#include "virtio_hand.h"

/* One thing that a driver does wrong, in a ring; and what is said of it. */
static void post_twice(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_post(h, HAND_RX, hand_buffer(h, 0) + 100, 2048, DESC_WRITE);
	hand_kick(h, HAND_RX);
}

static void post_unmapped(struct hand *h)
{
	hand_post(h, HAND_TX, h->memory + HAND_BYTES - 10, 72, 0);
	hand_kick(h, HAND_TX);
}

static void post_nothing(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 0, 0);
	hand_kick(h, HAND_TX);
}

static void post_readable_behind_writable(struct hand *h)
{
	hand_desc(h, HAND_CTRL, hand_buffer(h, 0), 1, DESC_WRITE | DESC_NEXT);
	hand_desc(h, HAND_CTRL, hand_buffer(h, 1), 2, 0);
	if (!h->is_packed)
		hand_publish(h, HAND_CTRL, 0);
	hand_kick(h, HAND_CTRL);
}

static void post_small_rx(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 1525, DESC_WRITE);
	hand_kick(h, HAND_RX);
}

static void post_readable_rx(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, 0);
	hand_kick(h, HAND_RX);
}

static void post_writable_tx(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 72, DESC_WRITE);
	hand_kick(h, HAND_TX);
}

static void post_indirect(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 32, DESC_INDIRECT);
	hand_kick(h, HAND_TX);
}

static void post_num_buffers(struct hand *h)
{
	const uint8_t header[12] = { [10] = 1 };
	const uint8_t bytes[60] = { 2 };

	hand_send(h, 0, header, bytes, 60);
	hand_kick(h, HAND_TX);
}

static void post_too_short(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 25, 0);
	hand_kick(h, HAND_TX);
}

static void post_too_long(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 12 + 1519, 0);
	hand_kick(h, HAND_TX);
}

struct mistake {
	void (*make)(struct hand *h);
	const char *words;
};

static void blame(const struct mistake *mistakes, size_t n, uint64_t features)
{
	for (size_t i = 0; i < n; i++) {
		struct hand h = hand_run(features | VNET_BIT(VNET_CTRL_VQ));

		mistakes[i].make(&h);
		hand_blamed(&h, mistakes[i].words);
		hand_end(&h);
	}
}

TEST(mistakes_are_blamed_in_each_layout)
{
	static const struct mistake mistakes[] = {
		{ post_twice, "posted twice" },
		{ post_unmapped, "not mapped" },
		{ post_nothing, "no bytes" },
		{ post_readable_behind_writable, "readable behind writable" },
		{ post_small_rx, "too small" },
		{ post_readable_rx, "a readable descriptor" },
		{ post_writable_tx, "a buffer to be written" },
		{ post_indirect, "INDIRECT was not negotiated" },
		{ post_num_buffers, "num_buffers" },
		{ post_too_short, "too short" },
		{ post_too_long, "MTU" },
	};

	for (size_t k = 0; k < HAND_N_LAYOUTS; k++)
		blame(mistakes, sizeof(mistakes) / sizeof(mistakes[0]),
		      hand_layouts[k]);
}

static void split_idx_too_far(struct hand *h)
{
	hand_put16(h->queues[HAND_TX].driver + 2, HAND_QUEUE_SIZE + 1);
	hand_kick(h, HAND_TX);
}

static void split_no_descriptor(struct hand *h)
{
	hand_publish(h, HAND_TX, HAND_QUEUE_SIZE);
	hand_kick(h, HAND_TX);
}

static void split_loop(struct hand *h)
{
	hand_desc(h, HAND_TX, hand_buffer(h, 0), 100, DESC_NEXT);
	hand_put16(h->queues[HAND_TX].desc + 14, 0);
	hand_publish(h, HAND_TX, 0);
	hand_kick(h, HAND_TX);
}

/* The wire is full: descriptor 0 is still with the device. */
static void split_not_used_yet(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_publish(h, HAND_RX, 0);
	hand_kick(h, HAND_RX);
}

static void split_next_outside(struct hand *h)
{
	hand_desc(h, HAND_TX, hand_buffer(h, 0), 100, DESC_NEXT);
	hand_put16(h->queues[HAND_TX].desc + 14, 1000);
	hand_publish(h, HAND_TX, 0);
	hand_kick(h, HAND_TX);
}

TEST(mistakes_in_split_rings_are_blamed)
{
	static const struct mistake mistakes[] = {
		{ split_idx_too_far, "more than the ring ahead" },
		{ split_no_descriptor, "names no descriptor" },
		{ split_loop, "not used yet" },
		{ split_not_used_yet, "not used yet" },
		{ split_next_outside, "no such descriptor" },
	};

	blame(mistakes, sizeof(mistakes) / sizeof(mistakes[0]), 0);
}

static void packed_first_too_early(struct hand *h)
{
	hand_desc(h, HAND_TX, hand_buffer(h, 0), 12, DESC_NEXT);
	hand_kick(h, HAND_TX);
}

static void packed_id_not_used_yet(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_post(h, HAND_RX, hand_buffer(h, 1), 2048, DESC_WRITE);
	hand_put16(h->queues[HAND_RX].desc + 16 + 12, 0);
	hand_kick(h, HAND_RX);
}

static void packed_id_beyond(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_put16(h->queues[HAND_RX].desc + 12, HAND_QUEUE_SIZE);
	hand_kick(h, HAND_RX);
}

TEST(mistakes_in_packed_rings_are_blamed)
{
	static const struct mistake mistakes[] = {
		{ packed_first_too_early, "before the others" },
		{ packed_id_not_used_yet, "not used yet" },
		{ packed_id_beyond, "beyond the ring" },
	};

	blame(mistakes, sizeof(mistakes) / sizeof(mistakes[0]),
	      VNET_BIT(VNET_RING_PACKED));
}
