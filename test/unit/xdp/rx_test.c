/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/socket/rx.c above a fake kernel. */
#include <string.h>

#include "model/fake_kernel.h"
#include "support/rx_script.h"

static uint32_t receive_frames(struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst(&fake.rxq->base, fake.cache, frames, n);
}

static void give_buffer(bool is_end)
{
	fake_receive(is_end ? RX_SCRIPT_END_BYTES : 3840,
		     is_end ? 0 : XSK_PKT_CONTD);
}

static const struct rx_script scripts[] = {
	/* A frame that is not whole, or does not fit the burst, waits. */
	{ "sg", "e 2m R32=1 R32=0 e R32=3", .delivered = 2 },
	{ "sg",
	  "2m e 2m e 2m e 2m e 2m e 2m e 2m e 2m e 2m e 2m e R20=18 R20=12",
	  .delivered = 10 },
	/* 18 entries are delivered, 19 are one named drop. */
	{ "sg", "17m e R64=18 20m R64=0 e e R64=0 R64=1", .delivered = 2,
	  .too_long = 1 },
	/* Without pages the burst is cut, and nothing is lost. */
	{ NULL, "P 10e R32=3 R32=0 p R32=7", .delivered = 10, .pool_empty = 2 },
};

TEST(delivered_frames_are_received_or_a_named_drop)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		fake_open((struct fake_config){
			.max_segs =
				scripts[i].options != NULL ? MR_MAX_SEGS : 0 });
		rx_script_run(&scripts[i],
			      &(struct rx_double){ .rxq = &fake.rxq->base,
						   .cache = fake.cache,
						   .give = give_buffer });
		assert_int_equal(xring_n_left(&fake.rxq->fill), FAKE_RING);
		fake_close();
	}
}

FAKE_TEST(the_kernel_is_woken_when_it_asks)
{
	struct mr_frame frames[MR_BURST_MAX];

	receive_frames(frames, 32);
	assert_int_equal(fake.n_recvfrom, 0);
	*fake.rxq->fill.flags = XSK_RING_NEED_WAKEUP;
	receive_frames(frames, 32);
	assert_int_equal(fake.n_recvfrom, 1);
}

FAKE_TEST(an_idle_queue_is_kicked_each_millisecond)
{
	struct mr_frame frames[MR_BURST_MAX];

	for (int ms = 0; ms < 10; ms++) {
		fake.now_ns += 1000000;
		for (int i = 0; i < 256; i++)
			receive_frames(frames, 32);
	}
	assert_int_equal(fake.n_recvfrom, 9);
	assert_int_equal(fake_rx_stats().events[MR_RX_EVENT_STARVED_KICK], 0);

	/* The kernel has taken every buffer and delivers none. */
	*fake.rxq->fill.consumer = *fake.rxq->fill.producer;
	fake.now_ns += 1000000;
	for (int i = 0; i < 256; i++)
		receive_frames(frames, 32);
	assert_int_equal(fake_rx_stats().events[MR_RX_EVENT_STARVED_KICK], 1);
}

/* Nothing else makes the device deliver; but there is a least interval. */
FAKE_TEST(a_busy_polled_queue_is_polled_while_it_is_empty)
{
	struct mr_frame frames[MR_MAX_SEGS];

	fake.rxq->is_busy = true;
	fake.now_ns = XDP_BUSY_INTERVAL_NS;
	for (uint32_t i = 1; i < 4; i++) {
		for (int k = 0; k < 100; k++)
			receive_frames(frames, 1);
		assert_int_equal(fake.n_recvfrom, i);
		fake.now_ns += XDP_BUSY_INTERVAL_NS;
		fake_receive(60, 0);
		assert_int_equal(receive_frames(frames, 1), 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(fake.n_recvfrom, i);
	}
}

FAKE_TEST(a_frame_in_the_tailroom_is_a_named_drop)
{
	struct mr_frame frames[MR_BURST_MAX];

	fake.rxq->tailroom_bytes = 64;
	fake_receive(60, 0);
	fake_receive(4096 - 256 - 64 + 1, 0);
	fake_receive(4096 - 256 - 64, 0);
	assert_int_equal(receive_frames(frames, 32), 2);
	assert_int_equal(frames[1].len, 4096 - 256 - 64);
	assert_int_equal(mr_frame_put(fake.cache, &frames[1], 64), 0);
	assert_int_equal(fake_rx_stats().drops[MR_RX_DROP_TOO_LONG], 1);
	assert_int_equal(fake_rx_stats().received, 3);
	mr_frame_free_bulk(fake.cache, frames, 2);
}
