/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/csum.c against sums from RFCs and a plain second way. */
#include "support/unit.h"

#include <netinet/in.h>

#include <millrace/net.h>

/* RFC 1071 section 4.1, word for word: big-endian words, carries at the end. */
static uint16_t plain_sum(const uint8_t *bytes, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i + 1 < n; i += 2) {
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
		sum = (sum & 0xffff) + (sum >> 16);
	}
	if (n % 2 != 0) {
		sum += (uint32_t)bytes[n - 1] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

TEST(example_of_rfc_1071)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0xf2, 0x03,
					 0xf4, 0xf5, 0xf6, 0xf7 };

	assert_int_equal(ntohs(mr_csum_fold(mr_csum_add(bytes, 8, 0))), 0xddf2);
}

TEST(every_length_and_alignment)
{
	uint8_t bytes[300];

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 151 + 37);
	for (uint32_t at = 0; at < 8; at++)
		for (uint32_t n = 0; n + at <= 200; n++)
			assert_int_equal(ntohs(mr_csum_fold(mr_csum_add(
						 bytes + at, n, 0))),
					 plain_sum(bytes + at, n));
}

/* Every fold that could lose a carry. */
TEST(checksums_keep_all_carries)
{
	static const struct {
		uint64_t sum;
		uint16_t folded;
	} cases[] = {
		{ 0, 0 },
		{ 0xffff, 0xffff },
		{ 0x10000, 1 },
		{ 0x1fffe, 0xffff },
		{ 0x1ffff, 1 },
		{ 0xffffffff, 0xffff },
		{ UINT64_C(0x100000000), 1 },
		{ UINT64_C(0xffff0000ffff), 0xffff },
		{ UINT64_C(0xffffffffffffffff), 0xffff },
		{ UINT64_C(0xfffffffffffffffe), 0xfffe },
		{ UINT64_C(0x8000000080000000), 1 },
		{ UINT64_C(0x00010000ffffffff), 1 },
	};
	static uint8_t ones[65536];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mr_csum_fold(cases[i].sum), cases[i].folded);
	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(mr_csum_fold(mr_csum_add(ones, sizeof(ones), 0)),
			 0xffff);
}

/* An IPv4 header has the sum 0xffff if it is good: Wikipedia's classic one. */
TEST(good_ipv4_header_sums_to_ones)
{
	static const uint8_t ip[] = { 0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40,
				      0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
				      0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7 };

	assert_int_equal(mr_csum_fold(mr_csum_add(ip, sizeof(ip), 0)), 0xffff);
}

TEST(pseudo_header_of_ipv4)
{
	/* 192.0.2.1 to 198.51.100.2, TCP, 20 bytes. */
	static const uint8_t pseudo[] = { 192, 0, 2, 1, 198, 51,
					  100, 2, 0, 6, 0,   20 };
	uint8_t frame[14 + 20] = { 0 };
	const struct mr_net_view view = { .ether_type = 0x0800,
					  .l3_bytes = 14,
					  .l4_bytes = 34,
					  .l4_proto = IPPROTO_TCP,
					  .l4_len_bytes = 20 };

	memcpy(frame + 14 + 12, pseudo, 8);
	assert_int_equal(ntohs(mr_csum_pseudo(frame, &view)),
			 plain_sum(pseudo, sizeof(pseudo)));
}

TEST(pseudo_header_of_ipv6)
{
	uint8_t pseudo[40], frame[14 + 40] = { 0 };
	const struct mr_net_view view = { .ether_type = 0x86dd,
					  .l3_bytes = 14,
					  .l4_bytes = 54,
					  .l4_proto = IPPROTO_UDP,
					  .l4_len_bytes = 65000 };

	for (int i = 0; i < 32; i++)
		pseudo[i] = (uint8_t)(0xf0 + i);
	memcpy(frame + 14 + 8, pseudo, 32);
	memset(pseudo + 32, 0, 8);
	pseudo[34] = 65000 >> 8;
	pseudo[35] = (uint8_t)65000;
	pseudo[39] = IPPROTO_UDP;
	assert_int_equal(ntohs(mr_csum_pseudo(frame, &view)),
			 plain_sum(pseudo, sizeof(pseudo)));
}
