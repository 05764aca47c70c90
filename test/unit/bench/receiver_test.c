/* SPDX-License-Identifier: BSD-3-Clause */
/* What a receiver makes of frames: whole, in pieces, foreign, with a device's
 * timestamps. */
#include <stdlib.h>
#include <string.h>

#include "net/receiver.h"
#include "stream/stamp.h"
#include "support/test.h"

enum { MAGIC = 0x12345678, MAX_QUEUED = 8 };

static struct mr_ctx *ctx;
static struct mr_pool *pool;
static struct mr_cache *cache;
static uint8_t *base;
static struct tracker tracker;
static struct track track;
static struct hist latency;
static struct clock run_clock;

/* What the next burst brings. */
static struct mr_frame queued[MAX_QUEUED];
static struct mr_meta metas[MAX_QUEUED];
static uint32_t n_queued;
static bool was_asked_for_meta;

static uint32_t burst(struct mr_rxq *rxq, struct mr_cache *to,
		      struct mr_frame *frames, struct mr_meta *meta, uint32_t n)
{
	const uint32_t n_now = n_queued < n ? n_queued : n;

	(void)rxq;
	(void)to;
	memcpy(frames, queued, n_now * sizeof(frames[0]));
	was_asked_for_meta = meta != NULL;
	if (meta != NULL)
		memcpy(meta, metas, n_now * sizeof(meta[0]));
	n_queued = 0;
	return n_now;
}

static struct mr_rxq rxq = { .burst = burst, .n_min = 1 };
static struct receiver receiver;

static int open_all(void **state)
{
	(void)state;
	if (mr_ctx_create(NULL, &ctx, NULL) < 0 ||
	    mr_pool_create(ctx, NULL, &pool, NULL) < 0 ||
	    mr_cache_create(pool, &cache, NULL) < 0 ||
	    tracker_open(&tracker, 2, false) < 0)
		return -1;
	base = mr_region_base(mr_pool_region(pool));
	track = (struct track){ 0 };
	latency = (struct hist){ 0 };
	clock_open(&run_clock, true);
	clock_move(&run_clock, 5000000);
	receiver = (struct receiver){
		.rxq = &rxq,
		.cache = cache,
		.base = base,
		.burst = 32,
		.magic = MAGIC,
		.clock = &run_clock,
		.tracker = &tracker,
		.tracks = &track,
		.latency = &latency,
		.first_ns = UINT64_MAX,
	};
	memset(metas, 0, sizeof(metas));
	return 0;
}

/* Every page has come back. */
static int close_all(void **state)
{
	struct mr_reason why;

	(void)state;
	tracker_close(&tracker);
	mr_cache_destroy(cache);
	if (mr_pool_destroy(pool, &why) < 0) {
		print_error("%s\n", why.text);
		return -1;
	}
	mr_ctx_destroy(ctx);
	return 0;
}

/* An entry of so many bytes: the last ones of a stamped frame, less n_behind
 * that are in later entries. */
static void put_frame(uint32_t len, uint32_t n_behind, uint32_t flags,
		      uint32_t magic, uint64_t seq)
{
	struct mr_frame *frame = &queued[n_queued++];
	uint8_t bytes[64] = { 0 };
	uint64_t addr;

	stamp_write(bytes + 64, magic, 0, seq, 4000000);
	assert_int_equal(mr_frag_alloc_bulk(cache, &addr, 1, 2048), 1);
	*frame = (struct mr_frame){ addr + 128, len, flags };
	memcpy(base + frame->addr, bytes + 64 - n_behind - len, len);
}

TEST_WITH(open_all, close_all, whole_frames_are_counted_by_their_stamp)
{
	put_frame(60, 0, 0, MAGIC, 0);
	put_frame(60, 0, 0, MAGIC, 2);
	put_frame(60, 0, 0, MAGIC, 2);
	put_frame(60, 0, 0, MAGIC + 1, 3);
	put_frame(17, 0, 0, MAGIC, 4); /* too short for a stamp */
	assert_int_equal(receiver_step(&receiver), 5);
	assert_int_equal(receiver.n_received, 5);
	assert_int_equal(receiver.n_foreign, 2);
	assert_int_equal(receiver.n_lanes, 1);
	assert_int_equal(track.unique, 2);
	assert_int_equal(track.duplicates, 1);
	assert_int_equal(latency.n, 3);
	assert_int_equal(latency.min, 1000000);
	assert_int_equal(latency.max, 1000000);
	assert_int_equal(receiver.first_ns, 5000000);
	assert_int_equal(receiver_step(&receiver), 0);
	assert_false(was_asked_for_meta);
}

/* Of the stamp's 18 bytes so many are in the last entry. */
TEST_WITH(open_all, close_all, a_stamp_may_lie_in_several_entries)
{
	for (uint32_t n_last = 1; n_last <= 20; n_last++) {
		put_frame(30, n_last, MR_FRAME_MORE, MAGIC, n_last);
		put_frame(n_last, 0, 0, MAGIC, n_last);
		assert_int_equal(receiver_step(&receiver), 2);
		assert_int_equal(track.unique, n_last);
		assert_int_equal(track.next, n_last + 1);
	}
	put_frame(8, 9, MR_FRAME_MORE, MAGIC, 21);
	put_frame(7, 2, MR_FRAME_MORE, MAGIC, 21);
	put_frame(2, 0, 0, MAGIC, 21); /* 17 in all */
	assert_int_equal(receiver_step(&receiver), 3);
	assert_int_equal(receiver.n_foreign, 1);
	assert_int_equal(receiver.n_received, 21);
}

TEST_WITH(open_all, close_all, an_unknown_lane_is_counted_as_foreign)
{
	tracker.n_lanes = 0;
	put_frame(60, 0, 0, MAGIC, 0);
	assert_int_equal(receiver_step(&receiver), 1);
	assert_int_equal(receiver.n_foreign, 1);
	assert_int_equal(latency.n, 0);
}

/* A device that says that its frame came 300 us before it was taken. */
TEST_WITH(open_all, close_all, a_time_of_the_device_is_preferred)
{
	struct timespec t;

	clock_open(&run_clock, false);
	while (clock_now(&run_clock) < 5000000)
		;
	receiver.has_times = true;
	put_frame(60, 0, 0, MAGIC, 0);
	put_frame(60, 0, 0, MAGIC, 1);
	clock_gettime(CLOCK_REALTIME, &t);
	metas[0] = (struct mr_meta){
		.valid = MR_META_RX_TIME,
		.rx_clock = CLOCK_REALTIME,
		.rx_ns = (uint64_t)t.tv_sec * 1000000000 +
			   (uint64_t)t.tv_nsec - 300000,
	};
	assert_int_equal(receiver_step(&receiver), 2);
	assert_true(was_asked_for_meta);
	assert_int_equal(latency.n, 2);
	/* The other one has none: when it was taken. */
	assert_true(latency.max - latency.min >= 290000);
	/* A clock that nobody knows is not believed. */
	receiver.device_clock.is_known = false;
	put_frame(60, 0, 0, MAGIC, 2);
	metas[0].rx_clock = 4711;
	metas[0].rx_ns = 1;
	assert_int_equal(receiver_step(&receiver), 1);
	assert_true(latency.max < 1000000000000);
}
