/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/answer/error.c. */
#include "support/answer_unit.h"

enum { SECOND_NS = 1000000000 };

/* A UDP packet that is not for us, of n_payload bytes. */
static struct ask make_packet4(uint32_t n_options, uint32_t n_payload)
{
	struct ask ask = make_ping("\x08\0", 2, n_options, n_payload);

	ask.bytes[ask.l3 + 9] = 17;
	memcpy(ask.bytes + ask.l3 + 16, "\xc6\x33\x64\7", 4);
	packet_put16(ask.bytes + ask.l4 + 4, 8 + n_payload);
	sum_ipv4(&ask);
	return ask;
}

static struct ask make_packet6(uint8_t proto, uint32_t n_payload)
{
	struct ask ask = make_ipv6(OUR_MAC, PEER_IP6, V6("\7"), NULL, 0);

	ask.bytes[ask.l3 + 6] = proto;
	put(&ask, "\0\1\0\2\0\0\0\0", 8);
	ask.n += n_payload;
	packet_put16(ask.bytes + ask.l3 + 4, 8 + n_payload);
	packet_put16(ask.bytes + ask.l4 + 4, 8 + n_payload);
	return ask;
}

/* Whether a frame becomes an error; if not, it must be unchanged. */
static bool is_told(struct mr_frame *frame, enum mr_error error)
{
	uint8_t copy[2048];

	memcpy(copy, f.base + frame->addr, frame->len);
	if (mr_answer_error(answer, frame, NULL, 1, error, 1280))
		return true;
	assert_memory_equal(f.base + frame->addr, copy, frame->len);
	return false;
}

static bool is_told_of(const struct ask *ask, enum mr_error error)
{
	struct mr_frame frame = frame_with(ask->bytes, ask->n);
	const bool told = is_told(&frame, error);

	mr_frame_free_bulk(f.cache, &frame, 1);
	return told;
}

TEST_POOL(error_quotes_the_packet_and_goes_back)
{
	static const uint8_t kinds[][5] = {
		[MR_ERROR_TTL] = { 11, 0, 3, 0 },
		[MR_ERROR_NO_ROUTE] = { 3, 0, 1, 0 },
		[MR_ERROR_NO_HOST] = { 3, 1, 1, 3 },
		[MR_ERROR_TOO_BIG] = { 3, 4, 2, 0, 5 },
		[MR_ERROR_NO_PORT] = { 3, 3, 1, 4 },
		[MR_ERROR_PROHIBITED] = { 3, 13, 1, 1 },
	};

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t i = 0; i < 2 * sizeof(kinds) / 5; i++) {
		const bool is_v6 = i % 2;
		const uint8_t *kind = kinds[i / 2];
		const struct ask ask =
			is_v6 ? make_packet6(17, 40) : make_packet4(8, 40);
		const uint32_t n_head = is_v6 ? 48 : 28;
		struct mr_frame frame = frame_with(ask.bytes, ask.n);
		const uint8_t *bytes, *icmp;
		struct packet p;

		assert_true(is_told(&frame, (enum mr_error)(i / 2)));
		bytes = f.base + frame.addr;
		icmp = bytes + 14 + n_head - 8;
		assert_int_equal(frame.len, ask.n + n_head);
		assert_memory_equal(bytes, PEER_MAC OUR_MAC, 12);
		assert_memory_equal(bytes + 14 + (is_v6 ? 8 : 12),
				    is_v6 ? OUR_IP6 : OUR_IP, is_v6 ? 16 : 4);
		assert_memory_equal(bytes + 14 + (is_v6 ? 24 : 16),
				    is_v6 ? PEER_IP6 : PEER_IP, is_v6 ? 16 : 4);
		assert_memory_equal(icmp, kind + 2 * is_v6, 2);
		assert_int_equal(packet_be32(icmp + 4), kind[4] ? 1280 : 0);
		assert_memory_equal(icmp + 8, ask.bytes + 14, ask.n - 14);
		p = packet_parse(bytes, frame.len);
		assert_int_equal(p.end, frame.len);
		assert_true(packet_ip_sum_is_right(bytes, &p));
		assert_int_equal(
			packet_sum(icmp, frame.len - 14 - n_head + 8,
				   is_v6 ? packet_pseudo_sum(bytes, &p, 58,
							     frame.len - 54) :
					   0),
			0xffff);
		mr_frame_free_bulk(f.cache, &frame, 1);
	}
	assert_int_equal(counted(MR_ANSWER_ERROR), 12);
	close_answer();
}

TEST_POOL(long_packet_is_quoted_in_part_and_padding_is_not)
{
	struct mr_frame frames[2];
	struct ask ask = make_packet4(0, 20);

	open_answer((struct mr_answer_config){ 0 });
	frames[0] = frame_with(ask.bytes, 60); /* padded from 62 - 2 */
	frames[0].len = 100;
	assert_true(is_told(frames, MR_ERROR_TTL));
	assert_int_equal(frames[0].len, ask.n + 28);
	mr_frame_free_bulk(f.cache, frames, 1);
	/* Of two entries. */
	ask = make_packet4(0, 300);
	packet_put16(ask.bytes + 16, 28 + 300 + 1000);
	packet_put16(ask.bytes + 24, 0);
	packet_put16(ask.bytes + 24,
		     (uint16_t)~packet_sum(ask.bytes + 14, 20, 0));
	frames[0] = frame_with(ask.bytes, ask.n);
	frames[0].len = 800;
	frames[0].flags = MR_FRAME_MORE | MR_FRAME_CSUM_PARTIAL;
	frames[1] = frame_with(ask.bytes, 100);
	frames[1].len = 542;
	assert_int_equal(mr_answer_error(answer, frames, NULL, 2,
					 MR_ERROR_TOO_BIG, 1280),
			 1);
	assert_int_equal(frames[0].len, 14 + 576);
	assert_int_equal(frames[0].flags, 0);
	mr_frame_free_bulk(f.cache, frames, 1);
	close_answer();
}

TEST_POOL(some_packets_have_no_error)
{
	struct ask ask = make_plain_ping();

	open_answer((struct mr_answer_config){ 0 });
	assert_true(is_told_of(&ask, MR_ERROR_TTL)); /* a request may */
	for (uint32_t type = 3; type < 13; type += 3) {
		ask.bytes[ask.l4] = (uint8_t)type; /* 3, 6, 9, 12 */
		assert_false(is_told_of(&ask, MR_ERROR_TTL));
	}
	ask = make_packet6(58, 8);
	for (uint32_t type = 1; type < 256; type += 68) {
		ask.bytes[ask.l4] = (uint8_t)type; /* 1, 69; 137 redirects */
		assert_int_equal(is_told_of(&ask, MR_ERROR_TTL), type == 205);
	}
	ask = make_packet4(0, 32);
	ask.bytes[ask.l3 + 7] = 1; /* a later fragment */
	sum_ipv4(&ask);
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	ask = make_packet4(0, 32);
	ask.bytes[ask.l3 + 12] = 0xe0; /* from a group */
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	ask = make_packet4(0, 32);
	ask.bytes[ask.l3 + 16] = 0xff; /* to all */
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	ask = make_packet4(0, 32);
	ask.bytes[0] = 1; /* a group's MAC address */
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	ask = make_packet6(17, 32);
	ask.bytes[ask.l3 + 24] = 0xff;
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	/* The first fragment of an error behind destination options. */
	ask = make_ipv6(OUR_MAC, PEER_IP6, V6("\7"),
			"\x3c\0\0\1\0\0\0\7\x3a\0\1\4\0\0\0\0", 16);
	ask.bytes[ask.l3 + 6] = 44;
	ask.bytes[ask.l3 + 5] = 24;
	put(&ask, "\1\0\0\0\0\0\0\0", 8);
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	ask = make_arp(OUR_MAC);
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	ask = make_packet4(0, 32);
	assert_false(is_told_of(&ask, (enum mr_error)99));
	ask.bytes[ask.l3 + 2] = 9; /* longer than the frame */
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	assert_int_equal(counted(MR_ANSWER_ERROR_LIMITED), 0);
	close_answer();
}

TEST_POOL(errors_are_limited_apart_from_answers)
{
	const struct ask ask = make_packet4(0, 32), ping = make_plain_ping();
	struct mr_frame frame;

	open_answer((struct mr_answer_config){ .per_s = 10, .burst = 3 });
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(is_told_of(&ask, MR_ERROR_TTL), i < 3);
	assert_int_equal(counted(MR_ANSWER_ERROR_LIMITED), 2);
	frame = frame_with(ping.bytes, ping.n);
	assert_true(is_answered(&frame, NULL));
	mr_frame_free_bulk(f.cache, &frame, 1);
	f.now_ns += SECOND_NS / 10;
	assert_true(is_told_of(&ask, MR_ERROR_TTL));
	assert_false(is_told_of(&ask, MR_ERROR_TTL));
	close_answer();
}

TEST_POOL(frame_without_headroom_has_no_error)
{
	const struct ask ask = make_packet4(0, 32);
	struct mr_frame frame;

	open_answer((struct mr_answer_config){ 0 });
	frame = frame_with(ask.bytes, ask.n);
	memmove(f.base + frame.addr - HEADROOM + 27, f.base + frame.addr,
		ask.n);
	frame.addr -= HEADROOM - 27;
	assert_false(is_told(&frame, MR_ERROR_TTL));
	mr_frame_free_bulk(f.cache, &frame, 1);
	close_answer();
}

TEST_POOL(shared_frame_is_copied_and_tags_are_kept)
{
	struct mr_meta meta = { .valid = MR_META_VLAN | MR_META_RSS_HASH,
				.vlan_tci = 7 };
	struct ask ask = make_ping("\x81\0\0\5\x08\0", 6, 0, 32);
	struct mr_frame frame, other;

	open_answer((struct mr_answer_config){ 0 });
	frame = other = frame_with(ask.bytes, ask.n);
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	assert_int_equal(mr_answer_error(answer, &frame, &meta, 1,
					 MR_ERROR_PROHIBITED, 0),
			 1);
	assert_memory_equal(f.base + other.addr, ask.bytes, ask.n);
	assert_memory_equal(f.base + frame.addr,
			    PEER_MAC OUR_MAC "\x81\0\0\5\x08\0", 18);
	assert_int_equal(meta.valid, MR_META_VLAN);
	mr_frame_free_bulk(f.cache, &frame, 1);
	mr_frame_free_bulk(f.cache, &other, 1);
	close_answer();
}
