/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/xdp_tx.c and xdp_copy.c above a fake kernel. */
#include <errno.h>
#include <string.h>

#include "model/fake_kernel.h"
#include "support/test.h"

FAKE_TEST(a_burst_is_one_system_call)
{
	struct mr_frame frames[FAKE_RING];

	for (int i = 0; i < FAKE_RING; i++)
		frames[i] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, FAKE_RING), FAKE_RING);
	assert_int_equal(fake.n_sendto, 1);
	assert_int_equal(fake_tx_stats().completed, FAKE_RING);
}

/* Each answer of the kernel: how often it is asked, and what is counted. */
struct answer_case {
	const char *name;
	struct fake_answer answers[10];
	uint32_t n_answers;
	uint32_t n_sendto; /* for a burst of 10 */
	uint32_t n_completed, n_pending, n_lost;
};

static const struct answer_case answer_cases[] = {
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

FAKE_TEST(a_full_ring_takes_no_more_and_the_rest_stays_ours)
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

FAKE_TEST(a_deleted_device_takes_frames_and_names_the_loss)
{
	struct mr_frame frames[4];

	fake.answers[0] = (struct fake_answer){ ENXIO, 0, 0 };
	fake.n_answers = 1;
	for (int i = 0; i < 4; i++)
		frames[i] = fake_frame(60, 0);
	assert_int_equal(transmit(frames, 2), 2);
	assert_int_equal(transmit(frames + 2, 2), 2);
	assert_int_equal(fake_tx_stats().drops[MR_TX_DROP_PORT_GONE], 2);
	assert_int_equal(fake.n_sendto, 1);
}

/* Entries that no device may see, and the drop that each becomes. */
struct invalid_case {
	const char *name;
	uint64_t add_to_addr;
	uint32_t n_bytes;
	enum mr_tx_drop drop;
	bool is_pages; /* the address is of a page, which must come back */
};

static const struct invalid_case invalid_cases[] = {
	{ "no bytes", 0, 0, MR_TX_DROP_INVALID, true },
	{ "13 bytes", 0, 13, MR_TX_DROP_INVALID, true },
	{ "outside the region", UINT64_C(1) << 40, 60, MR_TX_DROP_INVALID,
	  false },
	{ "an address with the top bit set", UINT64_C(1) << 63, 60,
	  MR_TX_DROP_INVALID, false },
	{ "longer than the MTU", 0, 9019, MR_TX_DROP_TOO_LONG, true },
	{ "a length that overflows", 0, UINT32_MAX, MR_TX_DROP_TOO_LONG, true },
};

static void invalid_entries_are_named_drops(void **state)
{
	const struct invalid_case *c = *state;
	struct mr_frame good, bad;

	fake_open((struct fake_config){ .max_segs = MR_MAX_SEGS });
	good = fake_frame(60, 0);
	bad = fake_frame(60, 0);
	const struct mr_frame saved = bad;

	bad.addr += c->add_to_addr;
	bad.len = c->n_bytes;
	const struct mr_frame frames[] = { bad, good };

	assert_int_equal(transmit(frames, 2), 2);
	assert_int_equal(fake_tx_stats().drops[c->drop], 1);
	assert_int_equal(fake_tx_stats().completed, 1);
	assert_int_equal(*fake.txq->tx.producer, 1);
	if (!c->is_pages)
		mr_frame_free_bulk(fake.cache, &saved, 1);
	fake_check_invariants();
	fake_close();
}

FAKE_TEST(flags_that_the_kernel_does_not_know_are_masked)
{
	struct mr_frame frame;

	frame = fake_frame(60, 0);
	frame.flags = MR_FRAME_CSUM_VALID | 0x100;
	assert_int_equal(transmit(&frame, 1), 1);
	assert_int_equal(fake_sent(0).flags, 0);
}

/* Bit 1 would be a request for tx metadata that nobody has written. */
FAKE_TEST(flags_of_several_entries_are_masked_too, .max_segs = MR_MAX_SEGS)
{
	struct mr_frame frames[2];

	frames[0] = fake_frame(100, 0);
	frames[1] = fake_frame(100, 0);
	frames[0].flags = MR_FRAME_MORE | XSK_TX_METADATA | 0x8000;
	frames[1].flags = XSK_TX_METADATA;
	assert_int_equal(transmit(frames, 2), 2);
	assert_int_equal(fake_sent(0).flags, XSK_PKT_CONTD);
	assert_int_equal(fake_sent(1).flags, 0);
}

FAKE_TEST(a_completion_of_what_was_not_posted_frees_nothing)
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
	fake_complete(1);
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().completed, 1);
	mr_frame_free_bulk(fake.cache, &kept, 1); /* still ours */
}

/* Two frames of 2 KiB pages in one chunk of the port's pool. */
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
	fake.txq->n_registered_bytes = fake.port->n_registered_bytes =
		mr_region_n_contiguous_bytes(fake.port->base.region);
	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, 8, 2048), 8);
	fake.answers[0] = (struct fake_answer){ 0, 0, FAKE_RING };
	fake.n_answers = 1;
	for (int i = 0; i < 8; i++) {
		const struct mr_frame frame = { addrs[i] + 128, 60, 0 };

		assert_int_equal(transmit(&frame, 1), 1);
	}
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
	fake.port->n_registered_bytes = fake.txq->n_registered_bytes = 0;
	assert_int_equal(mr_pool_destroy(small, NULL), 0);
	fake.port->n_registered_bytes =
		mr_region_n_contiguous_bytes(fake.port->base.region);
}

/* The bytes of descriptors [0, n), in one piece. */
static uint32_t sent_bytes(uint32_t n, uint8_t *out)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct mr_frame sent = fake_sent(i);

		memcpy(out + at, mr_frame_data(fake.port->base.base, &sent),
		       sent.len);
		at += sent.len;
	}
	return at;
}

/* One entry over several chunks of a 32 KiB page, at offsets of all classes. */
TEST(an_entry_over_chunk_edges_is_split)
{
	static const uint32_t offsets[] = { 0, 1, 128, 4095, 4096, 4090 };
	uint8_t out[9000];

	for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
		struct mr_frame frame = { .len = 9000 };
		uint32_t n_sent;

		fake_open((struct fake_config){ .page_bytes = 32768,
						.max_segs = MR_MAX_SEGS });
		assert_int_equal(
			mr_frag_alloc_bulk(fake.cache, &frame.addr, 1, 32768),
			1);
		frame.addr += offsets[k];
		for (uint32_t i = 0; i < frame.len; i++)
			mr_frame_data(fake.port->base.base, &frame)[i] =
				(uint8_t)(i * 7);
		fake.answers[0] = (struct fake_answer){ 0, 0, FAKE_RING };
		fake.n_answers = 1;
		assert_int_equal(transmit(&frame, 1), 1);
		n_sent = *fake.txq->tx.producer;
		assert_in_range(n_sent, 3, 4);
		for (uint32_t i = 0; i < n_sent; i++) {
			const struct mr_frame sent = fake_sent(i);

			assert_int_equal(sent.addr / 4096,
					 (sent.addr + sent.len - 1) / 4096);
			assert_int_equal(sent.flags,
					 i + 1 < n_sent ? XSK_PKT_CONTD : 0);
		}
		assert_int_equal(sent_bytes(n_sent, out), 9000);
		for (uint32_t i = 0; i < 9000; i++)
			assert_int_equal(out[i], (uint8_t)(i * 7));
		assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_EDGE_SPLIT],
				 n_sent - 1);
		fake_complete(FAKE_RING);
		transmit(NULL, 0);
		assert_int_equal(fake_tx_stats().completed, 1);
		fake_check_invariants();
		fake_close();
	}
}

FAKE_TEST(without_sg_an_entry_over_an_edge_is_copied, .page_bytes = 8192)
{
	uint8_t out[4096];
	struct mr_frame frame = { .len = 1000 };

	assert_int_equal(mr_frag_alloc_bulk(fake.cache, &frame.addr, 1, 8192),
			 1);
	frame.addr += 4000;
	for (uint32_t i = 0; i < frame.len; i++)
		mr_frame_data(fake.port->base.base, &frame)[i] = (uint8_t)i;
	assert_int_equal(transmit(&frame, 1), 1);
	assert_int_equal(*fake.txq->tx.producer, 1);
	assert_int_equal(sent_bytes(1, out), 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(out[i], (uint8_t)i);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_EDGE_COPIED], 1);
}

FAKE_TEST(a_frame_of_another_segment_is_copied_and_counted)
{
	struct mr_frame frame = { .len = 60 };
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 64 };
	struct mr_pool *later;
	struct mr_cache *cache;

	config.region = fake.port->base.region;
	assert_int_equal(mr_pool_create(fake.ctx, &config, &later, NULL), 0);
	assert_int_equal(mr_cache_create(later, &cache, NULL), 0);
	assert_int_equal(mr_frag_alloc_bulk(cache, &frame.addr, 1, 4096), 1);
	assert_true(frame.addr >= fake.port->n_registered_bytes);
	frame.addr += 128;
	memset(mr_frame_data(fake.port->base.base, &frame), 0x5a, 60);

	assert_int_equal(transmit(&frame, 1), 1);
	assert_true(fake_sent(0).addr < fake.port->n_registered_bytes);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_FOREIGN_COPIED], 1);
	mr_cache_flush(fake.cache);
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_destroy(later, NULL), 0);
}

FAKE_TEST(frames_of_several_entries_count_as_one, .max_segs = MR_MAX_SEGS)
{
	struct mr_frame frames[MR_MAX_SEGS + 1];

	for (int i = 0; i <= MR_MAX_SEGS; i++) {
		frames[i] = fake_frame(100, 0);
		frames[i].flags = i + 1 < MR_MAX_SEGS ? MR_FRAME_MORE : 0;
	}
	frames[MR_MAX_SEGS].flags = MR_FRAME_MORE; /* its end never comes */
	assert_int_equal(transmit(frames, MR_MAX_SEGS + 1), MR_MAX_SEGS);
	assert_int_equal(fake_tx_stats().accepted, 1);
	assert_int_equal(fake_tx_stats().completed, 1);
	mr_frame_free_bulk(fake.cache, &frames[MR_MAX_SEGS], 1);
}

/* Two entries of a frame in one place, where one more could be counted. */
TEST(postings_of_a_place_do_not_overflow)
{
	static const uint32_t lens[] = { 60, 200 }; /* over no edge, over one */
	struct mr_frame frames[2];
	uint8_t *n_postings;

	for (int i = 0; i < 2; i++) {
		fake_open((struct fake_config){ .page_bytes = 32768,
						.max_segs = MR_MAX_SEGS });
		frames[0] = (struct mr_frame){ .len = lens[i] };
		assert_int_equal(mr_frag_alloc_bulk(fake.cache, &frames[0].addr,
						    1, 32768),
				 1);
		frames[0].addr += 4000;
		assert_int_equal(mr_frame_ref(fake.cache, frames, 1), 0);
		frames[1] = frames[0];
		frames[0].flags = MR_FRAME_MORE;
		n_postings = &fake.txq->postings[xdp_posting(frames[0].addr)];
		*n_postings = UINT8_MAX - 1;
		assert_int_equal(transmit(frames, 2), 2);
		assert_int_equal(*n_postings, UINT8_MAX - 1);
		assert_int_equal(fake_tx_stats().completed, 1);
		*n_postings = 0;
		fake_check_invariants();
		fake_close();
	}
}

FAKE_TEST(closing_takes_back_exactly_its_own_references)
{
	struct mr_frame frame, copies[3];

	frame = fake_frame(60, 0);
	copies[0] = copies[1] = copies[2] = frame;
	assert_int_equal(mr_frame_ref(fake.cache, copies, 2), 0);
	assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	fake.answers[0] = (struct fake_answer){ 0, 0, FAKE_RING };
	fake.n_answers = 1;
	assert_int_equal(transmit(copies, 3), 3);
	mri_xdp_tx_take_back(fake.txq);
	/* Ours is the last one now. */
	assert_true(mr_frame_is_exclusive(fake.cache, &frame));
	mr_frame_free_bulk(fake.cache, &frame, 1);
}

/* Some devices send from our pages in copy mode, too. */
FAKE_TEST(closing_waits_for_what_the_kernel_has_taken)
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
	for (size_t i = 0; i < sizeof(invalid_cases) / sizeof(invalid_cases[0]);
	     i++)
		test_register((struct CMUnitTest){
			invalid_cases[i].name, invalid_entries_are_named_drops,
			NULL, NULL, (void *)&invalid_cases[i] });
	return test_run(NULL, NULL, NULL);
}
