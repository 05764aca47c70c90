/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/socket/tx.c and socket/copy.c above a fake kernel. */
#include <errno.h>
#include <string.h>

#include "model/fake_kernel.h"
#include "socket/socket.h"
#include "support/test.h"

/* Each answer of the kernel: how often it is asked, and what is counted. */
struct answer_case {
	const char *name;
	struct fake_answer answers[10];
	uint32_t n_answers;
	uint32_t n_sendto; /* for a burst of 10 */
	uint32_t n_completed, n_pending, n_lost;
};

static const struct answer_case answer_cases[] = {
	{ "a burst is one system call", { { 0, 10, 0 } }, 1, 1, 10, 0, 0 },
	{ "EAGAIN after the budget: asked again",
	  { { EAGAIN, 4, 0 }, { 0, 6, 0 } }, 2, 2, 10, 0, 0 },
	{ "0 with entries left: asked again",
	  { { 0, 4, 0 }, { 0, 6, 0 } }, 2, 2, 10, 0, 0 },
	{ "EAGAIN without progress: left for the next burst",
	  { { EAGAIN, 0, 0 }, { EAGAIN, 0, 0 } }, 2, 2, 0, 10, 0 },
	{ "0 without progress: left for the next burst",
	  { { 0, 0, 0 }, { 0, 0, 0 } }, 2, 2, 0, 10, 0 },
	{ "EBUSY: one frame lost, the rest goes on",
	  { { EBUSY, 3, 0 }, { 0, 7, 0 } }, 2, 2, 9, 0, 1 },
	{ "EBUSY twice",
	  { { EBUSY, 1, 0 }, { EBUSY, 1, 0 }, { 0, 8, 0 } }, 3, 3, 8, 0, 2 },
	{ "EBUSY for each: every frame lost is counted",
	  { { EBUSY, 1, 0 }, { EBUSY, 1, 0 }, { EBUSY, 1, 0 },
	    { EBUSY, 1, 0 }, { EBUSY, 1, 0 }, { EBUSY, 1, 0 },
	    { EBUSY, 1, 0 }, { EBUSY, 1, 0 }, { EBUSY, 1, 0 },
	    { EBUSY, 1, 0 } },
	  10, 10, 0, 0, 10 },
	{ "ENETDOWN: entries stay",
	  { { ENETDOWN, 0, 0 } }, 1, 1, 0, 10, 0 },
	{ "ENOBUFS: asked again",
	  { { ENOBUFS, 2, 0 }, { 0, 8, 0 } }, 2, 2, 10, 0, 0 },
	{ "EINTR: asked again",
	  { { EINTR, 0, 0 }, { 0, 10, 0 } }, 2, 2, 10, 0, 0 },
	{ "completions that come later are pending",
	  { { 0, 6, 4 } }, 1, 1, 6, 4, 0 },
	{ "one at a time: bounded",
	  { { EAGAIN, 1, 0 }, { EAGAIN, 1, 0 }, { EAGAIN, 1, 0 },
	    { EAGAIN, 1, 0 }, { EAGAIN, 1, 0 }, { EAGAIN, 1, 0 },
	    { EAGAIN, 1, 0 }, { EAGAIN, 1, 0 }, { EAGAIN, 1, 0 } },
	  9, 8, 8, 2, 0 },
};

static void answers_of_the_kernel_are_understood(void **state)
{
	const struct answer_case *c = *state;
	struct mr_frame frames[10];
	struct mr_tx_stats stats;

	fake_open((struct fake_config){ 0 });
	memcpy(fake.answers, c->answers, sizeof(c->answers));
	fake.n_answers = c->n_answers;
	for (int i = 0; i < 10; i++)
		frames[i] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, 10), 10);
	stats = fake_tx_stats();
	assert_int_equal(fake.n_sendto, c->n_sendto);
	assert_int_equal(stats.completed, c->n_completed);
	assert_int_equal(stats.pending, c->n_pending);
	assert_int_equal(stats.drops[MR_TX_DROP_DEVICE], c->n_lost);
	fake_check_invariants();

	/* What stayed leaves with a later burst, also an empty one. */
	fake.n_answers = 0;
	transmit(NULL, 0);
	fake_complete(FAKE_RING);
	transmit(NULL, 0);
	stats = fake_tx_stats();
	assert_int_equal(stats.completed + stats.drops[MR_TX_DROP_DEVICE], 10);
	assert_int_equal(stats.pending, 0);
	fake_check_invariants();
	fake_close();
}

FAKE_TEST(frames_beyond_a_full_ring_stay_the_callers)
{
	struct mr_frame frames[FAKE_RING + 5];

	fake.answers[0] = (struct fake_answer){ 0, 0, FAKE_RING };
	fake.n_answers = 1;
	for (int i = 0; i < FAKE_RING + 5; i++)
		frames[i] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, FAKE_RING + 5), FAKE_RING);
	/* The kernel has taken all, but the completion ring must hold them. */
	assert_int_equal(transmit(frames + FAKE_RING, 5), 0);
	fake_complete(2);
	assert_int_equal(transmit(frames + FAKE_RING, 5), 2);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_RING_FULL], 3);
	mr_frame_free_bulk(fake.cache, frames + FAKE_RING + 2, 3);
}

FAKE_TEST(a_frame_shorter_than_an_ethernet_header_is_a_named_drop)
{
	struct mr_frame frames[2];

	frames[0] = fake_frame(13, 0);
	frames[1] = fake_frame(14, 0);
	assert_int_equal(transmit(frames, 2), 2);
	assert_int_equal(fake_tx_stats().drops[MR_TX_DROP_INVALID], 1);
	assert_int_equal(fake_tx_stats().completed, 1);
}

/* Bit 1 would be a request for tx metadata that nobody has written. */
FAKE_TEST(flags_that_the_kernel_does_not_know_are_masked,
	  .max_segs = MR_MAX_SEGS)
{
	struct mr_frame frames[3];

	for (int i = 0; i < 3; i++) {
		frames[i] = fake_frame(100, 0);
		frames[i].flags = MR_FRAME_CSUM_VALID | XSK_TX_METADATA | 0x8000;
	}
	assert_int_equal(transmit(frames, 1), 1);
	frames[1].flags |= MR_FRAME_MORE;
	assert_int_equal(transmit(frames + 1, 2), 2);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(fake_sent(i).flags,
				 i == 1 ? XSK_PKT_CONTD : 0);
}

FAKE_TEST(a_completion_of_an_unposted_address_frees_nothing)
{
	struct mr_frame sent, kept;

	sent = fake_frame(60, 0);
	kept = fake_frame(60, 0);
	fake.answers[0] = (struct fake_answer){ 0, 0, FAKE_RING };
	fake.n_answers = 1;
	assert_int_equal(transmit(&sent, 1), 1);
	fake_complete_addr(kept.addr);
	fake_complete_addr(UINT64_C(1) << 50);
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().completed, 0);
	assert_int_equal(fake_tx_stats().pending, 1);
	assert_int_equal(
		fake_tx_stats().events[MR_TX_EVENT_UNKNOWN_COMPLETION], 2);
	fake_complete(1);
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().completed, 1);
	mr_frame_free_bulk(fake.cache, &kept, 1); /* still ours */
}

/* Two pages of 2 KiB in one of the port's pool. */
FAKE_TEST(closing_takes_back_frames_of_smaller_pages)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 1024,
					 .page_bytes = 2048 };
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_pool *small;
	struct mr_cache *cache;
	uint64_t addrs[8];

	config.region = fake.port->base.region;
	assert_int_equal(mr_pool_create(fake.ctx, &config, &small, NULL), 0);
	assert_int_equal(mr_cache_create(small, &cache, NULL), 0);
	/* As if the port had been opened after the second pool was made. */
	fake.txq->n_registered_bytes = fake.port->lease.n_bytes =
		mr_region_n_contiguous_bytes(fake.port->base.region);
	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, 8, 2048), 8);
	fake.answers[0] = (struct fake_answer){ 0, 0, FAKE_RING };
	fake.n_answers = 1;
	for (int i = 0; i < 8; i++) {
		const struct mr_frame frame = { addrs[i] + 128, 60, 0 };

		assert_int_equal(transmit(&frame, 1), 1);
	}
	mri_xdp_tx_note_left(fake.txq);
	mri_xdp_tx_take_back(fake.txq);
	mr_cache_flush(fake.cache);
	mr_cache_destroy(cache);
	mr_pool_stats(small, &stats);
	assert_int_equal(stats.n_in_flight, 0);
	assert_int_equal(mr_cache_create(small, &cache, NULL), 0);
	/* Each page is there once. */
	uint64_t all[1024];
	uint8_t seen[1024] = { 0 };

	assert_int_equal(mr_frag_alloc_bulk(cache, all, 1024, 2048), 1024);
	for (int i = 0; i < 1024; i++)
		assert_int_equal(seen[(all[i] - all[0]) / 2048 % 1024]++, 0);
	mr_frag_free_bulk(cache, all, 1024);
	mr_cache_destroy(cache);
	fake.port->lease.n_bytes = fake.txq->n_registered_bytes = 0;
	assert_int_equal(mr_pool_destroy(small, NULL), 0);
	fake.port->lease.n_bytes =
		mr_region_n_contiguous_bytes(fake.port->base.region);
}

/* Of the broker, or of an open that failed early. */
TEST(closing_queues_without_memory_takes_nothing_back)
{
	struct xdp_rxq rxqs[2] = { { .fd = -1 }, { .fd = -1 } };
	struct xdp_txq txqs[2] = { { .fd = -1 }, { .fd = -1 } };
	struct xdp_port port = { .rxqs = rxqs, .txqs = txqs };

	port.lease.n_queues = 2;
	mri_xdp_sockets_take_back(&port);
	assert_int_equal(txqs[0].n_left, 0);
}

/* The kernel takes n frames and holds them. */
static void hold_frames(const struct mr_frame *frames, uint32_t n)
{
	fake.answers[0] = (struct fake_answer){ 0, 0, n };
	fake.n_answers = 1;
	assert_int_equal(transmit(frames, n), n);
}

/* The kernel completes these, in this order. */
static void complete_frames(const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fake_complete_addr(frames[i].addr);
	transmit(NULL, 0);
}

FAKE_TEST(a_frame_is_held_while_the_ring_wraps_twice)
{
	struct mr_frame held, other;

	held = fake_frame(60, 0);
	hold_frames(&held, 1);
	for (uint32_t i = 0; i < 2 * FAKE_RING + 3; i++) {
		other = fake_frame(60, 0);
		assert_int_equal(transmit(&other, 1), 1);
		assert_int_equal(fake_tx_stats().completed, i + 1);
		assert_int_equal(fake_tx_stats().pending, 1);
	}
	complete_frames(&held, 1);
	assert_int_equal(fake_tx_stats().pending, 0);
}

FAKE_TEST(completions_may_come_in_reverse)
{
	struct mr_frame frames[FAKE_RING];

	for (uint32_t i = 0; i < FAKE_RING; i++)
		frames[i] = fake_frame(60, 0);
	hold_frames(frames, FAKE_RING);
	for (uint32_t i = FAKE_RING; i-- > 0;) {
		complete_frames(&frames[i], 1);
		assert_int_equal(fake_tx_stats().pending, i);
	}
}

/* As Linux 6.18 reports them in copy mode. */
FAKE_TEST(completions_may_lack_the_lowest_bit_of_an_address)
{
	struct mr_frame frames[4];

	for (uint32_t i = 0; i < 4; i++) {
		frames[i] = fake_frame(60, 0);
		frames[i].addr += i % 2;
	}
	hold_frames(frames, 4);
	for (uint32_t i = 4; i-- > 0;)
		fake_complete_addr(frames[i].addr & ~UINT64_C(1));
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().completed, 4);
}

/* Each entry is a reference of its own. */
FAKE_TEST(a_page_may_be_sent_twice)
{
	struct mr_frame frames[3];

	frames[0] = frames[1] = fake_frame(60, 0);
	assert_int_equal(mr_frame_ref(fake.cache, frames, 1), 0);
	frames[2] = fake_frame(60, 0);
	hold_frames(frames, 3);
	complete_frames(&frames[2], 1);
	complete_frames(&frames[0], 1);
	assert_int_equal(fake_tx_stats().pending, 1); /* closing frees it */
}

/* As when it is flooded. Closing one queue takes back its reference alone. */
FAKE_TEST(a_page_may_be_sent_by_two_queues)
{
	static struct mr_frame entries[FAKE_RING];
	static uint64_t addrs[FAKE_RING];
	uint32_t counts[4] = { 0 };
	struct xdp_txq *const first = fake.txq;
	struct xdp_txq other = *first;
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_frame frame;
	uint64_t n_in_flight;

	other.tx.entries = entries;
	other.tx.producer = &counts[0];
	other.tx.consumer = &counts[1];
	other.comp.entries = addrs;
	other.comp.producer = &counts[2];
	other.comp.consumer = &counts[3];
	frame = fake_frame(60, 0);
	assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	hold_frames(&frame, 1);
	fake.txq = &other;
	fake.n_sendto = 0;
	hold_frames(&frame, 1);
	mr_pool_stats(fake.pool, &stats);
	n_in_flight = stats.n_in_flight;
	mri_xdp_tx_note_left(&other);
	mri_xdp_tx_take_back(&other);
	mr_pool_stats(fake.pool, &stats);
	assert_int_equal(stats.n_in_flight, n_in_flight);
	fake.txq = first;
	complete_frames(&frame, 1);
	assert_int_equal(fake_tx_stats().pending, 0);
	mr_pool_stats(fake.pool, &stats);
	assert_int_equal(stats.n_in_flight, n_in_flight - 1);
}

FAKE_TEST(frames_after_one_that_the_kernel_skips_are_completed)
{
	struct mr_frame frames[4];

	for (uint32_t i = 0; i < 4; i++)
		frames[i] = fake_frame(60, 0);
	hold_frames(frames, 4);
	complete_frames(frames + 1, 3);
	assert_int_equal(fake_tx_stats().completed, 3);
	assert_int_equal(fake_tx_stats().pending, 1);
}

/* A frame is completed with the entry that ends it. */
FAKE_TEST(frames_of_several_entries_may_be_completed_in_any_order,
	  .max_segs = MR_MAX_SEGS)
{
	static const uint8_t order[] = { 3, 2, 4, 1, 0 };
	static const uint8_t n_ended[] = { 1, 1, 2, 3, 3 };
	struct mr_frame frames[5]; /* 0 and 1, 2 and 3, 4 */

	for (uint32_t i = 0; i < 5; i++)
		frames[i] = fake_frame(100, 0);
	frames[0].flags = frames[2].flags = MR_FRAME_MORE;
	hold_frames(frames, 5);
	for (uint32_t i = 0; i < 5; i++) {
		complete_frames(&frames[order[i]], 1);
		assert_int_equal(fake_tx_stats().completed, n_ended[i]);
	}
}

/* Its entry is still the kernel's to read. */
FAKE_TEST(a_completion_waits_until_the_kernel_has_taken_the_entry)
{
	struct mr_frame frames[2];

	for (uint32_t i = 0; i < 2; i++)
		frames[i] = fake_frame(60, 0);
	memset(fake.answers, 0, sizeof(fake.answers));
	fake.n_answers = 4; /* nothing is taken */
	assert_int_equal(transmit(frames, 2), 2);
	fake_complete_addr(frames[1].addr);
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().completed, 0);
	fake.n_answers = 0;
	*fake.txq->tx.consumer += 2;
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().completed, 1);
	complete_frames(frames, 1);
	assert_int_equal(fake_tx_stats().pending, 0);
}

/* Some devices send from our pages in copy mode, too. */
FAKE_TEST(closing_waits_for_frames_the_kernel_has_taken)
{
	const uint64_t ms = 1000000;
	struct mr_frame frames[5];

	assert_int_equal(mri_xdp_tx_wait(fake.txq, 0), 0); /* of nothing */
	/* One is sent, three are under way, one is left in the ring. */
	fake.answers[0] = (struct fake_answer){ ENOBUFS, 1, 3 };
	memset(fake.answers + 1, 0, sizeof(fake.answers) / 2);
	fake.n_answers = 8;
	for (int i = 0; i < 5; i++)
		frames[i] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, 5), 5);
	assert_int_equal(fake_tx_stats().completed, 1);
	assert_int_equal(mri_xdp_tx_wait(fake.txq, 50 * ms), 3);
	assert_in_range(fake.now_ns, 50 * ms, 60 * ms);
	fake.n_completed_per_sleep = 1;
	assert_int_equal(mri_xdp_tx_wait(fake.txq, 1000 * ms), 0);
	assert_in_range(fake.now_ns, 50 * ms, 100 * ms);
	assert_int_equal(fake_tx_stats().completed, 4);
	assert_int_equal(fake_tx_stats().pending, 1);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(answer_cases) / sizeof(answer_cases[0]);
	     i++)
		test_register((struct CMUnitTest){
			answer_cases[i].name,
			answers_of_the_kernel_are_understood, NULL, NULL,
			(void *)&answer_cases[i] });
	return test_run(NULL, NULL, NULL);
}
