/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools whose magazines have room for more than 64 pages. */
#include <unistd.h>

#include "support/pool_test.h"

enum { N_PAGES = 8192, PAGE_BYTES = 2048 };

static void open_with(uint32_t magazine_pages)
{
	fixture_open_with(
		&f, (struct mr_pool_config){ .n_pages = N_PAGES,
					    .page_bytes = PAGE_BYTES,
					    .magazine_pages = magazine_pages,
					    .max_caches = 4 });
}

static uint32_t cache_n_pages(const struct mr_cache *cache)
{
	struct mr_cache_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_cache_stats(cache, &stats), 0);
	assert_true(stats.n_pages <= stats.max_pages);
	return stats.n_pages;
}

TEST_POOL(sizes_go_with_the_pool)
{
	static const uint32_t n_pages[] = { 1,    2047, 2048,  4095,
					    4096, 8192, 65536, UINT32_MAX };
	static const uint32_t sizes[] = {
		64, 64, 128, 128, 256, 512, 512, 512
	};
	/* Caches, and magazines of 8192, 32768 and UINT32_MAX pages. */
	static const uint32_t by_caches[][4] = {
		{ 0, 512, 512, 512 },       { 2, 512, 512, 512 },
		{ 4, 512, 512, 512 },       { 5, 256, 512, 512 },
		{ 8, 256, 512, 512 },       { 16, 128, 512, 512 },
		{ 17, 64, 256, 512 },       { 4096, 64, 64, 512 },
		{ UINT32_MAX, 64, 64, 64 },
	};

	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(mr_magazine_default_pages(n_pages[i], 1),
				 sizes[i]);
	for (uint32_t i = 0; i < 9; i++) {
		const uint32_t n = by_caches[i][0];

		assert_int_equal(mr_magazine_default_pages(8192, n),
				 by_caches[i][1]);
		assert_int_equal(mr_magazine_default_pages(32768, n),
				 by_caches[i][2]);
		assert_int_equal(mr_magazine_default_pages(UINT32_MAX, n),
				 by_caches[i][3]);
	}
	open_with(0);
	assert_int_equal(pool_stats(f.pool).magazine_pages, 512);
	assert_int_equal(pool_stats(f.pool).n_committed,
			 mr_cache_max_pages(512));
	fixture_close(&f);
	open_with(64);
	assert_int_equal(pool_stats(f.pool).magazine_pages, 64);
	fixture_close(&f);
}

/* Without max_caches the CPUs that are online count. */
TEST_POOL(the_default_number_of_caches_is_that_of_cpus)
{
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	fixture_open_with(&f,
			  (struct mr_pool_config){ .n_pages = N_PAGES,
						   .page_bytes = PAGE_BYTES });
	assert_int_equal(pool_stats(f.pool).magazine_pages,
			 mr_magazine_default_pages(N_PAGES, (uint32_t)n_cpus));
	assert_int_equal(pool_stats(f.pool).max_caches, 64);
}

/* Idle caches with full magazines leave something for the last one. */
TEST_POOL(idle_caches_leave_pages_for_the_last_one)
{
	enum { N_CACHES = 32 };
	static uint64_t addrs[N_PAGES / 16];
	struct mr_cache *caches[N_CACHES];

	fixture_open_with(&f,
			  (struct mr_pool_config){ .n_pages = N_PAGES,
						   .page_bytes = PAGE_BYTES,
						   .max_caches = N_CACHES });
	for (uint32_t i = 0; i < N_CACHES; i++) {
		const uint32_t n = N_PAGES / 16;

		caches[i] = f.cache;
		if (i > 0)
			assert_int_equal(
				mr_cache_create(f.pool, &caches[i], NULL), 0);
		assert_int_equal(
			mr_frag_alloc_bulk(caches[i], addrs, n, PAGE_BYTES), n);
		mr_frag_free_bulk(caches[i], addrs, n);
	}
	assert_true(pool_stats(f.pool).n_cached <= N_PAGES / 2);
	for (uint32_t i = 1; i < N_CACHES; i++)
		mr_cache_destroy(caches[i]);
}

/* What a cache keeps is two magazines, and an exchange is one. */
TEST_POOL(cache_keeps_two_and_exchanges_one)
{
	static uint64_t addrs[N_PAGES];

	for (uint32_t size = 64; size <= 512; size *= 2) {
		struct mr_pool_stats s;

		open_with(size);
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 8 * size,
						    PAGE_BYTES),
				 8 * size);
		for (uint32_t i = 0; i < 8 * size; i++)
			mr_frag_free(f.cache, addrs[i]);
		s = pool_stats(f.pool);
		assert_int_equal(cache_n_pages(f.cache), 2 * size);
		assert_int_equal(s.n_depot, 6 * size);
		assert_int_equal(s.recycle_cache_full, 6);
		for (uint32_t i = 0; i < 8 * size; i++)
			addrs[i] = mr_frag_alloc(f.cache, PAGE_BYTES);
		assert_int_equal(pool_stats(f.pool).alloc_refill, 6);
		mr_frag_free_bulk(f.cache, addrs, 8 * size);
		fixture_close(&f);
	}
}

/* mr_pool_trim() packs what it took into magazines as large, and loses none. */
TEST_POOL(janitor_packs_magazines_of_that_size)
{
	static uint64_t addrs[N_PAGES];

	for (uint32_t size = 64; size <= 512; size *= 2) {
		const struct mr_trim_config config = { .size = sizeof(config) };

		open_with(size);
		assert_int_equal(
			mr_frag_alloc_bulk(f.cache, addrs, N_PAGES, PAGE_BYTES),
			N_PAGES);
		mr_frag_free_bulk(f.cache, addrs, N_PAGES);
		f.pool->trim.n_high = 2 * N_PAGES; /* none is idle, at first */
		for (int tick = 0; tick < 20; tick++) {
			struct mr_trim_report report = { .size = sizeof(
								 report) };

			assert_int_equal(mr_pool_trim(f.pool, &config, &report),
					 0);
			assert_int_equal(report.n_duplicates, 0);
			assert_in_flight(f.pool, 0);
			assert_true(mri_stack_n(&f.pool->depot.filled, 1000) <=
				    pool_stats(f.pool).n_depot / size + 1);
		}
		fixture_close(&f);
	}
}

/* Pages that one cache frees and another allocates pass through the depot. */
TEST_POOL(pages_between_caches_pass_through_the_depot)
{
	static uint64_t addrs[1024];
	struct mr_cache *other;

	open_with(64);
	assert_int_equal(mr_cache_create(f.pool, &other, NULL), 0);
	for (uint32_t k = 0; k < 50; k++) {
		assert_int_equal(
			mr_frag_alloc_bulk(f.cache, addrs, 1024, PAGE_BYTES),
			1024);
		mr_frag_free_bulk(other, addrs, 1024);
	}
	assert_true(pool_stats(f.pool).alloc_slow <= N_PAGES);
	assert_true(pool_stats(f.pool).alloc_refill >= 50 * 1024 / 64 - 128);
	mr_cache_destroy(other);
}
