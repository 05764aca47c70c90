/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/datapath/steer.c: two workers' rings, on one thread. */
#include "worker/fixture.h"

#include <arpa/inet.h>

#include "config/addrs.h"
#include "datapath/steer.h"

enum { N_ENTRIES = 16, KEEP_S = 2 };

static const uint32_t external = 0xc0000201, remote = 0xcb007109;
static const uint64_t second_ns = 1000000000;

static struct both {
	struct nat_config config;
	struct nat_steering *steering;
	struct nat_steer *steers[2];
	struct nat_stats stats[2];
	uint64_t now_ns;
} both;

static void open_both(void)
{
	static struct nat_prefix subscribers[] = { { 0x0a000000, 0xffffff00 } };
	struct mr_reason why;

	memset(&both, 0, sizeof(both));
	both.config = (struct nat_config){ .subscribers = subscribers,
					   .n_subscribers = 1,
					   .timeouts.fragment_s = KEEP_S };
	both.now_ns = second_ns;
	fixture_open(NULL, 2, MR_IDLE_POLL);
	assert_int_equal(nat_addrs_create(&both.config), 0);
	assert_int_equal(nat_steering_create(fixture.ctx, fixture.workers, 2,
					     N_ENTRIES, &both.steering, &why),
			 0);
	for (uint32_t w = 0; w < 2; w++) {
		both.steers[w] = nat_steer_of(both.steering, w);
		nat_steer_follow(both.steers[w], NULL, &both.config);
	}
}

/* fixture_close() looks whether each page came back. */
static void close_both(void)
{
	for (uint32_t w = 0; w < 2; w++)
		nat_steer_give_up(both.steers[w], &both.stats[w]);
	nat_steering_destroy(both.steering);
	nat_addrs_destroy(both.config.addrs);
	fixture_close();
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* A UDP packet from outside, or a piece of one; its number is in the TTL. */
static struct mr_frame piece_of(uint16_t id, uint16_t port, uint16_t fragment,
				uint8_t number)
{
	struct mr_frame frame;
	uint8_t *bytes;

	fixture_frames(fixture.cache, &frame, 1);
	bytes = (uint8_t *)fixture_number(&frame);
	memset(bytes, 0, 64);
	put16(bytes + 12, 0x0800);
	bytes[14] = 0x45;
	put16(bytes + 18, id);
	put16(bytes + 20, fragment);
	bytes[22] = number;
	bytes[23] = 17;
	put16(bytes + 26, remote >> 16);
	put16(bytes + 28, remote);
	put16(bytes + 30, external >> 16);
	put16(bytes + 32, external);
	if ((fragment & 0x1fff) == 0)
		put16(bytes + 36, port);
	return frame;
}

static struct mr_frame frame_of(uint16_t port, uint16_t fragment,
				uint8_t number)
{
	return piece_of(4711, port, fragment, number);
}

static uint8_t number_of(const struct mr_frame *frame)
{
	return ((uint8_t *)fixture_number(frame))[22];
}

/* A port of each worker's. */
static uint16_t port_of(uint32_t worker)
{
	return (uint16_t)(2048 + (worker << NAT_SLICE_BITS));
}

static uint32_t split_frames(uint32_t w, struct mr_frame *frames, uint32_t n)
{
	return nat_steer_split(both.steers[w], NAT_OUTSIDE, frames, n,
			       both.now_ns, &both.stats[w]);
}

static uint32_t receive_frames(uint32_t w, struct mr_frame *frames)
{
	enum nat_side from = NAT_INSIDE;
	const uint32_t n =
		nat_steer_receive(both.steers[w], &from, frames, MR_BURST_MAX,
				  both.now_ns, &both.stats[w]);

	if (n > 0)
		assert_int_equal(from, NAT_OUTSIDE);
	return n;
}

static void free_frames(struct mr_frame *frames, uint32_t n)
{
	mr_frame_free_bulk(fixture.cache, frames, n);
}

static uint64_t drops(enum nat_drop drop)
{
	return both.stats[0].drops[drop] + both.stats[1].drops[drop];
}

/* Worker 0 receives them from outside, then both until nothing moves. Returns
 * how many came to their owners; seen: their numbers, as bits. */
static uint32_t deliver(struct mr_frame *frames, uint32_t n, uint32_t seen[2])
{
	struct mr_frame got[MR_BURST_MAX];
	uint32_t n_got = split_frames(0, frames, n), n_all = 0;

	memcpy(got, frames, n_got * sizeof(got[0]));
	for (uint32_t turn = 0; turn < 8; turn++) {
		if (turn > 0)
			n_got = receive_frames(turn % 2, got);
		for (uint32_t i = 0; i < n_got; i++)
			seen[turn % 2] |= 1u << number_of(&got[i]);
		free_frames(got, n_got);
		n_all += n_got;
	}
	return n_all;
}

static int set_up(void **state)
{
	(void)state;
	open_both();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_both();
	return 0;
}

TEST_WITH(set_up, tear_down, test_workers_get_their_frames_in_order)
{
	struct mr_frame frames[MR_BURST_MAX];

	for (uint8_t i = 0; i < 10; i++)
		frames[i] = frame_of(port_of(i % 2), 0, i);
	assert_int_equal(split_frames(0, frames, 10), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(number_of(&frames[i]), 2 * i);
	free_frames(frames, 5);
	assert_int_equal(receive_frames(0, frames), 0);
	assert_int_equal(receive_frames(1, frames), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(number_of(&frames[i]), 2 * i + 1);
	free_frames(frames, 5);
	assert_int_equal(nat_steer_stats(both.steers[0])->handed_off, 5);
}

TEST_WITH(set_up, tear_down, test_frames_that_do_not_fit_are_counted)
{
	struct mr_frame frames[MR_BURST_MAX];

	for (uint8_t i = 0; i < N_ENTRIES + 3; i++)
		frames[i] = frame_of(port_of(1), 0, i);
	assert_int_equal(split_frames(0, frames, N_ENTRIES + 3), 0);
	assert_int_equal(both.stats[0].drops[NAT_DROP_HANDOFF_FULL], 3);
	assert_int_equal(both.stats[0].received[NAT_OUTSIDE], 3);
	assert_int_equal(receive_frames(1, frames), N_ENTRIES);
	free_frames(frames, N_ENTRIES);
}

/* The one that others wait for comes last; all get to the port's owner. */
TEST_WITH(set_up, tear_down, test_fragments_in_any_order_meet)
{
	for (uint16_t owner = 0; owner < 2; owner++) {
		struct mr_frame frames[] = {
			piece_of(owner, 0, 100, 0),
			piece_of(owner, 0, 0x2000 | 50, 1),
			piece_of(owner, port_of(owner), 0x2000, 2),
		};
		uint32_t seen[2] = { 0 };

		assert_int_equal(deliver(frames, 2, seen), 0);
		assert_int_equal(deliver(frames + 2, 1, seen), 3);
		assert_int_equal(seen[owner], 7);
	}
}

TEST_WITH(set_up, tear_down, test_a_second_first_fragment_is_dropped)
{
	struct mr_frame frames[] = { frame_of(port_of(0), 0x2000, 0),
				     frame_of(port_of(1), 0x2000, 1),
				     frame_of(0, 100, 2) };
	uint32_t seen[2] = { 0 };

	assert_int_equal(deliver(frames, 3, seen), 2);
	assert_int_equal(seen[0], 5);
	assert_int_equal(drops(NAT_DROP_FRAGMENT_WRONG), 1);
}

TEST_WITH(set_up, tear_down, test_fragments_without_a_first_are_dropped)
{
	struct mr_frame frame = frame_of(0, 100, 0);
	uint32_t seen[2] = { 0 };

	assert_int_equal(deliver(&frame, 1, seen), 0);
	both.now_ns += (KEEP_S - 1) * second_ns;
	assert_int_equal(deliver(&frame, 0, seen), 0);
	assert_int_equal(drops(NAT_DROP_FRAGMENT_OLD), 0);
	both.now_ns += second_ns;
	assert_int_equal(deliver(&frame, 0, seen), 0);
	assert_int_equal(drops(NAT_DROP_FRAGMENT_OLD), 1);
}

/* A flood of pieces is bounded, and what is left at the end is counted. */
TEST(test_a_flood_of_fragments)
{
	uint32_t seen[2] = { 0 };

	open_both();
	for (uint32_t i = 0; i < 200; i++) {
		struct mr_frame frame = frame_of(0, (uint16_t)(i + 1), 0);

		assert_int_equal(deliver(&frame, 1, seen), 0);
	}
	assert_int_equal(drops(NAT_DROP_FRAGMENT_FULL), 200 - 64);
	close_both();
	assert_int_equal(drops(NAT_DROP_SHUTDOWN), 64);
}

/* Frames of many pages are bounded by these. */
TEST_WITH(set_up, tear_down, test_long_fragments_wait_on_few_pages)
{
	struct mr_frame frames[MR_MAX_SEGS];
	uint32_t seen[2] = { 0 };

	for (uint16_t i = 0; i < 20; i++) {
		fixture_frames(fixture.cache, frames, MR_MAX_SEGS);
		mr_frame_free_bulk(fixture.cache, frames, 1);
		frames[0] = frame_of(0, i + 1, 0);
		for (uint32_t k = 0; k + 1 < MR_MAX_SEGS; k++)
			frames[k].flags |= MR_FRAME_MORE;
		assert_int_equal(deliver(frames, MR_MAX_SEGS, seen), 0);
	}
	assert_int_equal(drops(NAT_DROP_FRAGMENT_FULL),
			 20 - NAT_STEER_PAGES / MR_MAX_SEGS);
}

/* A sender of fragments of ever new datagrams does not keep others out: the one
 * that has waited longest is dropped. */
TEST(test_a_flood_of_connections_keeps_no_client_out)
{
	static const uint16_t kinds[] = { 1, 64, 3000 };

	for (uint32_t k = 0; k < 3; k++) {
		uint32_t seen[2] = { 0 };

		open_both();
		for (uint16_t id = 0; id < 3000; id++) {
			struct mr_frame frame =
				piece_of(id % kinds[k], 0, 100, 0);

			assert_int_equal(deliver(&frame, 1, seen), 0);
		}
		for (uint16_t w = 0; w < 2; w++) {
			struct mr_frame frames[] = {
				piece_of(4000 + w, 0, 100, 1),
				piece_of(4000 + w, port_of(w), 0x2000, 2),
			};

			assert_int_equal(deliver(frames, 1, seen), 0);
			assert_int_equal(deliver(frames + 1, 1, seen), 2);
		}
		close_both();
		assert_int_equal(drops(NAT_DROP_FRAGMENT_FULL) +
					 drops(NAT_DROP_SHUTDOWN),
				 3000);
	}
}

int main(void)
{
	if (fixture_n_cores() < 2) {
		printf("one core: two workers need two\n");
		return 77;
	}
	return test_run(NULL, NULL, NULL);
}
