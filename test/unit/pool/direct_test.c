/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/direct.c: buffers without a cache. The linker counts the
 * mutexes that are taken (-Wl,--wrap), the page allocator its own rounds.
 */
#include "support/pool_test.h"

#include <millrace/experimental/page.h>

static uint32_t n_mutexes;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	n_mutexes++;
	return __real_pthread_mutex_lock(mutex);
}

/* Locks taken so far, of either kind. */
static uint64_t n_locks(const struct mr_pool *pool)
{
	const uint64_t n = n_mutexes;
	struct mr_page_stats s = { .size = sizeof(s) };

	assert_int_equal(mr_page_stats(pool, &s), 0);
	return n + s.alloc_calls + s.free_calls;
}

TEST_POOL(one_lock_per_64_pages)
{
	static uint64_t addrs[1024];
	uint64_t n;

	fixture_open(&f, 1024, 4096);
	n = n_locks(f.pool);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, addrs, 1024),
			 1024);
	assert_int_equal(n_locks(f.pool) - n, 1024 / MR_MAGAZINE_PAGES);
	n = n_locks(f.pool);
	mr_pool_frag_free_bulk(f.pool, addrs, 1024);
	assert_int_equal(n_locks(f.pool) - n, 1024 / MR_MAGAZINE_PAGES);
}

/* Bursts take no lock, once the pages went round. */
TEST_POOL(bursts_take_no_lock)
{
	static uint64_t addrs[512];
	uint64_t n;

	fixture_open(&f, 1024, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 512, 4096);
	mr_frag_free_bulk(f.cache, addrs, 512);
	n = n_locks(f.pool);
	for (int i = 0; i < 100; i++) {
		mr_frag_alloc_bulk(f.cache, addrs, 500, 4096);
		mr_frag_free_bulk(f.cache, addrs, 500);
	}
	assert_int_equal(n_locks(f.pool) - n, 0);
}

TEST_POOL(direct_calls_get_pages_of_the_depot)
{
	static uint64_t addrs[512], more[512];
	struct mr_pool_stats s;

	fixture_open(&f, 512, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 512, 4096);
	mr_frag_free_bulk(f.cache, addrs, 512);
	assert_int_equal(pool_stats(f.pool).n_depot, 512 - 128);
	/* Ten of a magazine; its rest goes to the page allocator. */
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, more, 10), 10);
	s = pool_stats(f.pool);
	assert_int_equal(s.n_depot, 512 - 128 - 64);
	assert_int_equal(s.n_free - s.n_depot - s.n_cached, 54);
	assert_int_equal(s.alloc_refill, 1);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, more + 10, 502),
			 512 - 128 - 10);
	assert_in_flight(f.pool, 512 - 128);
	assert_int_equal(pool_stats(f.pool).alloc_empty, 128);
	mr_pool_frag_free_bulk(f.pool, more, 512 - 128);
}

TEST_POOL(counters_distinguish_caches_from_direct_calls)
{
	struct mr_pool_stats s;
	uint64_t addrs[100];

	fixture_open(&f, 256, 4096);
	mr_pool_frag_alloc_bulk(f.pool, addrs, 100);
	s = pool_stats(f.pool);
	assert_int_equal(s.alloc_slow, 100);
	assert_int_equal(s.alloc_fast, 0); /* no magazine had a part in it */
	mr_pool_frag_free_bulk(f.pool, addrs, 100);
	assert_int_equal(pool_stats(f.pool).recycle_cached, 0);
}
