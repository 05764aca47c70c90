/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/intel/intel_tx.c and intel_frame.c. What a descriptor has to
 * be, the model says by a violation, and what leaves is looked at on its wire.
 */
#include <netinet/in.h>

#include "intel.h"
#include "model/held_nic.h"
#include "support/packet.h"

enum { L4 = 34, TCP_HEADERS = 54 };

static const struct held_config igb = { 0 };
static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

static uint32_t transmit(const struct mr_frame *frames,
			 const struct mr_meta *meta, uint32_t n)
{
	return mr_tx_burst_meta(held.harness.txq, held.harness.cache, frames,
				meta, n);
}

/* The device sends what it has; its frames, the last one in bytes. */
static uint32_t collect(uint8_t *bytes, uint32_t *ret_n)
{
	static uint8_t none[WIRE_MAX_BYTES];
	uint32_t n_frames = 0, n;

	model_step(held.harness.m);
	while ((n = model_wire_receive(held.harness.wire, 1,
				       bytes != NULL ? bytes : none,
				       WIRE_MAX_BYTES)) > 0) {
		n_frames++;
		if (ret_n != NULL)
			*ret_n = n;
	}
	return n_frames;
}

static uint32_t send_some(uint32_t n)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_taken;

	for (uint32_t i = 0; i < n; i++)
		frames[i] = held_frame(60 + i);
	n_taken = transmit(frames, NULL, n);
	mr_frame_free_bulk(held.harness.cache, frames + n_taken, n - n_taken);
	return n_taken;
}

/* A frame of n entries. */
static void make_long(struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		frames[i] = held_frame(100);
		frames[i].flags = i + 1 < n ? MR_FRAME_MORE : 0;
	}
}

/* A packet over IPv4 whose sum is the pseudo-header's. */
static struct mr_frame packet(uint32_t protocol, uint32_t n_payload)
{
	struct mr_frame frame = held_frame(0);

	frame.len =
		packet_make(held_bytes(&frame), mac, 4, protocol, n_payload);
	packet_leave_partial(held_bytes(&frame), frame.len, true);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	return frame;
}

static struct mr_meta gso(void)
{
	return (struct mr_meta){
		.valid = MR_META_CSUM | MR_META_GSO,
		.csum_start_bytes = L4,
		.csum_offset_bytes = 16,
		.gso_bytes = 1000,
		.gso_type = MR_GSO_TCPV4,
	};
}

/* Nothing is under way, and no page is out but those. */
static void assert_idle(uint64_t n_out)
{
	collect(NULL, NULL);
	transmit(NULL, NULL, 0);
	assert_int_equal(harness_tx_stats(&held.harness).pending, 0);
	assert_int_equal(held_in_flight(), HELD_RING + n_out);
	harness_check_invariants(&held.harness);
}

/* One report for each burst, at its end, however it is made. */
TEST(only_the_last_descriptor_requests_a_report)
{
	static const struct held_config configs[] = {
		{ 0 }, { .options = "head-wb=off" }, { .device_id = HELD_82574 }
	};

	for (size_t c = 0; c < 3; c++) {
		const struct intel_txq *txq;

		held_open(configs[c]);
		txq = &held.intel->txqs[0];
		for (uint32_t round = 0; round < 60; round++) {
			const uint32_t n = round % 31 + 1, first = txq->tail;

			assert_int_equal(send_some(n), n);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(
					!!(txq->ring[(first + i) & txq->mask]
						   .words[1] &
					   INTEL_TX_RS),
					i + 1 == n);
			assert_int_equal(collect(NULL, NULL), n);
			assert_idle(0);
		}
		held_close();
	}
}

/* Below INTEL_TX_REAP nothing is collected but by a burst of none. */
HELD_TEST(sent_buffers_come_back_in_bulk)
{
	for (int i = 0; i < 31; i++) {
		assert_int_equal(send_some(1), 1);
		assert_int_equal(collect(NULL, NULL), 1);
	}
	assert_int_equal(harness_tx_stats(&held.harness).pending, 31);
	assert_int_equal(send_some(1), 1);
	assert_int_equal(harness_tx_stats(&held.harness).pending, 32);
	assert_int_equal(send_some(1), 1);
	assert_int_equal(harness_tx_stats(&held.harness).pending, 2);
	assert_int_equal(harness_tx_stats(&held.harness).completed, 31);
	assert_idle(0);
}

HELD_TEST(a_nearly_full_ring_takes_part_of_a_burst)
{
	struct mr_frame frames[MR_MAX_SEGS];

	assert_int_equal(send_some(40), 40);
	assert_int_equal(send_some(40), 23); /* one place stays free */
	assert_int_equal(send_some(1), 0);
	assert_int_equal(
		harness_tx_stats(&held.harness).events[MR_TX_EVENT_RING_FULL],
		2);
	assert_int_equal(held_in_flight(), HELD_RING + 63);
	collect(NULL, NULL);
	assert_int_equal(send_some(50), 50);
	assert_int_equal(harness_tx_stats(&held.harness).completed, 63);
	/* A frame of several entries fits, or it stays the caller's. */
	make_long(frames, MR_MAX_SEGS);
	assert_int_equal(transmit(frames, NULL, MR_MAX_SEGS), 0);
	mr_frame_free_bulk(held.harness.cache, frames, MR_MAX_SEGS);
	harness_check_invariants(&held.harness);
}

/* A head that was never given, or that stands still. */
HELD_TEST(a_report_that_makes_no_sense_is_no_progress)
{
	uint32_t *head;

	head = (uint32_t *)held.intel->txqs[0].head;
	assert_int_equal(send_some(10), 10);
	for (uint32_t lie = 11; lie <= 65; lie++) {
		*head = lie < 64 ? lie : UINT32_MAX - (lie - 64) * 20;
		transmit(NULL, NULL, 0);
		assert_int_equal(harness_tx_stats(&held.harness).completed, 0);
	}
	*head = 10 + HELD_RING * 5; /* one that is beyond the ring */
	transmit(NULL, NULL, 0);
	assert_int_equal(harness_tx_stats(&held.harness).completed, 10);
}

/* Without a whole header, outside the region, too long, of 19 entries. */
HELD_TEST(frames_that_no_device_may_see_are_named_drops)
{
	struct mr_frame frames[MR_MAX_SEGS + 1];

	frames[0] = held_frame(13);
	frames[1] = (struct mr_frame){ .addr = UINT64_C(1) << 40, .len = 60 };
	frames[2] = held_frame(1519);
	assert_int_equal(transmit(frames, NULL, 3), 3);
	make_long(frames, MR_MAX_SEGS + 1);
	assert_int_equal(transmit(frames, NULL, MR_MAX_SEGS + 1),
			 MR_MAX_SEGS + 1);
	assert_int_equal(collect(NULL, NULL), 0);
	assert_int_equal(
		harness_tx_stats(&held.harness).drops[MR_TX_DROP_INVALID], 2);
	assert_int_equal(
		harness_tx_stats(&held.harness).drops[MR_TX_DROP_TOO_LONG], 2);
	assert_idle(0);
}

/* TCTL.PSP does not: 14 to 16 bytes, in one entry or several. */
HELD_TEST(short_frames_are_padded_if_the_device_cannot)
{
	uint8_t got[WIRE_MAX_BYTES];

	for (uint32_t n = 14; n < 17; n++) {
		for (uint32_t n_entries = 1; n_entries <= 2; n_entries++) {
			struct mr_frame frames[2];

			for (uint32_t i = 0; i < n_entries; i++) {
				frames[i] = held_frame(i == 0 ? n : 3);
				memset(held_bytes(&frames[i]), 0xee, 32);
			}
			frames[0].len -= n_entries == 2 ? 3 : 0;
			frames[0].flags = n_entries == 2 ? MR_FRAME_MORE : 0;
			assert_int_equal(transmit(frames, NULL, n_entries),
					 n_entries);
			assert_int_equal(collect(got, NULL), 1);
			for (uint32_t i = 0; i < 60; i++)
				assert_int_equal(got[i], i < n ? 0xee : 0);
			assert_idle(0);
		}
	}
}

/* Two packets of a kind, a plain one between them: how many descriptors. */
TEST(tx_contexts_are_reused_while_they_fit)
{
	static const struct {
		const struct held_config config;
		uint32_t protocols[2];
		uint32_t n_descs;
	} cases[] = {
		{ { 0 }, { IPPROTO_TCP, IPPROTO_TCP }, 4 },
		{ { 0 }, { IPPROTO_TCP, IPPROTO_UDP }, 5 },
		{ { .device_id = HELD_82574 },
		  { IPPROTO_UDP, IPPROTO_UDP },
		  4 },
		{ { .device_id = HELD_82574 },
		  { IPPROTO_UDP, IPPROTO_TCP },
		  5 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_frame frames[3];

		held_open(cases[i].config);
		frames[0] = packet(cases[i].protocols[0], 100);
		frames[1] = held_frame(100);
		frames[2] = packet(cases[i].protocols[1], 100);
		assert_int_equal(transmit(frames, NULL, 3), 3);
		assert_int_equal(held.intel->txqs[0].tail, cases[i].n_descs);
		assert_int_equal(collect(NULL, NULL), 3);
		assert_int_equal(harness_tx_stats(&held.harness)
					 .events[MR_TX_EVENT_CSUM_DEVICE],
				 2);
		assert_idle(0);
		assert_int_equal(held.intel->txqs[0].n_special, 0);
		held_close();
	}
}

/* By metadata: what the headers do not say as well, is finished here. */
HELD_TEST(sums_that_the_device_cannot_make_are_made_here)
{
	static const struct {
		uint16_t start, offset;
		bool is_no_packet;
	} cases[] = { { L4, 6, false }, { 30, 20, false }, { 30, 20, true } };
	uint8_t got[WIRE_MAX_BYTES];
	struct mr_meta meta = { .valid = MR_META_CSUM };
	struct mr_frame frame;
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		meta.csum_start_bytes = cases[i].start;
		meta.csum_offset_bytes = cases[i].offset;
		frame = packet(IPPROTO_TCP, 10);
		if (cases[i].is_no_packet)
			memset(held_bytes(&frame), 0, 34);
		memset(held_bytes(&frame) + cases[i].start + cases[i].offset, 0,
		       2);
		assert_int_equal(transmit(&frame, &meta, 1), 1);
		assert_int_equal(collect(got, &n), 1);
		assert_int_equal(
			packet_sum(got + cases[i].start, n - cases[i].start, 0),
			0xffff);
	}
	assert_int_equal(harness_tx_stats(&held.harness)
				 .events[MR_TX_EVENT_CSUM_SOFTWARE],
			 3);
	assert_int_equal(
		harness_tx_stats(&held.harness).events[MR_TX_EVENT_CSUM_DEVICE],
		0);

	/* A field outside of the frame. */
	meta.csum_start_bytes = 60;
	meta.csum_offset_bytes = 60;
	frame = packet(IPPROTO_TCP, 10);
	assert_int_equal(transmit(&frame, &meta, 1), 1);
	assert_int_equal(
		harness_tx_stats(&held.harness).drops[MR_TX_DROP_INVALID], 1);

	/* Without metadata, rewritten since it was marked: it is left. */
	frame = packet(IPPROTO_TCP, 10);
	held_bytes(&frame)[L4 + 16] ^= 1;
	memcpy(got + 2000, held_bytes(&frame), frame.len);
	n = frame.len;
	assert_int_equal(transmit(&frame, NULL, 1), 1);
	assert_int_equal(collect(got, NULL), 1);
	assert_memory_equal(got, got + 2000, n);
	assert_idle(0);
}

/* Headers are edited in a copy if somebody else has the frame, too. */
HELD_TEST(a_shared_frame_is_not_edited)
{
	struct mr_meta meta = gso();
	struct mr_frame frame;
	uint8_t before[TCP_HEADERS];

	/* It leaves; or the copy goes, and the other owner's stays. */
	for (int is_refused = 0; is_refused < 2; is_refused++) {
		meta.gso_bytes = is_refused ? 1465 : 1000;
		frame = packet(IPPROTO_TCP, 3000);
		memcpy(before, held_bytes(&frame), sizeof(before));
		assert_int_equal(mr_frame_ref(held.harness.cache, &frame, 1),
				 0);
		assert_int_equal(transmit(&frame, &meta, 1), 1);
		assert_int_equal(collect(NULL, NULL), is_refused ? 0 : 3);
		assert_memory_equal(held_bytes(&frame), before, sizeof(before));
		assert_idle(1);
		assert_true(mr_frame_is_exclusive(held.harness.cache, &frame));
		mr_frame_free_bulk(held.harness.cache, &frame, 1);
	}
	assert_int_equal(
		harness_tx_stats(&held.harness).drops[MR_TX_DROP_TOO_LONG], 1);
}

TEST(unusable_segments_are_refused)
{
	static const struct {
		uint32_t protocol;
		uint16_t gso_bytes, gso_type;
		uint32_t n_trailer;
		enum mr_tx_drop drop;
	} cases[] = {
		{ IPPROTO_TCP, 1000, MR_GSO_TCPV6, 0, MR_TX_DROP_INVALID },
		{ IPPROTO_TCP, 1000, MR_GSO_UDP, 0, MR_TX_DROP_INVALID },
		{ IPPROTO_UDP, 1000, MR_GSO_TCPV4, 0, MR_TX_DROP_INVALID },
		{ IPPROTO_TCP, 1000, MR_GSO_TCPV4, 1, MR_TX_DROP_INVALID },
		/* 34 + 20 + 1465 is more than 1518. */
		{ IPPROTO_TCP, 1465, MR_GSO_TCPV4, 0, MR_TX_DROP_TOO_LONG },
		{ IPPROTO_TCP, 0, MR_GSO_TCPV4, 0, MR_TX_DROP_TOO_LONG },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_meta meta = gso();
		struct mr_frame frame;

		held_open(igb);
		frame = packet(cases[i].protocol, 3000);
		frame.len += cases[i].n_trailer;
		meta.gso_bytes = cases[i].gso_bytes;
		meta.gso_type = cases[i].gso_type;
		meta.csum_offset_bytes =
			cases[i].protocol == IPPROTO_TCP ? 16 : 6;
		assert_int_equal(transmit(&frame, &meta, 1), 1);
		assert_int_equal(collect(NULL, NULL), 0);
		assert_int_equal(
			harness_tx_stats(&held.harness).drops[cases[i].drop],
			1);
		assert_idle(0);
		held_close();
	}
}

/* An entry that ends where the known segment does; and one that ends behind. */
HELD_TEST(an_entry_behind_the_known_segment_is_looked_up)
{
	struct mr_frame frame;
	struct intel_txq *txq;
	uint64_t segment_bytes;

	txq = &held.intel->txqs[0];
	assert_int_equal(txq->segment_begin, 0);
	segment_bytes = txq->segment_bytes;
	for (uint64_t n_short = 0; n_short < 2; n_short++) {
		frame = held_frame(100);
		txq->segment_bytes = frame.addr + 100 - n_short;
		assert_int_equal(transmit(&frame, NULL, 1), 1);
		assert_int_equal(txq->segment_bytes, n_short == 0 ?
							     frame.addr + 100 :
							     segment_bytes);
	}
	assert_int_equal(collect(NULL, NULL), 2);
}

/* The region grows while the port is open: its new pages are mapped. */
HELD_TEST(memory_that_came_later_is_sent_from)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 256 };
	struct mr_frame frame = { .len = 60 };
	struct mr_cache *cache;
	struct mr_pool *beside;

	config.region = held.harness.region;
	assert_int_equal(
		mr_pool_create(held.harness.ctx, &config, &beside, NULL), 0);
	assert_int_equal(mr_cache_create(beside, &cache, NULL), 0);
	assert_int_equal(mr_frag_alloc_bulk(cache, &frame.addr, 1, 4096), 1);
	assert_true(frame.addr >= held.intel->txqs[0].segment_bytes);
	assert_int_equal(transmit(&frame, NULL, 1), 1);
	assert_int_equal(collect(NULL, NULL), 1);
	assert_idle(0);
	mr_cache_destroy(cache);
	mr_port_close(held.harness.port);
	held.harness.port = NULL;
	mr_cache_flush(held.harness.cache);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
}

/* Contexts, entries that go on and entries that end: each once. */
HELD_TEST(closing_frees_frames_that_were_not_sent)
{
	struct mr_frame frames[4];

	make_long(frames, 3);
	frames[3] = packet(IPPROTO_UDP, 30);
	assert_int_equal(transmit(frames, NULL, 4), 4);
	assert_int_equal(held_in_flight(), HELD_RING + 4);
}

static void send_all(void)
{
	model_step(held.harness.m);
}

HELD_TEST(arming_a_tx_queue_waits_for_a_pending_report)
{
	struct mr_queue *queue;

	queue = &held.harness.txq->queue;
	assert_int_equal(mr_queue_arm(queue), 0); /* nothing to do */
	send_some(3);
	assert_int_equal(mr_queue_arm(queue), 0);
	assert_int_equal(*held_reg(INTEL_EIMS) & 2, 2);
	model_step(held.harness.m);
	assert_int_equal(mr_queue_arm(queue), 1);
	transmit(NULL, NULL, 0);
	send_some(3);
	held.hook_offset = INTEL_EIMS;
	held.hook = send_all;
	assert_int_equal(mr_queue_arm(queue), 1);
}

/* Too few vectors: tx queues have none, and no fd to wait on. */
TEST(a_queue_without_a_vector_is_polled)
{
	struct mr_queue *queue;

	held_prepare(igb);
	held.harness.m->n_vectors = 2;
	assert_int_equal(held_try(NULL, NULL), 0);
	queue = &held.harness.txq->queue;
	assert_int_equal(queue->fd, -1);
	assert_true(held.harness.rxq->queue.fd >= 0);
	send_some(3);
	assert_int_equal(mr_queue_arm(queue), 1);
	held_set_link(false); /* nothing leaves */
	assert_int_equal(mr_port_poll(held.harness.port), 1);
	assert_int_equal(mr_queue_arm(queue), 0);
	held_close();
}
