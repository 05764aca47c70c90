/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/cache.c, cache_life.c and free.c. */
#include "support/pool_test.h"
#include "support/unit_ctx.h"

enum { MAG = MR_MAGAZINE_PAGES };

TEST_POOL(page_freed_last_is_allocated_first)
{
	uint64_t addrs[10], again[3];

	fixture_open(&f, 256, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 10, 4096);
	mr_frag_free_bulk(f.cache, addrs, 10);
	assert_int_equal(alloc_one(f.cache, 4096), addrs[9]);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, again, 3, 4096), 3);
	assert_memory_equal(again, &addrs[6], sizeof(again));
	mr_frag_free_bulk(f.cache, again, 3);
	mr_frag_free_bulk(f.cache, &addrs[9], 1);
}

/*
 * Where the compiler knows n, the burst is inlined: it must go to the call at
 * the edges of a magazine, and with what is no page of one owner.
 */
TEST_POOL(bursts_of_constant_length_behave_like_others)
{
	struct mr_frame frame = { 0 };
	uint64_t addrs[8 * MAG], wrong[8];

	fixture_open(&f, 8 * MAG, 4096);
	for (uint32_t i = 0; i + 12 <= 8 * MAG; i += 12)
		assert_int_equal(
			mr_frag_alloc_bulk(f.cache, addrs + i, 12, 4096), 12);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs + 504, 12, 4096), 8);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 8, 4097), 0);
	assert_in_flight(f.pool, 8 * MAG);
	for (uint32_t i = 0; i + 12 <= 8 * MAG; i += 12)
		mr_frag_free_bulk(f.cache, addrs + i, 12);
	assert_in_flight(f.pool, 8);
	memcpy(wrong, addrs + 504, sizeof(wrong));
	wrong[3] = MR_ADDR_NONE;
	mr_frag_free_bulk(f.cache, wrong, 8);
	assert_int_equal(pool_stats(f.pool).free_invalid, 1);
	assert_in_flight(f.pool, 1);
	frame.addr = addrs[507];
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	for (uint32_t i = 0; i < 2; i++) {
		mr_frag_alloc_bulk(f.cache, wrong, 8, 4096);
		mr_frag_free_bulk(f.cache, wrong + 1, 7);
		wrong[1] = addrs[507];
		mr_frag_free_bulk(f.cache, wrong, 2);
		assert_in_flight(f.pool, 1 - i);
	}
}

/* One trip to the depot per 64 pages, whatever the order of alloc and free. */
TEST_POOL(two_magazines_avoid_the_depot)
{
	struct mr_pool_stats s, t;
	uint64_t addrs[4 * MAG];

	fixture_open(&f, 1024, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 4 * MAG, 4096);
	mr_frag_free_bulk(f.cache, addrs, 4 * MAG);
	s = pool_stats(f.pool);
	assert_int_equal(s.n_cached, 2 * MAG);
	assert_int_equal(s.n_depot, 2 * MAG);
	assert_int_equal(s.recycle_cache_full, 2);
	assert_int_equal(s.alloc_slow, 4 * MAG);
	assert_int_equal(s.alloc_fast, 4 * MAG);
	assert_int_equal(s.recycle_cached, 4 * MAG);
	assert_int_equal(s.recycle_ring_full + s.depot_cas_failed, 0);
	/* At the edge of a magazine: up and down by 64, over and over. */
	for (int i = 0; i < 100; i++) {
		mr_frag_alloc_bulk(f.cache, addrs, MAG, 4096);
		mr_frag_free_bulk(f.cache, addrs, MAG);
		mr_frag_alloc_bulk(f.cache, addrs, 1, 4096);
		mr_frag_free_bulk(f.cache, addrs, 1);
	}
	t = pool_stats(f.pool);
	assert_int_equal(t.recycle_cache_full, s.recycle_cache_full);
	assert_int_equal(t.alloc_refill, s.alloc_refill);
	/* All of it again: from the depot now, not from the allocator. */
	mr_frag_alloc_bulk(f.cache, addrs, 4 * MAG, 4096);
	t = pool_stats(f.pool);
	assert_int_equal(t.alloc_refill, 2);
	assert_int_equal(t.alloc_slow, s.alloc_slow);
	assert_int_equal(t.n_depot, 0);
	mr_frag_free_bulk(f.cache, addrs, 4 * MAG);
}

/* Cannot happen with the magazines there are; must not lose pages if it does.
 */
TEST_POOL(no_empty_magazine_sends_pages_to_the_allocator)
{
	uint64_t addrs[5 * MAG], n_failed = 0;
	int64_t places[1000];
	uint32_t n = 0;

	fixture_open(&f, 5 * MAG, 4096);
	while ((places[n] = mri_stack_pop(&f.pool->depot.empty, &n_failed)) >=
	       0)
		n++;
	mr_frag_alloc_bulk(f.cache, addrs, 5 * MAG, 4096);
	mr_frag_free_bulk(f.cache, addrs, 5 * MAG);
	assert_in_flight(f.pool, 0);
	assert_int_equal(pool_stats(f.pool).recycle_ring_full, 3 * MAG);
	assert_int_equal(pool_stats(f.pool).n_depot, 0);
	while (n > 0)
		mri_stack_push(&f.pool->depot.empty, (uint32_t)places[--n],
			       &n_failed);
}

TEST_CTX(caches_are_limited_and_their_places_used_again)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 64,
					       .max_caches = 3 };
	struct mr_cache *caches[3], *no = NULL;
	struct mr_reason why = { "" };
	struct mr_pool *pool;

	assert_int_equal(mr_pool_create(ctx, &config, &pool, NULL), 0);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 3; i++) {
			assert_int_equal(
				mr_cache_create(pool, &caches[i], NULL), 0);
			assert_ptr_equal(mr_cache_pool(caches[i]), pool);
		}
		assert_int_equal(mr_cache_create(pool, &no, &why), -ENOSPC);
		assert_reason_has(&why, "all of its 3 caches");
		assert_null(no);
		assert_int_equal(pool_stats(pool).n_caches, 3);
		for (int i = 0; i < 3; i++)
			mr_cache_destroy(caches[(i + round) % 3]);
	}
	allocator.fail_at = allocator.n_calls + 1;
	assert_int_equal(mr_cache_create(pool, &no, &why), -ENOMEM);
	assert_reason_has(&why, "no memory for a cache");
	mr_cache_destroy(NULL);
	assert_magazines(pool);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
}

TEST_POOL(destroyed_cache_leaves_pages_and_counters)
{
	struct mr_pool_stats s, t;
	uint64_t addrs[150];

	fixture_open(&f, 256, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 150, 4096);
	mr_frag_free_bulk(f.cache, addrs, 100);
	s = pool_stats(f.pool);
	mr_cache_destroy(f.cache);
	t = pool_stats(f.pool);
	assert_int_equal(t.n_in_flight, 50);
	assert_int_equal(t.n_free, 206);
	assert_int_equal(t.n_cached, 0);
	assert_int_equal(t.n_caches, 0);
	assert_int_equal(t.n_committed, 0);
	assert_int_equal(t.alloc_fast, s.alloc_fast);
	assert_int_equal(t.alloc_slow, s.alloc_slow);
	assert_int_equal(t.recycle_cached, 100);
	mr_cache_create(f.pool, &f.cache, NULL);
	mr_frag_free_bulk(f.cache, addrs + 100, 50);
}

/* Idle since somebody first saw it as it is; looking costs the cache nothing.
 */
TEST_POOL(idle_time_counts_from_the_first_look)
{
	struct mr_cache_stats s = { .size = 0 };
	uint64_t addr;

	fixture_open_at(&f, 1000, (struct mr_pool_config){ .n_pages = 64 });
	assert_int_equal(mr_cache_stats(f.cache, &s), -EINVAL);
	f.now_ns = 1500;
	assert_int_equal(cache_stats(f.cache).idle_ns, 500);
	addr = alloc_one(f.cache, 4096);
	f.now_ns = 2000;
	assert_int_equal(cache_stats(f.cache).idle_ns, 0);
	f.now_ns = 2700;
	assert_int_equal(cache_stats(f.cache).idle_ns, 700);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(cache_stats(f.cache).idle_ns, 0);
	s = cache_stats(f.cache);
	assert_int_equal(s.n_alloc, 1);
	assert_int_equal(s.n_free, 1);
	assert_int_equal(s.n_pages, 64);
	assert_int_equal(s.max_pages, 6 * MAG);
}

/* One page comes back twice, with nothing else out. */
TEST_POOL(more_freed_than_allocated_is_seen)
{
	uint64_t addr;

	fixture_open(&f, 256, 4096);
	addr = alloc_one(f.cache, 4096);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(pool_stats(f.pool).free_over, 0);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(pool_stats(f.pool).free_over, 1);
	assert_int_equal(pool_stats(f.pool).n_in_flight, 0);
	/* Taken again, it is even, and the page is there once. */
	assert_int_equal(alloc_one(f.cache, 4096), addr);
	assert_int_equal(pool_stats(f.pool).free_over, 0);
}

/* Takes from the depot that find nothing, as if another cache came first. */
static uint32_t n_failing;

int64_t __real_mri_stack_pop(struct mri_stack *stack, uint64_t *n_failed);
int64_t __wrap_mri_stack_pop(struct mri_stack *stack, uint64_t *n_failed);

int64_t __wrap_mri_stack_pop(struct mri_stack *stack, uint64_t *n_failed)
{
	if (n_failing > 0) {
		n_failing--;
		return -1;
	}
	return __real_mri_stack_pop(stack, n_failed);
}

TEST_POOL(cache_that_gets_no_magazine_loses_none)
{
	struct mr_cache *cache = NULL;

	fixture_open(&f, 256, 4096);
	/* For the first magazine, neither an empty one nor one with pages. */
	n_failing = 2;
	assert_int_equal(mr_cache_create(f.pool, &cache, NULL), -ENOMEM);
	assert_null(cache);
	/* fixture_close() counts them. */
}
