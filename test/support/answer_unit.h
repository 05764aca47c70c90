/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, and what became of them, for tests of lib/answer. */
#ifndef SUPPORT_ANSWER_UNIT_H
#define SUPPORT_ANSWER_UNIT_H

#include "support/pool_test.h"

#include <arpa/inet.h>

#include <millrace/answer.h>
#include <millrace/net.h>
#include <millrace/wire.h>

#include "support/packet.h"

enum { MAX_REQUEST = 400, HEADROOM = 256 };

#define OUR_MAC "\2\0\0\0\0\1"
#define PEER_MAC "\2\0\0\0\0\2"
#define GROUP_MAC "\xff\xff\xff\xff\xff\xff"
#define OUR_IP "\xc0\0\2\1"
#define PEER_IP "\xc0\0\2\2"
#define V6(last) "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0" last
#define OUR_IP6 V6("\1")
#define PEER_IP6 V6("\2")
#define SOLICITED_IP6 "\xff\2\0\0\0\0\0\0\0\0\0\1\xff\0\0\1"
#define SOLICITED_MAC "\x33\x33\xff\0\0\1"

static struct mr_answer *answer;

/* A request, and how to break it. */
struct ask {
	uint8_t bytes[MAX_REQUEST];
	uint32_t n;  /* of the frame */
	uint32_t l3; /* where headers begin */
	uint32_t l4;
};

/* Answer for OUR_IP and OUR_IP6 with the rest of a configuration. */
static inline void open_answer(struct mr_answer_config config)
{
	static const uint8_t ipv6[1][16] = { OUR_IP6 };
	uint32_t ipv4;

	memcpy(&ipv4, OUR_IP, sizeof(ipv4));
	fixture_open_at(
		&f, 1000000000,
		(struct mr_pool_config){ .n_pages = 64, .page_bytes = 2048 });
	config.size = sizeof(config);
	memcpy(config.mac, OUR_MAC, 6);
	config.ipv4 = &ipv4;
	config.n_ipv4 = 1;
	config.ipv6 = ipv6;
	config.n_ipv6 = 1;
	assert_int_equal(mr_answer_create(f.cache, &config, &answer, NULL), 0);
}

static inline void close_answer(void)
{
	mr_answer_destroy(answer);
	fixture_close(&f);
}

static inline void put(struct ask *ask, const void *bytes, uint32_t n)
{
	if (n > 0)
		memcpy(ask->bytes + ask->n, bytes, n);
	ask->n += n;
}

/* Ethernet, with tags, which end with the EtherType. */
static inline struct ask begin(const char *to, const void *tags, uint32_t n)
{
	struct ask ask = { .n = 0 };

	put(&ask, to, 6);
	put(&ask, PEER_MAC, 6);
	put(&ask, tags, n);
	ask.l3 = ask.n;
	return ask;
}

static inline struct ask make_arp(const char *to)
{
	struct ask ask = begin(to, "\x08\6", 2);

	put(&ask, "\0\1\x08\0\6\4\0\1" PEER_MAC PEER_IP "\0\0\0\0\0\0" OUR_IP,
	    28);
	ask.n = 60; /* padding */
	return ask;
}

static inline void sum_ipv4(struct ask *ask)
{
	uint8_t *ip = ask->bytes + ask->l3;

	packet_put16(ip + 2, ask->n - ask->l3);
	packet_put16(ip + 10, 0);
	packet_put16(ip + 10, (uint16_t)~packet_sum(ip, ask->l4 - ask->l3, 0));
}

static inline void sum_icmp(struct ask *ask)
{
	uint8_t *icmp = ask->bytes + ask->l4;
	const uint32_t n = ask->n - ask->l4;
	uint32_t sum = 0;

	if (ask->bytes[ask->l3] >> 4 == 6) {
		packet_put16(ask->bytes + ask->l3 + 4, ask->n - ask->l3 - 40);
		sum = packet_sum(ask->bytes + ask->l3 + 8, 32, n + 58);
	}
	packet_put16(icmp + 2, 0);
	packet_put16(icmp + 2, (uint16_t)~packet_sum(icmp, n, sum));
}

/* An echo request with options, of n_payload bytes. */
static inline struct ask make_ping(const void *tags, uint32_t n_tags,
				   uint32_t n_options, uint32_t n_payload)
{
	struct ask ask = begin(OUR_MAC, tags, n_tags);

	put(&ask, "\x45\0\0\0\x12\x34\x40\0\x7f\1\0\0" PEER_IP OUR_IP, 20);
	ask.bytes[ask.l3] = (uint8_t)(0x45 + n_options / 4);
	memset(ask.bytes + ask.n, 1, n_options); /* no operation */
	ask.n += n_options;
	ask.l4 = ask.n;
	put(&ask, "\x08\0\0\0\x11\x22\0\1", 8);
	for (uint32_t i = 0; i < n_payload; i++)
		ask.bytes[ask.n++] = (uint8_t)(i * 7);
	sum_ipv4(&ask);
	sum_icmp(&ask);
	return ask;
}

static inline struct ask make_plain_ping(void)
{
	return make_ping("\x08\0", 2, 0, 32);
}

static inline struct ask make_ipv6(const char *mac, const char *src,
				   const char *dst, const char *extension,
				   uint32_t n_extension)
{
	struct ask ask = begin(mac, "\x86\xdd", 2);

	put(&ask, "\x60\0\0\0\0\0\x3a\xff", 8);
	put(&ask, src, 16);
	put(&ask, dst, 16);
	if (n_extension > 0)
		ask.bytes[ask.l3 + 6] = 60; /* destination options */
	put(&ask, extension, n_extension);
	ask.l4 = ask.n;
	return ask;
}

static inline struct mr_frame frame_with(const void *bytes, uint32_t n)
{
	struct mr_frame frame = { .len = n };

	assert_int_equal(mr_frag_alloc_bulk(f.cache, &frame.addr, 1, 2048), 1);
	memset(f.base + frame.addr, 0xa5, 2048);
	frame.addr += HEADROOM;
	memcpy(f.base + frame.addr, bytes, n);
	return frame;
}

static inline uint64_t counted(uint32_t i)
{
	struct mr_answer_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_answer_stats(answer, &stats), 0);
	return stats.counts[i];
}

/* Give one frame to it: true if it was answered, which fills *frame. */
static inline bool is_answered(struct mr_frame *frame, struct mr_meta *meta)
{
	const uint64_t before =
		f.cache != NULL ? counted(MR_ANSWER_ARP) +
					  counted(MR_ANSWER_SOLICITATION) +
					  counted(MR_ANSWER_ECHO) +
					  counted(MR_ANSWER_ECHO6) :
				  0;
	uint32_t n_replies;
	const uint32_t n = mr_answer_burst(answer, frame, meta, 1, &n_replies);
	const uint64_t after =
		counted(MR_ANSWER_ARP) + counted(MR_ANSWER_SOLICITATION) +
		counted(MR_ANSWER_ECHO) + counted(MR_ANSWER_ECHO6);

	assert_true(n + n_replies <= 1);
	assert_int_equal(after - before, n_replies);
	return n_replies == 1;
}

/* What happens to a request: a count, or MR_ANSWER_COUNTS if it is left, in
 * which case its bytes must be the same. Writes nothing around the frame. */
static inline uint32_t fate_of(const struct ask *ask)
{
	struct mr_answer_stats a = { .size = sizeof(a) }, b = a;
	struct mr_frame frame = frame_with(ask->bytes, ask->n);
	uint32_t n_replies, n, what = MR_ANSWER_COUNTS;

	mr_answer_stats(answer, &a);
	n = mr_answer_burst(answer, &frame, NULL, 1, &n_replies);
	mr_answer_stats(answer, &b);
	for (uint32_t i = 0; i < MR_ANSWER_COUNTS; i++)
		if (b.counts[i] != a.counts[i])
			what = i;
	if (what == MR_ANSWER_COUNTS) {
		assert_int_equal(n, 1);
		assert_memory_equal(f.base + frame.addr, ask->bytes, ask->n);
	}
	if (n + n_replies > 0) {
		assert_int_equal(f.base[frame.addr - 1], 0xa5);
		mr_frame_free_bulk(f.cache, &frame, 1);
	}
	return what;
}

#endif
