/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/intel/intel_rx.c: what a device may write, and does. */
#include "fake_nic.h"
#include "support/laws.h"

static uint32_t receive(struct fake *fake, struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst(fake->rxq, fake->cache, frames, n);
}

static void check_laws(const struct fake *fake)
{
	const struct mr_rx_stats s = fake_rx_stats(fake);

	assert_true(laws_of_rx_hold(&s));
}

TEST(every_received_buffer_is_replaced)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_in_flight(fake.f.pool, FAKE_RING);
	for (uint32_t round = 0; round < 40; round++) {
		const uint32_t n = round % 20 + 1;

		for (uint32_t i = 0; i < n; i++)
			fake_receive(&fake, 60 + i);
		assert_int_equal(receive(&fake, frames, 32), n);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(frames[i].len, 60 + i);
			assert_int_equal(frames[i].flags, 0);
			assert_int_equal(frames[i].addr % 4096, 128);
			assert_int_equal(*fake_bytes(&fake, &frames[i]), 0x5a);
		}
		assert_in_flight(fake.f.pool, FAKE_RING + n);
		mr_frame_free_bulk(fake.cache, frames, n);
	}
	assert_int_equal(fake_rx_stats(&fake).delivered, 420);
	check_laws(&fake);
	fake_close(&fake);
}

/* RDT moves for 16 places at a time here, and never to where RDH is. */
TEST(the_device_is_told_of_several_buffers_at_once)
{
	const uint32_t tail = intel_rx_ring(0) + INTEL_DT;
	struct mr_frame frames[32];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(*fake_reg(&fake, tail), FAKE_RING - 1);
	for (uint32_t i = 0; i < 15; i++) {
		fake_receive(&fake, 60);
		assert_int_equal(receive(&fake, &frames[i], 1), 1);
	}
	assert_int_equal(*fake_reg(&fake, tail), FAKE_RING - 1);
	fake_receive(&fake, 60);
	assert_int_equal(receive(&fake, &frames[15], 1), 1);
	assert_int_equal(*fake_reg(&fake, tail), 15);
	mr_frame_free_bulk(fake.cache, frames, 16);
	/* All that it has: the last 48 of the first round, and 15. */
	for (uint32_t i = 0; i < FAKE_RING - 1; i++)
		fake_receive(&fake, 60);
	assert_int_equal(*fake_reg(&fake, tail), fake.nic.rx_head[0]);
	fake_close(&fake);
}

TEST(sums_that_were_looked_at_and_right_are_valid)
{
	static const struct {
		uint32_t status;
		uint32_t flags;
	} cases[] = {
		{ 0, 0 },
		{ INTEL_RX_TCPCS, MR_FRAME_CSUM_VALID },
		{ INTEL_RX_UDPCS, MR_FRAME_CSUM_VALID },
		{ INTEL_RX_TCPCS | INTEL_RX_UDPCS, MR_FRAME_CSUM_VALID },
		{ INTEL_RX_TCPCS | 0x40, MR_FRAME_CSUM_VALID },
		{ INTEL_RX_TCPCS | 4, 0 },
		{ INTEL_RX_UDPCS | 0x40 | 4, 0 },
		{ 4, 0 },
		{ INTEL_RX_TCPCS | INTEL_RX_TCPE, 0 },
		{ INTEL_RX_UDPCS | INTEL_RX_TCPE, 0 },
		{ INTEL_RX_TCPCS | INTEL_RX_IPE, 0 },
		{ INTEL_RX_TCPE, 0 },
		{ 0x40, 0 }, /* the IP header alone */
	};
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_frame frame;

		fake_receive_on(&fake, 0, 0, cases[i].status | INTEL_RX_EOP, 60,
				0);
		assert_int_equal(receive(&fake, &frame, 1), 1);
		assert_int_equal(frame.flags, cases[i].flags);
		mr_frame_free_bulk(fake.cache, &frame, 1);
	}
	fake_close(&fake);
}

TEST(hash_and_tag_are_metadata_where_there_are_any)
{
	struct mr_frame frames[4];
	struct mr_meta meta[4];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "vlan" });
	fake_receive_on(&fake, 0, UINT64_C(0xdeadbeef) << 32 | 1, INTEL_RX_EOP,
			60, 0x123);
	fake_receive_on(&fake, 0, UINT64_C(0xdeadbeef) << 32,
			INTEL_RX_EOP | INTEL_RX_VP, 60, 0xa123);
	assert_int_equal(
		mr_rx_burst_meta(fake.rxq, fake.cache, frames, meta, 4), 2);
	assert_int_equal(meta[0].valid, MR_META_RSS_HASH);
	assert_int_equal(meta[0].rss_hash, 0xdeadbeef);
	assert_int_equal(meta[1].valid, MR_META_VLAN);
	assert_int_equal(meta[1].vlan_tci, 0xa123);
	mr_frame_free_bulk(fake.cache, frames, 2);
	fake_close(&fake);

	/* The tag is still in the frame: it is not told twice. */
	fake_open(&fake, (struct fake_config){ 0 });
	fake_receive_on(&fake, 0, 0, INTEL_RX_EOP | INTEL_RX_VP, 60, 1);
	assert_int_equal(
		mr_rx_burst_meta(fake.rxq, fake.cache, frames, meta, 4), 1);
	assert_int_equal(meta[0].valid, 0);
	mr_frame_free_bulk(fake.cache, frames, 1);
	fake_close(&fake);
}

/* Buffers of 3 KiB here. Each costs the frame, none the one behind it. */
TEST(what_a_device_should_not_write_costs_the_frame)
{
	static const struct {
		uint32_t status, n_bytes;
		enum mr_rx_drop drop;
	} cases[] = {
		{ INTEL_RX_EOP, 0, MR_RX_DROP_INVALID },
		{ INTEL_RX_EOP, 3073, MR_RX_DROP_INVALID },
		{ INTEL_RX_EOP, 65535, MR_RX_DROP_INVALID },
		{ INTEL_RX_EOP | INTEL_RX_RXE, 60, MR_RX_DROP_INVALID },
		{ INTEL_RX_EOP | INTEL_RX_CE, 60, MR_RX_DROP_INVALID },
		{ INTEL_RX_EOP | INTEL_RX_SE, 60, MR_RX_DROP_INVALID },
		{ INTEL_RX_EOP | INTEL_RX_SEQ, 60, MR_RX_DROP_INVALID },
		{ INTEL_RX_EOP | INTEL_RX_CXE, 60, MR_RX_DROP_INVALID },
	};
	static const char *const modes[] = { NULL, "sg=on" };

	for (size_t m = 0; m < 2; m++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct mr_frame frames[32];
			struct fake fake;

			fake_open(&fake,
				  (struct fake_config){ .options = modes[m] });
			fake_receive(&fake, 3072);
			fake_receive_on(&fake, 0, 0, cases[i].status,
					cases[i].n_bytes, 0);
			fake_receive(&fake, 61);
			assert_int_equal(receive(&fake, frames, 32), 1);
			assert_int_equal(frames[0].len, 3072);
			assert_int_equal(receive(&fake, frames + 1, 31), 0);
			assert_int_equal(receive(&fake, frames + 1, 31), 1);
			assert_int_equal(frames[1].len, 61);
			assert_int_equal(
				fake_rx_stats(&fake).drops[cases[i].drop], 1);
			assert_in_flight(fake.f.pool, FAKE_RING + 2);
			check_laws(&fake);
			mr_frame_free_bulk(fake.cache, frames, 2);
			fake_close(&fake);
		}
	}
}

/* Its end comes later than the bursts that drop it. */
TEST(a_frame_of_several_buffers_is_dropped_without_sg)
{
	struct mr_frame frames[4];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	fake_receive_on(&fake, 0, 0, 0, 3072, 0);
	assert_int_equal(receive(&fake, frames, 4), 0);
	assert_int_equal(receive(&fake, frames, 4), 0);
	fake_receive_on(&fake, 0, 0, 0, 3072, 0);
	fake_receive(&fake, 70);
	fake_receive(&fake, 71);
	assert_int_equal(receive(&fake, frames, 4), 0);
	assert_int_equal(receive(&fake, frames, 4), 1);
	assert_int_equal(frames[0].len, 71);
	assert_int_equal(fake_rx_stats(&fake).drops[MR_RX_DROP_TOO_LONG], 1);
	check_laws(&fake);
	mr_frame_free_bulk(fake.cache, frames, 1);
	fake_close(&fake);
}

TEST(a_frame_that_is_not_whole_waits_in_the_ring)
{
	struct mr_frame frames[32];
	struct mr_meta meta[32];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "mtu=9000" });
	fake_receive(&fake, 60);
	fake_receive_on(&fake, 0, 0, 0, 3072, 0);
	fake_receive_on(&fake, 0, 0, 0, 3072, 0);
	assert_int_equal(receive(&fake, frames, 32), 1);
	assert_int_equal(receive(&fake, frames + 1, 31), 0);
	fake_receive_on(&fake, 0, UINT64_C(7) << 32 | 2,
			INTEL_RX_EOP | INTEL_RX_TCPCS, 100, 0);
	assert_int_equal(
		mr_rx_burst_meta(fake.rxq, fake.cache, frames + 1, meta, 31),
		3);
	assert_int_equal(frames[1].flags, MR_FRAME_MORE | MR_FRAME_CSUM_VALID);
	assert_int_equal(frames[2].flags, MR_FRAME_MORE);
	assert_int_equal(frames[3].flags, 0);
	assert_int_equal(frames[3].len, 100);
	assert_int_equal(meta[0].rss_hash, 7);
	assert_int_equal(fake_rx_stats(&fake).delivered, 2);
	assert_int_equal(fake_rx_stats(&fake).bytes, 60 + 2 * 3072 + 100);
	mr_frame_free_bulk(fake.cache, frames, 4);
	fake_close(&fake);
}

TEST(a_frame_that_does_not_fit_the_burst_waits)
{
	struct mr_frame frames[64];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "sg=on" });
	for (int i = 0; i < 10; i++) {
		fake_receive_on(&fake, 0, 0, 0, 3072, 0);
		fake_receive_on(&fake, 0, 0, 0, 3072, 0);
		fake_receive(&fake, 100);
	}
	assert_int_equal(receive(&fake, frames, 20), 18);
	assert_int_equal(receive(&fake, frames + 18, 20), 12);
	assert_int_equal(fake_rx_stats(&fake).delivered, 10);
	mr_frame_free_bulk(fake.cache, frames, 30);
	fake_close(&fake);
}

/* 18 entries are delivered, 19 are one named drop. */
TEST(a_frame_of_too_many_entries_is_dropped_by_name)
{
	struct mr_frame frames[64];
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "sg=on" });
	for (int i = 0; i < MR_MAX_SEGS - 1; i++)
		fake_receive_on(&fake, 0, 0, 0, 100, 0);
	fake_receive(&fake, 100);
	assert_int_equal(receive(&fake, frames, 64), MR_MAX_SEGS);
	mr_frame_free_bulk(fake.cache, frames, MR_MAX_SEGS);

	for (int i = 0; i < MR_MAX_SEGS + 2; i++)
		fake_receive_on(&fake, 0, 0, 0, 100, 0);
	assert_int_equal(receive(&fake, frames, 64), 0); /* its first part */
	fake_receive(&fake, 100);                        /* its last entry */
	fake_receive(&fake, 77);                         /* another frame */
	assert_int_equal(receive(&fake, frames, 64), 1);
	assert_int_equal(frames[0].len, 77);
	assert_int_equal(fake_rx_stats(&fake).drops[MR_RX_DROP_TOO_LONG], 1);
	assert_int_equal(fake_rx_stats(&fake).received, 3);
	mr_frame_free_bulk(fake.cache, frames, 1);
	check_laws(&fake);
	fake_close(&fake);
}

/* A frame of two entries and one fresh buffer: neither is taken. */
TEST(an_empty_pool_cuts_the_burst_and_loses_nothing)
{
	static const char *const modes[] = { NULL, "sg=on" };
	static uint64_t addrs[FAKE_PAGES];

	for (size_t m = 0; m < 2; m++) {
		const uint32_t status = m == 0 ? INTEL_RX_EOP : 0;
		struct mr_frame frames[32];
		struct fake fake;
		uint32_t n;

		fake_open(&fake, (struct fake_config){ .options = modes[m] });
		n = mr_frag_alloc_bulk(fake.cache, addrs, FAKE_PAGES, 4096);
		mr_frag_free_bulk(fake.cache, addrs + n - 3, 3);
		for (int i = 0; i < 5; i++) {
			fake_receive_on(&fake, 0, 0, status, 200, 0);
			fake_receive(&fake, 60);
		}
		assert_int_equal(receive(&fake, frames, 32), 3 - m);
		assert_int_equal(receive(&fake, frames + 3, 28), 0);
		assert_int_equal(
			fake_rx_stats(&fake).events[MR_RX_EVENT_POOL_EMPTY], 2);
		assert_int_equal(fake_rx_stats(&fake).bytes,
				 m == 0 ? 200 + 60 + 200 : 260);
		mr_frag_free_bulk(fake.cache, addrs, n - 3);
		assert_int_equal(receive(&fake, frames + 3 - m, 28), 7 + m);
		mr_frame_free_bulk(fake.cache, frames, 10);
		check_laws(&fake);
		fake_close(&fake);
	}
}

TEST(nothing_is_taken_by_a_burst_of_none)
{
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	fake_receive_on(&fake, 0, 0, INTEL_RX_EOP, 0, 0); /* an invalid one */
	assert_int_equal(receive(&fake, &frame, 0), 0);
	assert_int_equal(fake_rx_stats(&fake).received, 0);
	fake_close(&fake);
}

static void receive_one(void *opaque)
{
	fake_receive(opaque, 60);
}

TEST(armed_is_what_has_nothing_and_is_told_of_the_next)
{
	struct mr_frame frame;
	struct fake fake;
	uint32_t n_before;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_true(fake.rxq->queue.fd >= 0);
	*fake_reg(&fake, INTEL_EIMS) = 0;
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 0);
	assert_int_equal(*fake_reg(&fake, INTEL_EIMS), 1);
	fake_receive(&fake, 60);
	n_before = fake.nic.n_writes;
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 1);
	assert_int_equal(fake.nic.n_writes, n_before); /* nothing switched on */
	assert_int_equal(receive(&fake, &frame, 1), 1);
	mr_frame_free_bulk(fake.cache, &frame, 1);

	/* It comes while the vector is being switched on. */
	fake.nic.hook_offset = INTEL_EIMS;
	fake.nic.hook = receive_one;
	fake.nic.hook_opaque = &fake;
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 1);
	assert_int_equal(receive(&fake, &frame, 1), 1);
	mr_frame_free_bulk(fake.cache, &frame, 1);
	fake_close(&fake);
}

/* A cause that is pending would wake a sleeper for frames that he had. */
TEST(what_was_received_wakes_nobody)
{
	struct mr_frame frame;
	struct fake fake;
	uint32_t at;

	fake_open(&fake, (struct fake_config){ 0 });
	at = fake.nic.n_writes;
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 0);
	at = fake_find_write(&fake, at, INTEL_EICR);
	assert_int_equal(fake.nic.values[at], 1);
	at = fake_find_write(&fake, at, INTEL_EIMS);

	/* It comes as causes are cleared: it is seen, nothing is switched on.
	 */
	fake.nic.hook_offset = INTEL_EICR;
	fake.nic.hook = receive_one;
	fake.nic.hook_opaque = &fake;
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 1);
	assert_int_equal(fake.nic.offsets[fake.nic.n_writes - 1], INTEL_EICR);
	assert_int_equal(mr_rx_burst(fake.rxq, fake.cache, &frame, 1), 1);
	mr_frame_free_bulk(fake.cache, &frame, 1);

	/* Nor is it switched on for a device that is gone. */
	fake.nic.hook_offset = 0;
	fake.nic.takes_writes = fake.nic.pci.is_gone = true;
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 0);
	assert_true(fake.intel->is_gone);
	fake_close(&fake);
}

/* An eventfd that fired before is emptied: it would say "work" for ever. */
TEST(an_old_wake_up_is_read_off)
{
	uint64_t n = 1;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	assert_int_equal(write(fake.rxq->queue.fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(mr_queue_arm(&fake.rxq->queue), 0);
	assert_true(read(fake.rxq->queue.fd, &n, sizeof(n)) < 0);
	fake_close(&fake);
}
