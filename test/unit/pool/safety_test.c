/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/debug/safety.c: what is given back twice is found. */
#include "support/safety_unit.h"

#include "support/pool_test.h"

#include <millrace/experimental/page.h>

#include "support/mt.h"

enum { N_PAGES = 256 };

static uint64_t n_double(const struct mr_pool *pool)
{
	return pool_stats(pool).free_double;
}

/* Pages that are taken now are each another one. */
static void assert_all_differ(uint32_t n_bytes)
{
	const uint32_t n = f.pool->n_pages * (f.pool->page_bytes / n_bytes);
	uint64_t *addrs = calloc(n, sizeof(*addrs));
	bool *is_seen = calloc(n, sizeof(*is_seen));

	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, n, n_bytes), n);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t at = (addrs[i] - f.pool->addr) / n_bytes;

		assert_true(at < n && !is_seen[at]);
		is_seen[at] = true;
	}
	mr_frag_free_bulk(f.cache, addrs, n);
	free(addrs);
	free(is_seen);
}

TEST_POOL(each_place_is_reported_once)
{
	uint64_t addr;

	checked_open(&f, MR_SAFETY_STATES, N_PAGES, 4096);
	addr = alloc_one(f.cache, 4096);
	for (uint32_t i = 0; i < 10; i++)
		mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(f.allocator.n_lines, 1);
	assert_int_equal(n_double(f.pool), 9);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(f.allocator.n_lines, 2);
	/* Both places are named. */
	assert_names(f.allocator.last_line, "twice, by %s+0x",
		     program_invocation_short_name);
	assert_names(f.allocator.last_line, "last freed by %s+0x",
		     program_invocation_short_name);
	addr = UINT64_C(1) << 40;
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_log_has(&f, "belongs to no pool of the region");
	/* The page allocator's fast path knows it too. */
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, &addr, 1), 1);
	mr_page_free_bulk(f.pool, 0, &addr, 1);
	assert_int_equal(mr_pool_leaks(f.pool, NULL, 0), 0);
	mr_page_free_bulk(f.pool, 0, &addr, 1);
	assert_int_equal(n_double(f.pool), 11);
}

static void *alloc_and_free(void *opaque)
{
	struct mr_cache *cache = opaque;
	uint64_t addr;

	if (mr_frag_alloc_bulk(cache, &addr, 1, 4096) != 1)
		abort();
	mr_frag_free_bulk(cache, &addr, 1);
	return NULL;
}

static void *adopt_and_use(void *opaque)
{
	return alloc_and_free(mr_cache_adopt(opaque));
}

TEST_POOL(a_cache_reports_another_thread)
{
	checked_open(&f, MR_SAFETY_STATES, N_PAGES, 4096);
	/* Who made it does not matter, but who uses it. */
	on_thread(alloc_and_free, f.cache);
	assert_int_equal(f.allocator.n_lines, 0);
	on_thread(adopt_and_use, f.cache);
	assert_int_equal(f.allocator.n_lines, 0);
	alloc_and_free(f.cache);
	alloc_and_free(f.cache);
	assert_int_equal(f.allocator.n_lines, 1);
	assert_names(f.allocator.last_line,
		     "a second thread uses a cache, in "
		     "%s+0x",
		     program_invocation_short_name);
}

TEST_POOL(the_level_changes_only_at_rest)
{
	struct mr_reason reason;
	uint64_t addr;

	fixture_open(&f, N_PAGES, 4096);
	assert_int_equal(mr_pool_set_safety(f.pool, MR_SAFETY_STATES, &reason),
			 -EBUSY);
	assert_reason_has(&reason, "1 caches exist and 0 pages are in flight");
	addr = alloc_one(f.cache, 4096);
	mr_cache_destroy(f.cache);
	assert_int_equal(mr_pool_set_safety(f.pool, MR_SAFETY_STATES, &reason),
			 -EBUSY);
	assert_reason_has(&reason, "1 pages are in flight");
	mr_pool_frag_free_bulk(f.pool, &addr, 1);
	assert_int_equal(mr_pool_set_safety(f.pool, (enum mr_safety)7, &reason),
			 -EINVAL);
	f.allocator.fail_at = f.allocator.n_calls + 2;
	assert_int_equal(mr_pool_set_safety(f.pool, MR_SAFETY_STATES, &reason),
			 -ENOMEM);
	for (uint32_t k = 1; k <= 3; k++) {
		f.allocator.fail_at = f.allocator.n_calls + k;
		assert_int_equal(
			mr_pool_set_safety(f.pool, MR_SAFETY_POISON, &reason),
			-ENOMEM);
	}
	f.allocator.fail_at = 0;
	/* Up, with pages in quarantine down, and what was counted stays. */
	assert_int_equal(mr_pool_set_safety(f.pool, MR_SAFETY_POISON, NULL), 0);
	addr = f.pool->addr;
	mr_pool_frag_free_bulk(f.pool, &addr, 1);
	assert_int_equal(n_double(f.pool), 1);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, &addr, 1), 1);
	mr_pool_frag_free_bulk(f.pool, &addr, 1);
	assert_in_flight(f.pool, 0);
	assert_int_equal(mr_pool_set_safety(f.pool, MR_SAFETY_COUNTS, NULL), 0);
	assert_int_equal(n_double(f.pool), 1);
	assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
	assert_all_differ(4096);
}

/*
 * Threads that free the same page at the same time: one of them is right, and
 * all others are told.
 */
struct race {
	uint32_t page_bytes;
	uint64_t addr;
	pthread_barrier_t barrier;
};

enum { N_RACERS = 4 };

static void free_the_same(struct mt_thread *thread)
{
	struct race *race = thread->run->shared;
	struct mr_cache *cache;

	mt_check(thread->run, mr_cache_create(f.pool, &cache, NULL) == 0);
	for (uint64_t i = 0; i < thread->run->n_ops; i++) {
		uint64_t addr;

		if (thread->id == 1)
			mt_check(thread->run,
				 mr_frag_alloc_bulk(cache, &race->addr, 1,
						    race->page_bytes) == 1);
		pthread_barrier_wait(&race->barrier);
		addr = race->addr;
		mr_frag_free_bulk(cache, &addr, 1);
		pthread_barrier_wait(&race->barrier);
	}
	mr_cache_destroy(cache);
}

TEST_POOL(of_racing_frees_one_is_accepted)
{
	static const uint32_t pages[] = { 4096, 8192 };

	for (uint32_t i = 0; i < 2; i++) {
		struct race race = { .page_bytes = pages[i] };
		struct mt_run run = { .body = free_the_same,
				      .shared = &race,
				      .n_threads = N_RACERS,
				      .n_ops = mt_n_ops(2000) };

		pthread_barrier_init(&race.barrier, NULL, N_RACERS);
		/* So many that other caches may hold some. */
		checked_open(&f, MR_SAFETY_STATES, 1024, pages[i]);
		assert_int_equal(mt_run(&run), 0);
		assert_int_equal(n_double(f.pool),
				 (N_RACERS - 1) * run.n_ops);
		assert_in_flight(f.pool, 0);
		assert_all_differ(pages[i]);
		fixture_close(&f);
		pthread_barrier_destroy(&race.barrier);
	}
}
