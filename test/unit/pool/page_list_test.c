/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/page_list.c. */
#include "support/page_unit.h"

TEST(lists_hold_what_was_put_on_them)
{
	static bool is_seen[128];
	struct mr_page_list list = { 0 };
	struct pool_fixture f;
	uint64_t addr;

	fixture_open(&f, 128, 4096, 4096);
	assert_false(mr_page_list_pop(f.pool, &list, &addr));
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 0, &list), 0);
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 50, &list), 50);
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 50, &list), 50);
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 50, &list), 28);
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 50, &list), 0);
	assert_int_equal(page_stats(f.pool).alloc_failed, 50);
	assert_int_equal(list.n, 128);
	assert_in_flight(f.pool, 128);
	for (uint32_t i = 0; i < 28; i++) {
		uint32_t page;

		assert_true(mr_page_list_pop(f.pool, &list, &addr));
		page = mri_page_of(f.pool, addr);
		assert_true(page < 128 && !is_seen[page]);
		is_seen[page] = true;
		mr_page_free_bulk(f.pool, 0, &addr, 1);
	}
	mr_page_free_list(f.pool, &list);
	assert_int_equal(list.n, 0);
	assert_int_equal(page_stats(f.pool).free_calls, 28 + 1);
	mr_page_free_list(f.pool, &list);
	assert_false(mr_page_list_pop(f.pool, &list, &addr));
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}

TEST(lists_are_of_one_order)
{
	struct mr_page_list list = { 0 };
	struct pool_fixture f;
	uint64_t addr;

	fixture_open(&f, 128, 4096, 4096);
	assert_int_equal(mr_page_alloc_list(f.pool, 4, 1, &list), 0);
	assert_int_equal(mr_page_alloc_list(f.pool, 2, 5, &list), 5);
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 5, &list), 0);
	assert_in_flight(f.pool, 20);
	assert_true(mr_page_list_pop(f.pool, &list, &addr));
	assert_int_equal(addr % 16384, 0);
	mr_page_free_bulk(f.pool, 2, &addr, 1);
	mr_page_free_list(f.pool, &list);
	assert_in_flight(f.pool, 0);
	/* Empty again: any order will do. */
	assert_int_equal(mr_page_alloc_list(f.pool, 3, 2, &list), 2);
	mr_page_free_list(f.pool, &list);
	fixture_close(&f);
}

TEST(watermark_holds_for_lists)
{
	struct mr_page_list list = { 0 };
	struct pool_fixture f;

	fixture_open(&f, 64, 4096, 4096);
	f.pool->page_alloc.low_pages = 10;
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 55, &list), 1);
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 53, &list), 53);
	mr_page_free_list(f.pool, &list);
	f.pool->page_alloc.low_pages = 0;
	fixture_close(&f);
}
