/* SPDX-License-Identifier: BSD-3-Clause */
/* Guarantees of mr_tx_burst(). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "suite.h"

enum { BURST = 32 };

/*
 * The peer collects the sent frames: ids first to first + n in order, intact,
 * with the sent lengths.
 */
static void collect_in_order(struct harness *harness, const uint32_t *lens,
			     uint32_t n, uint32_t first)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t n_bytes;

		assert_int_equal(harness_collect(harness, &n_bytes), first + i);
		assert_int_equal(n_bytes, lens[i]);
	}
}

HARNESS_TEST(frames_leave_intact_at_every_length)
{
	const uint32_t max = harness_fixture()->max_frame_bytes;
	const struct wish wish = { .n_in = 0 };
	struct mr_frame frames[BURST];
	uint32_t lens[BURST], id = 0;
	struct harness *harness;

	harness_need(FIXTURE_OUT, "its far side sees nothing");
	harness = harness_make(&wish);
	for (uint32_t len = harness_min_bytes(); len <= max;) {
		uint32_t n = 0;

		for (; n < BURST && len <= max; n++, len++) {
			lens[n] = len;
			harness_make_frame(harness, &frames[n], 1, 128, len,
					   id + n);
		}
		harness_tx(harness, frames, n);
		collect_in_order(harness, lens, n, id);
		id += n;
	}
	harness_end(harness);
}

/* Send and collect one frame of n_segs entries at an offset in its pages. */
static void send_at(struct harness *harness, uint32_t offset, uint32_t n_segs,
		    uint32_t len, uint32_t id)
{
	struct mr_frame frames[MR_MAX_SEGS];

	harness_make_frame(harness, frames, n_segs, offset, len, id);
	harness_tx(harness, frames, n_segs);
	collect_in_order(harness, &len, 1, id);
}

/*
 * Aligned and unaligned, at the page's first and last byte, at each multiple of
 * 2 KiB and across it.
 */
HARNESS_TEST(frames_leave_intact_at_every_offset)
{
	static const uint32_t lens[] = { 14, 60, 61, 64, 127, 512, 1514 };
	static const uint32_t starts[] = { 0,  1,  2,  3,   7,   8,   31, 63,
					   64, 65, 66, 127, 128, 255, 256 };
	uint32_t id = 0;

	harness_need(FIXTURE_OUT, "its far side sees nothing");
	for (uint32_t page = 4096; page <= harness_max_page_bytes(); page *= 2) {
		const struct wish wish = { .page_bytes = page,
					   .n_pages = 4096 };
		struct harness *harness = harness_make(&wish);

		for (uint32_t l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
			const uint32_t len = lens[l];

			if (len < harness_min_bytes())
				continue;
			for (uint32_t s = 0;
			     s < sizeof(starts) / sizeof(starts[0]); s++)
				send_at(harness, starts[s], 1, len, id++);
			for (uint32_t edge = 2048; edge < page; edge += 2048) {
				send_at(harness, edge - len, 1, len, id++);
				send_at(harness, edge - len / 2, 1, len, id++);
				send_at(harness, edge - 1, 1, len, id++);
			}
			send_at(harness, page - len, 1, len, id++);
		}
		harness_end(harness);
	}
}

HARNESS_TEST(frames_of_several_entries_leave_intact)
{
	const uint32_t max = harness_fixture()->max_sg_frame_bytes;
	const uint32_t lens[] = { 64, 1514, 2000, 4096, 5000, max };
	uint32_t id = 0, seed = 7;

	harness_need(FIXTURE_OUT | FIXTURE_SG,
		     "it has no frames of several entries");
	for (uint32_t page = 4096; page <= harness_max_page_bytes(); page *= 2) {
		const struct wish wish = { .page_bytes = page,
					   .n_pages = 4096,
					   .is_sg = 1 };
		struct harness *harness = harness_make(&wish);

		for (uint32_t l = 0; l < sizeof(lens) / sizeof(lens[0]); l++)
			for (uint32_t n = 1; n <= MR_MAX_SEGS; n++) {
				const uint32_t part = lens[l] / n + 1;

				if (part > page)
					continue;
				send_at(harness,
					traffic_random(&seed) %
						(page - part + 1),
					n, lens[l], id++);
			}
		harness_end(harness);
	}
}

/* An array that ends within a frame: the caller keeps that frame. */
HARNESS_TEST(tx_takes_whole_frames_only)
{
	const bool is_sg = harness_fixture()->traits & FIXTURE_SG;
	const struct wish wish = { .is_sg = is_sg };
	struct mr_frame frames[8], before[8];
	struct harness *harness = harness_make(&wish);
	const uint32_t lens[] = { 60, 61, 62 };
	uint32_t n_tx;

	for (uint32_t i = 0; i < 3; i++)
		harness_make_frame(harness, &frames[i], 1, 128, lens[i], i);
	harness_make_frame(harness, &frames[3], 5, 128, 900, 3);
	memcpy(before, frames, sizeof(frames));
	/* Truncated after its second entry. */
	n_tx = mr_tx_burst(harness->txq, harness->cache, frames, 5);
	assert_int_equal(n_tx, 3);
	assert_memory_equal(frames, before, sizeof(frames));
	assert_int_equal(harness_tx_stats(harness).accepted, 3);
	/* Only the beginning of a frame: nothing is sent. */
	assert_int_equal(
		mr_tx_burst(harness->txq, harness->cache, frames + 3, 4), 0);
	if (harness->fixture->traits & FIXTURE_OUT) {
		collect_in_order(harness, lens, 3, 0);
		assert_int_equal(harness_collect_rest(harness), 0);
	}
	harness_free(harness, frames + 3, 5);
	harness_end(harness);
}

HARNESS_TEST(full_queue_refuses_the_rest)
{
	enum { RING = 64, N = 200 };
	const struct wish wish = { .ring_entries = RING };
	struct mr_frame frames[N];
	uint32_t lens[N], n_tx;
	struct mr_tx_stats stats;
	struct harness *harness;

	harness_need(FIXTURE_STALLS, "its far side takes all");
	harness = harness_make(&wish);
	for (uint32_t i = 0; i < N; i++) {
		lens[i] = 60 + i;
		harness_make_frame(harness, &frames[i], 1, 128, lens[i], i);
	}
	n_tx = mr_tx_burst(harness->txq, harness->cache, frames, N);
	assert_true(n_tx > 0 && n_tx <= RING);
	assert_int_equal(mr_tx_burst(harness->txq, harness->cache,
				     frames + n_tx, N - n_tx),
			 0);
	stats = harness_tx_stats(harness);
	assert_int_equal(stats.accepted, n_tx);
	/* A device that copies is done with them. */
	assert_int_equal(stats.pending + stats.completed, n_tx);
	assert_true(stats.events[MR_TX_EVENT_RING_FULL] > 0);
	/* The rest is ours and unchanged. */
	for (uint32_t i = n_tx; i < N; i++) {
		uint32_t n_segs, n_bytes;

		assert_int_equal(harness_check_frame(harness, &frames[i],
						     &n_segs, &n_bytes),
				 i);
	}
	collect_in_order(harness, lens, n_tx, 0);
	/* A queue may notice only in its next burst. */
	mr_tx_burst(harness->txq, harness->cache, NULL, 0);
	assert_int_equal(harness_tx_stats(harness).pending, 0);
	harness_free(harness, frames + n_tx, N - n_tx);
	harness_end(harness);
}

/*
 * Two more pools: one that may grow and has one segment so far, and one after
 * its maximum size. Returns an address in the gap between their segments.
 */
static uint64_t make_gap(struct harness *harness, struct mr_pool *pools[2])
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 256,
					 .max_pages = 16384,
					 .region = harness->region };
	struct mr_region_stats region = { .size = sizeof(region) };
	struct mr_segment_info first, last;

	mr_region_stats(harness->region, &region);
	for (uint32_t i = 0; i < 2; i++, config.max_pages = 0)
		assert_int_equal(
			mr_pool_create(harness->ctx, &config, &pools[i], NULL),
			0);
	mr_region_segment(harness->region, region.n_segments, &first);
	mr_region_segment(harness->region, region.n_segments + 1, &last);
	assert_true(last.addr > first.addr + first.n_bytes + (2 << 20));
	return last.addr - (1 << 20);
}

/* Bad entries, alone and in the middle of a burst of good frames. */
HARNESS_TEST(bad_entries_are_named_drops)
{
	struct mr_frame bad[] = {
		{ UINT64_MAX - 100, 60, 0 },         /* wraps */
		{ UINT64_C(1) << 50, 60, 0 },        /* outside the region */
		{ (UINT64_C(1) << 30) - 64, 60, 0 }, /* no memory after it */
		{ 0, 60, 0 },                        /* between segments */
	};
	enum { N_BAD = sizeof(bad) / sizeof(bad[0]) };
	const struct wish wish = { .n_in = 0 };
	const uint32_t lens[] = { 60, 60, 60, 60, 60 };
	struct mr_frame frames[2 * N_BAD + 3];
	struct mr_tx_stats stats;
	struct mr_pool *pools[2];
	struct harness *harness;
	uint32_t n = 0;

	harness_need(FIXTURE_CHECKS, "it is a sink that looks at nothing");
	harness = harness_make(&wish);
	bad[N_BAD - 1].addr = make_gap(harness, pools);
	for (uint32_t i = 0; i < N_BAD; i++) {
		harness_make_frame(harness, &frames[n++], 1, 128, 60, i);
		frames[n++] = bad[i];
	}
	/* On our own pages, which must be freed: empty, and unterminated. */
	harness_make_frame(harness, &frames[n], 1, 128, 60, 99);
	frames[n++].len = 0;
	harness_make_frame(harness, &frames[n], 1, 128, 60, 99);
	frames[n++].len = UINT32_MAX;
	harness_make_frame(harness, &frames[n++], 1, 128, 60, N_BAD);

	harness_tx(harness, frames, n);
	collect_in_order(harness, lens, N_BAD + 1, 0);
	assert_int_equal(harness_collect_rest(harness), 0);
	stats = harness_tx_stats(harness);
	assert_int_equal(stats.accepted, n);
	harness_assert_completed(harness, N_BAD + 1);
	/* The unterminated one may be either. */
	assert_true(stats.drops[MR_TX_DROP_INVALID] >= N_BAD + 1);
	assert_int_equal(stats.drops[MR_TX_DROP_INVALID] +
				 stats.drops[MR_TX_DROP_TOO_LONG],
			 N_BAD + 2);
	assert_int_equal(invariants_sum(stats.drops), N_BAD + 2);
	harness_close(harness);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(mr_pool_destroy(pools[i], NULL), 0);
	harness_end(harness);
}

/* Longer than the port takes: more entries than it was opened for. */
HARNESS_TEST(frame_of_too_many_entries_is_a_named_drop)
{
	const struct wish wish = { .is_sg = 1 };
	struct mr_frame frames[MR_MAX_SEGS + 1 + 1];
	const uint32_t len = 60;
	struct mr_tx_stats stats;
	struct harness *harness;

	harness_need(FIXTURE_CHECKS | FIXTURE_SG,
		     "it takes any number of entries");
	harness = harness_make(&wish);
	harness_make_frame(harness, frames, MR_MAX_SEGS, 128, 1800, 0);
	frames[MR_MAX_SEGS - 1].flags = MR_FRAME_MORE;
	harness_make_frame(harness, &frames[MR_MAX_SEGS], 1, 128, 60, 1);
	harness_make_frame(harness, &frames[MR_MAX_SEGS + 1], 1, 128, 60, 2);
	harness_tx(harness, frames, MR_MAX_SEGS + 2);
	collect_in_order(harness, &len, 1, 2);
	stats = harness_tx_stats(harness);
	assert_int_equal(stats.accepted, 2);
	assert_int_equal(stats.drops[MR_TX_DROP_TOO_LONG], 1);
	assert_int_equal(invariants_sum(stats.drops), 1);
	harness_end(harness);
}

/* The invariant while frames move, and at rest. */
HARNESS_TEST(accepted_is_completed_plus_pending_plus_drops)
{
	const struct wish wish = { .ring_entries = 256 };
	struct mr_frame frames[BURST];
	struct harness *harness = harness_make(&wish);
	uint64_t n_sent = 0, n_bytes = 0;
	uint32_t n_collected = 0;
	struct mr_tx_stats stats;

	for (uint32_t round = 0; round < 100; round++) {
		const uint32_t n = 1 + round % BURST;
		uint32_t n_tx;

		for (uint32_t i = 0; i < n; i++)
			harness_make_frame(harness, &frames[i], 1, 128, 60 + i,
					   i);
		n_tx = mr_tx_burst(harness->txq, harness->cache, frames, n);
		for (uint32_t i = 0; i < n_tx; i++)
			n_bytes += frames[i].len;
		n_sent += n_tx;
		harness_free(harness, frames + n_tx, n - n_tx);
		stats = harness_tx_stats(harness);
		assert_int_equal(stats.accepted, n_sent);
		assert_int_equal(stats.bytes, n_bytes);
		assert_true(invariants_of_tx_hold(&stats));
		if (round % 16 == 15 && harness->fixture->traits & FIXTURE_OUT)
			n_collected += harness_collect_rest(harness);
	}
	if (harness->fixture->traits & FIXTURE_OUT)
		harness_collect_last(harness, n_sent, n_collected);
	harness_assert_completed(harness, n_sent);
	harness_end(harness);
}
