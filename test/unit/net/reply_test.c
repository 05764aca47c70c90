/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/reply.c, and of the sum of a frame of several entries. */
#include "support/unit.h"

#include <millrace/net.h>
#include <millrace/wire.h>

TEST(addresses_are_swapped)
{
	uint8_t bytes[60] = "abcdefghijkl\x86\xdd";
	struct mr_net_view view = { .ether_type = MR_ETHER_IPV6,
				    .l3_bytes = 14 };

	memcpy(bytes + 22, "0123456789abcdefABCDEFGHIJKLMNOP", 32);
	mr_net_swap_macs(bytes);
	mr_net_swap_addrs(bytes, &view);
	assert_memory_equal(bytes, "ghijklabcdef\x86\xdd", 14);
	assert_memory_equal(bytes + 22, "ABCDEFGHIJKLMNOP0123456789abcdef", 32);
	view.ether_type = MR_ETHER_IPV4;
	mr_net_swap_addrs(bytes, &view);
	assert_memory_equal(bytes + 22, "ABCDIJKLEFGHMNOP", 16);
	view.ether_type = MR_ETHER_ARP;
	mr_net_swap_addrs(bytes, &view);
	assert_memory_equal(bytes + 22, "ABCDIJKLEFGHMNOP", 16);
}

TEST(only_echo_requests_become_replies)
{
	static const struct {
		uint16_t ether_type;
		uint8_t proto, type, n, reply;
	} cases[] = {
		{ MR_ETHER_IPV4, 1, 8, 8, 0 },
		{ MR_ETHER_IPV4, 1, 0, 8, 0 },
		{ MR_ETHER_IPV4, 1, 8, 3, 8 },
		{ MR_ETHER_IPV4, 17, 8, 8, 8 },
		{ MR_ETHER_IPV4, 58, 8, 8, 8 },
		{ MR_ETHER_IPV6, 58, 8, 8, 8 },
		{ MR_ETHER_IPV6, 58, 128, 8, 129 },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mr_net_view view = { .ether_type =
							  cases[i].ether_type,
						  .l3_bytes = 14,
						  .l4_bytes = 20,
						  .l4_proto = cases[i].proto,
						  .l4_len_bytes = cases[i].n };
		uint8_t bytes[28] = {
			[20] = cases[i].type, [24] = 7, [27] = 9
		};
		const uint16_t sum =
			(uint16_t)~mr_csum_fold(mr_csum_add(bytes + 20, 8, 0));

		memcpy(bytes + 22, &sum, sizeof(sum));
		assert_int_equal(mr_net_answer_echo(bytes, 28, &view),
				 cases[i].reply != cases[i].type);
		assert_int_equal(mr_net_answer_echo(bytes, 23, &view), 0);
		assert_int_equal(bytes[20], cases[i].reply);
		assert_int_equal(mr_csum_fold(mr_csum_add(bytes + 20, 8, 0)),
				 0xffff);
	}
}

TEST(sum_of_a_frame_is_that_of_its_bytes)
{
	uint8_t bytes[40];
	struct mr_frame frames[3];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + 5);
	for (uint32_t cut = 1; cut < 38; cut++) {
		frames[0] = (struct mr_frame){ 0, cut, MR_FRAME_MORE };
		frames[1] = (struct mr_frame){ cut, 1, MR_FRAME_MORE };
		frames[2] = (struct mr_frame){ cut + 1, 39 - cut, 0 };
		for (uint32_t at = 0; at < 40; at++)
			assert_int_equal(mr_csum_fold(mr_csum_frame(
						 bytes, frames, at, 40 - at)),
					 mr_csum_fold(mr_csum_add(bytes + at,
								  40 - at, 0)));
	}
	assert_int_equal(mr_csum_frame(bytes, frames, 40, 4), 0);
}
