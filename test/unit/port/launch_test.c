/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/port/launch.c, on a driver without launch times: pair. The clock
 * is the test's.
 */
#include <stdbool.h>
#include <time.h>

#include <millrace/port.h>
#include <millrace/port_device.h>

#include "support/packet.h"
#include "support/pool_unit.h"

enum { PAGES = 1024, PAGE = 2048, RING = 64, NOW = 1000 };

static struct {
	struct pool_fixture f;
	struct mr_port *near, *far;
	struct mr_txq *txq;
	struct mr_frame frames[RING];
	struct mr_meta metas[RING];
} b;

static void begin(void)
{
	struct mr_port_config config = { .size = sizeof(config) };

	fixture_open_at(&b.f, NOW,
			(struct mr_pool_config){ .n_pages = PAGES,
						 .page_bytes = PAGE,
						 .chunk_bytes = PAGE });
	config.pool = b.f.pool;
	assert_int_equal(
		mr_port_open(b.f.ctx, "pair:l,ring=64", &config, &b.near, NULL),
		0);
	assert_int_equal(
		mr_port_open(b.f.ctx, "pair:l,ring=64", &config, &b.far, NULL),
		0);
	b.txq = mr_port_txq(b.near, 0);
}

static void end(void)
{
	mr_port_close(b.near);
	mr_port_close(b.far);
	fixture_close(&b.f);
}

/* Frame i, which may leave at launch_ns of a clock; 0: at once. */
static void make(uint32_t i, uint64_t launch_ns, uint16_t clock)
{
	b.frames[i] = (struct mr_frame){ alloc_one(b.f.cache, PAGE) + 128,
					 60 + i, 0 };
	memset(b.f.base + b.frames[i].addr, 0x11, b.frames[i].len);
	b.metas[i] = (struct mr_meta){
		.valid = launch_ns != 0 ? MR_META_LAUNCH_TIME : 0,
		.launch_ns = launch_ns,
		.launch_clock = clock,
	};
}

/* Offer frames from..to. */
static uint32_t offer(uint32_t from, uint32_t to)
{
	return mr_tx_burst_meta(b.txq, b.f.cache, b.frames + from,
				b.metas + from, to - from);
}

/* What came out are the frames from..to. */
static void check_received(uint32_t from, uint32_t to)
{
	struct mr_frame got[RING];
	const uint32_t n =
		mr_rx_burst(mr_port_rxq(b.far, 0), b.f.cache, got, RING);

	assert_int_equal(n, to - from);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i].len, 60 + from + i);
	mr_frame_free_bulk(b.f.cache, got, n);
}

TEST(frames_leave_when_they_are_due_and_in_order)
{
	begin();
	make(0, 0, 0);
	make(1, NOW, CLOCK_MONOTONIC);
	make(2, NOW + 1, CLOCK_MONOTONIC);
	make(3, 0, 0); /* behind it, though it could go */
	make(4, NOW - 1, CLOCK_MONOTONIC);
	make(5, NOW + 7, CLOCK_MONOTONIC);
	assert_int_equal(offer(0, 6), 2);
	check_received(0, 2);
	assert_int_equal(offer(2, 6), 0);
	assert_int_equal(fixture_tx_stats(b.txq).events[MR_TX_EVENT_NOT_DUE],
			 2);
	b.f.now_ns = NOW + 2;
	assert_int_equal(offer(2, 6), 3);
	check_received(2, 5);
	b.f.now_ns = NOW + 7;
	assert_int_equal(offer(5, 6), 1);
	check_received(5, 6);
	assert_int_equal(fixture_tx_stats(b.txq).events[MR_TX_EVENT_NOT_DUE],
			 3);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, 6);
	end();
}

/* A frame whose clock cannot be read is lost, and does not delay others. */
TEST(each_time_has_its_clock)
{
	struct timespec now;
	uint64_t wall_ns;

	begin();
	clock_gettime(CLOCK_REALTIME, &now);
	wall_ns = (uint64_t)now.tv_sec * 1000000000;
	make(0, wall_ns, CLOCK_REALTIME);
	make(1, wall_ns, CLOCK_TAI);
	make(2, 1, MR_CLOCK_DEVICE);
	make(3, 1, 0x7777);
	make(4, NOW, CLOCK_MONOTONIC);
	make(5, wall_ns + UINT64_C(3600000000000), CLOCK_REALTIME);
	assert_int_equal(offer(0, 6), 5);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_INVALID], 2);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, 5);
	b.metas[5].valid = 0;
	assert_int_equal(offer(5, 6), 1);
	{
		struct mr_frame got[RING];
		const uint32_t n = mr_rx_burst(mr_port_rxq(b.far, 0), b.f.cache,
					       got, RING);

		assert_int_equal(n, 4);
		mr_frame_free_bulk(b.f.cache, got, n);
	}
	end();
}

/* A frame that is also segmented or tagged waits first. */
TEST(held_frames_are_cut_and_tagged_when_they_leave)
{
	static const uint8_t mac[6] = { 2 };
	const uint32_t gso = MR_META_GSO | MR_META_CSUM;

	for (uint32_t has_tag = 0; has_tag < 2; has_tag++) {
		begin();
		make(0, NOW + 1, CLOCK_MONOTONIC);
		b.frames[0].len = packet_make(b.f.base + b.frames[0].addr, mac,
					      4, 6, 1000);
		b.metas[0].valid |= has_tag ? MR_META_VLAN : gso;
		b.metas[0].gso_bytes = 600;
		b.metas[0].gso_type = MR_GSO_TCPV4;
		assert_int_equal(offer(0, 1), 0);
		assert_int_equal(fixture_tx_stats(b.txq).accepted, 0);
		b.f.now_ns = NOW + 1;
		assert_int_equal(offer(0, 1), 1);
		assert_int_equal(fixture_tx_stats(b.txq).accepted,
				 has_tag ? 1 : 2);
		end();
	}
}

static mr_tx_burst_fn *burst_of_driver;
static struct mr_meta seen;
static uint32_t n_calls;

static uint32_t see(struct mr_txq *txq, struct mr_cache *cache,
		    const struct mr_frame *frames, const struct mr_meta *meta,
		    uint32_t n)
{
	if (n > 0)
		seen = meta[0];
	n_calls++;
	return burst_of_driver(txq, cache, frames, meta, n);
}

/* A device gets times in its own clock, but not those in others. */
TEST(a_device_is_asked_in_its_own_clock)
{
	begin();
	burst_of_driver = b.txq->burst;
	b.txq->burst = see;
	b.near->info->offloads |= MR_OFFLOAD_LAUNCH_TIME;
	b.near->info->launch_clock = MR_CLOCK_DEVICE;
	make(0, NOW + 1, MR_CLOCK_DEVICE);
	assert_int_equal(offer(0, 1), 1);
	assert_int_equal(seen.valid, MR_META_LAUNCH_TIME);
	assert_int_equal(seen.launch_ns, NOW + 1);
	make(1, NOW + 1, CLOCK_MONOTONIC);
	assert_int_equal(offer(1, 2), 0);
	b.f.now_ns = NOW + 1;
	assert_int_equal(offer(1, 2), 1);
	assert_int_equal(seen.valid, 0);
	b.txq->burst = burst_of_driver;
	end();
}

/* Whoever polls for the time also collects and sends what went before. */
TEST(a_device_is_called_for_others_while_a_frame_waits)
{
	begin();
	burst_of_driver = b.txq->burst;
	b.txq->burst = see;
	n_calls = 0;
	make(0, NOW + 1, CLOCK_MONOTONIC);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(offer(0, 1), 0);
		assert_int_equal(n_calls, i);
	}
	mr_frame_free_bulk(b.f.cache, b.frames, 1);
	b.txq->burst = burst_of_driver;
	end();
}
