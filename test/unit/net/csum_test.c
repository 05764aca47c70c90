/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/csum.c against sums from RFCs and a plain second way. */
#include "support/unit.h"

#include <netinet/in.h>

#include <errno.h>

#include <millrace/net.h>
#include <millrace/wire.h>

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

/* A packet of one or two entries, whose checksums are written, then checked. */
TEST(written_checksum_is_right_until_a_bit_changes)
{
	static const struct {
		uint16_t ether_type;
		uint8_t proto;
		int err;
	} cases[] = {
		{ MR_ETHER_IPV4, 6, 0 },
		{ MR_ETHER_IPV4, 17, 0 },
		{ MR_ETHER_IPV4, 1, 0 },
		{ MR_ETHER_IPV6, 6, 0 },
		{ MR_ETHER_IPV6, 17, 0 },
		{ MR_ETHER_IPV6, 58, 0 },
		{ MR_ETHER_IPV4, 58, -ENOTSUP },
		{ MR_ETHER_IPV6, 1, -ENOTSUP },
		{ MR_ETHER_IPV4, 132, -ENOTSUP },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t l4 =
			cases[i].ether_type == MR_ETHER_IPV4 ? 34 : 54;
		struct mr_frame frames[2] = { { .len = l4 + 33 } };
		uint8_t bytes[120] = { [12] = (uint8_t)(cases[i].ether_type >>
							8),
				       [13] = (uint8_t)cases[i].ether_type };
		struct mr_net_view view;

		memset(bytes + 14, 7, 100);
		bytes[14] = l4 == 34 ? 0x45 : 0x60;
		memcpy(bytes + (l4 == 34 ? 16 : 18),
		       l4 == 34 ? "\0\x35" : "\0\x21", 2);
		memset(bytes + 20, 0, l4 == 34 ? 2 : 0);
		bytes[l4 == 34 ? 23 : 20] = cases[i].proto;
		if (cases[i].proto == 17)
			memcpy(bytes + l4 + 4, "\0\x21", 2);
		if (l4 == 34)
			mr_csum_write_ipv4(bytes + 14);
		assert_int_equal(mr_net_parse(bytes, frames[0].len,
					      frames[0].len, &view),
				 0);
		assert_int_equal(mr_csum_write(bytes, frames, &view),
				 cases[i].err);
		assert_int_equal(mr_csum_check(bytes, frames, &view),
				 cases[i].err);
		frames[1] = (struct mr_frame){ l4 + 21, 12, 0 };
		frames[0].len = l4 + 21;
		frames[0].flags = MR_FRAME_MORE;
		assert_int_equal(mr_csum_check(bytes, frames, &view),
				 cases[i].err);
		bytes[l4 + 30] ^= 1;
		assert_int_equal(mr_csum_check(bytes, frames, &view),
				 cases[i].err < 0 ? cases[i].err : -EBADMSG);
		bytes[l4 + 30] ^= 1;
		if (l4 == 34) {
			bytes[22]++; /* the TTL */
			assert_int_equal(mr_csum_check(bytes, frames, &view),
					 -EBADMSG);
		}
		view.is_fragment = 1;
		bytes[22] -= l4 == 34;
		assert_int_equal(mr_csum_check(bytes, frames, &view), -ENOTSUP);
	}
}

TEST(delta_of_an_ipv6_address_is_that_of_its_words)
{
	uint8_t bytes[40], after[16];
	uint16_t sum;

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 91 + 3);
	for (uint8_t i = 0; i < sizeof(after); i++)
		after[i] = (uint8_t)(i * 57 + 200);
	sum = (uint16_t)~mr_csum_fold(mr_csum_add(bytes, sizeof(bytes), 0));
	sum = mr_csum_fix(sum, mr_csum_delta128(bytes + 8, after));
	memcpy(bytes + 8, after, sizeof(after));
	assert_int_equal(sum, (uint16_t)~mr_csum_fold(
				      mr_csum_add(bytes, sizeof(bytes), 0)));
}
