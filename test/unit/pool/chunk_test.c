/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/chunk.c: where a page holds several chunks. */
#include "support/pool_unit.h"

TEST(chunks_are_aligned_and_each_is_there_once)
{
	struct pool_fixture f;
	static uint64_t addrs[64 * 16 + 1];
	static bool is_seen[64 * 16];

	fixture_open(&f, 64, 32768, 2048);
	for (uint32_t burst = 1; burst <= 40; burst += 13) {
		uint32_t n = 0, k;

		memset(is_seen, 0, sizeof(is_seen));
		do {
			k = mri_min_u32(burst, 64 * 16 + 1 - n);
			k = mr_frag_alloc_bulk(f.cache, addrs + n, k, 2048);
			n += k;
		} while (k > 0);
		assert_int_equal(n, 64 * 16);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(addrs[i] % 2048, 0);
			assert_false(is_seen[addrs[i] / 2048]);
			is_seen[addrs[i] / 2048] = true;
		}
		assert_in_flight(f.pool, 64);
		mr_frag_free_bulk(f.cache, addrs, n);
		assert_in_flight(f.pool, 0);
	}
	fixture_close(&f);
}

/* The page is free when its last chunk is, in whatever order they come. */
TEST(page_returns_with_its_last_chunk)
{
	static const uint8_t orders[][4] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 }
	};
	struct pool_fixture f;

	fixture_open(&f, 64, 8192, 2048);
	for (int o = 0; o < 4; o++) {
		uint64_t addrs[4];

		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 4, 2048),
				 4);
		for (int i = 0; i < 4; i++) {
			assert_in_flight(f.pool, 1);
			mr_frag_free_bulk(f.cache, &addrs[orders[o][i]], 1);
		}
		assert_in_flight(f.pool, 0);
	}
	fixture_close(&f);
}

/* Chunks of three pages in every mixture of neighbours. */
TEST(bursts_of_mixed_pages_count_right)
{
	struct pool_fixture f;
	uint64_t addrs[12], mixed[12];

	fixture_open(&f, 64, 8192, 2048);
	for (uint32_t step = 1; step < 12; step++) {
		if (12 % step == 0 && step != 1)
			continue; /* does not visit all of them */
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 12, 2048),
				 12);
		for (uint32_t i = 0; i < 12; i++)
			mixed[i] = addrs[i * step % 12] + i;
		if (step % 2 != 0 && step % 3 != 0) {
			mr_frag_free_bulk(f.cache, mixed, 12);
		} else {
			for (uint32_t i = 0; i < 12; i++)
				mr_frag_free_bulk(f.cache, &addrs[i], 1);
		}
		assert_in_flight(f.pool, 0);
	}
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 0);
	fixture_close(&f);
}

/* A page that is being cut counts as free if none of its frags is out. */
TEST(page_being_cut_is_free_when_its_frags_are)
{
	struct pool_fixture f;
	uint64_t addrs[4];

	fixture_open(&f, 64, 8192, 2048);
	for (uint32_t n = 1; n <= 3; n++) {
		mr_frag_alloc_bulk(f.cache, addrs, n, 2048);
		/* 1, 2, and 3: the last chunk of a page, two of the next. */
		assert_in_flight(f.pool, n == 3 ? 2 : 1);
		mr_frag_free_bulk(f.cache, addrs, n);
		assert_in_flight(f.pool, 0);
	}
	fixture_close(&f);
}

TEST(destroyed_cache_closes_the_page_that_it_cut)
{
	struct pool_fixture f;
	uint64_t addrs[3];

	fixture_open(&f, 64, 32768, 4096);
	for (uint32_t n = 0; n <= 3; n++) {
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, n, 4096),
				 n);
		if (n > 0)
			mr_frag_free_bulk(f.cache, addrs, 1);
		mr_cache_destroy(f.cache);
		assert_in_flight(f.pool, n > 1);
		mr_cache_create(f.pool, &f.cache, NULL);
		if (n > 1)
			mr_frag_free_bulk(f.cache, addrs + 1, n - 1);
		assert_in_flight(f.pool, 0);
	}
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 0);
	fixture_close(&f);
}

/* Whole pages and chunks of one pool, in one burst, some of them shared. */
TEST(whole_pages_and_chunks_mix)
{
	struct pool_fixture f;
	struct mr_frame frames[9];
	uint64_t chunks[5], pages[4];

	fixture_open(&f, 64, 16384, 4096);
	for (int round = 0; round < 20; round++) {
		mr_frag_alloc_bulk(f.cache, chunks, 5, 4096);
		mr_frag_alloc_bulk(f.cache, pages, 4, 16384);
		for (int i = 0; i < 9; i++) {
			const uint64_t addr = i % 2 == 0 ? chunks[i / 2] :
							   pages[i / 2] + 9000;

			frames[i] = (struct mr_frame){ addr, 1, 0 };
		}
		assert_int_equal(mr_frame_ref(f.cache, frames, 9), 0);
		mr_frame_free_bulk(f.cache, frames, 9);
		for (int i = 0; i < 9; i++)
			assert_true(mr_frame_is_sole(f.cache, &frames[i]));
		mr_frame_free_bulk(f.cache, frames, 9);
		assert_in_flight(f.pool, 0);
	}
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 20 * 9);
	fixture_close(&f);
}

/* A page in one piece has one count of owners, whichever byte names it. */
TEST(whole_page_has_one_count)
{
	struct pool_fixture f;
	struct mr_frame frame;
	uint64_t addr;

	fixture_open(&f, 64, 16384, 4096);
	addr = alloc_one(f.cache, 16384);
	frame = (struct mr_frame){ addr + 9000, 7000, 0 };
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	frame.addr = addr + 1;
	assert_false(mr_frame_is_sole(f.cache, &frame));
	mr_frame_free_bulk(f.cache, &frame, 1);
	assert_in_flight(f.pool, 1);
	frame.addr = addr + 16383;
	assert_true(mr_frame_is_sole(f.cache, &frame));
	mr_frame_free_bulk(f.cache, &frame, 1);
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}

TEST(invalid_and_foreign_addresses_among_chunks)
{
	struct pool_fixture f;
	struct mr_pool *beside;
	struct mr_cache *cache;
	uint64_t addrs[6];

	fixture_open(&f, 64, 8192, 4096);
	beside = pool_beside(&f, 64, 8192);
	mr_cache_create(beside, &cache, NULL);
	mr_frag_alloc_bulk(f.cache, addrs, 4, 4096);
	addrs[4] = addrs[1];
	addrs[1] = UINT64_MAX;
	addrs[5] = addrs[3];
	addrs[3] = alloc_one(cache, 4096);
	mr_frag_free_bulk(f.cache, addrs, 6);
	assert_in_flight(f.pool, 0);
	assert_in_flight(beside, 0);
	assert_int_equal(pool_stats(f.pool).free_invalid, 1);
	/* The page beside was being cut: its cache keeps it. */
	assert_int_equal(pool_stats(f.pool).recycle_ring, 0);
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
	fixture_close(&f);
}

TEST(empty_pool_gives_the_chunks_it_has)
{
	struct pool_fixture f;
	uint64_t addrs[100];

	fixture_open(&f, 10, 8192, 2048);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 3, 2048), 3);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs + 3, 97, 2048), 37);
	assert_true(pool_stats(f.pool).alloc_empty > 0);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs + 40, 1, 8192), 0);
	mr_frag_free_bulk(f.cache, addrs, 40);
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}
