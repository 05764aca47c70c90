/* SPDX-License-Identifier: BSD-3-Clause */
/* Guarantees of mr_rx_burst(). */
#include <string.h>

#include "suite.h"

enum { CANARY = 0x5a };

static uint32_t n_min_of(const struct harness *harness)
{
	struct mr_port_info info = { .size = sizeof(info) };

	assert_int_equal(mr_port_info(harness->port, &info), 0);
	return info.has_sg ? MR_MAX_SEGS : 1;
}

HARNESS_TEST(burst_of_n_returns_at_most_n)
{
	const struct wish wish = wish_frames(4000);
	struct harness *harness = harness_make(&wish);
	struct mr_frame frames[MR_BURST_MAX + 1], canary;

	memset(&canary, CANARY, sizeof(canary));
	for (uint32_t n = n_min_of(harness); n <= MR_BURST_MAX;
	     n += n < 34 ? 1 : 37) {
		uint32_t n_rx;

		memset(frames, CANARY, sizeof(frames));
		n_rx = harness_rx(harness, frames, n);
		assert_true(n_rx <= n);
		if (n_rx > 0)
			assert_false(frames[n_rx - 1].flags & MR_FRAME_MORE);
		for (uint32_t i = n; i <= MR_BURST_MAX; i++)
			assert_memory_equal(&frames[i], &canary,
					    sizeof(canary));
		harness_free(harness, frames, n_rx);
	}
	harness_end(harness);
}

HARNESS_TEST(zero_burst_is_a_no_op)
{
	const struct wish wish = wish_frames(100);
	struct harness *harness = harness_make(&wish);
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_rx = harness_rx(harness, frames, 32);
	const struct mr_rx_stats rx = harness_rx_stats(harness);
	const uint64_t n_in_flight = harness_pool_stats(harness).n_in_flight;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(
			mr_rx_burst(harness->rxq, harness->cache, NULL, 0), 0);
		assert_int_equal(
			mr_tx_burst(harness->txq, harness->cache, NULL, 0), 0);
	}
	assert_int_equal(harness_rx_stats(harness).delivered, rx.delivered);
	assert_int_equal(harness_rx_stats(harness).bytes, rx.bytes);
	assert_int_equal(harness_tx_stats(harness).accepted, 0);
	assert_int_equal(harness_pool_stats(harness).n_in_flight, n_in_flight);
	harness_free(harness, frames, n_rx);
	while ((n_rx = harness_rx(harness, frames, 32)) > 0 && wish.n_in > 0)
		harness_free(harness, frames, n_rx);
	harness_free(harness, frames, n_rx);
	harness_end(harness);
}

/*
 * The first of these n entries is not the expected frame: fail with details
 * that distinguish a lost frame from one in the wrong place or a page written
 * twice.
 */
static void fail_out_of_order(const struct harness *harness,
			      const struct mr_frame *frames, uint32_t n,
			      uint32_t expected)
{
	const struct mr_rx_stats stats = harness_rx_stats(harness);
	uint32_t n_shown = 0;

	for (uint32_t i = 0, n_segs, n_bytes; i < n && n_shown < 4;
	     i += n_segs, n_shown++) {
		const int64_t id = harness_check_frame(harness, &frames[i],
						       &n_segs, &n_bytes);

		print_message("%sframe %lld at %llx", n_shown > 0 ? ", " : "",
			      (long long)id,
			      (unsigned long long)frames[i].addr);
	}
	print_message("\n");
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		if (stats.drops[i] > 0)
			print_message("dropped as %s: %llu\n",
				      mr_rx_drop_name(i),
				      (unsigned long long)stats.drops[i]);
	fail_msg("frame %u did not come in its place; %u sent, %llu received, "
		 "%llu delivered",
		 expected, harness->n_injected,
		 (unsigned long long)stats.received,
		 (unsigned long long)stats.delivered);
}

/*
 * Receive everything in bursts of n_least to n_most entries: in order, whole,
 * intact, with the sent length. Returns frames.
 */
static uint32_t receive_in_order(struct harness *harness, uint32_t n_least,
				 uint32_t n_most)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t seed = 1, next = 0, n_rx;

	do {
		n_rx = harness_rx(harness, frames,
				  n_least + traffic_random(&seed) %
						    (n_most - n_least + 1));
		for (uint32_t i = 0, n_segs, n_bytes; i < n_rx; i += n_segs) {
			const int64_t id = harness_check_frame(
				harness, &frames[i], &n_segs, &n_bytes);

			if (id != next)
				fail_out_of_order(harness, &frames[i], n_rx - i,
						  next);
			assert_int_equal(n_bytes,
					 harness->wish.len_of != NULL ?
						 harness->wish.len_of(next) :
						 60);
			assert_true(i + n_segs <= n_rx);
			next++;
		}
		harness_free(harness, frames, n_rx);
	} while (n_rx > 0);
	return next;
}

static uint32_t each_length(uint32_t id)
{
	return harness_min_bytes() + id;
}

HARNESS_TEST(frames_arrive_intact_at_every_length)
{
	const uint32_t max = harness_fixture()->max_frame_bytes;

	harness_need(FIXTURE_IN, "it has no far side that sends");
	for (uint32_t page_bytes = 4096; page_bytes <= harness_max_page_bytes();
	     page_bytes *= 2) {
		const struct wish wish = {
			.page_bytes = page_bytes,
			.n_pages = 6144,
			.n_in = max - harness_min_bytes() + 1,
			.len_of = each_length,
		};
		struct harness *harness = harness_make(&wish);

		assert_int_equal(receive_in_order(harness, 18, 64), wish.n_in);
		harness_end(harness);
	}
}

static uint32_t jumbo_length(uint32_t id)
{
	const uint32_t max = harness_fixture()->max_sg_frame_bytes;

	return id % 3 == 0 ? 60 + id % 7 : max - id * 13 % (max - 1500);
}

HARNESS_TEST(jumbo_frames_arrive_intact)
{
	harness_need(FIXTURE_IN | FIXTURE_SG,
		     "it has no frames of several entries");
	for (uint32_t page_bytes = 4096; page_bytes <= harness_max_page_bytes();
	     page_bytes *= 2) {
		const struct wish wish = {
			.page_bytes = page_bytes,
			.n_pages = 6144,
			.is_sg = 1,
			.n_in = 600,
			.len_of = jumbo_length,
		};
		struct harness *harness = harness_make(&wish);

		assert_int_equal(receive_in_order(harness, 18, 64), wish.n_in);
		harness_end(harness);
	}
}

/*
 * The shortest legal bursts: most of them have room left into which the next
 * frame does not fit. It must wait in the ring, whole.
 */
HARNESS_TEST(frame_that_does_not_fit_waits)
{
	const struct wish wish = {
		.is_sg = 1,
		.n_in = 1000,
		.len_of = jumbo_length,
	};
	struct harness *harness;

	harness_need(FIXTURE_IN | FIXTURE_SG,
		     "it has no frames of several entries");
	harness = harness_make(&wish);
	assert_int_equal(
		receive_in_order(harness, MR_MAX_SEGS, MR_MAX_SEGS + 2),
		wish.n_in);
	assert_int_equal(invariants_sum(harness_rx_stats(harness).drops), 0);
	harness_end(harness);
}

HARNESS_TEST(order_is_kept)
{
	const struct wish wish = { .n_in = 20000 };
	struct harness *harness;

	harness_need(FIXTURE_IN, "it has no far side that sends");
	harness = harness_make(&wish);
	assert_int_equal(receive_in_order(harness, 1, MR_BURST_MAX), wish.n_in);
	harness_end(harness);
}

/* Counted by the peer, not by the port. */
HARNESS_TEST(received_is_delivered_plus_drops)
{
	const struct wish wish = wish_frames(3000);
	struct harness *harness = harness_make(&wish);
	uint64_t n_frames = 0, n_bytes = 0;
	struct mr_frame frames[64];
	struct mr_rx_stats stats;

	for (int i = 0; i < 1000; i++) {
		const uint32_t n_rx = harness_rx(harness, frames, 64);

		for (uint32_t k = 0; k < n_rx; k++) {
			n_frames += !(frames[k].flags & MR_FRAME_MORE);
			n_bytes += frames[k].len;
		}
		harness_free(harness, frames, n_rx);
	}
	stats = harness_rx_stats(harness);
	assert_int_equal(stats.delivered, n_frames);
	assert_int_equal(stats.bytes, n_bytes);
	assert_int_equal(stats.received,
			 n_frames + invariants_sum(stats.drops));
	if (harness->fixture->traits & FIXTURE_IN)
		assert_int_equal(stats.received, wish.n_in);
	harness_end(harness);
}

static uint32_t overlong_length(uint32_t id)
{
	return id % 10 == 9 ? 60000 : 60;
}

/* 60000 bytes do not fit in 18 buffers of 2 KiB: consumed, freed, counted. */
HARNESS_TEST(frame_of_too_many_entries_is_a_named_drop)
{
	const struct wish wish = {
		.page_bytes = 2048,
		.is_sg = 1,
		.n_in = 1000,
		.len_of = overlong_length,
	};
	struct mr_frame frames[64];
	struct mr_rx_stats stats;
	struct harness *harness;
	uint32_t n_rx;

	harness_need(FIXTURE_OVERLONG, "such a frame cannot reach it");
	harness = harness_make(&wish);
	while ((n_rx = harness_rx(harness, frames, 64)) > 0)
		harness_free(harness, frames, n_rx);
	stats = harness_rx_stats(harness);
	assert_int_equal(stats.received, 1000);
	assert_int_equal(stats.delivered, 900);
	assert_int_equal(stats.drops[MR_RX_DROP_TOO_LONG], 100);
	harness_end(harness);
}

/*
 * A receiver that frees nothing exhausts the pool. It may then lose frames, but
 * each must be counted by name; and when it frees, frames come again.
 */
HARNESS_TEST(exhausted_pool_loses_nothing_without_a_name)
{
	enum { N_PAGES = 1536 };
	static struct mr_frame held[4 * N_PAGES];
	struct wish wish = wish_frames(4000);
	struct mr_frame frames[64];
	uint32_t n_held = 0, n_idle = 0, n_rx;
	struct mr_rx_stats stats;
	uint64_t until_ns;
	struct harness *harness;

	wish.n_pages = N_PAGES;
	wish.ring_entries = 256;
	harness = harness_make(&wish);
	until_ns = harness_deadline_ns();
	/* Nearly all pages will be held, except for rings and caches. */
	while (n_idle < 100 || n_held <= N_PAGES / 2) {
		assert_true(harness_now_ns() < until_ns);
		harness_pump(harness);
		n_rx = mr_rx_burst(harness->rxq, harness->cache, frames, 64);
		assert_true(n_held + n_rx <= N_PAGES);
		memcpy(held + n_held, frames, n_rx * sizeof(frames[0]));
		n_held += n_rx;
		n_idle = n_rx > 0 ? 0 : n_idle + 1;
		if (n_rx == 0)
			harness_nap();
	}
	stats = harness_rx_stats(harness);
	/* A peer on the same pool stalls before the port does. */
	assert_int_equal(stats.events[MR_RX_EVENT_POOL_EMPTY] == 0,
			 (harness->fixture->traits & FIXTURE_SAME_POOL) != 0);
	assert_int_equal(stats.delivered, n_held);

	harness_free(harness, held, n_held);
	if (harness->fixture->traits & FIXTURE_IN) {
		while ((n_rx = harness_rx(harness, frames, 64)) > 0) {
			n_held += n_rx;
			harness_free(harness, frames, n_rx);
		}
		stats = harness_rx_stats(harness);
		assert_int_equal(stats.delivered, n_held);
		assert_int_equal(stats.received, wish.n_in);
		assert_true(invariants_of_rx_hold(&stats));
	} else {
		n_rx = mr_rx_burst(harness->rxq, harness->cache, frames, 64);
		assert_int_equal(n_rx, 64);
		harness_free(harness, frames, n_rx);
	}
	harness_end(harness);
}

HARNESS_TEST(metadata_flags_name_the_valid_fields)
{
	const uint32_t known = MR_META_RSS_HASH | MR_META_RX_TIME | MR_META_VLAN |
			       MR_META_CSUM | MR_META_GSO;
	const struct wish wish = wish_frames(200);
	struct harness *harness = harness_make(&wish);
	struct mr_frame frames[64];
	const uint64_t until_ns = harness_deadline_ns();
	struct mr_meta meta[64];
	uint32_t n_rx = 0;

	memset(meta, CANARY, sizeof(meta));
	while (n_rx == 0) {
		assert_true(harness_now_ns() < until_ns);
		harness_pump(harness);
		n_rx = mr_rx_burst_meta(harness->rxq, harness->cache, frames,
					meta, 64);
		harness_nap();
	}
	for (uint32_t i = 0; i < n_rx; i++)
		if (i == 0 || !(frames[i - 1].flags & MR_FRAME_MORE))
			assert_int_equal(meta[i].valid & ~known, 0);
	harness_free(harness, frames, n_rx);
	harness_end(harness);
}
