/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/intel/intel_tx.c: plain frames, completions, laws. */
#include "fake_nic.h"
#include "support/laws.h"

static uint32_t send(struct fake *fake, const struct mr_frame *frames,
		     uint32_t n)
{
	return mr_tx_burst(fake->txq, fake->cache, frames, n);
}

static uint32_t send_some(struct fake *fake, uint32_t n)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_taken;

	for (uint32_t i = 0; i < n; i++)
		frames[i] = fake_frame(fake, 60 + i);
	n_taken = send(fake, frames, n);
	mr_frame_free_bulk(fake->cache, frames + n_taken, n - n_taken);
	return n_taken;
}

static void check_laws(const struct fake *fake)
{
	const struct mr_tx_stats s = fake_tx_stats(fake);

	assert_true(laws_of_tx_hold(&s));
}

TEST(a_plain_frame_is_one_descriptor)
{
	struct mr_frame frame;
	struct fake fake;
	uint64_t iova;

	fake_open(&fake, (struct fake_config){ 0 });
	frame = fake_frame(&fake, 1000);
	frame.flags = MR_FRAME_CSUM_VALID | 0xff00; /* not for the device */
	iova = fake.intel->txqs[0].region_iova + frame.addr;
	assert_int_equal(send(&fake, &frame, 1), 1);
	assert_int_equal(fake_send(&fake), 1);
	assert_int_equal(fake.sent[0].words[0], iova);
	/* EOP, IFCS, RS, DEXT, data; PAYLEN (82576, 7.2.2.3). */
	assert_int_equal((uint32_t)fake.sent[0].words[1], 0x2b300000 | 1000);
	assert_int_equal(fake.sent[0].words[1] >> 32, 1000 << 14);
	fake_close(&fake);

	fake_open(&fake, (struct fake_config){ .device_id = FAKE_82574 });
	frame = fake_frame(&fake, 1000);
	assert_int_equal(send(&fake, &frame, 1), 1);
	assert_int_equal(fake_send(&fake), 1);
	assert_int_equal(fake.sent[0].words[1], 0x2b100000 | 1000);
	fake_close(&fake);
}

/* One report for each burst, at its end, however it is made. */
TEST(the_last_descriptor_asks_for_the_report)
{
	static const struct fake_config configs[] = {
		{ 0 }, { .options = "head-wb=off" }, { .device_id = FAKE_82574 }
	};

	for (size_t c = 0; c < 3; c++) {
		struct fake fake;
		uint32_t n_sent = 0;

		fake_open(&fake, configs[c]);
		for (uint32_t round = 0; round < 60; round++) {
			const uint32_t n = round % 31 + 1;

			assert_int_equal(send_some(&fake, n), n);
			assert_int_equal(fake_send(&fake), n);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(
					!!(fake.sent[n_sent + i].words[1] &
					   INTEL_TX_RS),
					i + 1 == n);
			n_sent += n;
			assert_int_equal(send(&fake, NULL, 0), 0);
			assert_in_flight(fake.f.pool, FAKE_RING);
		}
		assert_int_equal(fake_tx_stats(&fake).completed, n_sent);
		assert_int_equal(fake_tx_stats(&fake).pending, 0);
		check_laws(&fake);
		fake_close(&fake);
	}
}

/* Below INTEL_TX_REAP nothing is collected but by a burst of none. */
TEST(sent_buffers_come_back_in_bulk)
{
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	for (int i = 0; i < 31; i++) {
		assert_int_equal(send_some(&fake, 1), 1);
		assert_int_equal(fake_send(&fake), 1);
	}
	assert_int_equal(fake_tx_stats(&fake).pending, 31);
	assert_int_equal(send_some(&fake, 1), 1);
	assert_int_equal(fake_tx_stats(&fake).pending, 32);
	assert_int_equal(send_some(&fake, 1), 1);
	assert_int_equal(fake_tx_stats(&fake).pending,
			 2); /* neither reported */
	assert_int_equal(fake_tx_stats(&fake).completed, 31);
	fake_send(&fake);
	send(&fake, NULL, 0);
	assert_int_equal(fake_tx_stats(&fake).pending, 0);
	check_laws(&fake);
	fake_close(&fake);
}

TEST(a_full_ring_takes_what_fits)
{
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(send_some(&fake, 40), 40);
	assert_int_equal(send_some(&fake, 40), 23); /* one place stays free */
	assert_int_equal(send_some(&fake, 1), 0);
	assert_int_equal(fake_tx_stats(&fake).events[MR_TX_EVENT_RING_FULL], 2);
	assert_in_flight(fake.f.pool, FAKE_RING + 63);
	fake_send(&fake);
	assert_int_equal(send_some(&fake, 63), 63);
	assert_int_equal(fake_tx_stats(&fake).completed, 63);
	check_laws(&fake);
	fake_close(&fake); /* takes back what was never sent */
}

/* A head that was never given, or that stands still. */
TEST(a_report_that_makes_no_sense_is_no_progress)
{
	struct fake fake;
	uint32_t *head;

	fake_open(&fake, (struct fake_config){ 0 });
	head = (uint32_t *)fake.intel->txqs[0].head;
	assert_int_equal(send_some(&fake, 10), 10);
	for (uint32_t lie = 11; lie < 64; lie++) {
		*head = lie;
		send(&fake, NULL, 0);
		assert_int_equal(fake_tx_stats(&fake).completed, 0);
	}
	*head = 10 + FAKE_RING * 5; /* one that is beyond the ring */
	send(&fake, NULL, 0);
	assert_int_equal(fake_tx_stats(&fake).completed, 10);
	*head = UINT32_MAX;
	send(&fake, NULL, 0);
	assert_int_equal(fake_tx_stats(&fake).completed, 10);
	fake_close(&fake);
}

TEST(frames_that_no_device_may_see_are_named_drops)
{
	struct mr_frame frames[6];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	for (int i = 0; i < 6; i++)
		frames[i] = fake_frame(&fake, 60);
	frames[1].len = 0;
	frames[2].len = 13; /* no Ethernet header */
	frames[3].len = 1519;
	frames[4].len = 70000;
	mr_frame_free_bulk(fake.cache, &frames[5], 1);
	frames[5].addr = UINT64_C(1) << 40; /* counted by the pool, too */
	assert_int_equal(send(&fake, frames, 6), 6);
	assert_int_equal(fake_send(&fake), 1);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_INVALID], 3);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_TOO_LONG], 2);
	check_laws(&fake);
	send(&fake, NULL, 0);
	assert_in_flight(fake.f.pool, FAKE_RING);
	assert_int_equal(pool_stats(fake.f.pool).free_invalid, 1);
	fake_close(&fake);
}

/* One of MTU, header and tag leaves. */
TEST(the_longest_frame_leaves)
{
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	frame = fake_frame(&fake, 1518);
	assert_int_equal(send(&fake, &frame, 1), 1);
	frame = fake_frame(&fake, 17);
	assert_int_equal(send(&fake, &frame, 1), 1);
	assert_int_equal(fake_send(&fake), 2);
	assert_int_equal((uint16_t)fake.sent[1].words[1], 17);
	fake_close(&fake);
}

/* An entry that ends where the known segment does; and one that ends behind. */
TEST(what_ends_behind_the_known_segment_is_searched_for)
{
	struct mr_frame frame;
	struct intel_txq *txq;
	struct fake fake;
	uint64_t segment_bytes;

	fake_open(&fake, (struct fake_config){ 0 });
	txq = &fake.intel->txqs[0];
	assert_int_equal(txq->segment_begin, 0);
	segment_bytes = txq->segment_bytes;
	frame = fake_frame(&fake, 100);
	txq->segment_bytes = frame.addr + 100;
	assert_int_equal(send(&fake, &frame, 1), 1);
	assert_int_equal(txq->segment_bytes, frame.addr + 100);
	frame = fake_frame(&fake, 100);
	txq->segment_bytes = frame.addr + 99;
	assert_int_equal(send(&fake, &frame, 1), 1);
	assert_int_equal(txq->segment_bytes, segment_bytes);
	assert_int_equal(fake_send(&fake), 2);
	fake_close(&fake);
}

/* The region grows while the port is open: its new pages are mapped. */
TEST(memory_that_came_later_is_sent_from)
{
	struct mr_frame frame;
	struct mr_pool *beside;
	struct mr_cache *cache;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	beside = pool_beside(&fake.f, 256, 4096);
	assert_int_equal(mr_cache_create(beside, &cache, NULL), 0);
	frame = (struct mr_frame){ .addr = alloc_one(cache, 4096), .len = 60 };
	assert_true(frame.addr >= fake.intel->txqs[0].segment_bytes);
	assert_int_equal(send(&fake, &frame, 1), 1);
	assert_int_equal(fake_send(&fake), 1);
	assert_int_equal(fake_tx_stats(&fake).pending, 1);
	send(&fake, NULL, 0);
	mr_cache_flush(fake.cache);
	assert_in_flight(beside, 0);
	mr_cache_destroy(cache);
	mr_port_close(fake.port);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
	fake.port = NULL;
	fixture_close(&fake.f);
}

TEST(frames_of_a_device_that_is_gone_are_lost_by_name)
{
	struct mr_link link;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(send_some(&fake, 5), 5);
	fake.nic.pci.is_gone = true;
	assert_int_equal(mr_port_poll(fake.port), 1);
	assert_int_equal(mr_port_link(fake.port, &link), 0);
	assert_int_equal(link.is_gone, 1);
	assert_int_equal(link.is_up, 0);
	assert_int_equal(send_some(&fake, 3), 3);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_PORT_GONE], 3);
	assert_int_equal(mr_queue_arm(&fake.txq->queue), 0);
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 0);
	assert_int_equal(mr_port_poll(fake.port), 0);
	check_laws(&fake);
	fake_close(&fake); /* all is back, and no register is written */
}

static void send_all(void *opaque)
{
	fake_send(opaque);
}

TEST(armed_is_what_waits_for_a_report)
{
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(mr_queue_arm(&fake.txq->queue), 0); /* nothing to do */
	send_some(&fake, 3);
	assert_int_equal(mr_queue_arm(&fake.txq->queue), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_EIMS), 2);
	fake_send(&fake);
	assert_int_equal(mr_queue_arm(&fake.txq->queue), 1);
	send(&fake, NULL, 0);
	send_some(&fake, 3);
	fake.nic.hook_offset = INTEL_EIMS;
	fake.nic.hook = send_all;
	fake.nic.hook_opaque = &fake;
	assert_int_equal(mr_queue_arm(&fake.txq->queue), 1);
	fake_close(&fake);
}

/* Too few vectors: tx queues have none, and no fd to wait on. */
TEST(without_a_vector_a_queue_is_looked_at)
{
	struct fake fake;

	fake_prepare(&fake, (struct fake_config){ 0 });
	fake.nic.pci.most_irqs = 2;
	fake.nic.pci.config[0x42] = 1;
	assert_int_equal(fake_try(&fake, NULL, NULL), 0);
	assert_int_equal(fake.txq->queue.fd, -1);
	assert_true(fake.rxq->queue.fd >= 0);
	send_some(&fake, 3);
	assert_int_equal(mr_queue_arm(&fake.txq->queue), 1);
	fake.nic.has_link = false; /* nothing leaves */
	assert_int_equal(mr_port_poll(fake.port), 1);
	assert_int_equal(mr_queue_arm(&fake.txq->queue), 0);
	fake_close(&fake);
}
