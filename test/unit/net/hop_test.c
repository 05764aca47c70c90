/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/hop.c. */
#include "support/unit.h"

#include <errno.h>

#include <millrace/net.h>
#include <millrace/wire.h>

enum { L3 = MR_ETH_BYTES };

static uint8_t bytes[L3 + 60];

/* How a packet with these addresses and this TTL is judged. */
static int judge4(const char *src, const char *dst, uint8_t ttl,
		  uint8_t *ret_dst)
{
	struct mr_ipv4 *ip = (void *)(bytes + L3);
	const struct mr_net_view view = { .ether_type = MR_ETHER_IPV4,
					  .l3_bytes = L3 };

	memset(bytes, 0, sizeof(bytes));
	ip->version_ihl = 0x46; /* with options */
	ip->ttl = ttl;
	ip->proto = 17;
	memcpy(&ip->src, src, 4);
	memcpy(&ip->dst, dst, 4);
	memset(bytes + L3 + 20, 1, 4);
	mr_csum_write_ipv4(ip);
	return mr_net_count_hop(bytes, &view, ret_dst);
}

static int judge6(const char *src, const char *dst, uint8_t hop_limit,
		  uint8_t *ret_dst)
{
	struct mr_ipv6 *ip = (void *)(bytes + L3);
	const struct mr_net_view view = { .ether_type = MR_ETHER_IPV6,
					  .l3_bytes = L3 };

	memset(bytes, 0, sizeof(bytes));
	ip->hop_limit = hop_limit;
	memcpy(ip->src, src, 16);
	memcpy(ip->dst, dst, 16);
	return mr_net_count_hop(bytes, &view, ret_dst);
}

#define HERE "\xc0\0\2\1"
#define THERE "\xc6\x33\x64\7"
#define V6(first, last) first "\0\0\0\0\0\0\0\0\0\0\0" last
#define HERE6 V6("\x20\1\xd\xb8", "\1")
#define THERE6 V6("\x20\1\xd\xb9", "\2")

TEST(ttl_and_checksum_are_counted_down)
{
	uint8_t dst[16];

	for (uint32_t ttl = 2; ttl < 256; ttl++) {
		assert_int_equal(judge4(HERE, THERE, (uint8_t)ttl, dst), 0);
		assert_int_equal(bytes[L3 + 8], ttl - 1);
		assert_int_equal(mr_csum_fold(mr_csum_add(bytes + L3, 24, 0)),
				 0xffff);
		assert_memory_equal(dst, "\0\0\0\0\0\0\0\0\0\0\xff\xff" THERE,
				    16);
		assert_int_equal(judge6(HERE6, THERE6, (uint8_t)ttl, dst), 0);
		assert_int_equal(bytes[L3 + 7], ttl - 1);
		assert_memory_equal(dst, THERE6, 16);
	}
}

TEST(used_up_ttl_changes_nothing)
{
	uint8_t dst[16];

	for (uint8_t ttl = 0; ttl < 2; ttl++) {
		assert_int_equal(judge4(HERE, THERE, ttl, dst), -ETIME);
		assert_int_equal(bytes[L3 + 8], ttl);
		assert_memory_equal(dst + 12, THERE, 4);
		assert_int_equal(judge6(HERE6, THERE6, ttl, dst), -ETIME);
		assert_int_equal(bytes[L3 + 7], ttl);
		assert_memory_equal(dst, THERE6, 16);
	}
}

TEST(addresses_that_must_not_be_routed_are_refused)
{
	static const char *const wrong4[] = { "\0\0\0\0", "\x7f\0\0\1",
					      "\xe0\0\0\5", "\xf0\0\0\1",
					      "\xff\xff\xff\xff" };
	static const char *const wrong6[] = {
		V6("\0\0\0\0", "\0"),     V6("\0\0\0\0", "\1"),
		V6("\xff\2\0\0", "\1"),   V6("\xfe\x80\0\0", "\1"),
		V6("\xfe\xbf\0\0", "\1"), "\0\0\0\0\0\0\0\0\0\0\xff\xff" HERE
	};
	static const char *const right6[] = { V6("\xfe\xc0\0\0", "\1"),
					      V6("\xfc\0\0\0", "\1"),
					      V6("\0\x64\xff\x9b", "\1") };
	uint8_t dst[16];

	for (uint32_t i = 0; i < sizeof(wrong4) / sizeof(wrong4[0]); i++) {
		assert_int_equal(judge4(wrong4[i], THERE, 9, dst),
				 -EADDRNOTAVAIL);
		assert_int_equal(judge4(HERE, wrong4[i], 9, dst),
				 -EADDRNOTAVAIL);
	}
	for (uint32_t i = 0; i < sizeof(wrong6) / sizeof(wrong6[0]); i++) {
		assert_int_equal(judge6(wrong6[i], THERE6, 9, dst),
				 -EADDRNOTAVAIL);
		assert_int_equal(judge6(HERE6, wrong6[i], 9, dst),
				 -EADDRNOTAVAIL);
		assert_int_equal(bytes[L3 + 7], 9);
	}
	for (uint32_t i = 0; i < sizeof(right6) / sizeof(right6[0]); i++)
		assert_int_equal(judge6(right6[i], THERE6, 9, dst), 0);
}

TEST(wrong_header_checksum_and_other_protocols_are_refused)
{
	struct mr_net_view view = { .ether_type = MR_ETHER_IPV4,
				    .l3_bytes = L3 };
	uint8_t dst[16];

	assert_int_equal(judge4(HERE, THERE, 9, dst), 0);
	bytes[L3 + 20] ^= 1; /* an option */
	assert_int_equal(mr_net_count_hop(bytes, &view, dst), -EBADMSG);
	assert_int_equal(bytes[L3 + 8], 8);
	view.ether_type = MR_ETHER_ARP;
	assert_int_equal(mr_net_count_hop(bytes, &view, dst), -ENOTSUP);
}
