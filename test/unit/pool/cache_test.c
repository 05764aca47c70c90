/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/cache.c, cache_life.c and free.c. */
#include "support/pool_unit.h"

#include <pthread.h>

enum { MAG = MR_MAGAZINE_PAGES };

TEST(bursts_of_every_length_conserve_pages)
{
	struct pool_fixture f;
	uint64_t addrs[300];

	fixture_open(&f, 1024, 4096, 4096);
	for (uint32_t n = 0; n <= 300; n++) {
		/* Of half of them, what other CPUs do. */
		if (n == 150)
			f.pool->has_wide = false;
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, n, 4096),
				 n);
		assert_in_flight(f.pool, n);
		mr_frag_free_bulk(f.cache, addrs, n);
		assert_in_flight(f.pool, 0);
	}
	assert_int_equal(pool_stats(f.pool).free_invalid, 0);
	fixture_close(&f);
}

/* As frames, with the address anywhere in the buffer. */
TEST(any_byte_of_a_buffer_names_it)
{
	struct pool_fixture f;
	struct mr_frame frames[200];
	uint64_t addrs[200];

	fixture_open(&f, 256, 2048, 2048);
	mr_frag_alloc_bulk(f.cache, addrs, 200, 2048);
	for (uint32_t i = 0; i < 200; i++)
		frames[i] = (struct mr_frame){ addrs[i] + (i % 3 == 0 ? 0 :
							   i % 3 == 1 ? 1 :
									2047),
					       1, 0 };
	mr_frame_free_bulk(f.cache, frames, 200);
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}

TEST(other_sizes_get_nothing)
{
	static const uint32_t sizes[] = { 0, 8193, 16384, UINT32_MAX };
	struct pool_fixture f;
	uint64_t addr;

	fixture_open(&f, 64, 8192, 4096);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_int_equal(
			mr_frag_alloc_bulk(f.cache, &addr, 1, sizes[i]), 0);
	fixture_close(&f);
}

TEST(empty_pool_gives_what_it_has_and_counts_the_rest)
{
	struct pool_fixture f;
	uint64_t addrs[200];

	fixture_open(&f, 100, 4096, 4096);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 150, 4096), 100);
	assert_int_equal(pool_stats(f.pool).alloc_empty, 50);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs + 100, 1, 4096), 0);
	assert_int_equal(pool_stats(f.pool).alloc_empty, 51);
	mr_frag_free_bulk(f.cache, addrs, 100);
	fixture_close(&f);
}

TEST(page_freed_last_is_allocated_first)
{
	struct pool_fixture f;
	uint64_t addrs[10], again[3];

	fixture_open(&f, 256, 4096, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 10, 4096);
	mr_frag_free_bulk(f.cache, addrs, 10);
	assert_int_equal(alloc_one(f.cache, 4096), addrs[9]);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, again, 3, 4096), 3);
	assert_memory_equal(again, &addrs[6], sizeof(again));
	mr_frag_free_bulk(f.cache, again, 3);
	mr_frag_free_bulk(f.cache, &addrs[9], 1);
	fixture_close(&f);
}

/* One trip to the depot per 64 pages, whatever the order of alloc and free. */
TEST(two_magazines_keep_the_depot_away)
{
	struct pool_fixture f;
	struct mr_pool_stats s, t;
	uint64_t addrs[4 * MAG];

	fixture_open(&f, 1024, 4096, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 4 * MAG, 4096);
	mr_frag_free_bulk(f.cache, addrs, 4 * MAG);
	s = pool_stats(f.pool);
	assert_int_equal(s.n_cached, 2 * MAG);
	assert_int_equal(s.n_depot, 2 * MAG);
	assert_int_equal(s.recycle_cache_full, 2);
	assert_int_equal(s.alloc_slow, 4 * MAG);
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
	fixture_close(&f);
}

TEST(pages_go_from_one_cache_to_the_other_by_the_depot)
{
	struct pool_fixture f;
	struct mr_cache *other;
	uint64_t addrs[MAG];

	fixture_open(&f, 8 * MAG, 4096, 4096);
	mr_cache_create(f.pool, &other, NULL);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 50, 4096),
				 50);
		mr_frag_free_bulk(other, addrs, 50);
		assert_in_flight(f.pool, 0);
	}
	assert_true(pool_stats(f.pool).alloc_slow <= 8 * MAG);
	assert_true(pool_stats(f.pool).alloc_refill >= 1000 * 50 / MAG - 8);
	mr_cache_destroy(other);
	fixture_close(&f);
}

/* Cannot happen with the magazines there are; must not lose pages if it does.
 */
TEST(no_empty_magazine_sends_pages_to_the_allocator)
{
	struct pool_fixture f;
	uint64_t addrs[5 * MAG], n_failed = 0;
	int64_t places[1000];
	uint32_t n = 0;

	fixture_open(&f, 5 * MAG, 4096, 4096);
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
	fixture_close(&f);
}

TEST(caches_are_limited_and_their_places_used_again)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 64,
					       .max_caches = 3 };
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
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
	a.fail_at = a.n_calls + 1;
	assert_int_equal(mr_cache_create(pool, &no, &why), -ENOMEM);
	assert_reason_has(&why, "no memory for a cache");
	mr_cache_destroy(NULL);
	assert_magazines(pool);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
}

TEST(destroyed_cache_leaves_pages_and_counters)
{
	struct pool_fixture f;
	struct mr_pool_stats s, t;
	uint64_t addrs[150];

	fixture_open(&f, 256, 4096, 4096);
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
	fixture_close(&f);
}

TEST(adopted_cache_goes_on)
{
	struct pool_fixture f;
	uint64_t addrs[40];

	fixture_open(&f, 64, 4096, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 40, 4096);
	f.cache = mr_cache_adopt(f.cache);
	mr_frag_free_bulk(f.cache, addrs, 40);
	assert_int_equal(pool_stats(f.pool).n_caches, 1);
	fixture_close(&f);
}

struct worker {
	struct mr_cache *cache;
	uint64_t addrs[100];
};

static void *work_and_end(void *opaque)
{
	struct worker *w = opaque;

	mr_frag_alloc_bulk(w->cache, w->addrs, 100, 4096);
	mr_frag_free_bulk(w->cache, w->addrs, 30);
	return NULL;
}

/* Its thread ended with pages in the cache, in flight, and open. */
TEST(cache_of_a_thread_that_ended_is_adopted)
{
	struct pool_fixture f;
	struct mr_pool *beside;
	struct worker w;
	pthread_t thread;

	fixture_open(&f, 256, 4096, 4096);
	beside = pool_beside(&f, 256, 4096);
	assert_int_equal(mr_cache_create(beside, &w.cache, NULL), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(
			pthread_create(&thread, NULL, work_and_end, &w), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		w.cache = mr_cache_adopt(w.cache);
		mr_frag_free_bulk(f.cache, w.addrs + 30, 50);
		mr_frag_free_bulk(w.cache, w.addrs + 80, 20);
		assert_in_flight(beside, 0);
	}
	mr_cache_flush(f.cache);
	mr_cache_destroy(w.cache);
	assert_in_flight(beside, 0);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
	fixture_close(&f);
}

static uint64_t test_now_ns;

static uint64_t test_clock(void *opaque)
{
	(void)opaque;
	return test_now_ns;
}

/* Idle since somebody first saw it as it is; looking costs the cache nothing. */
TEST(idle_time_is_what_was_seen)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
						  .clock = test_clock };
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 64 };
	struct mr_cache_stats s = { .size = 0 };
	struct mr_cache *cache;
	struct mr_pool *pool;
	struct mr_ctx *ctx;
	uint64_t addr;

	test_now_ns = 1000;
	assert_int_equal(mr_ctx_create(&ctx_config, &ctx, NULL), 0);
	assert_int_equal(mr_pool_create(ctx, &config, &pool, NULL), 0);
	assert_int_equal(mr_cache_create(pool, &cache, NULL), 0);
	assert_int_equal(mr_cache_stats(cache, &s), -EINVAL);
	test_now_ns = 1500;
	assert_int_equal(cache_stats(cache).idle_ns, 500);
	addr = alloc_one(cache, 4096);
	test_now_ns = 2000;
	assert_int_equal(cache_stats(cache).idle_ns, 0);
	test_now_ns = 2700;
	assert_int_equal(cache_stats(cache).idle_ns, 700);
	mr_frag_free_bulk(cache, &addr, 1);
	assert_int_equal(cache_stats(cache).idle_ns, 0);
	s = cache_stats(cache);
	assert_int_equal(s.n_alloc, 1);
	assert_int_equal(s.n_free, 1);
	assert_int_equal(s.n_pages, 64);
	assert_int_equal(s.max_pages, 6 * MAG);
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	mr_ctx_destroy(ctx);
}

/* One page comes back twice, with nothing else out. */
TEST(more_freed_than_allocated_is_seen)
{
	struct pool_fixture f;
	uint64_t addr;

	fixture_open(&f, 256, 4096, 4096);
	addr = alloc_one(f.cache, 4096);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(pool_stats(f.pool).free_over, 0);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(pool_stats(f.pool).free_over, 1);
	assert_int_equal(pool_stats(f.pool).n_in_flight, 0);
	/* Taken again, it is even, and the page is there once. */
	assert_int_equal(alloc_one(f.cache, 4096), addr);
	assert_int_equal(pool_stats(f.pool).free_over, 0);
	fixture_close(&f);
}

TEST(invalid_addresses_are_counted_and_nothing_else)
{
	static const uint64_t wrong[] = { 64 * 4096, UINT64_MAX,
					  (uint64_t)1 << 63,
					  ((uint64_t)1 << 44) + 4096 };
	struct pool_fixture f;
	uint64_t addrs[5];

	fixture_open(&f, 64, 4096, 4096);
	/* At each place of a burst of five good ones. */
	for (uint32_t w = 0; w < 4; w++) {
		for (uint32_t at = 0; at < 5; at++) {
			uint64_t good;

			mr_frag_alloc_bulk(f.cache, addrs, 5, 4096);
			good = addrs[at];
			addrs[at] = wrong[w];
			mr_frag_free_bulk(f.cache, addrs, 5);
			assert_in_flight(f.pool, 1);
			mr_frag_free_bulk(f.cache, &good, 1);
			assert_int_equal(pool_stats(f.pool).free_invalid,
					 w * 5 + at + 1);
		}
	}
	fixture_close(&f);
}

/* Page 0 of the second pool begins where the first one ends. */
TEST(frames_of_another_pool_go_home)
{
	struct pool_fixture f;
	struct mr_pool *beside;
	struct mr_cache *cache;
	uint64_t mixed[64];

	fixture_open(&f, 64, 4096, 4096);
	beside = pool_beside(&f, 64, 2048);
	mr_cache_create(beside, &cache, NULL);
	mr_frag_alloc_bulk(f.cache, mixed, 32, 4096);
	mr_frag_alloc_bulk(cache, mixed + 32, 32, 2048);
	for (uint32_t i = 0; i < 32; i += 2) {
		const uint64_t swap = mixed[i];

		mixed[i] = mixed[63 - i];
		mixed[63 - i] = swap;
	}
	mr_frag_free_bulk(f.cache, mixed, 64);
	assert_in_flight(f.pool, 0);
	assert_in_flight(beside, 0);
	assert_int_equal(pool_stats(beside).n_open, 32);
	mr_cache_flush(f.cache);
	assert_in_flight(beside, 0);
	assert_int_equal(pool_stats(beside).n_open, 0);
	assert_int_equal(pool_stats(beside).n_depot, 32);
	assert_int_equal(pool_stats(f.pool).recycle_ring, 32);
	assert_int_equal(pool_stats(f.pool).free_invalid, 0);
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
	fixture_close(&f);
}

/* What is shared stays out, wherever it stands in the burst and the magazine. */
TEST(shared_pages_stay_out_wherever_they_stand)
{
	struct pool_fixture f;
	uint64_t addrs[256];

	fixture_open(&f, 256, 4096, 4096);
	for (uint32_t n_before = 0; n_before <= MAG; n_before += 8) {
		const uint64_t *burst = addrs + n_before;

		for (uint32_t at = 0; at < 32; at++) {
			struct mr_frame shared = { .len = 1 }, frames[32];

			assert_int_equal(
				mr_frag_alloc_bulk(f.cache, addrs, 256, 4096),
				256);
			mr_frag_free_bulk(f.cache, addrs, n_before);
			shared.addr = burst[at] + 77;
			assert_int_equal(mr_frame_ref(f.cache, &shared, 1), 0);
			if (at == 16) /* from there, what other CPUs do */
				f.pool->has_wide = false;
			for (uint32_t i = 0; i < 32; i++)
				frames[i] = (struct mr_frame){ burst[i], 9, 0 };
			if (n_before % 16 == 0)
				mr_frag_free_bulk(f.cache, burst, 32);
			else
				mr_frame_free_bulk(f.cache, frames, 32);
			assert_in_flight(f.pool, 256 - n_before - 31);
			mr_frame_free_bulk(f.cache, &shared, 1);
			assert_in_flight(f.pool, 256 - n_before - 32);
			mr_frag_free_bulk(f.cache, burst + 32, 224 - n_before);
			assert_in_flight(f.pool, 0);
		}
	}
	fixture_close(&f);
}

/*
 * Until the first page is shared, nobody looks whether one is; from then on
 * everybody does, in this cache and in all others.
 */
TEST(first_page_that_is_shared_counts)
{
	struct pool_fixture f;
	struct mr_cache *other;
	struct mr_frame frames[32] = { { 0 } };
	uint64_t addrs[32];

	fixture_open(&f, 256, 4096, 4096);
	assert_int_equal(mr_cache_create(f.pool, &other, NULL), 0);
	for (uint32_t i = 0; i < 5000; i++) {
		mr_frag_alloc_bulk(i % 2 ? other : f.cache, addrs, 32, 4096);
		mr_frag_free_bulk(i % 3 ? other : f.cache, addrs, 32);
	}
	mr_frag_alloc_bulk(f.cache, addrs, 32, 4096);
	for (uint32_t i = 0; i < 32; i++)
		frames[i] = (struct mr_frame){ addrs[i], 64, 0 };
	assert_int_equal(mr_frame_ref(f.cache, &frames[17], 1), 0);
	mr_frag_free_bulk(other, addrs, 32);
	assert_in_flight(f.pool, 1);
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 1);
	assert_true(mr_frame_is_sole(f.cache, &frames[17]));
	mr_frame_free_bulk(f.cache, &frames[17], 1);
	assert_in_flight(f.pool, 0);
	mr_cache_destroy(other);
	fixture_close(&f);
}

/* All entries of a burst are the same page: as many owners as entries. */
TEST(one_page_many_times_in_a_burst)
{
	struct pool_fixture f;
	struct mr_frame frames[20];

	fixture_open(&f, 64, 4096, 4096);
	frames[0] = (struct mr_frame){ alloc_one(f.cache, 4096), 9, 0 };
	for (int i = 1; i < 20; i++)
		frames[i] = frames[0];
	assert_int_equal(mr_frame_ref(f.cache, frames, 19), 0);
	mr_frame_free_bulk(f.cache, frames, 20);
	assert_in_flight(f.pool, 0);
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 19);
	fixture_close(&f);
}

/* The inline calls do what the others do, and leave to them what is odd. */
TEST(one_at_a_time_inline)
{
	const uint32_t n = 3 * MAG;
	struct pool_fixture f;
	uint64_t addrs[3 * MAG + 1];
	struct mr_frame frame = { .len = 60 };

	fixture_open(&f, n, 4096, 4096);
	for (uint32_t i = 0; i < n; i++) {
		addrs[i] = mr_frag_alloc(f.cache, 4096);
		assert_int_not_equal(addrs[i], MR_ADDR_NONE);
		assert_in_flight(f.pool, i + 1);
	}
	assert_int_equal(mr_frag_alloc(f.cache, 4096), MR_ADDR_NONE);
	assert_int_equal(mr_frag_alloc(f.cache, 4097), MR_ADDR_NONE);
	assert_int_equal(pool_stats(f.pool).alloc_empty, 1);

	/* Shared: the first free is a reference, the second the page. */
	frame.addr = addrs[0];
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	mr_frag_free(f.cache, addrs[0] + 100);
	assert_in_flight(f.pool, n);
	for (uint32_t i = 0; i < n; i++) {
		mr_frag_free(f.cache, addrs[i] + i % 4096);
		assert_in_flight(f.pool, n - i - 1);
	}
	mr_frag_free(f.cache, MR_ADDR_NONE - 1);
	assert_int_equal(pool_stats(f.pool).free_invalid, 1);
	assert_int_equal(pool_stats(f.pool).alloc_fast, n);
	assert_int_equal(pool_stats(f.pool).recycle_cached, n);
	fixture_close(&f);
}

TEST(one_at_a_time_inline_where_it_is_not_simple)
{
	struct pool_fixture f;
	uint64_t a, b;

	fixture_open(&f, 64, 8192, 4096);
	a = mr_frag_alloc(f.cache, 4096);
	b = mr_frag_alloc(f.cache, 4096);
	assert_int_equal(b, a + 4096);
	mr_frag_free(f.cache, a);
	assert_in_flight(f.pool, 1);
	mr_frag_free(f.cache, b);
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}
