/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/answer: bursts, ARP and pings over IPv4. */
#include "support/answer_unit.h"

#include <errno.h>

static void assert_ping_reply(struct mr_frame frame, const struct ask *ask,
			      uint32_t n_options)
{
	const uint8_t *bytes = f.base + frame.addr;
	struct mr_net_view view;

	assert_int_equal(mr_net_parse(bytes, frame.len, frame.len, &view), 0);
	assert_int_equal(view.l3_bytes, ask->l3);
	assert_memory_equal(bytes, PEER_MAC OUR_MAC, 12);
	assert_memory_equal(bytes + 12, ask->bytes + 12, ask->l3 - 12);
	assert_memory_equal(bytes + ask->l3 + 12, OUR_IP PEER_IP, 8);
	assert_int_equal(bytes[ask->l3 + 8], 64);
	assert_int_equal(packet_sum(bytes + ask->l3, 20, 0), 0xffff);
	assert_int_equal(view.l4_bytes, ask->l4 - n_options);
	assert_int_equal(view.l4_len_bytes, ask->n - ask->l4);
	bytes += view.l4_bytes;
	assert_int_equal(bytes[0], MR_ICMP_ECHO_REPLY);
	assert_int_equal(packet_sum(bytes, view.l4_len_bytes, 0), 0xffff);
	assert_memory_equal(bytes + 4, ask->bytes + ask->l4 + 4,
			    view.l4_len_bytes - 4);
}

static void assert_arp_reply(struct mr_frame frame, const void *asker)
{
	const uint8_t *bytes = f.base + frame.addr;

	assert_int_equal(frame.len, 60);
	assert_memory_equal(bytes, PEER_MAC OUR_MAC "\x08\6", 14);
	assert_memory_equal(bytes + 14, "\0\1\x08\0\6\4\0\2" OUR_MAC OUR_IP,
			    18);
	assert_memory_equal(bytes + 32, PEER_MAC, 6);
	assert_memory_equal(bytes + 38, asker, 4);
}

TEST_POOL(arp_request_to_a_group_or_to_us_is_answered)
{
	static const char *const to[] = { GROUP_MAC, OUR_MAC };

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t i = 0; i < 2; i++) {
		const struct ask ask = make_arp(to[i]);
		struct mr_frame frame = frame_with(ask.bytes, ask.n);

		assert_true(is_answered(&frame, NULL));
		assert_arp_reply(frame, PEER_IP);
		mr_frame_free_bulk(f.cache, &frame, 1);
	}
	assert_int_equal(counted(MR_ANSWER_ARP), 2);
	close_answer();
}

TEST_POOL(probe_for_our_address_is_answered)
{
	struct ask ask = make_arp(GROUP_MAC);
	struct mr_frame frame;

	open_answer((struct mr_answer_config){ 0 });
	memset(ask.bytes + 28, 0, 4); /* RFC 5227: from nobody */
	frame = frame_with(ask.bytes, ask.n);
	assert_true(is_answered(&frame, NULL));
	assert_arp_reply(frame, "\0\0\0\0");
	mr_frame_free_bulk(f.cache, &frame, 1);
	close_answer();
}

TEST_POOL(other_arp_packets_are_left)
{
	static const struct {
		uint32_t at, n;
		const char *bytes;
		uint32_t fate;
	} cases[] = {
		{ 0, 6, "\2\0\0\0\0\3", MR_ANSWER_COUNTS }, /* to another */
		{ 15, 1, "\2", MR_ANSWER_COUNTS },          /* hardware */
		{ 16, 2, "\x86\xdd", MR_ANSWER_COUNTS },
		{ 18, 1, "\7", MR_ANSWER_COUNTS },
		{ 19, 1, "\x10", MR_ANSWER_COUNTS },
		{ 21, 1, "\2", MR_ANSWER_COUNTS },      /* a reply */
		{ 28, 4, OUR_IP, MR_ANSWER_COUNTS },    /* they have it */
		{ 38, 4, PEER_IP, MR_ANSWER_COUNTS },   /* for another */
		{ 28, 1, "\x7f", MR_ANSWER_MALFORMED }, /* from loopback */
		{ 28, 1, "\xe0", MR_ANSWER_MALFORMED }, /* from a group */
		{ 22, 1, "\1", MR_ANSWER_MALFORMED },
		{ 6, 1, "\1", MR_ANSWER_MALFORMED },
	};
	struct ask ask;

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask = make_arp(GROUP_MAC);
		memcpy(ask.bytes + cases[i].at, cases[i].bytes, cases[i].n);
		assert_int_equal(fate_of(&ask), cases[i].fate);
	}
	for (uint32_t n = 14; n < 42; n++) {
		ask = make_arp(GROUP_MAC);
		ask.n = n;
		assert_int_equal(fate_of(&ask), MR_ANSWER_COUNTS);
	}
	close_answer();
}

TEST_POOL(ping_is_answered_with_its_data)
{
	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t n = 0; n < 70; n += 7) {
		const struct ask ask = make_ping("\x08\0", 2, 0, n);
		struct mr_frame frame = frame_with(ask.bytes, ask.n);

		assert_true(is_answered(&frame, NULL));
		assert_ping_reply(frame, &ask, 0);
		mr_frame_free_bulk(f.cache, &frame, 1);
	}
	assert_int_equal(counted(MR_ANSWER_ECHO), 10);
	close_answer();
}

TEST_POOL(answer_to_a_ping_has_no_ip_options)
{
	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t n = 4; n <= 40; n += 4) {
		const struct ask ask = make_ping("\x08\0", 2, n, 18);
		struct mr_frame frame = frame_with(ask.bytes, ask.n);

		assert_true(is_answered(&frame, NULL));
		assert_ping_reply(frame, &ask, n);
		assert_int_equal(frame.len, 60);
		mr_frame_free_bulk(f.cache, &frame, 1);
	}
	close_answer();
}

TEST_POOL(ping_that_is_not_for_us_or_wrong_gets_no_answer)
{
	static const struct {
		uint32_t at, n;
		const char *bytes;
		bool fixes_ip, fixes_icmp;
		uint32_t fate;
	} cases[] = {
		{ 0, 6, GROUP_MAC, true, true, MR_ANSWER_COUNTS },
		{ 0, 6, "\2\0\0\0\0\3", true, true, MR_ANSWER_COUNTS },
		{ 6, 1, "\1", true, true, MR_ANSWER_MALFORMED },
		{ 20, 2, "\x20\0", true, true, MR_ANSWER_COUNTS }, /* first */
		{ 20, 2, "\0\1", true, true, MR_ANSWER_COUNTS }, /* fragment */
		{ 23, 1, "\x11", true, true, MR_ANSWER_COUNTS },
		{ 22, 1, "\x11", false, true, MR_ANSWER_MALFORMED }, /* sum */
		{ 26, 4, OUR_IP, true, true, MR_ANSWER_MALFORMED },
		{ 26, 4, "\0\0\0\0", true, true, MR_ANSWER_MALFORMED },
		{ 26, 1, "\x7f", true, true, MR_ANSWER_MALFORMED },
		{ 26, 1, "\xff", true, true, MR_ANSWER_MALFORMED },
		{ 30, 4, PEER_IP, true, true, MR_ANSWER_COUNTS },
		{ 34, 1, "\0", true, true, MR_ANSWER_COUNTS },    /* a reply */
		{ 35, 1, "\1", true, true, MR_ANSWER_MALFORMED }, /* code */
		{ 50, 1, "\x99", true, false, MR_ANSWER_MALFORMED },
	};

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ask ask = make_plain_ping();

		memcpy(ask.bytes + cases[i].at, cases[i].bytes, cases[i].n);
		if (cases[i].fixes_ip)
			sum_ipv4(&ask);
		if (cases[i].fixes_icmp)
			sum_icmp(&ask);
		assert_int_equal(fate_of(&ask), cases[i].fate);
	}
	close_answer();
}

TEST_POOL(ping_that_is_to_be_routed_further_is_left)
{
	static const struct {
		const char *option;
		bool is_for_us;
	} cases[] = {
		{ "\x83\7\4" PEER_IP, false }, /* loose, then strict */
		{ "\x89\7\4" PEER_IP, false },
		{ "\x83\7\x08" PEER_IP, true }, /* at its end */
		{ "\7\7\4" PEER_IP, true },     /* only records the route */
		{ "\0\x83\7\4\xc0\0\2", true }, /* after the last one */
		{ "\x44\4\5\1\x83\7\4", true }, /* cut off */
	};

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ask ask = make_ping("\x08\0", 2, 8, 32);
		struct mr_frame frame;

		memcpy(ask.bytes + ask.l3 + 20, cases[i].option, 7);
		sum_ipv4(&ask);
		frame = frame_with(ask.bytes, ask.n);
		assert_int_equal(is_answered(&frame, NULL), cases[i].is_for_us);
		mr_frame_free_bulk(f.cache, &frame, 1);
	}
	close_answer();
}

TEST_POOL(ping_that_its_frame_cuts_off_is_left)
{
	struct ask ask = make_plain_ping();

	open_answer((struct mr_answer_config){ 0 });
	for (; ask.n > 14; ask.n--) {
		struct ask cut = ask;

		if (ask.n < make_plain_ping().n)
			assert_int_equal(fate_of(&cut), MR_ANSWER_COUNTS);
	}
	close_answer();
}

TEST_POOL(only_frames_of_our_vlan_are_answered)
{
	static const struct {
		const char *tags;
		uint32_t n;
		uint16_t vlans[2], stripped;
		bool is_ours;
	} cases[] = {
		{ "\x08\0", 2, { 0, 0 }, 0, true },
		{ "\x08\0", 2, { 5, 0 }, 0, false },
		{ "\x08\0", 2, { 5, 0 }, 5, true },
		{ "\x08\0", 2, { 0, 0 }, 5, false },
		{ "\x81\0\0\5\x08\0", 6, { 5, 0 }, 0, true },
		{ "\x81\0\0\5\x08\0", 6, { 0, 0 }, 0, false },
		{ "\x81\0\0\5\x08\0", 6, { 6, 0 }, 0, false },
		{ "\x81\0\xe0\0\x08\0", 6, { 0, 0 }, 0, true }, /* priority */
		{ "\x81\0\0\5\x08\0", 6, { 7, 5 }, 7, true },
		{ "\x88\xa8\0\7\x81\0\0\5\x08\0", 10, { 7, 5 }, 0, true },
		{ "\x88\xa8\0\7\x81\0\0\5\x08\0", 10, { 5, 7 }, 0, false },
		{ "\x88\xa8\0\7\x81\0\0\5\x08\0", 10, { 7, 5 }, 3, false },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ask ask =
			make_ping(cases[i].tags, cases[i].n, 0, 32);
		struct mr_meta meta = {
			.valid = MR_META_RSS_HASH |
				 (cases[i].stripped ? MR_META_VLAN : 0u),
			.vlan_tci = cases[i].stripped,
			.rss_hash = 77,
		};
		struct mr_frame frame;

		open_answer((struct mr_answer_config){
			.vlans = { cases[i].vlans[0], cases[i].vlans[1] } });
		frame = frame_with(ask.bytes, ask.n);
		assert_int_equal(is_answered(&frame, &meta), cases[i].is_ours);
		if (cases[i].is_ours) {
			assert_ping_reply(frame, &ask, 0);
			assert_int_equal(meta.valid,
					 cases[i].stripped ? MR_META_VLAN : 0);
			assert_int_equal(meta.vlan_tci, cases[i].stripped);
		} else {
			assert_int_equal(meta.rss_hash, 77);
		}
		mr_frame_free_bulk(f.cache, &frame, 1);
		close_answer();
	}
}

TEST_POOL(shared_frame_is_copied_before_it_is_answered)
{
	const struct ask ask = make_plain_ping();
	struct mr_frame frame, other;

	open_answer((struct mr_answer_config){ 0 });
	other = frame = frame_with(ask.bytes, ask.n);
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	assert_true(is_answered(&frame, NULL));
	assert_ping_reply(frame, &ask, 0);
	assert_true(frame.addr != other.addr);
	assert_memory_equal(f.base + other.addr, ask.bytes, ask.n);
	mr_frame_free_bulk(f.cache, &frame, 1);
	mr_frame_free_bulk(f.cache, &other, 1);
	close_answer();
}

TEST_POOL(without_a_page_for_the_copy_a_request_is_freed_and_counted)
{
	const struct ask ask = make_plain_ping();
	struct mr_frame frame, other;
	uint64_t addrs[64];
	uint32_t n, n_replies;

	open_answer((struct mr_answer_config){ 0 });
	other = frame = frame_with(ask.bytes, ask.n);
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	n = mr_frag_alloc_bulk(f.cache, addrs, 64, 2048);
	assert_int_equal(mr_answer_burst(answer, &frame, NULL, 1, &n_replies),
			 0);
	assert_int_equal(n_replies, 0);
	assert_int_equal(counted(MR_ANSWER_NO_PAGE), 1);
	mr_frag_free_bulk(f.cache, addrs, n);
	mr_frame_free_bulk(f.cache, &other, 1);
	close_answer();
}

TEST_POOL(partial_checksum_is_finished)
{
	struct ask ask = make_plain_ping(), complete = ask;
	struct mr_frame frame;

	open_answer((struct mr_answer_config){ 0 });
	packet_put16(ask.bytes + ask.l4 + 2, 0);
	frame = frame_with(ask.bytes, ask.n);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	assert_true(is_answered(&frame, NULL));
	assert_int_equal(frame.flags, 0);
	assert_ping_reply(frame, &complete, 0);
	mr_frame_free_bulk(f.cache, &frame, 1);
	close_answer();
}

/* Two entries from a request; the first one has n bytes. */
static void make_pair(const struct ask *ask, uint32_t n, struct mr_frame *pair)
{
	pair[0] = frame_with(ask->bytes, n);
	pair[0].flags = MR_FRAME_MORE;
	pair[1] = frame_with(ask->bytes + n, ask->n - n);
}

TEST_POOL(ping_of_two_entries_is_answered_in_both)
{
	const struct ask ask = make_plain_ping();
	struct mr_frame frames[2];
	uint8_t bytes[MAX_REQUEST];
	uint32_t n_replies;

	open_answer((struct mr_answer_config){ 0 });
	for (uint32_t n = 24; n < ask.n; n++) {
		const bool has_headers = n >= ask.l4 + 8;

		make_pair(&ask, n, frames);
		assert_int_equal(
			mr_answer_burst(answer, frames, NULL, 2, &n_replies),
			has_headers ? 0 : 2);
		assert_int_equal(frames[0].flags, MR_FRAME_MORE);
		if (has_headers) {
			mr_frame_copy_bytes(f.base, frames, 0, bytes, ask.n);
			assert_int_equal(
				packet_sum(bytes + ask.l4, ask.n - ask.l4, 0),
				0xffff);
			assert_int_equal(bytes[ask.l4], MR_ICMP_ECHO_REPLY);
		}
		mr_frame_free_bulk(f.cache, frames, 2);
	}
	close_answer();
}

TEST_POOL(frames_that_are_left_keep_their_order_and_metadata)
{
	static const char what[] = "opaopmsoapx"; /* x: cut off */
	const struct ask ping = make_plain_ping(), arp = make_arp(GROUP_MAC);
	struct mr_frame frames[32];
	struct mr_meta metas[32] = { { 0 } };
	struct ask other = make_plain_ping(), bad = make_plain_ping();
	uint32_t n = 0, n_replies, n_left, order = 0;

	open_answer((struct mr_answer_config){ 0 });
	other.bytes[other.l3 + 9] = 17;
	bad.bytes[bad.n - 1] ^= 1;
	for (const char *it = what; *it != '\0'; it++) {
		metas[n].rss_hash = n;
		metas[n].valid = MR_META_RSS_HASH;
		if (*it == 's' || *it == 'x') {
			make_pair(&other, 40, &frames[n]);
			n += *it == 's' ? 2 : 1;
			if (*it == 'x')
				mr_frame_free_bulk(f.cache, &frames[n], 1);
			continue;
		}
		frames[n++] = *it == 'o' ? frame_with(other.bytes, other.n) :
			      *it == 'p' ? frame_with(ping.bytes, ping.n) :
			      *it == 'm' ? frame_with(bad.bytes, bad.n) :
					   frame_with(arp.bytes, arp.n);
	}
	n_left = mr_answer_burst(answer, frames, metas, n, &n_replies);
	assert_int_equal(n_left, 6);
	assert_int_equal(n_replies, 5);
	assert_int_equal(n, n_left + n_replies + 1);
	for (uint32_t i = 0; i < n_left; i++) {
		if (i > 0 && frames[i - 1].flags & MR_FRAME_MORE)
			continue;
		assert_true(i == 0 || metas[i].rss_hash > order);
		order = metas[i].rss_hash;
		assert_memory_equal(f.base + frames[i].addr, other.bytes, 40);
	}
	assert_ping_reply(frames[n_left], &ping, 0);
	assert_arp_reply(frames[n_left + 1], PEER_IP);
	assert_ping_reply(frames[n_left + 2], &ping, 0);
	assert_arp_reply(frames[n_left + 3], PEER_IP);
	assert_ping_reply(frames[n_left + 4], &ping, 0);
	mr_frame_free_bulk(f.cache, frames, n_left + n_replies);
	assert_int_equal(counted(MR_ANSWER_MALFORMED), 1);
	close_answer();
}

TEST_POOL(answers_are_limited_and_pings_take_none_from_neighbours)
{
	const struct ask ping = make_plain_ping(), arp = make_arp(GROUP_MAC);

	open_answer((struct mr_answer_config){ .per_s = 100, .burst = 3 });
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(fate_of(&ping),
				 i < 3 ? MR_ANSWER_ECHO : MR_ANSWER_LIMITED);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(fate_of(&arp),
				 i < 3 ? MR_ANSWER_ARP : MR_ANSWER_LIMITED);
	f.now_ns += 10000000; /* one more */
	assert_int_equal(fate_of(&ping), MR_ANSWER_ECHO);
	assert_int_equal(fate_of(&ping), MR_ANSWER_LIMITED);
	f.now_ns += 10000000000;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(fate_of(&ping),
				 i < 3 ? MR_ANSWER_ECHO : MR_ANSWER_LIMITED);
	assert_int_equal(counted(MR_ANSWER_LIMITED), 5);
	close_answer();
}

TEST_POOL(frame_of_another_pool_is_left)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 8,
					       .page_bytes = 2048,
					       .region = NULL };
	struct mr_pool_config in_region = config;
	const struct ask ask = make_plain_ping();
	struct mr_frame frame = { .len = ask.n };
	struct mr_pool *pool;
	struct mr_cache *cache;

	open_answer((struct mr_answer_config){ 0 });
	in_region.region = f.region;
	assert_int_equal(mr_pool_create(f.ctx, &in_region, &pool, NULL), 0);
	assert_int_equal(mr_cache_create(pool, &cache, NULL), 0);
	assert_int_equal(mr_frag_alloc_bulk(cache, &frame.addr, 1, 2048), 1);
	memcpy(f.base + frame.addr, ask.bytes, ask.n);
	assert_false(is_answered(&frame, NULL));
	assert_memory_equal(f.base + frame.addr, ask.bytes, ask.n);
	mr_frame_free_bulk(cache, &frame, 1);
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	close_answer();
}

TEST_POOL(configuration_that_cannot_work_is_refused)
{
	static const uint8_t group[1][16] = { "\xff\2" };
	const uint32_t ipv4 = htonl(0xe0000001);
	const struct mr_answer_config cases[] = {
		{ .size = 0 },
		{ .size = sizeof(cases[0]), .mac = { 1 } },
		{ .size = sizeof(cases[0]), .ipv4 = &ipv4, .n_ipv4 = 1 },
		{ .size = sizeof(cases[0]), .ipv6 = group, .n_ipv6 = 1 },
		{ .size = sizeof(cases[0]), .n_ipv4 = 1025 },
		{ .size = sizeof(cases[0]), .vlans = { 4095 } },
		{ .size = sizeof(cases[0]), .vlans = { 0, 5 } },
	};
	struct mr_reason why;

	fixture_open(&f, 64, 2048);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		why.text[0] = '\0';
		assert_int_equal(
			mr_answer_create(f.cache, &cases[i], &answer, &why),
			-EINVAL);
		assert_string_not_equal(why.text, "");
	}
	mr_answer_destroy(NULL);
}

TEST(each_count_has_a_name)
{
	for (uint32_t i = 0; i < MR_ANSWER_COUNTS; i++)
		assert_non_null(mr_answer_name(i));
	assert_null(mr_answer_name(MR_ANSWER_COUNTS));
}
