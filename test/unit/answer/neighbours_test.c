/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/answer/neighbours.c, and of answers that learn for it. */
#include "support/answer_unit.h"

#include <pthread.h>

#include <millrace/neighbours.h>

#define MAPPED "\0\0\0\0\0\0\0\0\0\0\xff\xff"
#define PEER MAPPED PEER_IP

static const uint64_t second_ns = 1000000000;
static struct mr_neighbours *neighbours;
static uint64_t now_ns;

static void open_table(uint32_t n_max)
{
	static const struct mr_neighbours_link links[2] = {
		{ .mac = OUR_MAC, .own = { OUR_IP6, MAPPED OUR_IP } },
		{ .mac = "\2\0\0\0\0\x11", .own = { V6("\x11") } },
	};

	now_ns = second_ns;
	fixture_open_at(
		&f, now_ns,
		(struct mr_pool_config){ .n_pages = 64, .page_bytes = 2048 });
	assert_int_equal(
		mr_neighbours_create(f.ctx, n_max, links, 2, &neighbours, NULL),
		0);
}

static void close_table(void)
{
	mr_neighbours_destroy(neighbours);
	fixture_close(&f);
}

/* Look for a neighbour; asks: whether a question was made. */
static int find(uint32_t link, const void *addr, uint8_t *ret_mac, bool *asks)
{
	struct mr_frame question;
	int err = mr_neighbours_find(neighbours, f.cache, link, addr, now_ns,
				     ret_mac, &question);

	*asks = question.len > 0;
	if (*asks)
		mr_frame_free_bulk(f.cache, &question, 1);
	return err;
}

static void assert_found(int err, bool is_asked, const void *addr)
{
	uint8_t mac[6];
	bool asks;

	assert_int_equal(find(0, addr, mac, &asks), err);
	assert_int_equal(asks, is_asked);
	if (err == 0)
		assert_memory_equal(mac, PEER_MAC, 6);
}

static int learn(uint32_t link, const void *addr, int may_add)
{
	struct mr_net_neighbour said = { .mac = PEER_MAC };

	memcpy(said.addr, addr, 16);
	return mr_neighbours_learn(neighbours, link, &said, may_add, now_ns);
}

TEST_POOL(neighbour_is_asked_thrice_and_then_once_a_second)
{
	open_table(8);
	for (uint32_t i = 0; i < 6; i++) {
		const int err = i < 3 ? -EAGAIN : -EHOSTUNREACH;

		assert_found(err, true, PEER);
		assert_found(err, false, PEER);
		now_ns += second_ns - 1;
		assert_found(err, false, PEER);
		now_ns++;
	}
	assert_int_equal(learn(0, PEER, 0), 0);
	assert_found(0, false, PEER);
	close_table();
}

TEST_POOL(known_neighbour_is_used_while_it_is_asked_again)
{
	open_table(8);
	assert_int_equal(learn(0, PEER, 1), 0);
	now_ns += 30 * second_ns - 1;
	assert_found(0, false, PEER);
	now_ns++;
	for (uint32_t i = 0; i < 3; i++, now_ns += second_ns) {
		assert_found(0, true, PEER);
		assert_found(0, false, PEER);
	}
	assert_found(-EHOSTUNREACH, true, PEER);
	assert_int_equal(learn(0, PEER, 0), 0);
	now_ns += 20 * second_ns;
	assert_found(0, false, PEER);
	close_table();
}

TEST_POOL(only_neighbours_that_matter_are_learnt)
{
	uint8_t mac[6];
	bool asks;

	open_table(8);
	assert_int_equal(learn(0, PEER, 0), -ENOENT);
	assert_found(-EAGAIN, true, PEER);
	assert_int_equal(learn(1, PEER, 0), -ENOENT); /* another link */
	assert_found(-EAGAIN, false, PEER);
	assert_int_equal(learn(1, PEER, 1), 0);
	assert_found(-EAGAIN, false, PEER);
	assert_int_equal(find(1, PEER, mac, &asks), 0);
	close_table();
}

TEST_POOL(our_addresses_are_no_neighbours)
{
	open_table(8);
	assert_found(-EADDRINUSE, false, OUR_IP6);
	assert_found(-EADDRINUSE, false, MAPPED OUR_IP);
	assert_found(-EADDRINUSE, false, V6("\x11"));
	close_table();
}

TEST_POOL(question_is_from_the_link)
{
	struct mr_frame question;
	uint8_t mac[6];

	open_table(8);
	assert_int_equal(mr_neighbours_find(neighbours, f.cache, 1,
					    (const uint8_t *)PEER_IP6, now_ns,
					    mac, &question),
			 -EAGAIN);
	assert_int_equal(question.len, MR_NET_ASK_BYTES);
	assert_memory_equal(f.base + question.addr + 6, "\2\0\0\0\0\x11", 6);
	assert_memory_equal(f.base + question.addr + 22, V6("\x11"), 16);
	mr_frame_free_bulk(f.cache, &question, 1);
	close_table();
}

static const uint8_t *address(uint32_t i)
{
	static uint8_t addr[16] = PEER_IP6;

	memcpy(addr + 8, &i, sizeof(i));
	return addr;
}

TEST_POOL(table_fills_up_and_slots_are_used_again)
{
	uint32_t n_full = 0;

	open_table(16);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(learn(0, address(i), 1), 0);
	for (uint32_t i = 100; i < 1100; i++) {
		uint8_t mac[6];
		bool asks;

		n_full += find(0, address(i), mac, &asks) == -ENOSPC;
	}
	assert_true(n_full > 900);
	for (uint32_t i = 0; i < 16; i++)
		assert_found(0, false, address(i));
	/* Silent ones go after seconds, the others stay. */
	now_ns += 4 * second_ns;
	assert_found(-EAGAIN, true, address(5000));
	for (uint32_t i = 0; i < 16; i++)
		assert_found(0, false, address(i));
	now_ns += 91 * second_ns;
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(learn(0, address(10000 + i), 1), 0);
	close_table();
}

TEST_POOL(numbers_out_of_range_are_refused)
{
	const struct mr_neighbours_link link = { .mac = OUR_MAC };
	struct mr_reason why;

	open_table(1);
	assert_int_equal(
		mr_neighbours_create(f.ctx, 0, &link, 1, &neighbours, &why),
		-EINVAL);
	assert_non_null(strstr(why.text, "0 neighbours on 1 links"));
	assert_int_equal(mr_neighbours_create(f.ctx, MR_NEIGHBOURS_MAX + 1,
					      &link, 1, &neighbours, NULL),
			 -EINVAL);
	assert_int_equal(
		mr_neighbours_create(f.ctx, 1, &link, 0, &neighbours, NULL),
		-EINVAL);
	f.allocator.fail_at = f.allocator.n_calls + 1;
	assert_int_equal(
		mr_neighbours_create(f.ctx, 1, &link, 1, &neighbours, NULL),
		-ENOMEM);
	mr_neighbours_destroy(NULL);
	close_table();
}

/* An answer of the first link, with its addresses. */
static void open_answer_of_link(void)
{
	struct mr_answer_config config = { .size = sizeof(config),
					   .neighbours = neighbours,
					   .link = 2 };
	struct mr_reason why;

	assert_int_equal(mr_answer_create(f.cache, &config, &answer, &why),
			 -EINVAL);
	assert_non_null(strstr(why.text, "link is 2, but there are 2 links"));
	config.link = 0;
	assert_int_equal(mr_answer_create(f.cache, &config, &answer, NULL), 0);
	f.now_ns = now_ns;
}

TEST_POOL(answers_learn_from_requests_and_replies)
{
	struct ask ask = make_arp(GROUP_MAC), ping = make_plain_ping();
	struct mr_frame frame;

	open_table(8);
	open_answer_of_link();
	frame = frame_with(ask.bytes, ask.n);
	assert_true(is_answered(&frame, NULL));
	mr_frame_free_bulk(f.cache, &frame, 1);
	assert_found(0, false, PEER);
	frame = frame_with(ping.bytes, ping.n); /* as before */
	assert_true(is_answered(&frame, NULL));
	mr_frame_free_bulk(f.cache, &frame, 1);
	/* A request for another host, and a reply to all, tell of a change. */
	for (uint8_t op = 1; op < 3; op++) {
		ask.bytes[21] = op;
		ask.bytes[27] = 2;
		ask.bytes[41] = 99;
		now_ns += 29 * second_ns;
		f.now_ns = now_ns;
		assert_int_equal(fate_of(&ask), MR_ANSWER_COUNTS);
		assert_found(0, false, PEER);
	}
	memcpy(ask.bytes, OUR_MAC, 6); /* a reply to us */
	assert_int_equal(fate_of(&ask), MR_ANSWER_LEARNT);
	mr_answer_destroy(answer);
	close_table();
}

/* Readers that compare each MAC address with its address. */
struct reader {
	pthread_t thread;
	struct mr_cache *cache;
	uint32_t n_wrong, n_found;
};

static uint32_t is_over;

static void *read_until_over(void *opaque)
{
	struct reader *reader = opaque;

	for (uint32_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE);
	     i++) {
		uint8_t addr[16] = PEER_IP6, mac[6];
		struct mr_frame question;

		addr[15] = (uint8_t)(i % 64 + 2);
		if (mr_neighbours_find(neighbours, reader->cache, 1, addr, 1,
				       mac, &question) == 0) {
			reader->n_found++;
			reader->n_wrong += mac[5] != addr[15];
		}
		if (question.len > 0)
			mr_frame_free_bulk(reader->cache, &question, 1);
	}
	return NULL;
}

TEST_POOL(readers_find_the_mac_address_of_their_neighbour)
{
	struct reader readers[2] = { { .n_found = 0 } };
	struct mr_net_neighbour said = { .addr = PEER_IP6, .mac = PEER_MAC };

	open_table(1); /* so that neighbours replace each other */
	is_over = 0;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(
			mr_cache_create(f.pool, &readers[i].cache, NULL), 0);
		assert_int_equal(pthread_create(&readers[i].thread, NULL,
						read_until_over, &readers[i]),
				 0);
	}
	for (uint32_t i = 0; i < 100000; i++) {
		now_ns += 100 * second_ns; /* each is unused by then */
		said.addr[15] = said.mac[5] = (uint8_t)(i % 64 + 2);
		(void)mr_neighbours_learn(neighbours, 1, &said, 1, now_ns);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < 2; i++) {
		pthread_join(readers[i].thread, NULL);
		mr_cache_destroy(readers[i].cache);
		assert_int_equal(readers[i].n_wrong, 0);
	}
	close_table();
}
