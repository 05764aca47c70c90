/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/answer over IPv6: neighbour solicitations and pings. */
#include "support/answer_unit.h"

#define SOURCE_MAC_OPTION "\1\1" PEER_MAC
#define EMPTY_OPTIONS "\x3a\0\1\4\0\0\0\0"
#define NOBODY "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* For OUR_IP6, with these options. */
static struct ask make_solicitation(const char *mac, const char *src,
				    const char *dst, const char *options,
				    uint32_t n_options)
{
	struct ask ask = make_ipv6(mac, src, dst, NULL, 0);

	put(&ask, "\x87\0\0\0\0\0\0\0" OUR_IP6, 24);
	put(&ask, options, n_options);
	sum_icmp(&ask);
	return ask;
}

static struct ask make_plain_solicitation(void)
{
	return make_solicitation(SOLICITED_MAC, PEER_IP6, SOLICITED_IP6,
				 SOURCE_MAC_OPTION, 8);
}

static struct ask make_ping6(uint32_t n_extension)
{
	struct ask ask = make_ipv6(OUR_MAC, PEER_IP6, OUR_IP6, EMPTY_OPTIONS,
				   n_extension);

	put(&ask, "\x80\0\0\0\x11\x22\0\1some data", 17);
	sum_icmp(&ask);
	return ask;
}

static void assert_sum(const uint8_t *bytes, uint32_t n)
{
	assert_int_equal(packet_sum(bytes + 54, n - 54,
				    packet_sum(bytes + 22, 32, n - 54 + 58)),
			 0xffff);
}

static void assert_advertisement(struct mr_frame frame, const char *to_mac,
				 const char *to, uint32_t flags)
{
	const uint8_t *bytes = f.base + frame.addr;

	assert_int_equal(frame.len, 86);
	assert_memory_equal(bytes, to_mac, 6);
	assert_memory_equal(bytes + 6, OUR_MAC "\x86\xdd", 8);
	assert_memory_equal(bytes + 14, "\x60\0\0\0\0\x20\x3a\xff" OUR_IP6, 24);
	assert_memory_equal(bytes + 38, to, 16);
	assert_memory_equal(bytes + 54, "\x88\0", 2);
	assert_int_equal(packet_be32(bytes + 58), flags);
	assert_memory_equal(bytes + 62, OUR_IP6 "\2\1" OUR_MAC, 24);
	assert_sum(bytes, 86);
	assert_int_equal(bytes[86], 0xa5); /* behind the frame */
}

TEST_POOL(solicitation_is_answered)
{
	static const struct {
		const char *mac, *dst, *options;
		uint32_t n;
	} cases[] = {
		{ SOLICITED_MAC, SOLICITED_IP6, SOURCE_MAC_OPTION, 8 },
		{ OUR_MAC, OUR_IP6, SOURCE_MAC_OPTION, 8 },
		{ OUR_MAC, OUR_IP6, "", 0 }, /* the answer is longer */
		{ OUR_MAC, OUR_IP6, SOURCE_MAC_OPTION "\x0e\1\1\2\3\4\5\6",
		  16 },
	};

	for (uint32_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const bool is_router = i % 2;
		const struct ask ask = make_solicitation(
			cases[i / 2].mac, PEER_IP6, cases[i / 2].dst,
			cases[i / 2].options, cases[i / 2].n);
		struct mr_frame frame;

		open_answer(
			(struct mr_answer_config){ .is_router = is_router });
		frame = frame_with(ask.bytes, ask.n);
		memset(f.base + frame.addr + frame.len, 0xa5, 64);
		assert_true(is_answered(&frame, NULL));
		memset(f.base + frame.addr + 86, 0xa5, 1);
		assert_advertisement(frame, PEER_MAC, PEER_IP6,
				     is_router ? 0xe0000000 : 0x60000000);
		mr_frame_free_bulk(f.cache, &frame, 1);
		close_answer();
	}
}

TEST_POOL(probe_for_our_address_is_answered_to_all)
{
	const struct ask ask =
		make_solicitation(SOLICITED_MAC, NOBODY, SOLICITED_IP6, "", 0);
	struct mr_frame frame;

	open_answer((struct mr_answer_config){ 0 });
	frame = frame_with(ask.bytes, ask.n);
	assert_true(is_answered(&frame, NULL));
	assert_advertisement(frame, "\x33\x33\0\0\0\1",
			     "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 0x20000000);
	assert_int_equal(counted(MR_ANSWER_SOLICITATION), 1);
	mr_frame_free_bulk(f.cache, &frame, 1);
	close_answer();
}

TEST_POOL(answer_to_a_solicitation_has_no_extension_headers)
{
	struct ask ask = make_ipv6(SOLICITED_MAC, PEER_IP6, SOLICITED_IP6,
				   EMPTY_OPTIONS, 8);
	struct mr_frame frame;

	put(&ask, "\x87\0\0\0\0\0\0\0" OUR_IP6 SOURCE_MAC_OPTION, 32);
	sum_icmp(&ask);
	packet_put16(ask.bytes + 18, 40);
	open_answer((struct mr_answer_config){ 0 });
	frame = frame_with(ask.bytes, ask.n);
	assert_true(is_answered(&frame, NULL));
	memset(f.base + frame.addr + 86, 0xa5, 1);
	assert_advertisement(frame, PEER_MAC, PEER_IP6, 0x60000000);
	mr_frame_free_bulk(f.cache, &frame, 1);
	close_answer();
}

TEST_POOL(solicitation_without_room_for_the_option_is_counted)
{
	const struct ask ask =
		make_solicitation(OUR_MAC, PEER_IP6, OUR_IP6, "", 0);
	struct mr_frame frame;
	uint32_t n_replies;

	open_answer((struct mr_answer_config){ 0 });
	frame = frame_with(ask.bytes, 0);
	frame.addr += 2048 - HEADROOM - ask.n - 7;
	frame.len = ask.n;
	memcpy(f.base + frame.addr, ask.bytes, ask.n);
	assert_int_equal(mr_answer_burst(answer, &frame, NULL, 1, &n_replies),
			 0);
	assert_int_equal(n_replies, 0);
	assert_int_equal(counted(MR_ANSWER_NO_PAGE), 1);
	close_answer();
}

/* Bytes of a request that are changed, and what then becomes of it. */
struct change {
	uint32_t at, n;
	const char *bytes;
	bool keeps_sum;
	uint32_t fate;
};

static void check_change(struct ask ask, const struct change *change)
{
	memcpy(ask.bytes + change->at, change->bytes, change->n);
	if (!change->keeps_sum)
		sum_icmp(&ask);
	assert_int_equal(fate_of(&ask), change->fate);
}

TEST_POOL(solicitation_that_is_not_for_us_or_wrong_gets_no_answer)
{
	static const struct change cases[] = {
		{ 0, 6, "\2\0\0\0\0\3", false, MR_ANSWER_COUNTS },
		{ 6, 1, "\1", false, MR_ANSWER_MALFORMED },
		{ 20, 1, "\x2c", false, MR_ANSWER_COUNTS }, /* a fragment */
		{ 21, 1, "\xfe", false, MR_ANSWER_MALFORMED },
		{ 22, 16, OUR_IP6, false, MR_ANSWER_COUNTS },
		{ 22, 16, SOLICITED_IP6, false, MR_ANSWER_MALFORMED },
		{ 22, 16, NOBODY, false, MR_ANSWER_MALFORMED }, /* an option */
		{ 38, 16, PEER_IP6, false, MR_ANSWER_COUNTS },
		{ 54, 1, "\x88", false, MR_ANSWER_COUNTS },
		{ 55, 1, "\1", false, MR_ANSWER_MALFORMED },
		{ 62, 16, PEER_IP6, false, MR_ANSWER_COUNTS },
		{ 79, 1, "\0", false, MR_ANSWER_MALFORMED }, /* no length */
		{ 79, 1, "\2", false, MR_ANSWER_MALFORMED }, /* too long */
		{ 85, 1, "\x99", true, MR_ANSWER_MALFORMED },
	};
	struct ask ask;

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_change(make_plain_solicitation(), &cases[i]);
	for (uint32_t n = 14; n < make_plain_solicitation().n; n++) {
		ask = make_plain_solicitation();
		ask.n = n;
		assert_int_equal(fate_of(&ask), MR_ANSWER_COUNTS);
	}
	/* A probe must go to the group of the address. */
	ask = make_solicitation(SOLICITED_MAC, NOBODY, OUR_IP6, "", 0);
	assert_int_equal(fate_of(&ask), MR_ANSWER_MALFORMED);
	close_answer();
}

TEST_POOL(ping_is_answered_without_extension_headers)
{
	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t n = 0; n <= 8; n += 8) {
		const struct ask ask = make_ping6(n);
		struct mr_frame frame = frame_with(ask.bytes, ask.n);
		const uint8_t *bytes;

		packet_put16(f.base + frame.addr + 18, 17 + n);
		assert_true(is_answered(&frame, NULL));
		bytes = f.base + frame.addr;
		assert_int_equal(frame.len, 71);
		assert_memory_equal(bytes, PEER_MAC OUR_MAC "\x86\xdd", 14);
		assert_memory_equal(bytes + 18,
				    "\0\x11\x3a\x40" OUR_IP6 PEER_IP6, 36);
		assert_memory_equal(bytes + 54, "\x81\0", 2);
		assert_memory_equal(bytes + 58, "\x11\x22\0\1some data", 13);
		assert_sum(bytes, 71);
		mr_frame_free_bulk(f.cache, &frame, 1);
	}
	assert_int_equal(counted(MR_ANSWER_ECHO6), 2);
	close_answer();
}

TEST_POOL(ping_that_is_not_for_us_or_wrong_gets_no_answer)
{
	static const struct change cases[] = {
		{ 0, 6, SOLICITED_MAC, false, MR_ANSWER_COUNTS },
		{ 22, 16, NOBODY, false, MR_ANSWER_MALFORMED },
		{ 22, 16, OUR_IP6, false, MR_ANSWER_MALFORMED },
		{ 22, 1, "\xff", false, MR_ANSWER_MALFORMED },
		{ 38, 16, SOLICITED_IP6, false, MR_ANSWER_COUNTS },
		{ 54, 1, "\x81", false, MR_ANSWER_COUNTS },
		{ 55, 1, "\1", false, MR_ANSWER_MALFORMED },
		{ 64, 1, "\x99", true, MR_ANSWER_MALFORMED },
	};

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_change(make_ping6(0), &cases[i]);
	close_answer();
}

TEST_POOL(packet_that_is_routed_further_is_left)
{
	struct ask ask = make_ping6(0);

	open_answer((struct mr_answer_config){ 0 });
	memmove(ask.bytes + 78, ask.bytes + 54, 17);
	memcpy(ask.bytes + 54, "\x3a\2\0\1\0\0\0\0" PEER_IP6, 24);
	ask.bytes[20] = 43;
	ask.n += 24;
	packet_put16(ask.bytes + 18, ask.n - 54);
	assert_int_equal(fate_of(&ask), MR_ANSWER_COUNTS);
	close_answer();
}
