/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/page_bulk.c: blocks in arrays, as
 * <millrace/experimental/page.h> says.
 */
#include "support/page_unit.h"

#include "support/frag_unit.h"
#include "support/safety_unit.h"

#include "support/pool_test.h"

static uint64_t addrs[600];

TEST_POOL(one_block_is_tried_below_the_watermark)
{
	uint32_t n;

	fixture_open(&f, 100, 4096);
	f.pool->page_alloc.low_pages = 30;
	/* A single page is had, and counted. */
	for (uint32_t i = 0; i < 75; i++) {
		assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs + i, 1),
				 1);
		assert_int_equal(page_stats(f.pool).alloc_low,
				 i < 70 ? 0 : i - 69);
	}
	mr_page_free_bulk(f.pool, 0, addrs, 75);
	f.pool->page_alloc.counters.alloc_low = 0;
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 71), 1);
	assert_int_equal(page_stats(f.pool).alloc_low, 1);
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs + 1, 69), 69);
	assert_int_equal(page_stats(f.pool).alloc_low, 1);
	for (n = 70; mr_page_alloc_bulk(f.pool, 0, addrs + n, 64) == 1; n++)
		;
	assert_int_equal(n, 100);
	assert_int_equal(page_stats(f.pool).alloc_low, 32);
	mr_page_free_bulk(f.pool, 0, addrs, 100);
	/* Pages of blocks count as pages. */
	assert_int_equal(mr_page_alloc_bulk(f.pool, 3, addrs, 9), 1);
	assert_int_equal(mr_page_alloc_bulk(f.pool, 3, addrs + 1, 7), 7);
	mr_page_free_bulk(f.pool, 3, addrs, 8);
	/* Caches are promised their pages. */
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 100, 4096), 100);
	mr_frag_free_bulk(f.cache, addrs, 100);
	f.pool->page_alloc.low_pages = 0;
}

/* All n blocks, however many calls it takes. */
static void alloc_all(struct mr_pool *pool, uint32_t order, uint32_t n)
{
	uint32_t n_done = 0, k;

	do {
		k = mr_page_alloc_bulk(pool, order, addrs + n_done, n - n_done);
		n_done += k;
	} while (k > 0 && n_done < n);
	assert_int_equal(n_done, n);
}

/*
 * Who frees a block of any order asks the page allocator, and its lock, for
 * nothing; and its pages are had when there are no others.
 */
TEST_POOL(freed_blocks_wait_without_the_lock)
{
	for (uint32_t order = 1; order <= 3; order++) {
		const uint32_t n = 64u >> order;
		struct mr_trim_report report = { .size = sizeof(report) };
		struct mr_frame frames[32];
		uint64_t n_calls;

		fixture_open(&f, 64, 4096);
		for (uint32_t round = 0; round < 3; round++) {
			alloc_all(f.pool, order, n);
			n_calls = page_stats(f.pool).free_calls;
			for (uint32_t i = 0; i < n; i++)
				frames[i] =
					(struct mr_frame){ addrs[i], 64, 0 };
			mr_frame_free_bulk(f.cache, frames, n / 2);
			mr_frag_free_bulk(f.cache, addrs + n / 2, n - n / 2);
			mr_cache_flush(f.cache);
			assert_int_equal(page_stats(f.pool).free_calls,
					 n_calls);
			assert_int_equal(pool_stats(f.pool).n_depot, 64);
			assert_in_flight(f.pool, 0);
		}
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 64, 4096),
				 64);
		mr_frag_free_bulk(f.cache, addrs, 64);
		assert_int_equal(mr_page_alloc_bulk(f.pool, order, addrs, 1),
				 0);
		mr_cache_destroy(f.cache);
		assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
		alloc_all(f.pool, order, n);
		mr_frag_free_bulk(f.cache, addrs, n);
		mr_cache_flush(f.cache);
		for (int tick = 0; tick < 64; tick++)
			assert_int_equal(mr_pool_trim(f.pool, NULL, &report),
					 0);
		assert_int_equal(page_stats(f.pool).n_free, 64);
		fixture_close(&f);
	}
}

/* What is wrong beside what is right, in one burst and one group. */
TEST_POOL(wrong_pages_of_a_burst_are_found)
{
	uint64_t burst[4], block;

	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 60,
						       .max_pages = 2048,
						       .segment_pages = 512 });
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 60), 60);
	for (uint32_t i = 0; i < 3; i++)
		burst[i] = f.pool->addr + (i == 2 ? 0 : i) * UINT64_C(4096);
	burst[3] = f.pool->addr + 3 * 4096;
	mr_page_free_bulk(f.pool, 0, burst, 4); /* 0, 1, 0 again, 3 */
	assert_int_equal(page_stats(f.pool).free_double, 1);
	assert_in_flight(f.pool, 57);
	for (uint32_t i = 0; i < 4; i++) /* of which 60 and 61 are not there */
		burst[i] = f.pool->addr + (58 + i) * UINT64_C(4096);
	mr_page_free_bulk(f.pool, 0, burst, 4);
	assert_int_equal(pool_stats(f.pool).free_invalid, 2);
	assert_int_equal(page_stats(f.pool).n_free, 5);
	assert_in_flight(f.pool, 55);
	/* Pages that were allocated singly are no block. */
	assert_int_equal(mr_page_alloc_bulk(f.pool, 1, &block, 1), 1);
	assert_int_equal(block, f.pool->addr + 58 * 4096);
	burst[0] = block;
	burst[1] = f.pool->addr + 56 * 4096;
	mr_page_free_bulk(f.pool, 1, burst, 2);
	assert_int_equal(pool_stats(f.pool).free_invalid, 3);
	assert_in_flight(f.pool, 55);
	for (uint32_t i = 0; i < 60; i++)
		addrs[i] = f.pool->addr + i * UINT64_C(4096);
	mr_page_free_bulk(f.pool, 0, addrs + 4, 54);
	mr_page_free_bulk(f.pool, 0, addrs + 2, 1);
	assert_int_equal(page_stats(f.pool).free_double, 1);
}

/* A pool that may grow does so when nothing lies idle in it any more. */
TEST_POOL(idle_pages_are_used_before_the_pool_grows)
{
	struct mr_page_list list = { 0 };

	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 512,
						       .max_pages = 1024,
						       .segment_pages = 512 });
	/* All pages through the cache: 128 stay there. */
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 512, 4096), 512);
	mr_frag_free_bulk(f.cache, addrs, 512);
	assert_int_equal(pool_stats(f.pool).n_depot, 384);
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 1), 1);
	assert_int_equal(mr_page_alloc_list(f.pool, 0, 63, &list), 63);
	assert_int_equal(page_stats(f.pool).n_grown, 0);
	/* 32 KiB in one piece may have to be put together. */
	for (uint32_t i = 0; i < 35; i++)
		assert_int_equal(
			mr_page_alloc_bulk(f.pool, 3, &addrs[1 + i], 1), 1);
	assert_int_equal(page_stats(f.pool).n_grown, 0);
	assert_in_range(pool_stats(f.pool).n_depot, 0, 63);
	assert_in_flight(f.pool, 64 + 35 * 8);
	mr_page_free_bulk(f.pool, 0, addrs, 1);
	mr_page_free_bulk(f.pool, 3, addrs + 1, 35);
	mr_page_free_list(f.pool, &list);
}

/* The same of what else lies idle: blocks, and pages in quarantine. */
TEST(idle_blocks_and_held_pages_are_used_as_well)
{
	struct frag_fixture g;
	struct pool_fixture q;
	uint64_t block;

	open_frags(&g, 64, 4096);
	for (uint32_t i = 0; i < 8; i++)
		addrs[i] = cut(&g, 32768, 0);
	for (uint32_t i = 0; i < 8; i++)
		give_back(&g, addrs[i]);
	mr_frag_cache_drain(g.frags);
	assert_int_equal(pool_stats(g.p.pool).n_depot, 64);
	assert_int_equal(mr_page_alloc_bulk(g.p.pool, 3, &block, 1), 1);
	mr_page_free_bulk(g.p.pool, 3, &block, 1);
	close_frags(&g);

	checked_open(&q, MR_SAFETY_POISON, 64, 4096);
	assert_int_equal(mr_pool_frag_alloc_bulk(q.pool, addrs, 64), 64);
	mr_pool_frag_free_bulk(q.pool, addrs, 64);
	assert_int_equal(page_stats(q.pool).n_free, 0);
	assert_int_equal(mr_page_alloc_bulk(q.pool, 0, addrs, 64), 64);
	assert_int_equal(pool_stats(q.pool).poison_broken, 0);
	mr_page_free_bulk(q.pool, 0, addrs, 64);
	fixture_close(&q);
}
