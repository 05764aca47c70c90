/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of <millrace/wire.h>: headers fit the wire, sums follow a change. */
#include "support/unit.h"

#include <arpa/inet.h>

#include <millrace/net.h>
#include <millrace/wire.h>

TEST(structs_have_the_size_of_headers)
{
	assert_int_equal(sizeof(struct mr_eth), 14);
	assert_int_equal(sizeof(struct mr_vlan), 4);
	assert_int_equal(sizeof(struct mr_arp), 28);
	assert_int_equal(sizeof(struct mr_ipv4), 20);
	assert_int_equal(sizeof(struct mr_udp), 8);
	assert_int_equal(sizeof(struct mr_tcp), 20);
	assert_int_equal(sizeof(struct mr_icmp), 8);
}

static uint64_t state_of_random = 1;

static uint32_t random_u32(void)
{
	state_of_random = state_of_random * UINT64_C(6364136223846793005) + 1;
	return (uint32_t)(state_of_random >> 32);
}

/* Values where carries and the two zeros of ones' complement show. */
static uint16_t random_word(void)
{
	static const uint16_t edges[] = {
		0, 1, 0x7fff, 0x8000, 0xfffe, 0xffff
	};
	const uint32_t r = random_u32();

	return r % 4 == 0 ? edges[r / 4 % 6] : (uint16_t)(r >> 8);
}

/* A header whose sum is right has a right one after any words changed. */
TEST(updated_sum_equals_a_full_sum)
{
	for (uint32_t i = 0; i < 200000; i++) {
		uint16_t words[8], before, csum;
		uint32_t delta = 0, before32, after32;

		for (uint32_t j = 0; j < 8; j++)
			words[j] = random_word();
		words[0] = 0;  /* the field */
		words[1] |= 1; /* a header is never all zeros */
		csum = (uint16_t)~mr_csum_fold(
			mr_csum_add((const uint8_t *)words, 16, 0));
		before = words[2];
		words[2] = random_word();
		delta += mr_csum_delta16(before, words[2]);
		memcpy(&before32, &words[4], 4);
		words[4] = random_word();
		words[5] = random_word();
		memcpy(&after32, &words[4], 4);
		delta += mr_csum_delta32(before32, after32);
		words[0] = mr_csum_fix(csum, delta);
		assert_int_equal(mr_csum_fold(mr_csum_add(
					 (const uint8_t *)words, 16, 0)),
				 0xffff);
	}
}

/* RFC 1624 section 4: 0xdd2f, 0x5555 becomes 0x3285; the answer is 0, not ~0.
 */
TEST(example_of_rfc_1624)
{
	assert_int_equal(
		mr_csum_fix(htons(0xdd2f),
			    mr_csum_delta16(htons(0x5555), htons(0x3285))),
		0);
}

/* A message of zeros has the sum 0xffff, which verifies; 0 does not. */
TEST(a_sum_over_zeros_is_not_zero)
{
	static const uint16_t before[] = { 0x0800, 1, 0xffff, 0 };

	for (uint32_t i = 0; i < 4; i++) {
		const uint16_t csum = (uint16_t)~before[i];
		const uint32_t delta = mr_csum_delta16(before[i], 0);

		assert_int_equal(mr_csum_fix_nonzero(csum, delta), 0xffff);
	}
	assert_int_equal(mr_csum_fix_nonzero(0xfffe, mr_csum_delta16(1, 2)),
			 0xfffd);
}

TEST(both_folds_agree)
{
	for (uint32_t i = 0; i < 100000; i++) {
		const uint32_t sum =
			(uint32_t)random_word() << 16 | random_word();

		assert_int_equal(mr_csum_fold32(sum), mr_csum_fold(sum));
		assert_int_equal(mr_csum_fold64((uint64_t)sum << 7),
				 mr_csum_fold((uint64_t)sum << 7));
	}
	/* The plain way, 16 bits at a time. */
	assert_int_equal(mr_csum_fold64(UINT64_MAX), 0xffff);
	assert_int_equal(mr_csum_fold64(UINT64_C(0x0001000200030004)), 10);
	assert_int_equal(mr_csum_fold32(0xffff0001), 1);
}
