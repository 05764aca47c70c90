/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/frame.c: one function per promise in <millrace/frame.h>. */
#include "support/pool_test.h"

#include <millrace/experimental/page.h>

static struct mr_frame frame_at(uint64_t addr, uint32_t len)
{
	return (struct mr_frame){ .addr = addr, .len = len };
}

TEST(n_whole_leaves_out_the_frame_that_is_cut_off)
{
	static const struct {
		const char *more; /* 1: goes on in the next entry */
		uint32_t n_whole;
	} cases[] = { { "", 0 },     { "0", 1 },    { "1", 0 },
		      { "00", 2 },   { "01", 1 },   { "10", 2 },
		      { "0111", 1 }, { "0110", 4 }, { "111", 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_frame frames[8] = { { 0 } };
		const uint32_t n = (uint32_t)strlen(cases[i].more);

		for (uint32_t k = 0; k < n; k++)
			frames[k].flags =
				MR_FRAME_CSUM_VALID | (cases[i].more[k] == '1');
		assert_int_equal(mr_frame_n_whole(frames, n), cases[i].n_whole);
	}
}

TEST_POOL(page_has_254_owners_at_most)
{
	struct mr_frame frames[3];
	uint64_t addrs[3];

	fixture_open(&f, 64, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 3, 4096);
	for (int i = 0; i < 3; i++)
		frames[i] = frame_at(addrs[i], 60);
	for (int i = 1; i < 254; i++)
		assert_int_equal(mr_frame_ref(f.cache, &frames[1], 1), 0);
	/* None is added, to those before the full one neither. */
	assert_int_equal(mr_frame_ref(f.cache, frames, 3), -EOVERFLOW);
	assert_true(mr_frame_is_exclusive(f.cache, &frames[0]));
	assert_true(mr_frame_is_exclusive(f.cache, &frames[2]));
	frames[1].addr = UINT64_MAX;
	assert_int_equal(mr_frame_ref(f.cache, frames, 3), -EINVAL);
	assert_true(mr_frame_is_exclusive(f.cache, &frames[0]));
	frames[1].addr = addrs[1] + 4095; /* any byte of it */
	for (int i = 1; i < 254; i++) {
		mr_frame_free_bulk(f.cache, &frames[1], 1);
		assert_in_flight(f.pool, 3);
	}
	assert_int_equal(mr_frame_ref(f.cache, frames, 0), 0);
	mr_frame_free_bulk(f.cache, frames, 3);
	assert_in_flight(f.pool, 0);
}

TEST_POOL(unshare_of_a_sole_frame_does_nothing)
{
	struct mr_frame frame, before;

	fixture_open(&f, 64, 4096);
	frame = before = frame_at(alloc_one(f.cache, 4096) + 1, 60);
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), 0);
	assert_memory_equal(&frame, &before, sizeof(frame));
	frame.len = 4097; /* longer than a page */
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), -EINVAL);
	mr_frame_free_bulk(f.cache, &frame, 1);
}
