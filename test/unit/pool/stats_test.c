/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/stats.c. */
#include "support/pool_test.h"

TEST_POOL(statistics_fill_only_the_size_of_the_caller_s_struct)
{
	struct mr_pool_stats s;
	struct {
		struct mr_pool_stats known;
		uint64_t later[2]; /* of a version to come */
	} newer = { .known = { .size = sizeof(newer) }, .later = { 7, 7 } };

	fixture_open(&f, 100, 4096);
	memset(&s, 0x77, sizeof(s));
	s.size = offsetof(struct mr_pool_stats, n_free);
	assert_int_equal(mr_pool_stats(f.pool, &s), 0);
	assert_int_equal(s.size, offsetof(struct mr_pool_stats, n_free));
	assert_int_equal(s.n_pages, 100);
	assert_int_equal(s.n_free, UINT64_C(0x7777777777777777));
	s.size = 0;
	assert_int_equal(mr_pool_stats(f.pool, &s), -EINVAL);
	assert_int_equal(mr_pool_stats(f.pool, &newer.known), 0);
	assert_int_equal(newer.known.size, sizeof(newer));
	assert_int_equal(newer.known.n_free, 100);
	assert_int_equal(newer.later[0], 0);
	assert_int_equal(newer.later[1], 0);
}

/* Read while they run, two sums may cross; then nothing is less than none. */
TEST_POOL(crossed_sums_do_not_wrap)
{
	fixture_open(&f, 64, 4096);
	f.cache->counters.n_free += 5; /* as if n_alloc had been read before */
	f.cache->counters.n_from_depot += 64;
	assert_int_equal(pool_stats(f.pool).n_in_flight, 0);
	assert_int_equal(pool_stats(f.pool).n_depot, 0);
	f.cache->counters.n_free -= 5;
	f.cache->counters.n_from_depot -= 64;
}

/* What is in flight comes out right behind the end of each counter. */
TEST_POOL(counters_may_wrap)
{
	uint64_t addrs[300];

	fixture_open(&f, 512, 4096);
	f.cache->pair.top |= UINT64_MAX << MR_TOP_BITS; /* 2^54 - 1 pages left */
	f.cache->n_fetched -= 100;
	f.pool->counters.n_direct_free -= 100;
	mr_frag_alloc_bulk(f.cache, addrs, 200, 4096);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, addrs + 200, 100),
			 100);
	assert_in_flight(f.pool, 300); /* 100 fewer fetched, 100 fewer back */
	assert_int_equal(pool_stats(f.pool).alloc_fast, 199);
	mr_frag_free_bulk(f.cache, addrs, 300);
	f.cache->n_fetched += 100;
	f.pool->counters.n_direct_free += 100;
	assert_in_flight(f.pool, 0);
}
