/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dpdk: driver at its edges: frames that it has to write, a device without
 * room, and a program that has DPDK of its own.
 *
 *     edge_test TEST
 *
 * EAL starts once per process, so each test is run in one of its own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>

#include <rte_dev.h>
#include <rte_log.h>

#include <millrace/experimental/page.h>
#include <millrace/net.h>

#include "fixture.h"

/* ---- frames that the driver writes ---- */

enum { TCP_LEN = 120, TCI = 0x2005 };

/* A TCP packet, of IPv4, whose sum is that of the pseudo-header. */
static struct mr_frame make_partial(uint8_t fill)
{
	static const uint8_t headers[] = {
		/* Ethernet */
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00,
		/* IPv4: 106 bytes, TCP */
		0x45, 0, 0, TCP_LEN - 14, 0, 0, 0, 0, 64, IPPROTO_TCP, 0, 0, 10,
		0, 0, 1, 10, 0, 0, 2,
		/* TCP: ports, numbers, 20 bytes */
		0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0,
		0
	};
	struct mr_net_view view;
	struct mr_frame frame;
	uint8_t *bytes;
	uint16_t sum;

	make_frames(&frame, 1);
	bytes = base + frame.addr;
	frame.len = TCP_LEN;
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	memset(bytes, fill, TCP_LEN);
	memcpy(bytes, headers, sizeof(headers));
	assert_int_equal(mr_net_parse(bytes, TCP_LEN, TCP_LEN, &view), 0);
	sum = mr_csum_pseudo(bytes, &view);
	memcpy(bytes + view.csum_bytes, &sum, sizeof(sum));
	return frame;
}

/* The sum of a packet is that of all its bytes, tag or not. */
static void assert_summed(const struct mr_frame *frame)
{
	const uint8_t *bytes = base + frame->addr;
	struct mr_net_view view;
	uint64_t sum;

	assert_int_equal(mr_net_parse(bytes, frame->len, frame->len, &view), 0);
	assert_int_not_equal(view.csum_bytes, 0);
	sum = mr_csum_pseudo(bytes, &view);
	sum = mr_csum_add(bytes + view.l4_bytes, view.l4_len_bytes, sum);
	assert_int_equal(mr_csum_fold(sum), 0xffff);
}

static void assert_tagged(const struct mr_frame *frame, uint32_t len)
{
	static const uint8_t tag[] = { 0x81, 0x00, TCI >> 8, TCI & 0xff };

	assert_int_equal(frame->len, len + sizeof(tag));
	assert_memory_equal(base + frame->addr + 12, tag, sizeof(tag));
}

static void fill_ring(struct mr_port *port)
{
	struct mr_frame frames[BURST];

	for (int i = 0; i < RING / BURST; i++) {
		make_frames(frames, BURST);
		send_all(port, frames, BURST);
	}
}

static void empty_ring(struct mr_port *port)
{
	struct mr_frame frames[BURST];

	for (int i = 0; i < RING / BURST; i++) {
		assert_int_equal(receive(port, frames), BURST);
		mr_frame_free_bulk(cache, frames, BURST);
	}
}

/* Four frames: as they are, to be summed, to be tagged, and to be both. */
enum { N_WRITTEN = 4 };

static void make_written(struct mr_frame *frames, struct mr_meta *meta)
{
	make_frames(frames, 3);
	mr_frame_free_bulk(cache, &frames[1], 1);
	frames[1] = make_partial(0x11);
	frames[3] = make_partial(0x33);
	memset(meta, 0, N_WRITTEN * sizeof(meta[0]));
	for (int i = 2; i < N_WRITTEN; i++) {
		meta[i].valid = MR_META_VLAN;
		meta[i].vlan_tci = TCI;
	}
}

/*
 * What the device has no room for stays the caller's as it was, however often,
 * and goes out right when there is room.
 */
TEST(refused_frame_is_as_it_was)
{
	const char *names[] = { "w", "x" };
	struct pair pair = make_pair(names, "");
	struct mr_txq *txq = mr_port_txq(pair.ports[0], 0);
	struct mr_frame sent[N_WRITTEN], got[BURST];
	uint8_t before[N_WRITTEN][LEN + 4];
	struct mr_meta meta[N_WRITTEN];
	uint64_t n_bytes;

	fill_ring(pair.ports[0]);
	n_bytes = tx_stats(pair.ports[0]).bytes;
	make_written(sent, meta);
	for (int i = 0; i < N_WRITTEN; i++) {
		memcpy(before[i], base + sent[i].addr, sent[i].len);
		n_bytes += sent[i].len + (meta[i].valid != 0 ? 4 : 0);
	}
	for (int round = 0; round < 3; round++) {
		assert_int_equal(
			mr_tx_burst_meta(txq, cache, sent, meta, N_WRITTEN), 0);
		for (int i = 0; i < N_WRITTEN; i++)
			assert_memory_equal(before[i], base + sent[i].addr,
					    sent[i].len);
	}
	empty_ring(pair.ports[1]);
	assert_int_equal(mr_tx_burst_meta(txq, cache, sent, meta, N_WRITTEN),
			 N_WRITTEN);
	assert_int_equal(receive(pair.ports[1], got), N_WRITTEN);
	assert_memory_equal(before[0], base + got[0].addr, got[0].len);
	assert_summed(&got[1]);
	assert_tagged(&got[2], sent[2].len);
	assert_tagged(&got[3], sent[3].len);
	assert_summed(&got[3]);
	mr_frame_free_bulk(cache, got, N_WRITTEN);
	assert_int_equal(tx_stats(pair.ports[0]).bytes, n_bytes);
	assert_int_equal(
		tx_stats(pair.ports[0]).events[MR_TX_EVENT_CSUM_SOFTWARE], 2);
	end_pair(&pair);
}

/* Others see the bytes: written is a copy, counted when it is taken. */
TEST(written_clone_is_a_copy)
{
	const char *names[] = { "y", "z" };
	struct pair pair = make_pair(names, "");
	struct mr_txq *txq = mr_port_txq(pair.ports[0], 0);
	struct mr_frame sent[2], got[BURST];
	uint8_t before[TCP_LEN];

	fill_ring(pair.ports[0]);
	make_frames(sent, 1);
	sent[1] = make_partial(0x22);
	memcpy(before, base + sent[1].addr, TCP_LEN);
	assert_int_equal(mr_frame_ref(cache, &sent[1], 1), 0);
	for (int round = 0; round < 3; round++)
		assert_int_equal(mr_tx_burst(txq, cache, sent, 2), 0);
	empty_ring(pair.ports[1]);
	send_all(pair.ports[0], sent, 2);
	assert_int_equal(receive(pair.ports[1], got), 2);
	assert_summed(&got[1]);
	assert_memory_equal(before, base + sent[1].addr, TCP_LEN);
	mr_frame_free_bulk(cache, &sent[1], 1);
	mr_frame_free_bulk(cache, got, 2);
	assert_int_equal(
		tx_stats(pair.ports[0]).events[MR_TX_EVENT_EDGE_COPIED], 1);
	assert_int_equal(
		tx_stats(pair.ports[0]).events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
	end_pair(&pair);
}

/* What a device says of a frame's sum, and what comes of it. */
TEST(sum_is_told)
{
	static const struct {
		uint64_t ol_flags;
		bool is_partial; /* the sum is that of the pseudo-header */
		uint32_t flags;
	} cases[] = {
		{ RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, true, 0 },
		{ RTE_MBUF_F_RX_L4_CKSUM_BAD, true, 0 },
		{ RTE_MBUF_F_RX_L4_CKSUM_GOOD, true, MR_FRAME_CSUM_VALID },
		{ RTE_MBUF_F_RX_L4_CKSUM_NONE, true, MR_FRAME_CSUM_PARTIAL },
		{ RTE_MBUF_F_RX_L4_CKSUM_NONE, false, 0 },
	};
	const char *names[] = { "cs", "ct" };
	struct pair pair = make_pair(names, "");

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct mr_frame frame = make_partial(0), got[BURST];
		void *mbuf = NULL;

		frame.flags = 0; /* it leaves as it is */
		base[frame.addr + 50] ^= !cases[i].is_partial;
		send_all(pair.ports[0], &frame, 1);
		assert_int_equal(rte_ring_dequeue(pair.rings[1], &mbuf), 0);
		((struct rte_mbuf *)mbuf)->ol_flags |= cases[i].ol_flags;
		assert_int_equal(rte_ring_enqueue(pair.rings[1], mbuf), 0);
		assert_int_equal(receive(pair.ports[1], got), 1);
		assert_int_equal(got[0].flags, cases[i].flags);
		mr_frame_free_bulk(cache, got, 1);
	}
	end_pair(&pair);
}

/* ---- a pool with next to no headroom ---- */

/* Another pool for the tests' ports; the old one goes, or the test's does. */
static void replace_pool(const struct mr_pool_config *config)
{
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	assert_int_equal(mr_pool_create(ctx, config, &pool, NULL), 0);
	assert_int_equal(mr_cache_create(pool, &cache, NULL), 0);
	base = mr_region_base(mr_pool_region(pool));
}

/* A tag is put in front of a copy: within its page, however few bytes there
 * the pool wants free. */
TEST(tagged_copy_stays_in_its_page)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = N_PAGES };
	struct mr_meta meta = { .valid = MR_META_VLAN, .vlan_tci = TCI };

	for (uint32_t n = 1; n <= 3; n++) {
		char one[] = "v1", other[] = "u1";
		const char *names[] = { one, other };
		struct mr_frame sent, got[BURST];
		struct pair pair;

		config.headroom_bytes = n;
		replace_pool(&config);
		one[1] = other[1] = (char)('0' + n);
		pair = make_pair(names, "");
		make_frames(&sent, 1);
		assert_int_equal(mr_frame_ref(cache, &sent, 1), 0);
		assert_int_equal(mr_tx_burst_meta(mr_port_txq(pair.ports[0], 0),
						  cache, &sent, &meta, 1),
				 1);
		assert_int_equal(n_in_flight(), 2);
		assert_int_equal(receive(pair.ports[1], got), 1);
		assert_tagged(&got[0], LEN);
		assert_true(got[0].addr % 4096 + got[0].len <= 4096);
		mr_frame_free_bulk(cache, got, 1);
		mr_frame_free_bulk(cache, &sent, 1);
		assert_int_equal(n_in_flight(), 0);
		end_pair(&pair);
	}
}

/* ---- short bursts ---- */

/*
 * The cache has some pages and the pool none: the device is asked for as many
 * frames as these are for, if each takes as much as a frame of this MTU may.
 */
TEST(few_pages_mean_few_long_frames)
{
	struct mr_port *port =
		open_port("dpdk:net_null0,ring=64,mtu=9000,sg=on");
	enum { N_LEFT = MR_BURST_MAX, MAX_SEGS = 3 };
	struct mr_frame frames[MR_BURST_MAX];
	static uint64_t addrs[MAX_PAGES];
	uint32_t n = 0, n_rx;

	while (mr_frag_alloc_bulk(cache, &addrs[n], 1, 4096) == 1)
		n++;
	mr_frag_free_bulk(cache, addrs, N_LEFT);
	n_rx = mr_rx_burst(mr_port_rxq(port, 0), cache, frames, MR_BURST_MAX);
	assert_int_equal(n_rx, N_LEFT / MAX_SEGS);
	mr_frame_free_bulk(cache, frames, n_rx);
	mr_frag_free_bulk(cache, addrs + N_LEFT, n - N_LEFT);
	mr_port_close(port);
}

/*
 * Some devices give nothing to who asks for few frames: a burst of one asks for
 * more, and keeps them.
 */
TEST(short_burst_asks_for_more)
{
	const char *names[] = { "n", "o" };
	struct pair pair = make_pair(names, "");
	struct mr_frame sent[BURST], got;

	make_frames(sent, BURST);
	send_all(pair.ports[0], sent, BURST);
	for (int i = 0; i < BURST; i++) {
		assert_int_equal(mr_rx_burst(mr_port_rxq(pair.ports[1], 0),
					     cache, &got, 1),
				 1);
		assert_int_equal(rte_ring_count(pair.rings[1]), 0);
		assert_memory_equal(&got, &sent[i], sizeof(got));
		mr_frame_free_bulk(cache, &got, 1);
	}
	assert_int_equal(n_in_flight(), 0);
	end_pair(&pair);
}

/* ---- a region that grows under open ports ---- */

/* All free pages that lie below end; how many. */
static uint32_t take_below(uint64_t end, uint64_t *ret_addrs)
{
	uint64_t addr, later[MAX_PAGES];
	uint32_t n = 0, n_later = 0;

	while (n < N_PAGES && n_later < MAX_PAGES &&
	       mr_frag_alloc_bulk(cache, &addr, 1, 4096) == 1) {
		if (addr < end)
			ret_addrs[n++] = addr;
		else
			later[n_later++] = addr;
	}
	mr_frag_free_bulk(cache, later, n_later);
	return n;
}

/*
 * Pages of a segment that came after the ports: sent under their own headers
 * and not copied, and what an rx ring is filled with.
 */
TEST(later_segment_is_registered)
{
	const char *names[] = { "gr", "gs" };
	struct pair pair = make_pair(names, "");
	struct mr_region *region = mr_pool_region(pool);
	static uint64_t early[N_PAGES];
	struct mr_frame sent[BURST], got[BURST];
	struct mr_segment_info info;
	struct mr_port *source;
	uint32_t n, n_segments = 0;
	uint64_t end = 0;

	source = open_port("dpdk:net_null1,ring=64");
	for (; mr_region_segment(region, n_segments, &info) == 0; n_segments++)
		end = info.addr + info.n_bytes;
	assert_int_equal(mr_pool_grow(pool, 2048, NULL), 0);
	assert_int_equal(mr_region_segment(region, n_segments, &info), 0);
	n = take_below(end, early);
	for (int round = 0; round < 10; round++) {
		make_frames(sent, BURST);
		for (int i = 0; i < BURST; i++)
			assert_true(sent[i].addr >= end);
		send_all(pair.ports[0], sent, BURST);
		assert_int_equal(receive(pair.ports[1], got), BURST);
		assert_memory_equal(sent, got, sizeof(sent));
		mr_frame_free_bulk(cache, got, BURST);
		assert_int_equal(receive(source, got), BURST);
		for (int i = 0; i < BURST; i++)
			assert_true(got[i].addr >= end);
		mr_frame_free_bulk(cache, got, BURST);
	}
	assert_int_equal(
		tx_stats(pair.ports[0]).events[MR_TX_EVENT_FOREIGN_COPIED], 0);
	mr_frag_free_bulk(cache, early, n);
	mr_port_close(source);
	end_pair(&pair);
	/* A port that is opened now has both. */
	source = open_port("dpdk:net_null1,ring=64");
	assert_int_equal(receive(source, got), BURST);
	mr_frame_free_bulk(cache, got, BURST);
	mr_port_close(source);
}

/* ---- headers that others have as well ---- */

/* Cloned, and sent into a port of ours: its bytes come, the page stays. */
TEST(clone_sent_back_is_copied)
{
	const char *names[] = { "h", "i" };
	struct pair pair = make_pair(names, "");
	struct rte_mempool *theirs = rte_pktmbuf_pool_create(
		"theirs", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	struct mr_frame frame, got[BURST];
	struct rte_mbuf *clone;
	void *mbuf = NULL;

	assert_non_null(theirs);
	make_frames(&frame, 1);
	memset(base + frame.addr, 0x55, LEN);
	send_all(pair.ports[0], &frame, 1);
	assert_int_equal(rte_ring_dequeue(pair.rings[1], &mbuf), 0);
	clone = rte_pktmbuf_clone(mbuf, theirs);
	assert_non_null(clone);
	assert_int_equal(rte_ring_enqueue(pair.rings[1], mbuf), 0);
	assert_int_equal(receive(pair.ports[1], got), 1);
	assert_int_not_equal(got[0].addr >> 12, frame.addr >> 12);
	assert_memory_equal(base + got[0].addr, base + frame.addr, LEN);
	mr_frame_free_bulk(cache, got, 1);
	/* The clone has its bytes still. */
	assert_int_equal(n_in_flight(), 1);
	assert_int_equal(*rte_pktmbuf_mtod(clone, uint8_t *), 0x55);
	rte_pktmbuf_free(clone);
	assert_int_equal(n_in_flight(), 0);
	assert_int_equal(tx_stats(pair.ports[0]).pending, 0);
	assert_int_equal(mr_rxq_stats(mr_port_rxq(pair.ports[1], 0), &stats),
			 0);
	assert_int_equal(stats.events[MR_RX_EVENT_FOREIGN_COPIED], 1);
	end_pair(&pair);
	rte_mempool_free(theirs);
}

/* Completions on another thread, while queues are closed and swept. */
TEST(close_waits_for_other_threads)
{
	const char *names[] = { "j", "k" };
	struct pair pair = make_pair(names, "");
	char spec[128];

	snprintf(spec, sizeof(spec), "dpdk:net_ring_j,ring=%d", RING);
	for (int round = 0; round < 200; round++) {
		struct mr_frame sent[BURST];
		pthread_t thread;

		make_frames(sent, BURST);
		send_all(pair.ports[0], sent, BURST);
		make_frames(sent, BURST);
		assert_int_equal(mr_frame_ref(cache, sent, BURST), 0);
		send_all(pair.ports[0], sent, BURST);
		assert_int_equal(
			pthread_create(&thread, NULL, free_sent, pair.rings[1]),
			0);
		mr_port_close(pair.ports[0]);
		pair.ports[0] = open_port(spec);
		pthread_join(thread, NULL);
		mr_frame_free_bulk(cache, sent, BURST);
		assert_int_equal(n_in_flight(), 0);
	}
	end_pair(&pair);
}

/* ---- a program that has DPDK of its own ---- */

TEST(program_keeps_its_log)
{
	FILE *log = tmpfile();
	struct mr_port *port = NULL;
	struct mr_reason why;

	assert_non_null(log);
	start_programs_eal();
	assert_int_equal(rte_openlog_stream(log), 0);
	/* Words for EAL come too late, from the first port on. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			try_open("dpdk:net_null0,eal=-m64", &port, &why),
			-EALREADY);
		assert_non_null(strstr(why.text, "started by the program"));
	}
	mr_port_close(open_port("dpdk:net_null0"));
	assert_ptr_equal(rte_log_get_stream(), log);
	mr_port_close(open_port("dpdk:net_null0"));
	assert_ptr_equal(rte_log_get_stream(), log);
	rte_openlog_stream(NULL);
	fclose(log);
}

/* We have had it, and the program starts it again: with no memory of ours. */
TEST(programs_port_is_left_without_our_memory)
{
	struct mr_frame frames[BURST];
	struct rte_mbuf *mbuf = NULL;
	struct mr_port *port;
	uint32_t n;
	uint16_t id;

	mr_port_close(open_port("dpdk:net_null0"));
	assert_int_equal(rte_dev_probe("net_null7"), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null7", &id), 0);
	for (int round = 0; round < 3; round++) {
		port = open_port("dpdk:net_null7");
		n = receive(port, frames);
		assert_int_equal(n, BURST);
		mr_frame_free_bulk(cache, frames, n);
		mr_port_close(port);
	}
	assert_int_equal(rte_eth_dev_start(id), 0);
	assert_int_equal(rte_eth_rx_burst(id, 0, &mbuf, 1), 1);
	assert_string_equal(mbuf->pool->name, "millrace_parking");
	rte_pktmbuf_free(mbuf);
	assert_int_equal(rte_eth_dev_stop(id), 0);
	assert_int_equal(rte_eth_dev_close(id), 0);
}

/* ---- starts and devices that come to nothing ---- */

static void assert_refused(const char *spec, int err, struct mr_reason *ret_why)
{
	struct mr_port *port = NULL;

	assert_int_equal(try_open(spec, &port, ret_why), err);
}

/* However often, and however long the words: the next start is a new one. */
TEST(refused_starts_leave_room)
{
	char spec[1100] = "dpdk:net_null0,eal=--no-such-";
	struct mr_reason why;
	size_t n = strlen(spec);

	memset(spec + n, 'x', 800);
	for (int i = 0; i < 40; i++) {
		spec[n + (i < 12 ? 800 : 1)] = '\0';
		assert_refused(spec, -EIO, &why);
		assert_non_null(strstr(why.text, "EAL does not start"));
	}
	n = strlen("dpdk:net_null0,eal=");
	for (int i = 0; i < 100; i++, n += 2)
		memcpy(spec + n, "a ", 3);
	assert_refused(spec, -EINVAL, &why);
	assert_non_null(strstr(why.text, "too many words"));
	mr_port_close(open_port("dpdk:net_null0,eal=--log-level=lib.eal:5"));
}

/* It is taken back: the second try is told the same. */
TEST(device_without_a_port_goes)
{
	struct mr_reason first, second;

	assert_refused("dpdk:crypto_null0", -ENODEV, &first);
	assert_non_null(strstr(first.text, "no Ethernet port"));
	assert_refused("dpdk:crypto_null0", -ENODEV, &second);
	assert_string_equal(first.text, second.text);
}
