/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings of the virtio-net model in each layout, and what it does wrong in them
 * on request. virtio_ring.c, virtio_split.c and virtio_packed.c.
 */
#include "virtio_hand.h"

static const uint8_t no_header[20];

static void send_numbered(struct hand *h, uint32_t i)
{
	uint8_t bytes[60] = { 2, 0, 0, 0, 0, 1 };

	memcpy(bytes + 20, &i, sizeof(i));
	hand_send(h, i % 64, no_header, bytes, sizeof(bytes));
}

/* The next frame on the wire is that one. */
static void receive_numbered(struct hand *h, uint32_t i)
{
	uint8_t bytes[WIRE_MAX_BYTES];
	uint32_t n;

	assert_int_equal(model_wire_receive(h->wire, 1, bytes, sizeof(bytes)),
			 60);
	memcpy(&n, bytes + 20, sizeof(n));
	assert_int_equal(n, i);
}

/* Buffers that the tx queue has used since; an entry may stand for several. */
static uint32_t poll_batch(struct hand *h, bool in_order)
{
	struct hand_queue *q = &h->queues[HAND_TX];
	const uint16_t expected = (uint16_t)(q->n_used % q->size);
	uint32_t n_bytes = 0, n;
	uint16_t id = 0;

	if (!hand_poll(h, HAND_TX, &id, &n_bytes))
		return 0;
	assert_int_equal(n_bytes, 0);
	if (!in_order)
		assert_int_equal(id, expected);
	n = (uint16_t)(id + q->size - expected) % q->size + 1u;
	q->n_used += n - 1;
	return n;
}

TEST(packets_leave_in_order_and_buffers_come_back)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		const bool in_order = hand_layouts[k] >> VNET_IN_ORDER & 1;
		struct hand h = hand_run(hand_layouts[k]);
		uint32_t n_sent = 0, n_used = 0, n_got = 0, n_batches = 0;

		/* More often than a 16-bit index has values. */
		while (n_sent < 70000) {
			const uint32_t burst = 1 + n_sent % 61;
			uint32_t n;

			for (uint32_t i = 0; i < burst; i++)
				send_numbered(&h, n_sent++);
			hand_kick(&h, HAND_TX);
			for (uint32_t i = 0; i < burst; i++)
				receive_numbered(&h, n_got++);
			while ((n = poll_batch(&h, in_order)) > 0) {
				n_used += n;
				n_batches++;
			}
			assert_int_equal(n_used, n_sent);
		}
		assert_int_equal(vnet_stats(h.v).n_sent, n_sent);
		if (in_order)
			assert_true(n_batches < n_sent / 10);
		hand_end(&h);
	}
}

TEST(packets_arrive_in_order)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		struct hand h = hand_run(hand_layouts[k]);
		uint32_t n = 0, n_bytes;
		uint16_t id;

		for (uint32_t i = 0; i < 63; i++)
			hand_post(&h, HAND_RX, hand_buffer(&h, i), 2048,
				  DESC_WRITE);
		for (uint32_t i = 0; i < 3000; i++) {
			uint8_t bytes[60] = { 2, 0, 0, 0, 0, 1 };
			const uint8_t *at = hand_buffer(&h, i % 64);

			memcpy(bytes + 20, &i, sizeof(i));
			assert_true(model_wire_send(h.wire, 1, bytes, 60));
			assert_true(hand_poll(&h, HAND_RX, &id, &n_bytes));
			assert_int_equal(id, i % 64);
			assert_int_equal(n_bytes, 72);
			memcpy(&n, at + 12 + 20, sizeof(n));
			assert_int_equal(n, i);
			assert_int_equal(hand_get16(at + 10), 1);
			hand_post(&h, HAND_RX, hand_buffer(&h, (i + 63) % 64),
				  2048, DESC_WRITE);
		}
		assert_int_equal(vnet_stats(h.v).n_received, 3000);
		hand_end(&h);
	}
}

/* Without a buffer a packet waits, and a doorbell is what it waits for. */
TEST(packet_waits_for_a_buffer)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		struct hand h = hand_run(hand_layouts[k]);
		const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 1 };
		uint32_t n_bytes;
		uint16_t id;

		assert_true(model_wire_send(h.wire, 1, bytes, 60));
		hand_post(&h, HAND_RX, hand_buffer(&h, 0), 2048, DESC_WRITE);
		assert_false(hand_poll(&h, HAND_RX, &id, &n_bytes));
		hand_kick(&h, HAND_RX);
		assert_true(hand_poll(&h, HAND_RX, &id, &n_bytes));
		hand_end(&h);
	}
}

/* With EVENT_IDX, the interrupt comes when the event passes, and only then. */
TEST(interrupt_comes_at_the_event)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		struct hand h =
			hand_run((hand_layouts[k] & ~VNET_BIT(VNET_IN_ORDER)) |
				 VNET_BIT(VNET_EVENT_IDX));
		struct hand_queue *q = &h.queues[HAND_TX];

		for (uint32_t i = 0; i < 200; i++) {
			/* Asked for behind each fifth. */
			const uint64_t event = i / 5 * 5 + 4;
			const bool wrap = event / q->size % 2 == 0;

			if (h.is_packed) {
				hand_put16(q->driver,
					   (uint16_t)(event % q->size |
						      (uint64_t)wrap << 15));
				hand_put16(q->driver + 2, 2);
			} else {
				hand_put16(q->driver + 4 + 2 * q->size,
					   (uint16_t)event);
			}
			send_numbered(&h, i);
			hand_kick(&h, HAND_TX);
			assert_int_equal(hand_irqs(&h, 2), i % 5 == 4);
			assert_int_equal(poll_batch(&h, false), 1);
			receive_numbered(&h, i);
		}
		hand_end(&h);
	}
}

TEST(interrupts_can_be_turned_off)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		struct hand h = hand_run(hand_layouts[k]);
		uint8_t *flags =
			h.queues[HAND_TX].driver + (h.is_packed ? 2 : 0);

		send_numbered(&h, 0);
		hand_kick(&h, HAND_TX);
		assert_int_equal(hand_irqs(&h, 2), 1);
		hand_put16(flags, 1);
		send_numbered(&h, 1);
		hand_kick(&h, HAND_TX);
		assert_int_equal(hand_irqs(&h, 2), 0);
		hand_end(&h);
	}
}

/* A device that polls asks for no doorbells, and needs none. */
TEST(polling_device_needs_no_doorbells)
{
	const struct vnet_config config = { .features = HAND_PLAIN,
					    .polls_tx = true };
	struct hand h = hand_make(&config);

	hand_start(&h, HAND_PLAIN);
	model_step(h.m);
	assert_int_equal(hand_get16(h.queues[HAND_TX].device), 1);
	send_numbered(&h, 0);
	model_step(h.m);
	receive_numbered(&h, 0);
	hand_end(&h);
}

/* A wire that is full holds up the queue; nothing is lost. */
TEST(full_wire_pushes_back)
{
	struct hand h = hand_run(0);
	uint32_t n = 0, n_got = 0;

	for (int round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 40; i++)
			send_numbered(&h, n++);
		hand_kick(&h, HAND_TX);
		while (poll_batch(&h, false) > 0)
			;
	}
	assert_int_equal(model_wire_n(h.wire, 1), 128);
	while (n_got < n)
		receive_numbered(&h, n_got++);
	hand_end(&h);
}

TEST(indirect_tables_are_followed)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		struct hand h = hand_run(hand_layouts[k] |
					 VNET_BIT(VNET_INDIRECT_DESC));
		uint8_t *table = hand_buffer(&h, 10);
		const uint64_t header = hand_iova(&h, hand_buffer(&h, 0));
		const uint64_t bytes = hand_iova(&h, hand_buffer(&h, 1));
		const uint32_t lens[] = { 12, 60 };

		memset(hand_buffer(&h, 1), 0, 60);
		memcpy(table, &header, 8);
		memcpy(table + 8, &lens[0], 4);
		memcpy(table + 16, &bytes, 8);
		memcpy(table + 24, &lens[1], 4);
		if (!h.is_packed) {
			hand_put16(table + 12, DESC_NEXT);
			hand_put16(table + 14, 1);
		}
		hand_post(&h, HAND_TX, table, 32, DESC_INDIRECT);
		hand_kick(&h, HAND_TX);
		receive_numbered(&h, 0);
		hand_end(&h);
	}
}

TEST(notification_data_must_be_right)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		struct hand h = hand_run(hand_layouts[k] |
					 VNET_BIT(VNET_NOTIFICATION_DATA));
		const uint16_t doorbell = h.queues[HAND_TX].doorbell;
		const uint32_t good = h.is_packed ? 0x8001 : 1;

		send_numbered(&h, 0);
		model_write(h.m, HAND_NOTIFY_BAR, doorbell, 4,
			    good << 16 | HAND_TX);
		assert_string_equal(model_violations(h.m), "");
		assert_int_equal(poll_batch(&h, true), 1);
		send_numbered(&h, 1);
		model_write(h.m, HAND_NOTIFY_BAR, doorbell, 4,
			    good << 16 | HAND_TX);
		hand_blamed(&h, "NOTIFICATION_DATA");
		model_write(h.m, HAND_NOTIFY_BAR, doorbell, 2, HAND_TX);
		hand_blamed(&h, "doorbell of 2 bytes");
		hand_end(&h);
	}
}

TEST(completions_come_late)
{
	const struct model_faults faults = { .late_completions = 3 };
	struct hand h = hand_run(0);

	model_set_faults(h.m, &faults);
	send_numbered(&h, 0);
	hand_kick(&h, HAND_TX);
	receive_numbered(&h, 0);
	assert_int_equal(poll_batch(&h, false), 0);
	for (int i = 0; i < 3; i++)
		model_step(h.m);
	assert_int_equal(poll_batch(&h, false), 1);
	hand_end(&h);
}

/* What the driver is told of one rx buffer under a fault. */
static void told(uint64_t features, const struct model_faults *faults,
		 uint16_t *ret_id, uint32_t *ret_n_bytes,
		 uint16_t *ret_n_buffers)
{
	const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 1 };
	struct hand h = hand_run(features);

	model_set_faults(h.m, faults);
	for (uint32_t i = 0; i < 32; i++)
		hand_post(&h, HAND_RX, hand_buffer(&h, i), 2048, DESC_WRITE);
	model_wire_send(h.wire, 1, bytes, 60);
	assert_true(hand_poll(&h, HAND_RX, ret_id, ret_n_bytes));
	*ret_n_buffers = hand_get16(hand_buffer(&h, 0) + 10);
	assert_true(vnet_stats(h.v).n_faults >= 1);
	hand_end(&h);
}

TEST(faults_are_what_they_say)
{
	const struct model_faults id = { .bad_id = 1 };
	const struct model_faults length = { .bad_length = 1 };
	const struct model_faults count = { .bad_count = 1 };
	const struct model_faults lost = { .dma_unmapped = 1 };
	uint16_t ret_id, n_buffers;
	uint32_t n_bytes = 0;

	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		told(hand_layouts[k], &id, &ret_id, &n_bytes, &n_buffers);
		assert_true(ret_id >= HAND_QUEUE_SIZE);
		told(hand_layouts[k], &length, &ret_id, &n_bytes, &n_buffers);
		assert_int_not_equal(n_bytes, 72);
		told(hand_layouts[k], &count, &ret_id, &n_bytes, &n_buffers);
		assert_int_not_equal(n_buffers, 1);
		told(hand_layouts[k], &lost, &ret_id, &n_bytes, &n_buffers);
		assert_int_equal(n_buffers, 0); /* nothing was written */
	}
}

TEST(used_index_jumps_beyond_the_ring)
{
	const struct vnet_faults faults = { .idx_jumps = 1 };
	struct hand h = hand_run(0);

	vnet_set_faults(h.v, &faults);
	send_numbered(&h, 0);
	hand_kick(&h, HAND_TX);
	assert_int_equal(hand_get16(h.queues[HAND_TX].device + 2),
			 HAND_QUEUE_SIZE + 1);
	hand_end(&h);
}

TEST(buffers_are_used_twice_or_out_of_order)
{
	const struct vnet_faults twice = { .doubled = 1 };
	const struct vnet_faults mixed = { .reordered = 1 };
	uint32_t n_bytes = 0, n_mixed = 0;
	struct hand h = hand_run(0);
	uint16_t id = 0;

	vnet_set_faults(h.v, &twice);
	send_numbered(&h, 0);
	hand_kick(&h, HAND_TX);
	for (int i = 0; i < 2; i++) {
		assert_true(hand_poll(&h, HAND_TX, &id, &n_bytes));
		assert_int_equal(id, 0);
	}
	hand_end(&h);

	h = hand_run(0);
	vnet_set_faults(h.v, &mixed);
	for (uint32_t i = 0; i < 20; i++)
		send_numbered(&h, i);
	hand_kick(&h, HAND_TX);
	for (uint32_t i = 0; i < 20; i++) {
		assert_true(hand_poll(&h, HAND_TX, &id, &n_bytes));
		n_mixed += id != i;
	}
	assert_true(n_mixed > 5);
	hand_end(&h);
}

TEST(device_breaks_after_some_buffers)
{
	const struct vnet_faults faults = { .needs_reset = 3 };
	struct hand h = hand_run(0);

	vnet_set_faults(h.v, &faults);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(hand_read(&h, 0x14, 1) & 64, i < 3 ? 0 : 64);
		send_numbered(&h, i);
		hand_kick(&h, HAND_TX);
	}
	assert_int_equal(vnet_stats(h.v).n_sent, 3);
	hand_end(&h);
}
