/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/trim.c: it sorts, finds, gives back and fetches. */
#include "support/frag_unit.h"

#include <unistd.h>

#include <millrace/experimental/page.h>

#include "support/safety_unit.h"

#include "support/pool_test.h"

enum { N_PAGES = 1024 };

static const uint64_t START_NS = 1000000000;

static struct mr_trim_report trim(struct mr_pool *pool,
				  const struct mr_trim_config *config)
{
	struct mr_trim_report report = { .size = sizeof(report) };

	assert_int_equal(mr_pool_trim(pool, config, &report), 0);
	return report;
}

/* All pages of the pool, through the cache and back, in odd order. */
static void churn(struct mr_cache *cache, uint64_t *addrs, uint32_t n)
{
	uint64_t swap;

	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t other = i * 7919 % n;

		swap = addrs[i];
		addrs[i] = addrs[other];
		addrs[other] = swap;
	}
	mr_frag_free_bulk(cache, addrs, n);
}

TEST_POOL(magazines_are_sorted)
{
	uint64_t addrs[N_PAGES], n_failed = 0;
	struct mr_trim_report report;
	struct mri_magazine *magazine;
	uint32_t next = 0;

	fixture_open(&f, N_PAGES, 4096);
	churn(f.cache, addrs, N_PAGES);
	/* What was in use just now may be needed again: none of it is idle. */
	f.pool->trim.n_high = 2 * N_PAGES;
	report = trim(f.pool, NULL);
	assert_in_range(report.n_magazines, 7, 8);
	assert_int_equal(report.n_pages_back, 0);
	assert_int_equal(report.n_duplicates, 0);
	assert_in_flight(f.pool, 0);
	for (uint32_t m = 0; m < report.n_magazines; m++) {
		magazine = mri_depot_take(&f.pool->depot, &f.pool->depot.filled,
					  &n_failed);
		assert_non_null(magazine);
		assert_int_equal(magazine->n, MR_MAGAZINE_PAGES);
		for (uint32_t i = 0; i < MR_MAGAZINE_PAGES; i++) {
			assert_true(magazine->numbers[i] >= next);
			next = magazine->numbers[i] + 1;
		}
		/* Below the others, for the end of the test. */
		mr_counter_add(&f.pool->counters.n_from_depot,
			       MR_MAGAZINE_PAGES);
		mri_page_back_bulk(&f.pool->page_alloc, magazine->numbers,
				   MR_MAGAZINE_PAGES);
		mri_magazine_set_n(magazine, 0);
		mri_depot_put(&f.pool->depot.empty, magazine, &n_failed);
	}
}

/* However many blocks lie beside them. */
TEST(half_of_the_magazines_stay)
{
	struct frag_fixture g;
	uint64_t addrs[N_PAGES];

	open_frags(&g, N_PAGES, 4096);
	for (uint32_t i = 0; i < 64; i++)
		addrs[i] = cut(&g, 32768, 0);
	for (uint32_t i = 0; i < 64; i++)
		give_back(&g, addrs[i]);
	churn(g.p.cache, addrs, 6 * MR_MAGAZINE_PAGES);
	assert_true(pool_stats(g.p.pool).n_depot >= 10 * MR_MAGAZINE_PAGES);
	assert_int_equal(mri_stack_n(&g.p.pool->depot.filled, 100), 4);
	assert_int_equal(mri_stack_n(&g.p.pool->depot.filled, 3), 3);
	assert_int_equal(trim(g.p.pool, NULL).n_magazines, 2);
	assert_in_flight(g.p.pool, 0);
	close_frags(&g);
}

TEST_POOL(a_trim_looks_at_no_more_than_its_limit)
{
	const struct mr_trim_config three = { .size = sizeof(three),
					      .max_magazines = 3 };
	const struct mr_trim_config none = { 0 };
	struct mr_trim_report report = { 0 };
	uint64_t addrs[N_PAGES];

	fixture_open(&f, N_PAGES, 4096);
	assert_int_equal(trim(f.pool, NULL).n_magazines, 0);
	churn(f.cache, addrs, N_PAGES);
	assert_int_equal(trim(f.pool, &three).n_magazines, 3);
	assert_int_equal(mr_pool_trim(f.pool, &none, NULL), -EINVAL);
	assert_int_equal(mr_pool_trim(f.pool, NULL, &report), -EINVAL);
	assert_int_equal(mr_pool_trim(f.pool, NULL, NULL), 0);
	/* Without memory it does nothing, and nothing is lost. */
	for (uint32_t k = 1; k <= 2; k++) {
		churn(f.cache, addrs, N_PAGES);
		f.allocator.fail_at = f.allocator.n_calls + k;
		assert_int_equal(trim(f.pool, &three).n_magazines, 0);
		assert_in_flight(f.pool, 0);
	}
}

/* At level 0 nobody sees a double free, but mr_pool_trim(), later. */
TEST_POOL(duplicates_are_dropped)
{
	uint64_t addrs[N_PAGES], n_found = 0;

	fixture_open(&f, N_PAGES, 4096);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, N_PAGES, 4096),
			 N_PAGES);
	mr_frag_free_bulk(f.cache, addrs, 256);
	mr_frag_free_bulk(f.cache, &addrs[30], 3);
	mr_frag_free_bulk(f.cache, &addrs[256], N_PAGES - 256);
	assert_int_equal(pool_stats(f.pool).n_free, N_PAGES + 3);
	for (uint32_t i = 0; i < 10; i++)
		n_found += trim(f.pool, NULL).n_duplicates;
	assert_int_equal(n_found, 3);
	assert_int_equal(pool_stats(f.pool).free_double, 3);
	assert_in_flight(f.pool, 0);
	assert_non_null(strstr(f.allocator.last_line, "were freed twice"));
	/* Both of them among what one call looks at. */
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, N_PAGES, 4096),
			 N_PAGES);
	mr_frag_free_bulk(f.cache, addrs, 900);
	mr_frag_free_bulk(f.cache, &addrs[800], 1);
	mr_frag_free_bulk(f.cache, &addrs[900], N_PAGES - 900);
	assert_int_equal(trim(f.pool, NULL).n_duplicates, 1);
	assert_in_flight(f.pool, 0);
}

static uint64_t resident_bytes(void)
{
	unsigned long long size, resident;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &size, &resident), 2);
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A burst to 32 MiB, and back to what the pool began with. */
TEST_POOL(memory_of_a_burst_returns_to_the_system)
{
	enum { N_BURST = 8192, N_SMALL = 512 };
	const struct mr_pool_config config = { .n_pages = N_SMALL,
					       .max_pages = N_BURST,
					       .segment_pages = 1024 };
	uint64_t *addrs = calloc(N_BURST, sizeof(*addrs));
	struct mr_trim_report report;
	uint64_t n_resident;
	uint32_t n_calls = 0;

	fixture_open_at(&f, START_NS, config);
	churn(f.cache, addrs, N_BURST);
	assert_int_equal(pool_stats(f.pool).n_pages, N_BURST);
	n_resident = resident_bytes();
	mr_cache_destroy(f.cache);
	/* What was needed may be needed again: for some calls it stays. */
	report = trim(f.pool, NULL);
	assert_int_equal(report.n_pages_shrunk, 0);
	assert_int_not_equal(report.why[0], '\0');
	while (pool_stats(f.pool).n_pages > N_SMALL && ++n_calls < 100) {
		f.now_ns += UINT64_C(1000000000);
		report = trim(f.pool, NULL);
		assert_in_flight(f.pool, 0);
		if (n_calls < 9)
			assert_int_equal(report.n_pages_shrunk, 0);
	}
	assert_int_equal(pool_stats(f.pool).n_pages, N_SMALL);
	assert_in_range(n_calls, 10, 60);
	assert_string_equal(trim(f.pool, NULL).why, "");
	assert_true(resident_bytes() + (UINT64_C(24) << 20) < n_resident);
	/* And it grows again. */
	assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
	churn(f.cache, addrs, N_BURST);
	assert_int_equal(pool_stats(f.pool).n_pages, N_BURST);
	fixture_close(&f);
	free(addrs);
}

TEST_POOL(memory_registered_by_a_port_is_kept)
{
	const struct mr_trim_config now = { .size = sizeof(now), .idle_ns = 1 };
	const struct mr_pool_config config = { .n_pages = 512,
					       .max_pages = 2048,
					       .segment_pages = 512 };
	struct mr_trim_report report;

	fixture_open_at(&f, START_NS, config);
	assert_int_equal(mr_pool_grow(f.pool, 0, NULL), 0);
	assert_int_equal(mr_region_pin(f.region, "xdp:eth7", 64 << 20), 0);
	trim(f.pool, &now);
	f.now_ns += 10;
	report = trim(f.pool, &now);
	assert_int_equal(report.n_pages_shrunk, 0);
	assert_non_null(strstr(report.why, "xdp:eth7"));
	mr_region_unpin(f.region, "xdp:eth7", 64 << 20);
	f.now_ns += 10;
	report = trim(f.pool, &now);
	assert_int_equal(report.n_pages_shrunk, 512);
	assert_string_equal(report.why, "");
}

TEST_POOL(a_trim_grows_the_pool_before_it_is_empty)
{
	const struct mr_pool_config config = { .n_pages = 512,
					       .max_pages = 2048,
					       .segment_pages = 512,
					       .low_pages = 100 };
	uint64_t addrs[448];

	fixture_open_at(&f, START_NS, config);
	assert_int_equal(trim(f.pool, NULL).n_pages_grown, 0);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 448, 4096), 448);
	assert_int_equal(trim(f.pool, NULL).n_pages_grown, 512);
	assert_int_equal(trim(f.pool, NULL).n_pages_grown, 0);
	mr_frag_free_bulk(f.cache, addrs, 448);
}

enum { IDLE_NS = 5000 };

static void let_idle(struct mr_pool *pool, uint64_t *now_ns)
{
	const struct mr_trim_config config = { .size = sizeof(config),
					       .idle_ns = IDLE_NS };

	trim(pool, &config);
	*now_ns += IDLE_NS;
	trim(pool, &config);
}

TEST_POOL(idle_caches_give_back_when_flushed)
{
	const struct mr_pool_config config = { .n_pages = 512 };
	uint64_t addrs[100];

	fixture_open_at(&f, START_NS, config);
	churn(f.cache, addrs, 100);
	mr_cache_flush(f.cache);
	assert_in_range(cache_stats(f.cache).n_pages, 1, 512);
	let_idle(f.pool, &f.now_ns);
	/* It is its owner's: only he empties it. */
	assert_in_range(cache_stats(f.cache).n_pages, 1, 512);
	mr_cache_flush(f.cache);
	assert_int_equal(cache_stats(f.cache).n_pages, 0);
	assert_int_equal(cache_stats(f.cache).n_free, 100);
	/* That was not work. */
	assert_int_equal(cache_stats(f.cache).idle_ns, IDLE_NS);
	assert_in_flight(f.pool, 0);
	/* Asked while idle, and at work since: what it has it needs. */
	let_idle(f.pool, &f.now_ns);
	churn(f.cache, addrs, 100);
	mr_cache_flush(f.cache);
	assert_in_range(cache_stats(f.cache).n_pages, 1, 512);
	mr_cache_flush(f.cache);
	assert_in_range(cache_stats(f.cache).n_pages, 1, 512);
	assert_in_flight(f.pool, 0);
}

TEST_POOL(segments_are_freed_when_caches_are_idle)
{
	const struct mr_pool_config config = { .n_pages = 512,
					       .max_pages = 4096,
					       .segment_pages = 512 };
	uint64_t addrs[4096];

	fixture_open_at(&f, START_NS, config);
	churn(f.cache, addrs, 4096);
	for (uint32_t i = 0; i < 100; i++) {
		f.now_ns += UINT64_C(1000000000);
		trim(f.pool, NULL);
		mr_cache_flush(f.cache);
	}
	assert_int_equal(pool_stats(f.pool).n_pages, 512);
}

TEST_POOL(old_pages_leave_quarantine)
{
	const struct mr_pool_config config = { .n_pages = 512,
					       .safety = MR_SAFETY_POISON };
	const struct mr_trim_config idle = { .size = sizeof(idle),
					     .idle_ns = IDLE_NS };
	uint64_t addrs[100];

	fixture_open_at(&f, START_NS, config);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 100, 4096), 100);
	trim(f.pool, &idle);
	mr_frag_free_bulk(f.cache, addrs, 60);
	f.now_ns += IDLE_NS;
	/* Seen for the first time. */
	assert_int_equal(trim(f.pool, &idle).n_pages_back, 0);
	assert_int_equal(mri_safety_n_held(f.pool), 60);
	mr_frag_free_bulk(f.cache, &addrs[60], 40);
	f.now_ns += IDLE_NS - 1;
	assert_int_equal(trim(f.pool, &idle).n_pages_back, 0);
	f.now_ns += 1;
	assert_int_equal(trim(f.pool, &idle).n_pages_back, 60);
	assert_int_equal(mri_safety_n_held(f.pool), 40);
	assert_in_flight(f.pool, 0);
	f.now_ns += IDLE_NS;
	assert_int_equal(trim(f.pool, &idle).n_pages_back, 40);
	assert_int_equal(mri_safety_n_held(f.pool), 0);
	assert_in_flight(f.pool, 0);
}
