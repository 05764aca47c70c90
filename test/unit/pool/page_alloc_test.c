/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pages/page_alloc.c: which page comes next, and what is
 * refused. Random sequences: model_test.c.
 */
#include "support/page_unit.h"

struct fixture {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mri_page_alloc pa;
};

/* Segments of so many pages each, all there, or the last one in part. */
static void open_pages(struct fixture *f, uint32_t page_shift, uint32_t n_pages,
		       uint32_t n_per_segment)
{
	memset(f, 0, sizeof(*f));
	f->ctx = test_ctx(&f->allocator);
	assert_int_equal(
		mri_page_alloc_init(&f->pa, n_pages, n_pages, page_shift), 0);
	for (uint32_t end = 0; end < n_pages;) {
		end = mri_min_u32(end + n_per_segment, n_pages);
		mri_page_alloc_append(&f->pa, end, -1, true);
		mri_page_alloc_populate(&f->pa, end);
	}
	assert_page_lists(&f->pa);
}

static void close_pages(struct fixture *f)
{
	assert_page_lists(&f->pa);
	mri_page_alloc_fini(&f->pa);
	mr_ctx_destroy(f->ctx);
	assert_int_equal(f->allocator.n_out, 0);
}

static void take_pages(struct fixture *f, uint32_t order, uint32_t *pages,
		       uint32_t n)
{
	assert_int_equal(mri_page_alloc_blocks(&f->pa, order, pages, n), n);
}

static void give_pages(struct fixture *f, uint32_t order, const uint32_t *pages,
		       uint32_t n)
{
	mri_page_free_blocks(&f->pa, order, pages, n);
	assert_int_equal(f->pa.counters.free_double, 0);
	assert_int_equal(f->pa.counters.free_invalid, 0);
}

TEST(fresh_pages_come_in_the_order_of_addresses)
{
	for (uint32_t shift = 11; shift <= 15; shift++) {
		struct fixture f;
		uint32_t pages[65];

		open_pages(&f, shift, 512, 128);
		for (uint32_t at = 0; at + 65 <= 512; at += 65) {
			take_pages(&f, 0, pages, 65);
			for (uint32_t i = 0; i < 65; i++)
				assert_int_equal(pages[i], at + i);
		}
		close_pages(&f);
	}
}

/* Pages come from where a large block is lost already. */
TEST(fragmented_groups_are_used_first)
{
	struct fixture f;
	uint32_t one, two, pages[8];

	open_pages(&f, 12, 64, 64);
	take_pages(&f, 0, &one, 1);
	take_pages(&f, 0, pages, 7);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(pages[i] / 8, one / 8);
	/* Of a group with 1 + 2 + 4 pages free, two take the 2. */
	give_pages(&f, 0, pages, 7);
	take_pages(&f, 1, &two, 1);
	assert_int_equal(two / 8, one / 8);
	take_pages(&f, 2, pages, 1);
	assert_int_equal(pages[0] / 8, one / 8);
	close_pages(&f);
}

/* What is freed last is warm still. */
TEST(whole_groups_are_used_last_in_first_out)
{
	struct fixture f;
	uint32_t blocks[4], again[2];

	open_pages(&f, 12, 64, 64);
	take_pages(&f, 3, blocks, 4);
	give_pages(&f, 3, &blocks[2], 1);
	give_pages(&f, 3, &blocks[0], 1);
	take_pages(&f, 3, again, 2);
	assert_int_equal(again[0], blocks[0]);
	assert_int_equal(again[1], blocks[2]);
	close_pages(&f);
}

/* A near segment is used before a far one, and a low one before a high one. */
TEST(near_and_low_segments_are_used_first)
{
	static const uint32_t order_of_segments[] = { 1, 3, 0, 2 };
	struct fixture f;
	uint32_t pages[4][64];

	for (uint32_t order = 0; order <= 3; order++) {
		open_pages(&f, 12, 256, 64);
		f.pa.near = 1u << 1 | 1u << 3;
		for (uint32_t i = 0; i < 4; i++) {
			take_pages(&f, order, pages[i], 64 >> order);
			for (uint32_t k = 0; k < 64u >> order; k++)
				assert_int_equal(pages[i][k] / 64,
						 order_of_segments[i]);
		}
		assert_int_equal(
			mri_page_alloc_blocks(&f.pa, order, pages[0], 1), 0);
		assert_int_equal(f.pa.counters.alloc_failed, 1);
		close_pages(&f);
	}
}

TEST(double_frees_are_counted_and_left_alone)
{
	/* Never allocated; twice in one call; a block with a free page. */
	static const struct {
		uint32_t order, n, pages[2];
		uint64_t n_double, n_invalid;
	} frees[] = {
		{ 0, 1, { 3 }, 1, 0 },          { 0, 2, { 0, 0 }, 2, 0 },
		{ 0, 1, { 0 }, 3, 0 },          { 1, 1, { 0 }, 4, 0 },
		{ 0, 2, { 64, UINT32_MAX }, 4, 2 }, { 1, 1, { 1 }, 4, 3 },
	};
	struct fixture f;
	uint32_t pages[3];

	open_pages(&f, 12, 64, 64);
	take_pages(&f, 0, pages, 3);
	for (uint32_t i = 0; i < sizeof(frees) / sizeof(frees[0]); i++) {
		mri_page_free_blocks(&f.pa, frees[i].order, frees[i].pages,
				     frees[i].n);
		assert_int_equal(f.pa.counters.free_double, frees[i].n_double);
		assert_int_equal(f.pa.counters.free_invalid,
				 frees[i].n_invalid);
		assert_int_equal(assert_page_lists(&f.pa), i < 1 ? 61 : 62);
	}
	assert_int_equal(f.pa.counters.free_pages, 1);
	close_pages(&f);
}

/* A segment goes when all of it is free, and no earlier. */
TEST(last_segment_is_removed_when_it_is_free)
{
	struct fixture f;
	static uint32_t pages[192];

	open_pages(&f, 12, 192, 64);
	take_pages(&f, 0, pages, 192);
	give_pages(&f, 0, pages + 128, 63);
	assert_false(mri_page_alloc_remove_last(&f.pa));
	give_pages(&f, 0, pages + 191, 1);
	assert_true(mri_page_alloc_remove_last(&f.pa));
	assert_int_equal(f.pa.n_pages, 128);
	assert_int_equal(f.pa.n_segments, 2);
	assert_int_equal(assert_page_lists(&f.pa), 0);
	assert_int_equal(mri_page_take_bulk(&f.pa, pages + 128, 1), 0);
	/* Nobody can free what is not there. */
	mri_page_back_bulk(&f.pa, pages + 128, 1);
	assert_int_equal(f.pa.counters.free_invalid, 1);
	f.pa.counters.free_invalid = 0;
	/* It may come again, with another end. */
	mri_page_alloc_append(&f.pa, 192, -1, true);
	mri_page_alloc_populate(&f.pa, 150);
	mri_page_alloc_populate(&f.pa, 190);
	assert_false(mri_page_back_one(&f.pa, 191));
	assert_int_equal(assert_page_lists(&f.pa), 62);
	give_pages(&f, 0, pages, 128);
	assert_int_equal(assert_page_lists(&f.pa), 190);
	take_pages(&f, 0, pages, 190);
	close_pages(&f);
}
