/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/port/partial.c over plain memory. test/unit/xdp/csum_test.c has
 * all protocols.
 */
#include <millrace/driver.h>

#include "support/udp_packet.h"
#include "support/unit.h"

enum { N_FRAME = sizeof(udp_packet), FIELD = UDP_FIELD, L4 = 14 + 20 };

static void assert_is_finished(const uint8_t *memory, uint32_t at)
{
	assert_int_equal(memory[at], UDP_SUM_HIGH);
	assert_int_equal(memory[at + 1], UDP_SUM_LOW);
}

TEST(a_sum_is_found_by_the_headers)
{
	uint8_t memory[N_FRAME];
	const struct mr_frame frame = { 0, N_FRAME, 0 };
	struct mr_partial partial;

	memcpy(memory, udp_packet, sizeof(udp_packet));
	assert_int_equal(mr_partial_find(memory, &frame, NULL, &partial), 0);
	assert_int_equal(partial.start_bytes, L4);
	assert_int_equal(partial.n_bytes, 13);
	assert_int_equal(partial.field_bytes, FIELD);
	assert_true(partial.has_no_zero);
	mr_partial_finish(memory, &frame, &partial);
	assert_is_finished(memory, FIELD);
	/* Now it is not partial any more. */
	assert_int_equal(mr_partial_find(memory, &frame, NULL, &partial),
			 -ENOENT);
}

TEST(metadata_goes_before_headers)
{
	struct mr_meta meta = { .valid = MR_META_CSUM,
				.csum_start_bytes = L4,
				.csum_offset_bytes = 6 };
	uint8_t memory[N_FRAME];
	struct mr_frame frame = { 0, N_FRAME, 0 };
	struct mr_partial partial;

	memcpy(memory, udp_packet, sizeof(udp_packet));
	memory[12] = 0x88; /* no protocol that we know */
	assert_int_equal(mr_partial_find(memory, &frame, NULL, &partial),
			 -ENOENT);
	assert_int_equal(mr_partial_find(memory, &frame, &meta, &partial), 0);
	mr_partial_finish(memory, &frame, &partial);
	assert_is_finished(memory, FIELD);
	/* The field's second byte is the first that is not there. */
	frame.len = FIELD + 1;
	assert_int_equal(mr_partial_find(memory, &frame, &meta, &partial),
			 -ENOENT);
	frame.len = FIELD + 2;
	assert_int_equal(mr_partial_find(memory, &frame, &meta, &partial), 0);
	/* Metadata of something else is none. */
	meta.valid = MR_META_VLAN;
	assert_int_equal(mr_partial_find(memory, &frame, &meta, &partial),
			 -ENOENT);
}

/* Cut in two at each place behind the field, odd ones too; and in three. */
TEST(a_sum_covers_all_entries)
{
	for (uint32_t cut = FIELD + 2; cut < N_FRAME; cut++) {
		uint8_t memory[256] = { 0 };
		const struct mr_frame frames[] = {
			{ 0, cut, MR_FRAME_MORE },
			{ 100, 1, cut + 1 < N_FRAME ? MR_FRAME_MORE : 0 },
			{ 201, N_FRAME - cut - 1, 0 },
		};
		struct mr_partial partial;

		memcpy(memory, udp_packet, cut);
		memory[100] = udp_packet[cut];
		memcpy(memory + 201, udp_packet + cut + 1, N_FRAME - cut - 1);
		assert_int_equal(
			mr_partial_find(memory, frames, NULL, &partial), 0);
		mr_partial_finish(memory, frames, &partial);
		assert_is_finished(memory, FIELD);
	}
}

TEST(a_sum_of_zero_is_sent_as_ones)
{
	uint8_t memory[] = { 0xff, 0xff, 0, 0 };
	const struct mr_frame frame = { 0, sizeof(memory), 0 };
	struct mr_partial partial = { .n_bytes = 4, .field_bytes = 2 };

	mr_partial_finish(memory, &frame, &partial);
	assert_int_equal(memory[2] | memory[3], 0);
	partial.has_no_zero = 1;
	mr_partial_finish(memory, &frame, &partial);
	assert_int_equal(memory[2] & memory[3], 0xff);
}

/* What somebody made up must not be read beyond the frame. */
TEST(a_wrong_length_ends_with_the_frame)
{
	uint8_t *memory = malloc(4); /* so that ASan sees one byte more */
	const struct mr_frame frame = { 0, 4, 0 };
	const struct mr_partial partial = { .n_bytes = 4000, .field_bytes = 2 };

	memset(memory, 0, 4);
	memory[0] = 0x12;
	mr_partial_finish(memory, &frame, &partial);
	assert_int_equal(memory[2], 0xed);
	assert_int_equal(memory[3], 0xff);
	free(memory);
}
