/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools whose magazines have room for more than 64 pages. */
#include "support/pool_unit.h"

enum { N_PAGES = 8192, PAGE_BYTES = 2048 };

static void open_with(struct pool_fixture *f, uint32_t magazine_pages,
		      enum mr_return returns)
{
	fixture_open_with(
		f, (struct mr_pool_config){ .n_pages = N_PAGES,
					    .page_bytes = PAGE_BYTES,
					    .magazine_pages = magazine_pages,
					    .returns = returns });
}

static uint32_t cache_n_pages(const struct mr_cache *cache)
{
	struct mr_cache_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_cache_stats(cache, &stats), 0);
	assert_true(stats.n_pages <= stats.max_pages);
	return stats.n_pages;
}

static void sizes_out_of_range_are_refused(void **state)
{
	static const uint32_t sizes[] = { 1, 32, 65, 96, 1024, UINT32_MAX };
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		const struct mr_pool_config config = { .size = sizeof(config),
						       .magazine_pages =
							       sizes[i] };
		struct mr_reason why = { "" };
		struct mr_pool *pool;

		assert_int_equal(mr_pool_create(ctx, &config, &pool, &why),
				 -EINVAL);
		assert_reason_has(&why, "power of two, 64 to 512");
	}
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
}

static void sizes_go_with_the_pool(void **state)
{
	static const uint32_t n_pages[] = { 1,    4095,  4096,  8191,
					    8192, 16384, 65536, UINT32_MAX };
	static const uint32_t sizes[] = {
		64, 64, 128, 128, 256, 512, 512, 512
	};
	struct pool_fixture f;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(mr_magazine_default_pages(n_pages[i]),
				 sizes[i]);
	open_with(&f, 0, MR_RETURN_LOCAL);
	assert_int_equal(pool_stats(f.pool).magazine_pages, 256);
	assert_int_equal(pool_stats(f.pool).n_committed,
			 mr_cache_max_pages(256) - 1); /* a chunk is a page */
	fixture_close(&f);
	open_with(&f, 64, MR_RETURN_LOCAL);
	assert_int_equal(pool_stats(f.pool).magazine_pages, 64);
	fixture_close(&f);
}

/* Bursts of all sizes over the edges of magazines; each page is there once. */
static void pages_are_there_once_with_every_size(void **state)
{
	static uint64_t addrs[N_PAGES + 1];
	static bool is_seen[N_PAGES];

	(void)state;
	for (uint32_t size = 64; size <= 512; size *= 2) {
		struct pool_fixture f;

		open_with(&f, size, MR_RETURN_LOCAL);
		for (uint32_t burst = 1; burst < 3 * size; burst += 61) {
			uint32_t n = 0, k;

			memset(is_seen, 0, sizeof(is_seen));
			do {
				k = mri_min_u32(burst, N_PAGES + 1 - n);
				k = mr_frag_alloc_bulk(f.cache, addrs + n, k,
						       PAGE_BYTES);
				n += k;
			} while (k > 0);
			assert_int_equal(n, N_PAGES);
			for (uint32_t i = 0; i < n; i++) {
				const uint32_t page =
					mri_page_of(f.pool, addrs[i]);

				assert_false(is_seen[page]);
				is_seen[page] = true;
			}
			for (uint32_t i = 0; i < n; i += k) {
				k = mri_min_u32(burst, n - i);
				mr_frag_free_bulk(f.cache, addrs + i, k);
			}
			assert_in_flight(f.pool, 0);
		}
		fixture_close(&f);
	}
}

/* What a cache keeps is two magazines, and an exchange is one. */
static void cache_keeps_two_and_exchanges_one(void **state)
{
	static uint64_t addrs[N_PAGES];

	(void)state;
	for (uint32_t size = 64; size <= 512; size *= 2) {
		struct pool_fixture f;
		struct mr_pool_stats s;

		open_with(&f, size, MR_RETURN_LOCAL);
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

/* Open magazines are as large as those of the pool that they go to. */
static void pools_of_two_sizes_in_one_burst(void **state)
{
	enum { N = 700 };
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 1024,
					 .page_bytes = PAGE_BYTES,
					 .magazine_pages = 64 };
	struct pool_fixture f;
	struct mr_cache *other_cache;
	struct mr_pool *other;
	uint64_t addrs[2 * N], mixed[2 * N];

	(void)state;
	open_with(&f, 256, MR_RETURN_LOCAL);
	config.region = f.region;
	assert_int_equal(mr_pool_create(f.ctx, &config, &other, NULL), 0);
	assert_int_equal(mr_cache_create(other, &other_cache, NULL), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(
			mr_frag_alloc_bulk(f.cache, addrs, N, PAGE_BYTES), N);
		assert_int_equal(mr_frag_alloc_bulk(other_cache, addrs + N, N,
						    PAGE_BYTES),
				 N);
		for (uint32_t i = 0; i < 2 * N; i++)
			mixed[i] = addrs[i % 2 * N + i / 2];
		mr_frag_free_bulk(round % 2 ? f.cache : other_cache, mixed, N);
		mr_frag_free_bulk(round % 2 ? other_cache : f.cache, mixed + N,
				  N);
		mr_cache_flush(f.cache);
		mr_cache_flush(other_cache);
		assert_in_flight(f.pool, 0);
		assert_in_flight(other, 0);
	}
	mr_cache_destroy(other_cache);
	assert_int_equal(mr_pool_destroy(other, NULL), 0);
	fixture_close(&f);
}

static void pages_go_home_in_magazines_of_that_size(void **state)
{
	enum { N = 2000 };
	struct pool_fixture f;
	struct mr_cache *away;
	static uint64_t addrs[N];

	(void)state;
	open_with(&f, 128, MR_RETURN_HOME);
	assert_int_equal(mr_cache_create(f.pool, &away, NULL), 0);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, N, PAGE_BYTES), N);
	mr_frag_free_bulk(away, addrs, N);
	assert_int_equal(pool_stats(f.pool).recycle_home, N / 128 * 128);
	mr_cache_flush(away);
	assert_int_equal(pool_stats(f.pool).recycle_home, N);
	assert_in_flight(f.pool, 0);
	mr_cache_destroy(away);
	fixture_close(&f);
}

/* The janitor packs what it took into magazines as large, and loses none. */
static void janitor_packs_magazines_of_that_size(void **state)
{
	static uint64_t addrs[N_PAGES];

	(void)state;
	for (uint32_t size = 64; size <= 512; size *= 2) {
		const struct mr_tend_config config = { .size = sizeof(config) };
		struct pool_fixture f;

		open_with(&f, size, MR_RETURN_LOCAL);
		assert_int_equal(
			mr_frag_alloc_bulk(f.cache, addrs, N_PAGES, PAGE_BYTES),
			N_PAGES);
		mr_frag_free_bulk(f.cache, addrs, N_PAGES);
		for (int tick = 0; tick < 20; tick++) {
			struct mr_tend_report report = { .size = sizeof(
								 report) };

			assert_int_equal(mr_pool_tend(f.pool, &config, &report),
					 0);
			assert_int_equal(report.n_duplicates, 0);
			assert_in_flight(f.pool, 0);
		}
		fixture_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_go_with_the_pool),
		cmocka_unit_test(sizes_out_of_range_are_refused),
		cmocka_unit_test(pages_are_there_once_with_every_size),
		cmocka_unit_test(cache_keeps_two_and_exchanges_one),
		cmocka_unit_test(pools_of_two_sizes_in_one_burst),
		cmocka_unit_test(pages_go_home_in_magazines_of_that_size),
		cmocka_unit_test(janitor_packs_magazines_of_that_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
