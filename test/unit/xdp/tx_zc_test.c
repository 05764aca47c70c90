/* SPDX-License-Identifier: BSD-3-Clause */
/* drivers/xdp/socket/tx.c above a kernel whose driver sends without copies. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "device/stats.h"
#include "model/fake_kernel.h"
#include "socket/socket.h"
#include "support/invariants.h"
#include "support/test.h"

/* One that the driver has not answered yet, by taking entries, is enough. */
FAKE_TEST(a_zero_copy_driver_is_woken_once_for_what_is_new)
{
	struct mr_frame frames[4];
	int n_bursts;

	fake.port->lease.n_zc_queues = 1;
	memset(fake.answers, 0, sizeof(fake.answers)); /* nothing is taken */
	fake.n_answers = 16;
	for (int i = 0; i < 4; i++)
		frames[i] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, 2), 2);
	for (int i = 0; i < 10; i++)
		transmit(NULL, 0);
	assert_int_equal(fake.n_sendto, 1);
	assert_int_equal(transmit(frames + 2, 2), 2);
	assert_int_equal(fake.n_sendto, 2);
	/* Not for ever: the wake-up may be lost. */
	for (n_bursts = 0; fake.n_sendto == 2 && n_bursts < 100; n_bursts++)
		transmit(NULL, 0);
	assert_in_range(n_bursts, 2, 16);
	fake.n_answers = 0;
	for (int i = 0; i < 16; i++)
		transmit(NULL, 0);
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().completed, 4);
}

/* A sleeping worker looks once in a while: bursts alone are no time. */
FAKE_TEST(a_zero_copy_driver_is_woken_again_when_time_has_passed)
{
	const uint64_t ms = 1000000;
	struct mr_frame frame;

	fake.port->lease.n_zc_queues = 1;
	memset(fake.answers, 0, sizeof(fake.answers)); /* nothing is taken */
	fake.n_answers = 16;
	frame = fake_frame(60, 0);
	assert_int_equal(transmit(&frame, 1), 1);
	transmit(NULL, 0);
	fake.now_ns += ms - 1;
	transmit(NULL, 0);
	assert_int_equal(fake.n_sendto, 1);
	fake.now_ns += 1;
	transmit(NULL, 0);
	assert_int_equal(fake.n_sendto, 2);
	/* And so on: each wake-up has its time, from itself on. */
	fake.now_ns += ms / 2;
	transmit(NULL, 0);
	assert_int_equal(fake.n_sendto, 2);
	fake.now_ns += ms / 2;
	transmit(NULL, 0);
	assert_int_equal(fake.n_sendto, 3);
	fake.now_ns += 100 * ms; /* it slept */
	transmit(NULL, 0);
	assert_int_equal(fake.n_sendto, 4);
}

/* Nothing is to be sent, or the driver works: time is of no interest. */
FAKE_TEST(idle_bursts_read_no_clock)
{
	struct mr_frame frames[2];
	uint32_t n_reads;

	fake.port->lease.n_zc_queues = 1;
	fake.answers[0] = (struct fake_answer){ 0, 0, 1 };
	fake.answers[1] = (struct fake_answer){ 0, 0, 0 };
	fake.n_answers = 2;
	frames[0] = fake_frame(60, 0);
	frames[1] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, 1), 1);
	n_reads = fake.n_clock_reads;
	for (int i = 0; i < 40; i++)
		transmit(NULL, 0);
	assert_int_equal(transmit(frames + 1, 1), 1);
	assert_int_equal(fake.n_sendto, 2);
	n_reads += 1; /* of the wake-up */
	*fake.txq->tx.flags = 0;
	for (int i = 0; i < 40; i++)
		transmit(NULL, 0);
	assert_int_equal(fake.n_clock_reads, n_reads);
	fake_complete(1);
	*fake.txq->tx.flags = XSK_RING_NEED_WAKEUP;
	transmit(NULL, 0);
	assert_int_equal(fake.n_clock_reads, n_reads + 1);
}

/* There the call is what moves frames, one budget of them; and reaps. */
FAKE_TEST(a_zero_copy_driver_that_is_busy_polled_is_always_called)
{
	struct mr_frame frames[3];

	fake.port->lease.n_zc_queues = 1;
	fake.txq->is_busy = true;
	for (uint32_t i = 0; i < 3; i++) {
		frames[i] = fake_frame(60, 0);
		fake.answers[i] = (struct fake_answer){ 0, 1, 0 };
	}
	fake.n_answers = 3;
	assert_int_equal(transmit(frames, 3), 3);
	for (uint32_t i = 1; i < 3; i++) {
		assert_int_equal(fake.n_sendto, i);
		assert_int_equal(fake_tx_stats().completed, i);
		transmit(NULL, 0);
	}
	assert_int_equal(fake_tx_stats().completed, 3);
	/* One that moves nothing is left alone for a while. */
	frames[0] = fake_frame(60, 0);
	fake.answers[3] = fake.answers[4] = (struct fake_answer){ 0, 0, 0 };
	fake.n_answers = 5;
	assert_int_equal(transmit(frames, 1), 1);
	for (uint32_t i = 4; i < 6; i++) {
		fake.now_ns += XDP_BUSY_INTERVAL_NS - 1;
		transmit(NULL, 0);
		assert_int_equal(fake.n_sendto, i);
		fake.now_ns++;
		transmit(NULL, 0);
		assert_int_equal(fake.n_sendto, i + 1);
	}
	assert_int_equal(fake_tx_stats().completed, 4);
}

/* Asked for alone, it is none: the driver is left alone as without. */
FAKE_TEST(refused_busy_polling_is_not_used)
{
	static const int options[] = { 69, SO_BUSY_POLL, 70 };
	struct mr_frame frame;

	assert_false(mri_xdp_busy_poll(fake.port, -1)); /* nor asked for */
	fake.port->options.busy = 64;
	for (int i = 0; i < 3; i++) {
		fake.refused_option = options[i];
		assert_false(mri_xdp_busy_poll(fake.port, -1));
	}
	fake.refused_option = 0;
	assert_true(mri_xdp_busy_poll(fake.port, -1));
	fake.port->lease.n_zc_queues = 1;
	fake.answers[0] = (struct fake_answer){ 0, 0, 0 };
	fake.n_answers = 1;
	frame = fake_frame(60, 0);
	assert_int_equal(transmit(&frame, 1), 1);
	transmit(NULL, 0);
	assert_int_equal(fake.n_sendto, 1);
}

FAKE_TEST(a_zero_copy_driver_that_refused_is_asked_again)
{
	/* EBUSY, too: only the kernel's own copy says so of a lost frame. */
	static const int errors[] = { ENETDOWN, ENXIO, EAGAIN, EBUSY };
	struct mr_frame frame;

	fake.port->lease.n_zc_queues = 1;
	for (int i = 0; i < 4; i++) {
		frame = fake_frame(60, 0);
		fake.n_sendto = 0;
		fake.answers[0] = (struct fake_answer){ errors[i], 0, 0 };
		fake.n_answers = 1;
		assert_int_equal(transmit(&frame, 1), 1);
		assert_int_equal(fake.n_sendto, 1);
		transmit(NULL, 0);
		assert_int_equal(fake.n_sendto, 2);
		transmit(NULL, 0);
		assert_int_equal(fake_tx_stats().completed, i + 1);
	}
}

/* What netdev netlink says; nothing is not more than one. */
TEST(the_drivers_longest_frame_is_read_from_the_kernel)
{
	static const uint32_t said[] = { 0, 1, 5, 18, 19, 1000 };
	static const uint32_t meant[] = { 1, 1, 5, 18, 18, 18 };

	for (int i = 0; i < 6; i++) {
		fake.zc_max_segs = said[i];
		assert_int_equal(mri_xdp_zc_max_segs(1), meant[i]);
	}
}

TEST(a_failed_dump_is_not_an_empty_one)
{
	uint32_t ids[XDP_MAX_NAPIS];

	fake.zc_max_segs = 1;
	assert_int_equal(mri_xdp_napi_list(1, ids), 0);
	fake.dump_error = -ENOMEM;
	assert_int_equal(mri_xdp_napi_list(1, ids), -ENOMEM);
	fake.dump_error = 0;
}

enum { MAX_DESCS = 3 };

/* A driver that takes 3 descriptors of a frame never sees more. */
FAKE_TEST(a_frame_of_too_many_descriptors_is_copied_or_dropped, .max_segs = MAX_DESCS)
{
	enum { N = 5 };
	static const struct {
		uint32_t n_bytes; /* of each of N entries */
		uint32_t n_sent;
	} cases[] = { { 100, 1 }, { 1500, 2 }, { 2200, 3 }, { 3000, 0 } };
	struct mr_frame frames[N];
	struct mr_tx_stats stats;

	fake.port->base.info->mtu_bytes = 65535;
	for (uint32_t c = 0, at = 0; c < 4; at += cases[c++].n_sent) {
		uint32_t n_bytes = 0;

		for (uint32_t i = 0; i < N; i++) {
			frames[i] = fake_frame(cases[c].n_bytes, 0);
			frames[i].flags = i + 1 < N ? MR_FRAME_MORE : 0;
		}
		assert_int_equal(transmit(frames, N), N);
		assert_int_equal(*fake.txq->tx.producer, at + cases[c].n_sent);
		for (uint32_t i = 0; i < cases[c].n_sent; i++)
			n_bytes += fake_sent(at + i).len;
		assert_int_equal(n_bytes, cases[c].n_sent == 0 ?
						  0 :
						  N * cases[c].n_bytes);
	}
	stats = fake_tx_stats();
	assert_int_equal(stats.completed, 3);
	assert_int_equal(stats.drops[MR_TX_DROP_TOO_LONG], 1);
}

/* It is in flight first and completed later. The invariants hold. */
FAKE_TEST(descriptors_the_kernel_finds_invalid_are_summed)
{
	static const struct {
		uint32_t n_completed; /* now */
		uint32_t n_invalid;   /* as the kernel counts them */
		uint64_t drops, pending;
	} steps[] = {
		{ 0, 0, 0, 2 }, { 0, 1, 1, 1 }, { 1, 1, 1, 1 },
		{ 0, 2, 2, 0 }, { 1, 2, 2, 0 }, { 0, 9, 2, 0 },
	};
	struct mr_frame frames[4];
	struct mr_tx_stats stats;

	fake.answers[0] = (struct fake_answer){ 0, 2, 2 };
	fake.n_answers = 1;
	for (int i = 0; i < 4; i++)
		frames[i] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, 4), 4);
	for (uint32_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		fake_complete(steps[i].n_completed);
		assert_int_equal(transmit(NULL, 0), 0);
		fake.n_invalid_descs = steps[i].n_invalid;
		stats = fake_tx_stats();
		mri_xdp_txq_stats(&fake.txq->base, &stats);
		assert_int_equal(stats.drops[MR_TX_DROP_INVALID],
				 steps[i].drops);
		assert_int_equal(stats.pending, steps[i].pending);
		assert_int_equal(stats.completed, 2);
		assert_true(invariants_of_tx_hold(&stats));
	}
}
