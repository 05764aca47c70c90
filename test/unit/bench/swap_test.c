/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/bench/net/swap.c; forward_test.py has whole frames. */
#include "support/unit.h"

#include "net/swap.h"

static const uint8_t ours[6] = { 2, 0, 0, 0, 0, 9 };

/* Who has 10.0.0.2? Tell 10.0.0.1. */
static const uint8_t request[42] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  0, 0, 0, 0, 1, 8, 6, /* eth */
	0,    1,    8,    0,    6,    4,    0,  1, 2, 0, 0, 0, 0, 1,
	10,   0,    0,    1,                            /* sender */
	0,    0,    0,    0,    0,    0,    10, 0, 0, 2 /* target */
};
static const uint8_t answer[42] = {
	2, 0, 0, 0, 0, 1, 2, 0,  0, 0, 0, 9, 8, 6, 0, 1, 8, 0,  6, 4, 0,
	2, 2, 0, 0, 0, 0, 9, 10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1
};

TEST(a_request_is_answered)
{
	uint8_t bytes[60] = { 0 };

	memcpy(bytes, request, sizeof(request));
	assert_int_equal(swap_arp(bytes, sizeof(bytes), ours), 1);
	assert_memory_equal(bytes, answer, sizeof(answer));
	/* An answer is none to be answered. */
	assert_int_equal(swap_arp(bytes, sizeof(bytes), ours), 0);
	assert_memory_equal(bytes, answer, sizeof(answer));
}

/* Each of these differs from a request in one place. */
TEST(other_frames_are_not_answered)
{
	static const struct {
		uint8_t at, value;
	} changes[] = {
		{ 13, 5 }, /* another type */
		{ 15, 2 }, /* no Ethernet */
		{ 17, 1 }, /* no IPv4 */
		{ 21, 3 }, /* RARP */
		{ 41, 1 }, /* an announcement */
	};
	uint8_t bytes[42];

	for (uint32_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		memcpy(bytes, request, sizeof(bytes));
		bytes[changes[i].at] = changes[i].value;
		assert_int_equal(swap_arp(bytes, sizeof(bytes), ours), 0);
	}
	memcpy(bytes, request, sizeof(bytes));
	memset(bytes + 28, 0, 4); /* a probe */
	assert_int_equal(swap_arp(bytes, sizeof(bytes), ours), 0);
	memcpy(bytes, request, sizeof(bytes));
	assert_int_equal(swap_arp(bytes, sizeof(bytes) - 1, ours), 0);
	assert_memory_equal(bytes, request, sizeof(bytes));
}

TEST(runts_and_group_frames_are_not_changed)
{
	uint8_t bytes[14] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 };
	uint8_t before[14];

	memcpy(before, bytes, sizeof(bytes));
	assert_int_equal(swap_frame(bytes, 13, 13, SWAP_PORTS), SWAP_RUNT);
	assert_memory_equal(bytes, before, sizeof(bytes));
	bytes[0] = before[0] = 3;
	assert_int_equal(swap_frame(bytes, 14, 14, SWAP_PORTS), SWAP_GROUP);
	assert_memory_equal(bytes, before, sizeof(bytes));
	/* A header that is cut off: the MACs alone. */
	bytes[0] = before[0] = 2;
	assert_int_equal(swap_frame(bytes, 14, 14, SWAP_PORTS), SWAP_DONE);
	assert_memory_equal(bytes, before + 6, 6);
	assert_memory_equal(bytes + 6, before, 6);
}

/* Ports that are not in the frame's first entry are left alone. */
TEST(ports_beyond_the_first_entry_are_not_swapped)
{
	uint8_t bytes[38] = { 2, 0,    0, 0, 0,  1, 2, 0,    0, 0,  0,  2, 8,
			      0, 0x45, 0, 0, 40, 0, 0, 0x20, 0, 64, 17, 0, 0,
			      1, 2,    3, 4, 5,  6, 7, 8,    0, 1,  0,  2 };

	/* The first fragment of a longer packet. */
	assert_int_equal(swap_frame(bytes, 36, 54, SWAP_PORTS), SWAP_DONE);
	assert_int_equal(bytes[26], 5);
	assert_int_equal(bytes[35], 1);
	assert_int_equal(swap_frame(bytes, 38, 54, SWAP_PORTS), SWAP_DONE);
	assert_int_equal(bytes[26], 1);
	assert_int_equal(bytes[35], 2);
	assert_int_equal(bytes[37], 1);
}

/* A ping of zeros: the answer has no bit set but those of its sum. */
TEST(an_answer_of_zeros_has_a_sum)
{
	uint8_t bytes[42] = { 2,  0,    0, 0, 0,  1, 2, 0, 0, 0,  0,    2,   8,
			      0,  0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1,    0,   0,
			      10, 0,    0, 1, 10, 0, 0, 2, 8, 0,  0xf7, 0xff };

	assert_int_equal(swap_frame(bytes, 42, 42, SWAP_PORTS), SWAP_DONE);
	assert_int_equal(bytes[34], 0);
	assert_int_equal(bytes[36], 0xff);
	assert_int_equal(bytes[37], 0xff);
}
