/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/xdp/socket/times.c above a fake kernel, which this test
 * makes write the times. test/netns has the real one, in copy mode.
 */
#include <string.h>
#include <time.h>

#include "model/fake_kernel.h"
#include "support/packet.h"

static const uint64_t START_NS = UINT64_C(1800000000000000000);

/* As if opened with "meta", on a kernel that takes times. */
static void open_times(void)
{
	struct xdp_times *times = &fake.txq->times;

	fake.port->lease.tx_metadata_bytes = sizeof(struct xdp_tx_request);
	fake.port->lease.n_entries = FAKE_RING;
	fake.port->txqs = fake.txq;
	fake.port->lease.n_queues = 1;
	fake.txq->n_front_bytes = sizeof(struct xdp_tx_request);
	assert_int_equal(mri_xdp_times_open(fake.port, NULL), 0);
	assert_non_null(times->ring);
}

static void close_times(void)
{
	mr_free(fake.ctx, fake.txq->times.ring);
}

/* Nothing is taken from the ring by itself. */
static void hold_answers(uint32_t n)
{
	for (uint32_t i = 0; i < sizeof(fake.answers) / sizeof(fake.answers[0]);
	     i++)
		fake.answers[i] = (struct fake_answer){ .n_held = n };
	fake.n_answers = sizeof(fake.answers) / sizeof(fake.answers[0]);
}

static struct xsk_tx_meta *request_of(uint32_t i)
{
	const struct mr_frame sent = fake_sent(i);

	return (struct xsk_tx_meta *)(mr_frame_data(fake.port->base.base,
						    &sent) -
				      sizeof(struct xdp_tx_request));
}

static void send_timed(uint32_t mark, bool is_timed)
{
	const struct mr_frame frame = fake_frame(100, (uint8_t)mark);
	const struct mr_meta meta = {
		.valid = is_timed ? MR_META_TX_TIME : 0,
		.mark = mark,
	};

	assert_int_equal(
		mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame, &meta, 1),
		1);
}

static void collect(void)
{
	mr_tx_burst(&fake.txq->base, fake.cache, NULL, 0);
}

FAKE_TEST(each_frame_that_asks_gets_its_time)
{
	struct mr_meta metas[8];

	open_times();
	hold_answers(1);
	for (uint32_t i = 0; i < 8; i++) {
		send_timed(1000 + i, i % 2 == 0);
		assert_int_equal(fake_sent(i).flags,
				 i % 2 == 0 ? XSK_TX_METADATA : 0);
	}
	assert_int_equal(mri_xdp_times_take(&fake.txq->base, metas, 8), 0);
	for (uint32_t i = 0; i < 8; i += 2) {
		assert_int_equal(request_of(i)->flags, XSK_TXMD_TIMESTAMP);
		assert_int_equal(request_of(i)->sent_ns, 0);
		request_of(i)->sent_ns = START_NS + i;
	}
	fake_complete(8); /* the last one first */
	collect();
	assert_int_equal(mri_xdp_times_take(&fake.txq->base, metas, 3), 3);
	assert_int_equal(mri_xdp_times_take(&fake.txq->base, metas + 3, 5), 1);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(metas[i].valid,
				 MR_META_TX_TIME | MR_META_MARK);
		assert_int_equal(metas[i].mark, 1006 - 2 * i);
		assert_int_equal(metas[i].tx_ns, START_NS + 6 - 2 * i);
		assert_int_equal(metas[i].tx_clock, CLOCK_TAI);
	}
	assert_int_equal(fake.txq->times.n_asked, 0);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_TIME_LOST], 0);
	close_times();
}

/* Linux 6.18 reports an address with its lowest bit clear, in copy mode. */
FAKE_TEST(a_frame_at_an_odd_address_gets_its_time)
{
	const struct mr_meta asked = { .valid = MR_META_TX_TIME, .mark = 5 };
	const uint64_t sent_ns = START_NS;
	struct mr_frame frame = fake_frame(100, 0);
	struct mr_meta meta;

	open_times();
	hold_answers(1);
	frame.addr++;
	assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame,
					  &asked, 1),
			 1);
	/* It is not aligned, either. */
	memcpy((uint8_t *)request_of(0) + offsetof(struct xsk_tx_meta, sent_ns),
	       &sent_ns, sizeof(sent_ns));
	fake_complete_addr(frame.addr & ~UINT64_C(1));
	collect();
	assert_int_equal(mri_xdp_times_take(&fake.txq->base, &meta, 1), 1);
	assert_int_equal(meta.mark, 5);
	assert_int_equal(meta.tx_ns, START_NS);
	assert_int_equal(fake.txq->times.n_asked, 0);
	close_times();
}

FAKE_TEST(times_that_are_not_collected_are_counted)
{
	struct mr_meta metas[FAKE_RING + 1];

	open_times();
	for (uint32_t i = 0; i < FAKE_RING + 8; i++) {
		fake.n_sendto = 0;
		hold_answers(1);
		send_timed(i, true);
		request_of(i)->sent_ns = START_NS + i;
		fake_complete(1);
		collect();
	}
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_TIME_LOST], 8);
	assert_int_equal(
		mri_xdp_times_take(&fake.txq->base, metas, FAKE_RING + 1),
		FAKE_RING);
	assert_int_equal(metas[FAKE_RING - 1].mark, FAKE_RING - 1);
	close_times();
}

/* A device that ignores the request, with and without a checksum in it. */
FAKE_TEST(a_time_that_is_not_reported_is_counted, .has_csum = true)
{
	static const uint8_t mac[6] = { 2 };
	struct mr_meta meta = { .valid = MR_META_TX_TIME, .mark = 7 };
	struct mr_frame frame;
	uint8_t bytes[256];
	uint32_t n;

	open_times();
	hold_answers(1);
	send_timed(1, true);
	n = packet_make(bytes, mac, 4, 17, 100);
	packet_leave_partial(bytes, n, true);
	frame = fake_frame(n, 0);
	memcpy(mr_frame_data(fake.port->base.base, &frame), bytes, n);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	assert_int_equal(
		mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame, &meta, 1),
		1);
	assert_int_equal(request_of(1)->flags,
			 XSK_TXMD_TIMESTAMP | XSK_TXMD_CHECKSUM);
	assert_int_equal(request_of(1)->csum_start, 34);
	fake_complete(2);
	collect();
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_TIME_LOST], 2);
	assert_int_equal(mri_xdp_times_take(&fake.txq->base, &meta, 1), 0);
	close_times();
}

/* Nothing may be written in front of a frame that others own. */
FAKE_TEST(a_shared_frame_is_timed_in_a_copy)
{
	const struct mr_frame frame = fake_frame(100, 3);
	const struct mr_meta meta = { .valid = MR_META_TX_TIME, .mark = 3 };

	open_times();
	hold_answers(1);
	assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	assert_int_equal(
		mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame, &meta, 1),
		1);
	assert_int_not_equal(fake_sent(0).addr, frame.addr);
	assert_int_equal(fake_sent(0).flags, XSK_TX_METADATA);
	fake_complete(1);
	collect();
	mr_frame_free_bulk(fake.cache, &frame, 1);
	close_times();
}

/* A time in another clock is lib/port's: test/unit/port/offload_test.c. */
FAKE_TEST(a_device_that_delays_frames_is_told_when)
{
	const uint64_t at_ns[] = { START_NS, START_NS + 5 };

	fake.port->lease.n_zc_queues = 0;
	fake.txq->n_front_bytes = sizeof(struct xdp_tx_request);
	fake.txq->times.asks = MR_META_LAUNCH_TIME;
	fake.port->base.info->offloads = MR_OFFLOAD_LAUNCH_TIME;
	fake.port->base.info->launch_clock = MR_CLOCK_DEVICE;
	hold_answers(1);
	for (uint32_t i = 0; i < 3; i++) {
		const struct mr_frame frame = fake_frame(100, (uint8_t)i);
		const struct mr_meta meta = {
			.valid = i < 2 ? MR_META_LAUNCH_TIME : 0,
			.launch_ns = i < 2 ? at_ns[i] : 0,
			.launch_clock = MR_CLOCK_DEVICE,
		};

		assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache,
						  &frame, &meta, 1),
				 1);
		assert_int_equal(fake_sent(i).flags,
				 i < 2 ? XSK_TX_METADATA : 0);
		if (i == 2)
			break;
		assert_int_equal(request_of(i)->flags, XSK_TXMD_LAUNCH_TIME);
		assert_int_equal(request_of(i)->launch_time, at_ns[i]);
	}
	fake_complete(3);
	collect();
}

/* No more room than the device's features are worth, or than there is. */
FAKE_TEST(room_for_time_requests_grows_as_needed)
{
	enum { TIMES = 1, SUMS = 2, LAUNCH = 4, NEITHER = 0 };
	static const struct {
		bool has_option, is_zc, is_veth;
		uint32_t features, headroom_bytes, n_bytes;
	} cases[] = {
		{ true, false, true, SUMS | TIMES, 128, 32 },
		{ true, false, true, SUMS | TIMES, 31, 24 },
		{ true, false, true, SUMS | TIMES, 24, 24 },
		{ true, false, true, SUMS | TIMES, 23, 0 },
		{ false, false, true, SUMS | TIMES, 128, 24 },
		{ false, false, false, SUMS | TIMES, 128, 0 },
		{ true, true, false, SUMS, 128, 0 },
		{ true, true, false, NEITHER, 128, 0 },
		{ true, true, false, TIMES, 128, 32 },
		{ true, true, false, LAUNCH, 128, 32 },
		{ true, true, false, TIMES | LAUNCH, 31, 0 },
	};
	struct xdp_port port = *fake.port;
	struct xdp_rxq rxq = { .fd = -1 };

	port.rxqs = &rxq;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		port.options.meta = cases[i].has_option;
		port.is_software = rxq.has_partial_csums = cases[i].is_veth;
		port.base.headroom_bytes = cases[i].headroom_bytes;
		assert_int_equal(mri_xdp_request_bytes(&port, cases[i].is_zc,
						       cases[i].features),
				 cases[i].n_bytes);
	}
}

FAKE_TEST(without_the_option_no_times_are_requested)
{
	struct mr_meta meta;

	fake.port->lease.n_entries = FAKE_RING;
	assert_int_equal(mri_xdp_times_open(fake.port, NULL), 0);
	send_timed(1, true);
	assert_int_equal(fake_sent(0).flags, 0);
	collect();
	assert_int_equal(mri_xdp_times_take(&fake.txq->base, &meta, 1), 0);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_TIME_LOST], 0);
}
