/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/neighbour.c. */
#include "support/unit.h"

#include <millrace/net.h>
#include <millrace/wire.h>

#define OUR_MAC "\2\0\0\0\0\1"
#define PEER_MAC "\2\0\0\0\0\2"
#define MAPPED "\0\0\0\0\0\0\0\0\0\0\xff\xff"
#define US MAPPED "\xc0\0\2\1"
#define PEER MAPPED "\xc0\0\2\2"
#define V6(last) "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0" last
#define US6 V6("\1")
#define PEER6 V6("\2")
#define NOBODY6 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define TO_US6 "\2\0\0\0\0\1" PEER_MAC "\x86\xdd\x60\0\0\0\0\x20\x3a\xff"

enum { ARP_OP = 21, ARP_MAC = 22, ARP_SENDER = 28, HOP_LIMIT = 21 };
enum { SRC6 = 22, MESSAGE = 54, TARGET = 62, OPTION = 78, N6 = 86 };

static uint8_t bytes[256];

/* What a frame in bytes says. */
static int read_frame(uint32_t n, uint32_t flags, struct mr_net_neighbour *ret)
{
	const struct mr_frame frame = { .len = n, .flags = flags };
	struct mr_net_view view;

	if (mr_net_parse(bytes, n, n, &view) < 0)
		return -EBADMSG;
	return mr_net_read_neighbour(bytes, &frame, &view, ret);
}

static int read_arp(struct mr_net_neighbour *ret)
{
	return read_frame(42, 0, ret);
}

static void make_arp(uint8_t op)
{
	memcpy(bytes,
	       OUR_MAC PEER_MAC "\x08\6\0\1\x08\0\6\4\0\0" PEER_MAC
				"\xc0\0\2\2\0\0\0\0\0\0\xc0\0\2\1",
	       42);
	bytes[ARP_OP] = op;
}

static void sum(uint32_t n)
{
	const struct mr_frame frame = { .len = n };
	struct mr_net_view view;

	assert_int_equal(mr_net_parse(bytes, n, n, &view), 0);
	assert_int_equal(mr_csum_write(bytes, &frame, &view), 0);
}

static void make_nd(uint8_t type, const char *src, uint8_t option)
{
	memcpy(bytes, TO_US6, 22);
	memcpy(bytes + SRC6, src, 16);
	memcpy(bytes + 38, US6, 16);
	memset(bytes + MESSAGE, 0, 8);
	bytes[MESSAGE] = type;
	memcpy(bytes + TARGET, PEER6 "\0\1" PEER_MAC, 24);
	bytes[OPTION] = option;
	sum(N6);
}

TEST(arp_names_its_sender)
{
	for (uint8_t op = 0; op < 4; op++) {
		struct mr_net_neighbour said = { 0 };

		make_arp(op);
		if (op == MR_ARP_REQUEST || op == MR_ARP_REPLY) {
			assert_int_equal(read_arp(&said), 0);
			assert_memory_equal(said.addr, PEER, 16);
			assert_memory_equal(said.mac, PEER_MAC, 6);
			assert_int_equal(said.is_reply, op == MR_ARP_REPLY);
		} else {
			assert_int_equal(read_arp(&said), -ENOENT);
		}
	}
}

TEST(arp_that_is_short_or_of_another_kind_names_nobody)
{
	static const uint8_t at[] = { 15, 17, 18, 19 };
	struct mr_net_neighbour said;

	for (uint32_t i = 0; i < sizeof(at); i++) {
		make_arp(MR_ARP_REPLY);
		bytes[at[i]] ^= 4;
		assert_int_equal(read_arp(&said), -ENOENT);
	}
	make_arp(MR_ARP_REPLY);
	assert_int_equal(read_frame(41, 0, &said), -ENOENT);
	memset(bytes + ARP_SENDER, 0, 4); /* a probe */
	assert_int_equal(read_arp(&said), -ENOENT);
	make_arp(MR_ARP_REPLY);
	bytes[ARP_MAC] = 3; /* a group */
	assert_int_equal(read_arp(&said), -EBADMSG);
}

TEST(solicitation_names_its_sender_and_advertisement_its_target)
{
	static const uint8_t cases[][3] = {
		/* type, option, last byte of the address */
		{ MR_ICMPV6_SOLICITATION, MR_NEIGHBOUR_SOURCE_MAC, 1 },
		{ MR_ICMPV6_ADVERTISEMENT, MR_NEIGHBOUR_TARGET_MAC, 2 },
		{ MR_ICMPV6_SOLICITATION, MR_NEIGHBOUR_TARGET_MAC, 0 },
		{ MR_ICMPV6_ADVERTISEMENT, MR_NEIGHBOUR_SOURCE_MAC, 0 },
		{ MR_ICMPV6_ECHO, MR_NEIGHBOUR_SOURCE_MAC, 0 },
	};

	for (uint32_t i = 0; i < 5; i++) {
		struct mr_net_neighbour said = { 0 };

		make_nd(cases[i][0], US6, cases[i][1]);
		assert_int_equal(read_frame(N6, 0, &said),
				 cases[i][2] ? 0 : -ENOENT);
		if (cases[i][2] == 0)
			continue;
		assert_memory_equal(said.addr, PEER6, 15);
		assert_int_equal(said.addr[15], cases[i][2]);
		assert_memory_equal(said.mac, PEER_MAC, 6);
		assert_int_equal(said.is_reply, i == 1);
	}
	make_nd(MR_ICMPV6_SOLICITATION, NOBODY6, MR_NEIGHBOUR_SOURCE_MAC);
	assert_int_equal(read_frame(N6, 0, &(struct mr_net_neighbour){ 0 }),
			 -ENOENT);
}

TEST(wrong_advertisements_are_refused)
{
	static const uint8_t at[] = { HOP_LIMIT,  MESSAGE + 1, MESSAGE + 3,
				      OPTION + 1, OPTION + 2,  TARGET };
	struct mr_net_neighbour said;

	for (uint32_t i = 0; i < sizeof(at); i++) {
		make_nd(MR_ICMPV6_ADVERTISEMENT, US6, MR_NEIGHBOUR_TARGET_MAC);
		/* 0xff is also the group of an address. */
		bytes[at[i]] = at[i] == HOP_LIMIT ? 254 : 0xff;
		bytes[MESSAGE + 3] ^= at[i] == MESSAGE + 3;
		if (at[i] != MESSAGE + 3)
			sum(N6);
		assert_int_equal(read_frame(N6, 0, &said), -EBADMSG);
	}
	make_nd(MR_ICMPV6_ADVERTISEMENT, US6, MR_NEIGHBOUR_TARGET_MAC);
	bytes[OPTION + 1] = 0;
	sum(N6);
	assert_int_equal(read_frame(N6, 0, &said), -EBADMSG);
	/* A stack on this host has left the checksum to the device. */
	make_nd(MR_ICMPV6_ADVERTISEMENT, US6, MR_NEIGHBOUR_TARGET_MAC);
	bytes[MESSAGE + 3] ^= 1;
	assert_int_equal(read_frame(N6, MR_FRAME_CSUM_PARTIAL, &said), 0);
}

TEST(options_are_read_to_the_end)
{
	struct mr_net_neighbour said;

	make_nd(MR_ICMPV6_ADVERTISEMENT, US6, MR_NEIGHBOUR_TARGET_MAC);
	memmove(bytes + N6, bytes + OPTION, 8);
	memcpy(bytes + OPTION, "\x0e\1\1\2\3\4\5\6", 8); /* a nonce */
	bytes[19] = 0x28;
	sum(N6 + 8);
	assert_int_equal(read_frame(N6 + 8, 0, &said), 0);
	assert_memory_equal(said.mac, PEER_MAC, 6);
	memcpy(bytes + N6 + 8, "\x0e\1\1\2", 4); /* half of one */
	bytes[19] = 0x2c;
	sum(N6 + 12);
	assert_int_equal(read_frame(N6 + 12, 0, &said), -EBADMSG);
}

TEST(question_is_one_that_the_library_reads)
{
	struct mr_net_neighbour said;

	memset(bytes, 0xa5, sizeof(bytes));
	assert_int_equal(mr_net_ask_neighbour(bytes, (uint8_t *)PEER_MAC,
					      (uint8_t *)PEER, (uint8_t *)US),
			 60);
	assert_memory_equal(bytes, "\xff\xff\xff\xff\xff\xff" PEER_MAC, 12);
	assert_memory_equal(bytes + 38, "\xc0\0\2\1\0\0\0\0", 8);
	assert_int_equal(bytes[60], 0xa5);
	assert_int_equal(read_frame(60, 0, &said), 0);
	assert_memory_equal(said.addr, PEER, 16);
	assert_int_equal(said.is_reply, 0);
	assert_int_equal(mr_net_ask_neighbour(bytes, (uint8_t *)PEER_MAC,
					      (uint8_t *)PEER6, (uint8_t *)US6),
			 MR_NET_ASK_BYTES);
	assert_memory_equal(bytes, "\x33\x33\xff\0\0\1" PEER_MAC, 12);
	assert_memory_equal(bytes + 38, "\xff\2\0\0\0\0\0\0\0\0\0\1\xff\0\0\1",
			    16);
	assert_memory_equal(bytes + TARGET, US6, 16);
	assert_int_equal(bytes[MR_NET_ASK_BYTES], 0xa5);
	assert_int_equal(read_frame(MR_NET_ASK_BYTES, 0, &said), 0);
	assert_memory_equal(said.addr, PEER6, 16);
	assert_memory_equal(said.mac, PEER_MAC, 6);
}
