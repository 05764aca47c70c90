/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/virtio/virtio_tx.c: entries that cannot be sent, and a device that
 * writes what it likes.
 */
#include "tx_side.h"

struct invalid_case {
	uint64_t add_to_addr;
	uint32_t n_bytes;
	enum mr_tx_drop drop;
	bool is_page; /* the address is of a page, which must come back */
};

static void invalid_entries_are_named_drops(void **state)
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
	struct fake fake;

	open_with(&fake, state, 0);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_frame frames[3];
		struct fake_chain chain;
		const uint64_t n_before =
			fake_tx_stats(&fake).drops[cases[i].drop];
		struct mr_frame saved;

		make_long(&fake, frames, 1, 1);
		make_long(&fake, frames + 1, 1, 0);
		make_long(&fake, frames + 2, 1, 2);
		saved = frames[1];
		frames[1].addr += cases[i].add_to_addr;
		frames[1].len = cases[i].n_bytes;
		assert_int_equal(transmit(&fake, frames, 3), 3);
		take_frame(&fake, 60, 1, &chain);
		use(&fake, &chain);
		take_frame(&fake, 60, 2, &chain);
		use(&fake, &chain);
		assert_int_equal(fake_take(&fake, TX).n, 0);
		assert_int_equal(fake_tx_stats(&fake).drops[cases[i].drop],
				 n_before + 1);
		if (!cases[i].is_page)
			mr_frame_free_bulk(fake.cache, &saved, 1);
	}
	transmit(&fake, NULL, 0);
	fake.port->base.pool = fake.pool;
	assert_int_equal(fake_tx_stats(&fake).pending, 0);
	/* Addresses of no page were given to the pool, which counts them. */
	fake_free_port(&fake);
	mr_cache_destroy(fake.cache);
	assert_int_equal(mr_pool_destroy(fake.pool, NULL), 0);
	mr_ctx_destroy(fake.ctx);
}

static void a_frame_of_too_many_entries_is_a_named_drop(void **state)
{
	struct mr_frame frames[MR_MAX_SEGS + 2];
	struct fake_chain chain;
	struct fake fake;

	open_with(&fake, state, 0);
	make_long(&fake, frames, MR_MAX_SEGS + 1, 0);
	make_long(&fake, frames + MR_MAX_SEGS + 1, 1, 5);
	assert_int_equal(transmit(&fake, frames, MR_MAX_SEGS + 2),
			 MR_MAX_SEGS + 2);
	take_frame(&fake, 60, 5, &chain);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_TOO_LONG], 1);
	use(&fake, &chain);
	fake_close(&fake);
}

/* mr_port_poll() may be writing its ring. */
static void a_broken_queue_is_not_touched(void **state)
{
	struct mr_frame frame;
	struct fake fake;

	open_with(&fake, state, 0);
	make_long(&fake, &frame, 1, 0);
	assert_int_equal(transmit(&fake, &frame, 1), 1);
	fake.txq->base.queue.fd = 0x7fffffff;
	assert_int_equal(mr_queue_arm(&fake.txq->base.queue), 0);
	fake.txq->state = VIRTIO_BROKEN;
	assert_int_equal(transmit(&fake, NULL, 0), 0);
	assert_true(fake_wants_interrupt(&fake, TX));
	fake.txq->state = VIRTIO_RUNS;
	transmit(&fake, NULL, 0);
	assert_false(fake_wants_interrupt(&fake, TX));
	fake_close(&fake);
}

/* Nor is it posted to, in the burst that finds it so. */
static void the_burst_that_breaks_a_queue_sends_nothing(void **state)
{
	struct mr_frame frames[FAKE_RING];
	const struct mr_frame *refused = &frames[FAKE_RING / 2];
	struct fake fake;

	open_with(&fake, state, virtio_bit(VIRTIO_F_RING_RESET));
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i <= FAKE_RING / 2; i++)
			frames[i] = fake_frame(&fake, 128, 60, 0);
		assert_int_equal(transmit(&fake, frames, FAKE_RING / 2),
				 FAKE_RING / 2);
		/* An index that jumps; a packed ring has but ids. */
		if (!(*(uint64_t *)*state & virtio_bit(VIRTIO_F_RING_PACKED)))
			fake.queues[TX].n_used += FAKE_RING;
		fake_use(&fake, TX, 0x7fff, 0, 1);
		assert_int_equal(transmit(&fake, refused, 1), 0);
		assert_int_equal(fake.txq->state, VIRTIO_BROKEN);
		assert_int_equal(fake_tx_stats(&fake).accepted,
				 (round + 1) * FAKE_RING / 2);
		assert_int_equal(mri_virtio_poll(&fake.port->base), 1);
		assert_int_equal(fake_tx_stats(&fake).pending, 0);
		mr_frame_free_bulk(fake.cache, refused, 1);
	}
	fake_close(&fake);
}

int main(void)
{
	static const struct ring_test tests[] = {
		{ "invalid entries are named drops", 0, 0,
		  invalid_entries_are_named_drops },
		{ "a frame of too many entries is a named drop", 0, 0,
		  a_frame_of_too_many_entries_is_a_named_drop },
		{ "a broken queue is not touched", 0, 0,
		  a_broken_queue_is_not_touched },
		{ "the burst that breaks a queue sends nothing", 0, 0,
		  the_burst_that_breaks_a_queue_sends_nothing },
	};

	return run_on_rings(tests, sizeof(tests) / sizeof(tests[0]));
}
