/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/xdp_rx.c above a fake kernel. */
#include <string.h>

#include "fake_kernel.h"
#include "support/test.h"

static uint32_t receive(struct fake *fake, struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst(&fake->rxq->base, fake->cache, frames, n);
}

TEST(every_received_buffer_is_replaced)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 50; i++)
			fake_receive(&fake, 60, 0);
		assert_int_equal(receive(&fake, frames, 50), 50);
		assert_int_equal(xring_n_left(&fake.rxq->fill), FAKE_RING);
		mr_frame_free_bulk(fake.cache, frames, 50);
	}
	assert_int_equal(fake_rx_stats(&fake).delivered, 1000);
	assert_int_equal(fake_rx_stats(&fake).bytes, 60000);
	fake_check_laws(&fake);
	fake_close(&fake);
}

TEST(a_frame_that_is_not_whole_waits_in_the_ring)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .max_segs = MR_MAX_SEGS });
	fake_receive(&fake, 60, 0);
	fake_receive(&fake, 3840, XSK_PKT_CONTD);
	fake_receive(&fake, 3840, XSK_PKT_CONTD);
	assert_int_equal(receive(&fake, frames, 32), 1);
	assert_int_equal(receive(&fake, frames + 1, 32), 0);
	fake_receive(&fake, 1334, 0);
	assert_int_equal(receive(&fake, frames + 1, 32), 3);
	assert_int_equal(frames[2].flags, MR_FRAME_MORE);
	assert_int_equal(frames[3].flags, 0);
	assert_int_equal(fake_rx_stats(&fake).delivered, 2);
	mr_frame_free_bulk(fake.cache, frames, 4);
	fake_check_laws(&fake);
	fake_close(&fake);
}

TEST(a_frame_that_does_not_fit_the_burst_waits)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .max_segs = MR_MAX_SEGS });
	for (int i = 0; i < 10; i++) {
		fake_receive(&fake, 3840, XSK_PKT_CONTD);
		fake_receive(&fake, 3840, XSK_PKT_CONTD);
		fake_receive(&fake, 100, 0);
	}
	assert_int_equal(receive(&fake, frames, 20), 18);
	assert_int_equal(receive(&fake, frames + 18, 20), 12);
	mr_frame_free_bulk(fake.cache, frames, 30);
	fake_close(&fake);
}

/* 18 entries are delivered, 19 are one named drop, wherever the ring ends. */
TEST(a_frame_of_too_many_entries_is_dropped_by_name)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .max_segs = MR_MAX_SEGS });
	for (int i = 0; i < MR_MAX_SEGS - 1; i++)
		fake_receive(&fake, 100, XSK_PKT_CONTD);
	fake_receive(&fake, 100, 0);
	assert_int_equal(receive(&fake, frames, 64), MR_MAX_SEGS);
	mr_frame_free_bulk(fake.cache, frames, MR_MAX_SEGS);

	for (int i = 0; i < MR_MAX_SEGS + 2; i++)
		fake_receive(&fake, 100, XSK_PKT_CONTD);
	assert_int_equal(receive(&fake, frames, 64), 0); /* its first part */
	fake_receive(&fake, 100, 0);                     /* its last entry */
	fake_receive(&fake, 77, 0);                      /* another frame */
	assert_int_equal(receive(&fake, frames, 64), 0);
	assert_int_equal(receive(&fake, frames, 64), 1);
	assert_int_equal(frames[0].len, 77);
	assert_int_equal(fake_rx_stats(&fake).drops[MR_RX_DROP_TOO_LONG], 1);
	assert_int_equal(fake_rx_stats(&fake).received, 3);
	assert_int_equal(xring_n_left(&fake.rxq->fill), FAKE_RING);
	mr_frame_free_bulk(fake.cache, frames, 1);
	fake_check_laws(&fake);
	fake_close(&fake);
}

TEST(an_empty_pool_cuts_the_burst_and_loses_nothing)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint64_t addrs[FAKE_PAGES];
	struct fake fake;
	uint32_t n;

	fake_open(&fake, (struct fake_config){ 0 });
	n = mr_frag_alloc_bulk(fake.cache, addrs, FAKE_PAGES, 4096);
	mr_frag_free_bulk(fake.cache, addrs + n - 3, 3);
	for (int i = 0; i < 10; i++)
		fake_receive(&fake, 60, 0);
	assert_int_equal(receive(&fake, frames, 32), 3);
	assert_int_equal(receive(&fake, frames + 3, 32), 0);
	assert_int_equal(fake_rx_stats(&fake).events[MR_RX_EVENT_POOL_EMPTY],
			 2);
	mr_frag_free_bulk(fake.cache, addrs, n - 3);
	assert_int_equal(receive(&fake, frames + 3, 32), 7);
	mr_frame_free_bulk(fake.cache, frames, 10);
	fake_check_laws(&fake);
	fake_close(&fake);
}

TEST(the_kernel_is_woken_when_it_asks)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	receive(&fake, frames, 32);
	assert_int_equal(fake_n_recvfrom, 0);
	*fake.rxq->fill.flags = XSK_RING_NEED_WAKEUP;
	receive(&fake, frames, 32);
	assert_int_equal(fake_n_recvfrom, 1);
	fake_close(&fake);
}

TEST(an_idle_queue_is_kicked_each_millisecond)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	for (int ms = 0; ms < 10; ms++) {
		fake.now_ns += 1000000;
		for (int i = 0; i < 256; i++)
			receive(&fake, frames, 32);
	}
	assert_int_equal(fake_n_recvfrom, 9);
	assert_int_equal(
		fake_rx_stats(&fake).events[MR_RX_EVENT_STARVED_KICK], 0);

	/* The kernel has taken every buffer and delivers none. */
	*fake.rxq->fill.consumer = *fake.rxq->fill.producer;
	fake.now_ns += 1000000;
	for (int i = 0; i < 256; i++)
		receive(&fake, frames, 32);
	assert_int_equal(
		fake_rx_stats(&fake).events[MR_RX_EVENT_STARVED_KICK], 1);
	fake_close(&fake);
}

/* Nothing else makes the device deliver; but there is a least interval. */
TEST(a_busy_polled_queue_is_polled_while_it_is_empty)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	fake.rxq->is_busy = true;
	fake.now_ns = XDP_BUSY_INTERVAL_NS;
	for (uint32_t i = 1; i < 4; i++) {
		for (int k = 0; k < 100; k++)
			receive(&fake, frames, 1);
		assert_int_equal(fake_n_recvfrom, i);
		fake.now_ns += XDP_BUSY_INTERVAL_NS;
		fake_receive(&fake, 60, 0);
		assert_int_equal(receive(&fake, frames, 1), 1);
		mr_frame_free_bulk(fake.cache, frames, 1);
		assert_int_equal(fake_n_recvfrom, i);
	}
	fake_check_laws(&fake);
	fake_close(&fake);
}

TEST(arming_sees_a_frame_that_is_there)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(mri_xdp_rx_arm(&fake.rxq->base.queue), 0);
	fake_receive(&fake, 60, 0);
	assert_int_equal(mri_xdp_rx_arm(&fake.rxq->base.queue), 1);
	assert_int_equal(receive(&fake, frames, 32), 1);
	assert_int_equal(mri_xdp_rx_arm(&fake.rxq->base.queue), 0);
	mr_frame_free_bulk(fake.cache, frames, 1);
	fake_close(&fake);
}

TEST(a_frame_in_the_tailroom_is_a_named_drop)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	fake.rxq->tailroom_bytes = 64;
	fake_receive(&fake, 60, 0);
	fake_receive(&fake, 4096 - 256 - 64 + 1, 0);
	fake_receive(&fake, 4096 - 256 - 64, 0);
	assert_int_equal(receive(&fake, frames, 32), 2);
	assert_int_equal(frames[1].len, 4096 - 256 - 64);
	assert_int_equal(mr_frame_put(fake.cache, &frames[1], 64), 0);
	assert_int_equal(fake_rx_stats(&fake).drops[MR_RX_DROP_TOO_LONG], 1);
	assert_int_equal(fake_rx_stats(&fake).received, 3);
	mr_frame_free_bulk(fake.cache, frames, 2);
	fake_check_laws(&fake);
	fake_close(&fake);
}
