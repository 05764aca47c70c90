/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/port/offload.c on a driver without offloads: pair. Devices are
 * tested by test/conformance.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <time.h>

#include <millrace/net.h>
#include <millrace/port.h>
#include <millrace/port_device.h>

#include "port/driver_list.h"
#include "support/packet.h"
#include "support/pool_unit.h"

enum {
	RING = 64,
	PAGES = 1024,
	PAGE = 2048,
	MSS = 1000,
	TCI = 0x2005,
	MAX_BYTES = 20000,
	MAX_PIECES = 256,
};

static struct {
	struct pool_fixture f;
	struct mr_port *near, *far;
	struct mr_txq *txq;
	struct mr_frame got[MAX_PIECES];
	uint32_t n_got;
} b;

struct kind {
	bool is_v6, is_udp;
};

/* Pair, as a device that the tests observe and whose features they choose. */
static const struct mr_driver *pair;
static mr_tx_burst_fn *burst_of_pair;
static struct {
	uint32_t n_bursts;
	bool is_early;       /* others saw a queue before it was ready */
	struct mr_meta meta; /* of the last burst's first frame */
} seen;
static struct {
	uint32_t offloads;
	uint32_t launch_clock;
	bool has_no_wakeups;
	uint32_t n_txqs; /* that it shows, of more; 0: all */
} device;

static uint32_t observe(struct mr_txq *txq, struct mr_cache *cache,
			const struct mr_frame *frames,
			const struct mr_meta *meta, uint32_t n)
{
	seen.n_bursts++;
	if (meta != NULL && n > 0)
		seen.meta = meta[0];
	return burst_of_pair(txq, cache, frames, meta, n);
}

static int arm_nothing(struct mr_queue *queue)
{
	(void)queue;
	return 0;
}

static int observed_open(struct mr_port *port, const struct mr_spec *spec,
			 struct mr_reason *reterr_reason)
{
	const int err = pair->open(port, spec, reterr_reason);

	if (err < 0)
		return err;
	burst_of_pair = port->txqs[0]->burst;
	port->txqs[0]->burst = observe;
	if (device.has_no_wakeups)
		port->txqs[0]->queue.arm = arm_nothing;
	port->info->offloads = device.offloads;
	port->info->launch_clock = device.launch_clock;
	if (device.n_txqs != 0) {
		port->info->n_rxqs = 1;
		port->info->n_txqs = device.n_txqs;
	}
	return 0;
}

/* Show other queues, as a device whose channels were changed. */
static int observed_add_queues(struct mr_port *port, uint32_t n,
			       struct mr_reason *reterr_reason)
{
	const uint32_t n_before = port->info->n_txqs;

	(void)reterr_reason;
	port->info->n_txqs = device.n_txqs;
	port->info->n_rxqs += n;
	seen.is_early = device.n_txqs > n_before &&
			mr_port_txq(port, device.n_txqs - 1) != NULL;
	return 0;
}

static void add_observed(struct mr_ctx *ctx)
{
	struct mr_driver observed;

	for (uint32_t i = 0; (pair = mri_driver_at(ctx, i)) != NULL; i++)
		if (strcmp(pair->name, "pair") == 0)
			break;
	assert_non_null(pair);
	observed = *pair;
	observed.name = "observed";
	observed.version = MR_DRIVER_VERSION;
	observed.size = sizeof(observed);
	observed.open = observed_open;
	observed.add_queues = observed_add_queues;
	assert_int_equal(mr_ctx_add_driver(ctx, &observed, NULL), 0);
}

static void begin_with(uint32_t headroom_bytes, const char *near,
		       const char *far)
{
	struct mr_port_config config = { .size = sizeof(config) };

	fixture_open_with(&b.f, (struct mr_pool_config){
					.n_pages = PAGES,
					.page_bytes = PAGE,
					.headroom_bytes = headroom_bytes });
	config.pool = b.f.pool;
	add_observed(b.f.ctx);
	assert_int_equal(mr_port_open(b.f.ctx, near, &config, &b.near, NULL),
			 0);
	assert_int_equal(mr_port_open(b.f.ctx, far, &config, &b.far, NULL), 0);
	b.txq = mr_port_txq(b.near, 0);
	b.n_got = 0;
}

static void begin(uint32_t headroom_bytes)
{
	begin_with(headroom_bytes, "observed:o,ring=64,sg=on",
		   "pair:o,ring=64,sg=on");
}

static void end(void)
{
	mr_frame_free_bulk(b.f.cache, b.got, b.n_got);
	mr_port_close(b.near);
	mr_port_close(b.far);
	fixture_close(&b.f);
}

/* What is in the ring now. */
static uint32_t receive(void)
{
	const uint32_t n = mr_rx_burst(mr_port_rxq(b.far, 0), b.f.cache,
				       b.got + b.n_got, MAX_PIECES - b.n_got);

	b.n_got += n;
	return n;
}

/* Bytes of the frame, FIN, PSH, CWR and ACK on, whatever sum. */
static uint32_t make(uint8_t *bytes, struct kind kind, uint32_t n_payload)
{
	static const uint8_t mac[6] = { 2 };
	const uint32_t n = packet_make(bytes, mac, kind.is_v6 ? 6 : 4,
				       kind.is_udp ? 17 : 6, n_payload);
	uint8_t *l4 = bytes + (kind.is_v6 ? 54 : 34);

	if (!kind.is_v6) /* the identification wraps in a byte */
		packet_put16(bytes + 18, 0xff);
	if (!kind.is_udp) {
		memset(l4 + 4, 0xff, 4);
		l4[13] = 0x99;
	}
	return n;
}

/* The bytes in entries of a page each, at most; how many. */
static uint32_t put(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_each,
		    struct mr_frame *frames)
{
	uint32_t n = 0;

	for (uint32_t at = 0; at < n_bytes; at += n_each, n++) {
		const uint32_t k =
			n_bytes - at < n_each ? n_bytes - at : n_each;

		frames[n] = (struct mr_frame){ alloc_one(b.f.cache, PAGE) + 128,
					       k, MR_FRAME_MORE };
		memcpy(b.f.base + frames[n].addr, bytes + at, k);
	}
	frames[n - 1].flags = 0;
	return n;
}

static struct mr_meta gso(struct kind kind, bool has_tag)
{
	return (struct mr_meta){
		.valid = MR_META_GSO | MR_META_CSUM |
			 (has_tag ? MR_META_VLAN : 0u),
		.gso_bytes = MSS,
		.gso_type = kind.is_udp ? MR_GSO_UDP :
			    kind.is_v6  ? MR_GSO_TCPV6 :
					  MR_GSO_TCPV4,
		.vlan_tci = TCI,
	};
}

/* Of frame i of n: its headers, and its part of the payload. */
static uint32_t check_piece(uint32_t i, uint32_t n, const uint8_t *whole,
			    uint32_t n_whole, struct kind kind, bool has_tag)
{
	const uint32_t tag = has_tag ? 4 : 0;
	const uint32_t l4 = 14 + (kind.is_v6 ? 40u : 20u);
	const uint32_t n_header = l4 + (kind.is_udp ? 8 : 20);
	const uint8_t *bytes = b.f.base + b.got[i].addr;
	const uint32_t n_bytes = b.got[i].len;
	const uint32_t n_payload = n_bytes - n_header - tag;
	struct mr_net_view view;
	uint32_t seq, seq_of_whole;
	uint16_t sum;

	assert_true(b.got[i].flags & MR_FRAME_CSUM_PARTIAL);
	assert_int_equal(mr_net_parse(bytes, n_bytes, n_bytes, &view), 0);
	assert_int_equal(view.l4_bytes, l4 + tag);
	assert_int_equal(view.l4_bytes + view.l4_len_bytes, n_bytes);
	assert_memory_equal(bytes, whole, 12);
	if (has_tag)
		assert_memory_equal(bytes + 12, "\x81\x00\x20\x05", 4);
	memcpy(&sum, bytes + view.csum_bytes, 2);
	assert_int_equal(sum, mr_csum_pseudo(bytes, &view));
	if (!kind.is_v6) {
		assert_int_equal(
			mr_csum_fold(mr_csum_add(bytes + 14 + tag, 20, 0)),
			0xffff);
		assert_int_equal(bytes[18 + tag] << 8 | bytes[19 + tag],
				 0xff + i);
	}
	if (!kind.is_udp) {
		memcpy(&seq, bytes + l4 + tag + 4, 4);
		memcpy(&seq_of_whole, whole + l4 + 4, 4);
		assert_int_equal(ntohl(seq), ntohl(seq_of_whole) + i * MSS);
		assert_int_equal(bytes[l4 + tag + 13],
				 0x10 | (i == 0 ? 0x80 : 0) |
					 (i + 1 == n ? 9 : 0));
	}
	assert_int_equal(n_payload,
			 i + 1 < n ? MSS : n_whole - n_header - i * MSS);
	assert_memory_equal(bytes + n_header + tag,
			    whole + n_header + (size_t)i * MSS, n_payload);
	return n_payload;
}

TEST(long_frames_are_cut)
{
	static const uint32_t lens[] = { 1, MSS, MSS + 1, 5 * MSS };
	uint8_t bytes[MAX_BYTES];

	for (uint32_t c = 0; c < 4 * 2 * 2 * 2; c++) {
		const struct kind kind = { c & 4, c & 8 };
		const bool has_tag = c & 16;
		const uint32_t n_payload = lens[c & 3];
		const uint32_t n = (n_payload + MSS - 1) / MSS;
		const struct mr_meta meta = gso(kind, has_tag);
		struct mr_frame frames[MR_MAX_SEGS];
		struct mr_meta metas[MR_MAX_SEGS] = { meta };
		uint32_t n_bytes, n_entries;

		begin(0);
		n_bytes = make(bytes, kind, n_payload);
		/* Headers end in the first entry, or in a later one. */
		n_entries =
			put(bytes, n_bytes, c % 3 == 0 ? 333 : 1900, frames);
		assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames,
						  metas, n_entries),
				 n_entries);
		assert_int_equal(receive(), n);
		for (uint32_t i = 0; i < n; i++)
			check_piece(i, n, bytes, n_bytes, kind, has_tag);
		assert_int_equal(fixture_tx_stats(b.txq).accepted, n);
		assert_int_equal(fixture_tx_stats(b.txq)
					 .events[MR_TX_EVENT_GSO_SOFTWARE],
				 1);
		assert_int_equal(
			fixture_tx_stats(b.txq).events[MR_TX_EVENT_GSO_ADDED],
			n - 1);
		assert_int_equal(fixture_tx_stats(b.txq)
					 .events[MR_TX_EVENT_VLAN_SOFTWARE],
				 has_tag);
		end();
	}
}

/* The queue takes the frame, sends what fits, and goes on with the rest. */
TEST(frames_that_do_not_fit_are_sent_later)
{
	const struct kind kind = { 0 };
	const uint32_t n_before = RING - 3, n = 15;
	struct mr_frame frames[RING], plain;
	struct mr_meta metas[RING] = { gso(kind, false) };
	uint8_t bytes[MAX_BYTES];
	uint32_t n_entries, n_bytes;

	device.has_no_wakeups = true;
	begin(0);
	device.has_no_wakeups = false;
	for (uint32_t i = 0; i < n_before; i++) {
		(void)put(bytes, 60, 60, &plain);
		assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 1);
	}
	n_bytes = make(bytes, kind, n * MSS);
	n_entries = put(bytes, n_bytes, 1900, frames);
	(void)put(bytes, 60, 60, &frames[n_entries]);
	plain = frames[n_entries];
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas,
					  n_entries + 1),
			 n_entries);
	/* The frame is still there: one more. */
	assert_int_equal(fixture_tx_stats(b.txq).accepted, RING + 1);
	/* Without metadata, too, nothing overtakes it. */
	assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 0);
	assert_int_equal(mr_queue_arm(&b.txq->queue), 0);
	assert_int_equal(receive(), RING);
	assert_int_equal(fixture_tx_stats(b.txq).pending, 1);
	assert_int_equal(mr_queue_arm(&b.txq->queue), 1);
	mr_frame_free_bulk(b.f.cache, b.got, n_before);
	memmove(b.got, b.got + n_before, 3 * sizeof(b.got[0]));
	b.n_got = 3;
	assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 1);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, RING + n - 3 + 1);
	assert_int_equal(receive(), n - 3 + 1);
	assert_int_equal(fixture_tx_stats(b.txq).pending, 0);
	for (uint32_t i = 0; i < n; i++)
		check_piece(i, n, bytes, n_bytes, kind, false);
	assert_int_equal(b.got[n].len, 60);
	assert_int_equal(mr_queue_arm(&b.txq->queue), 0);
	/* One that is held when the port closes goes with it. */
	n_entries = put(bytes, n_bytes, 1900, frames);
	for (uint32_t i = 0; i < RING; i++) {
		(void)put(bytes, 60, 60, &plain);
		assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 1);
	}
	assert_int_equal(
		mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, n_entries),
		n_entries);
	end();
}

TEST(a_frame_without_pages_is_a_named_drop)
{
	const struct kind kind = { 0 };
	struct mr_frame frames[MR_MAX_SEGS];
	struct mr_meta metas[MR_MAX_SEGS] = { gso(kind, false) };
	uint64_t addrs[PAGES];
	uint8_t bytes[MAX_BYTES];
	uint32_t n_entries, n;

	begin(0);
	n_entries = put(bytes, make(bytes, kind, 9 * MSS), 1900, frames);
	n = mr_frag_alloc_bulk(b.f.cache, addrs, PAGES, PAGE);
	mr_frag_free_bulk(b.f.cache, addrs, 2);
	/* Two segments have pages, which the other end does not give back. */
	assert_int_equal(
		mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, n_entries),
		n_entries);
	assert_int_equal(receive(), 2);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, 3);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_NO_BUFFER],
			 1);
	mr_frag_free_bulk(b.f.cache, addrs + 2, n - 2);
	end();
}

/* A copy of two pages, for which there is one. */
TEST(pages_are_given_back_if_there_are_too_few)
{
	const struct mr_meta metas[2] = { { .valid = MR_META_VLAN } };
	struct mr_frame frames[2];
	uint64_t addrs[PAGES];
	uint8_t bytes[3000] = { 0 };
	uint32_t n;

	begin(0);
	assert_int_equal(put(bytes, sizeof(bytes), 1900, frames), 2);
	frames[0].addr -= 128; /* no room for the tag */
	n = mr_frag_alloc_bulk(b.f.cache, addrs, PAGES, PAGE);
	mr_frag_free_bulk(b.f.cache, addrs, 1);
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, 2),
			 2);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_NO_BUFFER],
			 1);
	mr_frag_free_bulk(b.f.cache, addrs + 1, n - 1);
	end();
}

TEST(a_frame_that_cannot_be_cut_is_a_named_drop)
{
	struct mr_meta meta = gso((struct kind){ .is_v6 = true }, false);
	struct mr_frame frame;
	uint8_t bytes[MAX_BYTES];

	begin(0);
	for (uint32_t i = 0; i < 2; i++, meta.gso_type = 77) {
		(void)put(bytes, make(bytes, (struct kind){ 0 }, 1500), 1900,
			  &frame);
		assert_int_equal(
			mr_tx_burst_meta(b.txq, b.f.cache, &frame, &meta, 1),
			1);
	}
	assert_int_equal(receive(), 0);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_INVALID], 2);
	end();
}

/* The headroom leaves 88 bytes of a page: headers of 66 fit, of 94 not. */
TEST(headers_longer_than_a_page_are_a_named_drop)
{
	const struct mr_meta meta = gso((struct kind){ 0 }, false);
	struct mr_frame frame;
	uint8_t bytes[MAX_BYTES];

	begin(PAGE - 88);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t n_bytes = make(bytes, (struct kind){ 0 }, 1500);

		bytes[14 + 20 + 12] = i == 0 ? 0xf0 : 0x80;
		(void)put(bytes, n_bytes, 1900, &frame);
		assert_int_equal(
			mr_tx_burst_meta(b.txq, b.f.cache, &frame, &meta, 1),
			1);
	}
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_TOO_LONG], 1);
	assert_int_equal(receive(), 13 + 7); /* 1066 bytes and 554 */
	end();
}

/* Into the headroom; or, without it or shared, in a copy; all in one burst. */
TEST(tags_are_written)
{
	struct mr_frame frames[5], own[5];
	struct mr_meta metas[5];
	uint8_t bytes[100];

	begin(0);
	memset(bytes, 0x11, sizeof(bytes));
	for (uint32_t i = 0; i < 5; i++) {
		metas[i] = (struct mr_meta){ .valid = i != 4 ? MR_META_VLAN : 0,
					     .vlan_tci = TCI };
		(void)put(bytes, 60 + i, 100, &frames[i]);
	}
	frames[1].addr -= 128 - 3;
	memcpy(b.f.base + frames[1].addr, bytes, 61);
	assert_int_equal(mr_frame_ref(b.f.cache, &frames[2], 1), 0);
	memcpy(own, frames, sizeof(own));
	seen.n_bursts = 0;
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, 5),
			 5);
	assert_int_equal(seen.n_bursts, 1);
	assert_int_equal(receive(), 5);
	for (uint32_t i = 0; i < 5; i++) {
		const uint8_t *got = b.f.base + b.got[i].addr;
		const uint32_t tag = i != 4 ? 4 : 0;

		assert_int_equal(b.got[i].len, 60 + i + tag);
		assert_memory_equal(got, bytes, 12);
		if (tag != 0)
			assert_memory_equal(got + 12, "\x81\x00\x20\x05", 4);
		assert_memory_equal(got + 12 + tag, bytes, 48 + i);
	}
	assert_int_equal(b.got[0].addr, own[0].addr - 4);
	/* Its other owner sees what it saw. */
	assert_memory_equal(b.f.base + own[2].addr, bytes, 62);
	mr_frame_free_bulk(b.f.cache, &own[2], 1);
	assert_int_equal(
		fixture_tx_stats(b.txq).events[MR_TX_EVENT_VLAN_SOFTWARE], 4);
	end();
}

/* Devices insert 802.1Q tags only. */
TEST(a_service_tag_is_written_in_software)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN,
				      .vlan_proto = 0x88a8,
				      .vlan_tci = TCI };
	struct mr_frame frame;
	uint8_t bytes[60] = { 0 };

	begin(0);
	b.txq->queue.port->info->offloads |= MR_OFFLOAD_VLAN_TX;
	(void)put(bytes, sizeof(bytes), 100, &frame);
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, &frame, &meta, 1),
			 1);
	assert_int_equal(receive(), 1);
	assert_int_equal(b.got[0].len, 64);
	assert_memory_equal(b.f.base + b.got[0].addr + 12, "\x88\xa8\x20\x05",
			    4);
	mr_frame_free_bulk(b.f.cache, b.got, 1);
	end();
}

/* What the driver does not take is as it was: tagged in place, or a copy. */
static void refuse(bool is_shared)
{
	struct mr_frame frames[RING + 2], before[RING + 2];
	struct mr_meta metas[RING + 2];
	uint8_t bytes[100];

	begin(0);
	memset(bytes, 0x11, sizeof(bytes));
	bytes[0] = 0x22;
	for (uint32_t i = 0; i < RING + 2; i++) {
		metas[i] = (struct mr_meta){ .valid = MR_META_VLAN };
		(void)put(bytes, 60, 100, &frames[i]);
	}
	memcpy(before, frames, sizeof(frames));
	if (is_shared)
		assert_int_equal(mr_frame_ref(b.f.cache, frames, RING + 2), 0);
	assert_int_equal(
		mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, RING + 2),
		RING);
	assert_memory_equal(frames, before, sizeof(frames));
	assert_memory_equal(b.f.base + frames[RING].addr, bytes, 60);
	assert_int_equal(
		fixture_tx_stats(b.txq).events[MR_TX_EVENT_VLAN_SOFTWARE],
		RING);
	mr_frame_free_bulk(b.f.cache, frames + RING, 2);
	if (is_shared)
		mr_frame_free_bulk(b.f.cache, frames, RING + 2);
	assert_int_equal(receive(), RING);
	end();
}

TEST(a_frame_that_is_refused_has_no_tag)
{
	refuse(false);
	refuse(true);
}

/* A frame with a launch time, beside one without. Returns how many arrive. */
static uint32_t send_at(uint16_t clock, uint32_t valid)
{
	const struct mr_meta metas[2] = {
		{ .valid = MR_META_LAUNCH_TIME | valid,
		  .launch_ns = 1,
		  .launch_clock = clock,
		  .gso_bytes = MSS,
		  .gso_type = MR_GSO_TCPV4 },
		{ .valid = 0 },
	};
	struct mr_frame frames[2];
	uint8_t bytes[1100];
	uint32_t n;

	(void)make(bytes, (struct kind){ false, false }, 1000);
	(void)put(bytes, 1000, PAGE, &frames[0]);
	(void)put(bytes, 60, PAGE, &frames[1]);
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, 2),
			 2);
	n = receive();
	mr_frame_free_bulk(b.f.cache, b.got, b.n_got);
	b.n_got = 0;
	return n;
}

TEST(launch_times_are_dropped_if_the_device_lacks_them_or_their_clock)
{
	begin(0);
	assert_int_equal(send_at(CLOCK_MONOTONIC, 0), 1);
	assert_int_equal(send_at(MR_CLOCK_DEVICE, MR_META_VLAN), 1);
	assert_int_equal(send_at(MR_CLOCK_DEVICE, MR_META_GSO | MR_META_CSUM),
			 1);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_INVALID], 3);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, 6);
	end();

	device.offloads = MR_OFFLOAD_LAUNCH_TIME;
	device.launch_clock = MR_CLOCK_DEVICE;
	begin(0);
	assert_int_equal(send_at(CLOCK_MONOTONIC, 0), 1);
	assert_int_equal(send_at(MR_CLOCK_DEVICE, 0), 2);
	assert_int_equal(seen.meta.valid, MR_META_LAUNCH_TIME);
	assert_int_equal(seen.meta.launch_ns, 1);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_INVALID], 1);
	end();
	device.offloads = 0;
}

/* What no device does is left, whatever it says. */
TEST(a_device_with_all_features_gets_no_other_tag_and_no_other_clock)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN,
				      .vlan_proto = 0x88a8,
				      .vlan_tci = TCI };
	struct mr_frame frame;
	uint8_t bytes[60] = { 0 };

	device.offloads = MR_OFFLOAD_TSO4 | MR_OFFLOAD_TSO6 | MR_OFFLOAD_USO |
			  MR_OFFLOAD_VLAN_TX | MR_OFFLOAD_LAUNCH_TIME;
	device.launch_clock = MR_CLOCK_DEVICE;
	begin(0);
	assert_int_equal(send_at(CLOCK_MONOTONIC, 0), 1);
	assert_int_equal(send_at(MR_CLOCK_DEVICE, 0), 2);
	(void)put(bytes, sizeof(bytes), 100, &frame);
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, &frame, &meta, 1),
			 1);
	assert_int_equal(receive(), 1);
	assert_int_equal(b.got[0].len, 64);
	assert_memory_equal(b.f.base + b.got[0].addr + 12, "\x88\xa8\x20\x05",
			    4);
	end();
	device.offloads = 0;
}

static void send_tagged(uint32_t queue)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN, .vlan_tci = TCI };
	struct mr_frame frame;
	uint8_t bytes[60] = { 0 };

	(void)put(bytes, sizeof(bytes), 100, &frame);
	assert_int_equal(mr_tx_burst_meta(mr_port_txq(b.near, queue), b.f.cache,
					  &frame, &meta, 1),
			 1);
	assert_int_equal(
		mr_rx_burst(mr_port_rxq(b.far, queue), b.f.cache, &frame, 1),
		1);
	assert_int_equal(frame.len, 64);
	mr_frame_free_bulk(b.f.cache, &frame, 1);
}

/* Also where a change of channels hides one, and the next shows it again. */
TEST(queues_that_are_added_are_shown_once_they_write_tags)
{
	device.n_txqs = 2;
	begin_with(0, "observed:o,queues=3,ring=16", "pair:o,queues=3,ring=16");
	b.near->info->n_channels = 2;
	device.n_txqs = 1;
	assert_int_equal(mr_port_add_queues(b.near, NULL), 1);
	assert_null(mr_port_txq(b.near, 1));
	b.near->info->n_channels = 3;
	device.n_txqs = 3;
	assert_int_equal(mr_port_add_queues(b.near, NULL), 1);
	assert_false(seen.is_early);
	for (uint32_t i = 0; i < 3; i++)
		send_tagged(i);
	end();
	device.n_txqs = 0;
}
