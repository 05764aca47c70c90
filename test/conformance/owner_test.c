/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ownership: clones, headroom, pages. harness_end() asserts in each test of the
 * suite that every page was freed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

enum { BURST = 32, LEN = 200 };

/* Receive, send, free and hold frames in a random mix. */
HARNESS_TEST(pages_are_conserved)
{
	enum { N_HELD = 256 };
	const struct wish wish = wish_frames(5000);
	struct mr_frame frames[64], held[N_HELD];
	struct harness *harness = harness_make(&wish);
	uint32_t n_held = 0, seed = 3;

	for (uint32_t round = 0; round < 500; round++) {
		const uint32_t n_rx = harness_rx(harness, frames, 64);
		uint32_t n_tx;

		switch (traffic_random(&seed) % 4) {
		case 0:
			harness_free(harness, frames, n_rx);
			break;
		case 1:
			if (n_held + n_rx <= N_HELD) {
				memcpy(held + n_held, frames,
				       n_rx * sizeof(frames[0]));
				n_held += n_rx;
				break;
			}
			harness_free(harness, held, n_held);
			n_held = 0;
			/* fall through */
		default:
			n_tx = mr_tx_burst(harness->txq, harness->cache, frames,
					   n_rx);
			harness_free(harness, frames + n_tx, n_rx - n_tx);
		}
		if (round % 8 == 0 && harness->fixture->traits & FIXTURE_OUT)
			while (harness->fixture->collect(
				       harness,
				       (uint8_t[HARNESS_MAX_BYTES]){ 0 },
				       HARNESS_MAX_BYTES) > 0)
				;
	}
	harness_free(harness, held, n_held);
	harness_end(harness);
}

enum { HEADROOM = 160, TAILROOM = 64 };

static void check_rooms(struct harness *harness, const struct mr_frame *frame,
			const struct mr_frame *longer)
{
	const uint8_t *bytes = harness->base + longer->addr;
	uint32_t n_segs, n_bytes;

	for (uint32_t k = 0; k < HEADROOM; k++)
		assert_int_equal(bytes[k], 0xee);
	for (uint32_t k = 1; k <= TAILROOM; k++)
		assert_int_equal(bytes[longer->len - k], 0xdd);
	if (harness->fixture->traits & FIXTURE_IN)
		assert_true(harness_check_frame(harness, frame, &n_segs,
						&n_bytes) >= 0);
}

/*
 * Extend every frame of a burst by the pool's whole headroom and tailroom, and
 * fill them; no other frame of the burst may change.
 */
HARNESS_TEST(headroom_and_tailroom_belong_to_the_frame)
{
	struct mr_frame frames[64], longer[64];

	for (uint32_t page = 2048; page <= harness_max_page_bytes(); page *= 2) {
		struct wish wish = wish_frames(640);
		struct harness *harness;

		wish.page_bytes = page;
		wish.headroom_bytes = HEADROOM;
		wish.tailroom_bytes = TAILROOM;
		harness = harness_make(&wish);
		for (int round = 0; round < 10; round++) {
			const uint32_t n_rx = harness_rx(harness, frames, 64);

			memcpy(longer, frames, sizeof(frames));
			for (uint32_t i = 0; i < n_rx; i++) {
				struct mr_frame *f = &longer[i];

				assert_int_equal(mr_frame_push(harness->cache,
							       f, HEADROOM),
						 0);
				memset(harness->base + f->addr, 0xee, HEADROOM);
				assert_int_equal(mr_frame_put(harness->cache, f,
							      TAILROOM),
						 0);
				memset(harness->base + f->addr + f->len -
					       TAILROOM,
				       0xdd, TAILROOM);
			}
			for (uint32_t i = 0; i < n_rx; i++)
				check_rooms(harness, &frames[i], &longer[i]);
			harness_free(harness, longer, n_rx);
		}
		harness_end(harness);
	}
}

HARNESS_TEST(shared_frame_is_read_only)
{
	const struct wish wish = wish_frames(50);
	struct harness *harness = harness_make(&wish);
	struct mr_frame frames[BURST], copy;
	const uint32_t n_rx = harness_rx(harness, frames, BURST);
	uint32_t n_segs, n_bytes;

	assert_true(n_rx > 0);
	copy = frames[0];
	assert_int_equal(mr_frame_ref(harness->cache, frames, 1), 0);
	assert_int_equal(mr_frame_push(harness->cache, &copy, 1), -EROFS);
	assert_int_equal(mr_frame_put(harness->cache, &copy, 1), -EROFS);
	assert_int_equal(mr_frame_unshare(harness->cache, &copy, 1), 0);
	assert_true(copy.addr != frames[0].addr);
	if (harness->fixture->traits & FIXTURE_IN)
		assert_true(harness_check_frame(harness, &copy, &n_segs,
						&n_bytes) >= 0);
	/* Both now have one owner. */
	assert_int_equal(mr_frame_push(harness->cache, &copy, 1), 0);
	assert_int_equal(mr_frame_push(harness->cache, &frames[0], 1), 0);
	harness_free(harness, &copy, 1);
	harness_free(harness, frames, n_rx);
	harness_end(harness);
}

/* Flooding: each frame leaves four times, by reference. */
HARNESS_TEST(clones_leave_intact)
{
	enum { N_CLONES = 4 };
	const struct wish wish = { .n_in = 0 };
	struct mr_frame frames[BURST];
	struct harness *harness;

	harness_need(FIXTURE_OUT, "its far side sees nothing");
	harness = harness_make(&wish);
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < BURST; i++)
			harness_make_frame(harness, &frames[i], 1, 128, LEN + i,
					   i);
		for (uint32_t k = 1; k < N_CLONES; k++)
			assert_int_equal(
				mr_frame_ref(harness->cache, frames, BURST), 0);
		for (uint32_t k = 0; k < N_CLONES; k++)
			harness_tx(harness, frames, BURST);
		for (uint32_t i = 0; i < N_CLONES * BURST; i++) {
			uint32_t n_bytes;

			assert_int_equal(harness_collect(harness, &n_bytes),
					 i % BURST);
			assert_int_equal(n_bytes, LEN + i % BURST);
		}
	}
	harness_end(harness);
}

/* What was sent is intact, as far as the peer can tell. */
static void collect_all(struct harness *harness, const struct mr_frame *frames,
			uint32_t n)
{
	for (uint32_t i = 0; harness->fixture->traits & FIXTURE_OUT && i < n;
	     i++) {
		uint32_t n_bytes;

		assert_int_equal(harness_collect(harness, &n_bytes), i);
		assert_int_equal(n_bytes, frames[i].len);
	}
}

/*
 * Flooding: each frame leaves through this port and another one, first through
 * one, then through the other, and again by its last owner.
 */
HARNESS_TEST(flood_to_two_ports_is_intact_on_both)
{
	const struct wish wish = { .n_in = 0 };
	struct harness *harness = harness_make(&wish);
	struct mr_port_config config = { .size = sizeof(config),
					 .pool = harness->pool };
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	const char *spec = harness->fixture->sink_spec;
	struct mr_frame frames[BURST];
	struct mr_reason why;
	struct mr_port *sink;

	if (mr_port_open(harness->ctx, spec != NULL ? spec : "null:", &config,
			 &sink, &why) < 0)
		fail_msg("%s", why.text);
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < BURST; i++)
			harness_make_frame(harness, &frames[i], 1, 128, LEN + i,
					   i);
		/* In every other round, another owner also sends. */
		for (uint32_t k = 0; k < 1 + round % 2; k++)
			assert_int_equal(
				mr_frame_ref(harness->cache, frames, BURST), 0);
		if (round % 4 < 2)
			harness_tx(harness, frames, BURST);
		assert_int_equal(mr_tx_burst(mr_port_txq(sink, 0),
					     harness->cache, frames, BURST),
				 BURST);
		if (round % 4 >= 2)
			harness_tx(harness, frames, BURST);
		collect_all(harness, frames, BURST);
		if (round % 2 == 1) {
			harness_tx(harness, frames, BURST);
			collect_all(harness, frames, BURST);
		}
	}
	assert_int_equal(mr_txq_stats(mr_port_txq(sink, 0), &stats), 0);
	assert_int_equal(stats.accepted, 20 * BURST);
	assert_int_equal(stats.accepted, stats.completed + stats.pending);
	mr_port_close(sink);
	harness_end(harness);
}

/* Two frames in each page, in one burst: neither is mistaken for the other. */
HARNESS_TEST(two_frames_of_one_page_leave_intact)
{
	enum { SECOND_AT = 1000 };
	const struct wish wish = { .n_in = 0 };
	struct harness *harness = harness_make(&wish);
	struct mr_frame frames[BURST];

	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < BURST; i += 2) {
			struct mr_frame *two = &frames[i];

			harness_make_frame(harness, &two[0], 1, 128, LEN + i,
					   i);
			assert_int_equal(mr_frame_ref(harness->cache, two, 1),
					 0);
			two[1] = two[0];
			two[1].addr += SECOND_AT;
			two[1].len = 2 * LEN + i;
			harness_write_frame(harness, two[1].addr, two[1].len,
					    i + 1);
		}
		harness_tx(harness, frames, BURST);
		collect_all(harness, frames, BURST);
	}
	assert_int_equal(harness_tx_stats(harness).accepted, 20 * BURST);
	harness_end(harness);
}

/*
 * The port is closed with clones in progress: it frees exactly its own
 * references, at once.
 */
HARNESS_TEST(port_closed_under_clones_gives_back_its_own)
{
	const struct wish wish = { .n_in = 0 };
	struct mr_frame frames[BURST];
	struct harness *harness = harness_make(&wish);

	for (uint32_t round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < BURST; i++)
			harness_make_frame(harness, &frames[i], 1, 128, LEN, i);
		assert_int_equal(mr_frame_ref(harness->cache, frames, BURST),
				 0);
		harness_tx(harness, frames, BURST);
		harness_close(harness);
		if (harness->fixture->traits & FIXTURE_KEEPS)
			harness_collect_last(harness, BURST, 0);
		assert_int_equal(harness_pool_stats(harness).n_in_flight,
				 BURST);
		for (uint32_t i = 0; i < BURST; i++) {
			uint32_t n_segs, n_bytes;

			assert_int_equal(harness_check_frame(harness,
							     &frames[i],
							     &n_segs, &n_bytes),
					 i);
			/* We are the only owner: it can be written. */
			assert_int_equal(
				mr_frame_push(harness->cache, &frames[i], 8),
				0);
		}
		harness_free(harness, frames, BURST);
		assert_int_equal(harness_pool_stats(harness).n_in_flight, 0);
		harness_open(harness);
	}
	harness_end(harness);
}

HARNESS_TEST(received_frames_survive_close_of_their_port)
{
	/* All arrive before it closes, or the next test would get them. */
	const struct wish wish = wish_frames(200);
	struct mr_frame frames[256];
	struct harness *harness = harness_make(&wish);
	uint32_t n = 0, n_segs, n_bytes;

	while (n <= 256 - BURST) {
		const uint32_t n_rx = harness_rx(harness, frames + n, BURST);

		if (n_rx == 0)
			break;
		n += n_rx;
	}
	assert_true(n > 0);
	harness_close(harness);
	if (harness->fixture->traits & FIXTURE_IN)
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(harness_check_frame(harness,
							     &frames[i],
							     &n_segs, &n_bytes),
					 i);
	harness_free(harness, frames, n);
	harness_end(harness);
}

/* Frames of one port, in progress at another, when theirs closes. */
HARNESS_TEST(frame_survives_close_of_other_port)
{
	struct mr_port_config config = { .size = sizeof(config) };
	const struct wish wish = wish_frames(100);
	struct harness *harness = harness_make(&wish);
	struct mr_port *other[2] = { NULL, NULL };
	struct mr_frame frames[BURST];
	struct mr_reason why;
	uint32_t n_rx, n_segs, n_bytes;

	config.pool = harness->pool;
	for (int i = 0; i < 2; i++)
		if (mr_port_open(harness->ctx, "pair:between", &config,
				 &other[i], &why) < 0)
			fail_msg("%s", why.text);
	n_rx = harness_rx(harness, frames, BURST);
	assert_true(n_rx > 0);
	assert_int_equal(mr_tx_burst(mr_port_txq(other[0], 0), harness->cache,
				     frames, n_rx),
			 n_rx);
	harness_receive_rest(harness);
	harness_close(harness);
	memset(frames, 0, sizeof(frames));
	assert_int_equal(mr_rx_burst(mr_port_rxq(other[1], 0), harness->cache,
				     frames, BURST),
			 n_rx);
	if (harness->fixture->traits & FIXTURE_IN)
		for (uint32_t i = 0; i < n_rx; i++)
			assert_int_equal(harness_check_frame(harness,
							     &frames[i],
							     &n_segs, &n_bytes),
					 i);
	harness_free(harness, frames, n_rx);
	for (int i = 0; i < 2; i++)
		mr_port_close(other[i]);
	harness_end(harness);
}
