/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/inbox.c: pages that go home to the cache that took them. */
#include "support/pool_unit.h"

#include <millrace/page.h>

enum { MAG = MR_MAGAZINE_PAGES, N_PAGES = 512 };

static void open_home(struct pool_fixture *f, uint32_t chunk_bytes)
{
	fixture_open_with(f, (struct mr_pool_config){
				     .n_pages = N_PAGES,
				     .page_bytes = 4096,
				     .chunk_bytes = chunk_bytes,
				     .max_caches = 6,
				     .returns = MR_RETURN_HOME });
}

static struct mr_cache *one_more(struct pool_fixture *f)
{
	struct mr_cache *cache = NULL;

	assert_int_equal(mr_cache_create(f->pool, &cache, NULL), 0);
	return cache;
}

TEST(pages_come_back_to_the_cache_that_took_them)
{
	struct pool_fixture f;
	struct mr_cache *other;
	uint64_t addrs[MAG], again[MAG];

	open_home(&f, 4096);
	other = one_more(&f);
	mr_frag_alloc_bulk(f.cache, addrs, MAG, 4096);
	for (int round = 0; round < 100; round++) {
		mr_frag_free_bulk(other, addrs, MAG - 1);
		assert_int_equal(pool_stats(f.pool).n_open, MAG - 1);
		assert_in_flight(f.pool, 1);
		mr_frag_free_bulk(other, addrs + MAG - 1, 1);
		/* In the inbox: as before, but not in the other's hands. */
		assert_int_equal(pool_stats(f.pool).n_open, MAG);
		assert_int_equal(cache_stats(other).n_open, 0);
		assert_in_flight(f.pool, 0);
		assert_int_equal(mr_frag_alloc_bulk(f.cache, again, MAG, 4096),
				 MAG);
		assert_memory_equal(again, addrs, sizeof(again));
		assert_int_equal(pool_stats(f.pool).n_open, 0);
	}
	assert_int_equal(pool_stats(f.pool).recycle_home, 100 * MAG);
	assert_int_equal(pool_stats(f.pool).alloc_slow, MAG);
	assert_int_equal(pool_stats(f.pool).recycle_cache_full, 0);
	assert_int_equal(cache_stats(other).n_free, 0);
	mr_frag_free_bulk(f.cache, addrs, MAG);
	mr_cache_destroy(other);
	fixture_close(&f);
}

/* The ways to take 64 pages without a cache. */
static void take_for_a_port(struct mr_pool *pool, uint64_t *addrs)
{
	assert_int_equal(mr_pool_frag_alloc_bulk(pool, addrs, MAG, 4096), MAG);
}

static void take_array(struct mr_pool *pool, uint64_t *addrs)
{
	assert_int_equal(mr_page_alloc_bulk(pool, 0, addrs, MAG), MAG);
}

static void take_one_by_one(struct mr_pool *pool, uint64_t *addrs)
{
	for (int i = 0; i < MAG; i++)
		assert_int_equal(mr_page_alloc_bulk(pool, 0, &addrs[i], 1), 1);
}

static void take_slots(struct mr_pool *pool, uint64_t *addrs)
{
	for (int i = 0; i < MAG; i++)
		addrs[i] = MR_ADDR_NONE;
	assert_int_equal(mr_page_alloc_bulk_slots(pool, 0, addrs, MAG), MAG);
}

static void take_list(struct mr_pool *pool, uint64_t *addrs)
{
	struct mr_page_list list = { 0 };

	assert_int_equal(mr_page_alloc_list(pool, 0, MAG, &list), MAG);
	for (int i = 0; i < MAG; i++)
		assert_true(mr_page_list_pop(pool, &list, &addrs[i]));
}

/* Who takes pages without a cache is not the cache that had them before. */
TEST(pages_taken_without_a_cache_have_no_home)
{
	static void (*const take[])(struct mr_pool *, uint64_t *) = {
		take_for_a_port, take_array, take_one_by_one, take_slots,
		take_list,
	};

	for (size_t i = 0; i < sizeof(take) / sizeof(take[0]); i++) {
		struct pool_fixture f;
		struct mr_cache *other;
		uint64_t addrs[MAG];

		open_home(&f, 4096);
		other = one_more(&f);
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, MAG, 4096),
				 MAG);
		mr_pool_frag_free_bulk(f.pool, addrs, MAG);
		take[i](f.pool, addrs);
		mr_frag_free_bulk(other, addrs, MAG);
		assert_int_equal(cache_stats(other).n_pages, MAG);
		assert_int_equal(cache_stats(other).n_open, 0);
		assert_int_equal(pool_stats(f.pool).recycle_home, 0);
		assert_in_flight(f.pool, 0);
		mr_cache_destroy(other);
		fixture_close(&f);
	}
}

/* One's own pages stay, whatever stands beside them in the burst. */
TEST(each_page_of_a_burst_goes_to_its_own_home)
{
	struct pool_fixture f;
	struct mr_cache *caches[6];
	uint64_t addrs[6][20], burst[120];

	open_home(&f, 4096);
	caches[0] = f.cache;
	for (int c = 1; c < 6; c++)
		caches[c] = one_more(&f);
	for (int c = 0; c < 6; c++)
		assert_int_equal(mr_frag_alloc_bulk(caches[c], addrs[c], 20,
						    4096),
				 20);
	for (int i = 0; i < 120; i++)
		burst[i] = addrs[i % 6][i / 6];
	mr_frag_free_bulk(caches[3], burst, 120);
	assert_in_flight(f.pool, 0);
	assert_int_equal(cache_stats(caches[3]).n_pages, MAG);
	assert_int_equal(cache_stats(caches[3]).max_pages, 6 * MAG);
	mr_cache_flush(caches[3]);
	assert_int_equal(pool_stats(f.pool).recycle_home, 100);
	for (int c = 0; c < 6; c++) {
		const uint32_t n_here = cache_stats(caches[c]).n_pages;

		if (c == 3)
			continue;
		/* Behind what it has: its own, and no page of another. */
		assert_int_equal(n_here, MAG - 20);
		assert_int_equal(mr_frag_alloc_bulk(caches[c], burst, MAG, 4096),
				 MAG);
		for (int i = 0; i < 20; i++) {
			bool is_own = false;

			for (int k = 0; k < 20; k++)
				is_own = is_own ||
					 burst[MAG - 20 + i] == addrs[c][k];
			assert_true(is_own);
		}
		mr_frag_free_bulk(caches[c], burst, MAG);
	}
	for (int c = 1; c < 6; c++)
		mr_cache_destroy(caches[c]);
	fixture_close(&f);
}

/* A burst that does not fit what is open fills one magazine and opens more. */
TEST(long_bursts_go_home_in_whole_magazines)
{
	struct pool_fixture f;
	struct mr_cache *other;
	uint64_t addrs[256];

	open_home(&f, 4096);
	other = one_more(&f);
	for (uint32_t n_before = 0; n_before < MAG; n_before += 7) {
		assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 256, 4096),
				 256);
		mr_frag_free_bulk(other, addrs, n_before);
		mr_frag_free_bulk(other, addrs + n_before, 256 - n_before);
		assert_in_flight(f.pool, 0);
		assert_int_equal(cache_stats(other).n_open, 0);
		assert_int_equal(pool_stats(f.pool).n_open, 256);
	}
	mr_cache_destroy(other);
	fixture_close(&f);
}

/* References, and pages of several chunks, find home as well. */
TEST(odd_references_go_home)
{
	static const uint32_t chunk_bytes[] = { 4096, 2048 };

	for (int i = 0; i < 2; i++) {
		struct pool_fixture f;
		struct mr_cache *other;
		struct mr_frame frames[2] = { { .len = 60 } };

		open_home(&f, chunk_bytes[i]);
		other = one_more(&f);
		frames[0].addr = alloc_one(f.cache, 4096);
		frames[1] = frames[0];
		assert_int_equal(mr_frame_ref(f.cache, frames, 1), 0);
		mr_frame_free_bulk(other, frames, 1);
		assert_int_equal(pool_stats(f.pool).n_open, 0);
		mr_frame_free_bulk(other, frames, 1);
		assert_int_equal(pool_stats(f.pool).n_open, 1);
		assert_in_flight(f.pool, 0);
		mr_cache_destroy(other);
		assert_int_equal(pool_stats(f.pool).n_open, 1);
		fixture_close(&f);
	}
}

TEST(empty_handed_cache_takes_what_is_on_its_way)
{
	struct pool_fixture f;
	struct mr_cache *other, *third;
	uint64_t addrs[N_PAGES];

	open_home(&f, 4096);
	other = one_more(&f);
	third = one_more(&f);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, N_PAGES, 4096),
			 N_PAGES);
	mr_frag_free_bulk(other, addrs, MAG + 10);
	/* 64 in the inbox of the first; 10 open at the other. */
	assert_int_equal(mr_frag_alloc_bulk(third, addrs, 100, 4096), MAG);
	assert_int_equal(pool_stats(f.pool).n_open, 10);
	assert_int_equal(mr_frag_alloc_bulk(other, addrs + MAG, 100, 4096),
			 10);
	assert_int_equal(pool_stats(f.pool).n_open, 0);
	/* They are the third's now, and others find them there. */
	mr_frag_free_bulk(other, addrs, MAG);
	assert_int_equal(mr_frag_alloc_bulk(third, addrs, MAG, 4096), MAG);
	assert_int_equal(pool_stats(f.pool).recycle_home, 2 * MAG + 10);
	mr_frag_free_bulk(other, addrs, MAG);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, MAG, 4096), MAG);
	mr_frag_free_bulk(f.cache, addrs, N_PAGES);
	assert_in_flight(f.pool, 0);
	mr_cache_destroy(third);
	mr_cache_destroy(other);
	fixture_close(&f);
}

TEST(inbox_of_a_cache_that_is_gone_is_emptied)
{
	struct pool_fixture f;
	struct mr_cache *other;
	struct mr_pool_stats s;
	uint64_t addrs[3 * MAG];

	open_home(&f, 4096);
	other = one_more(&f);
	mr_frag_alloc_bulk(other, addrs, 3 * MAG, 4096);
	mr_frag_free_bulk(f.cache, addrs, MAG + 5);
	mr_cache_destroy(other);
	s = pool_stats(f.pool);
	assert_int_equal(s.n_open, 5);
	assert_int_equal(s.n_depot, MAG);
	assert_in_flight(f.pool, 2 * MAG - 5);
	/* Its home is gone: to the depot, for anybody. */
	mr_frag_free_bulk(f.cache, addrs + MAG + 5, MAG - 5);
	s = pool_stats(f.pool);
	assert_int_equal(s.n_open, 0);
	assert_int_equal(s.n_depot, 2 * MAG);
	assert_in_flight(f.pool, MAG);
	/* The id is used again, and the pages are at home with it. */
	other = one_more(&f);
	mr_frag_free_bulk(f.cache, addrs + 2 * MAG, MAG);
	assert_int_equal(pool_stats(f.pool).n_open, MAG);
	assert_int_equal(mr_frag_alloc_bulk(other, addrs, MAG, 4096), MAG);
	assert_int_equal(pool_stats(f.pool).n_open, 0);
	mr_frag_free_bulk(other, addrs, MAG);
	mr_cache_destroy(other);
	fixture_close(&f);
}

TEST(pages_in_inboxes_are_there_for_direct_calls)
{
	struct pool_fixture f;
	struct mr_cache *other;
	uint64_t addrs[N_PAGES];

	open_home(&f, 4096);
	other = one_more(&f);
	mr_frag_alloc_bulk(other, addrs, N_PAGES, 4096);
	mr_frag_free_bulk(f.cache, addrs, MAG);
	assert_int_equal(
		mr_pool_frag_alloc_bulk(f.pool, addrs, N_PAGES, 4096), MAG);
	assert_in_flight(f.pool, N_PAGES);
	mr_pool_frag_free_bulk(f.pool, addrs, MAG);
	mr_frag_free_bulk(other, addrs + MAG, N_PAGES - MAG);
	assert_in_flight(f.pool, 0);
	mr_cache_destroy(other);
	fixture_close(&f);
}

/* Pages that never left by a cache have no home: they stay. */
TEST(pages_without_a_home_stay)
{
	struct pool_fixture f;
	struct mr_cache *second;
	uint64_t addrs[10];

	open_home(&f, 4096);
	second = one_more(&f);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, addrs, 10, 4096), 10);
	mr_frag_free_bulk(second, addrs, 10);
	assert_int_equal(cache_stats(second).n_pages, 10);
	assert_in_flight(f.pool, 0);
	mr_cache_destroy(second);
	fixture_close(&f);
}

/* A cache of another pool sends each page to the inbox of its home. */
TEST(pages_of_another_pool_go_to_the_home_in_it)
{
	struct pool_fixture f;
	struct mr_pool *beside;
	struct mr_cache *stranger;
	uint64_t addrs[MAG];

	open_home(&f, 4096);
	beside = pool_beside(&f, 64, 4096);
	mr_cache_create(beside, &stranger, NULL);
	mr_frag_alloc_bulk(f.cache, addrs, MAG, 4096);
	mr_frag_free_bulk(stranger, addrs, MAG);
	assert_in_flight(f.pool, 0);
	assert_int_equal(pool_stats(f.pool).n_open, MAG);
	assert_int_equal(pool_stats(beside).recycle_home, MAG);
	mr_frag_alloc_bulk(f.cache, addrs, MAG, 4096);
	assert_int_equal(pool_stats(f.pool).alloc_slow, MAG);
	mr_frag_free_bulk(f.cache, addrs, MAG);
	mr_cache_destroy(stranger);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
	fixture_close(&f);
}

TEST(no_memory_for_inboxes)
{
	struct pool_fixture f;
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 64,
					       .returns = MR_RETURN_HOME };

	open_home(&f, 4096);
	for (uint32_t i = 1; i <= 6; i++) {
		const int64_t n_out = f.allocator.n_out;
		struct mr_pool *pool = NULL;

		f.allocator.fail_at = f.allocator.n_calls + i;
		assert_int_equal(mr_pool_create(f.ctx, &config, &pool, NULL),
				 -ENOMEM);
		assert_null(pool);
		assert_int_equal(f.allocator.n_out, n_out);
	}
	fixture_close(&f);
}

/* What the last look sends to the depot, it finds there. */
TEST(own_open_pages_for_a_dead_cache_are_found)
{
	struct pool_fixture f;
	struct mr_cache *dead;
	uint64_t addrs[N_PAGES], addr;

	open_home(&f, 4096);
	dead = one_more(&f);
	assert_int_equal(mr_frag_alloc_bulk(dead, addrs, N_PAGES, 4096),
			 N_PAGES);
	mr_cache_destroy(dead);
	mr_frag_free_bulk(f.cache, addrs, 3);
	assert_int_equal(cache_stats(f.cache).n_open, 3);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, &addr, 1, 4096), 1);
	assert_in_flight(f.pool, N_PAGES - 2);
	mr_frag_free_bulk(f.cache, &addr, 1);
	mr_frag_free_bulk(f.cache, addrs + 3, N_PAGES - 3);
	fixture_close(&f);
}

/* Who starves gets all that is open, whatever its home. */
TEST(starving_pool_gets_what_is_open_for_all_homes)
{
	struct pool_fixture f;
	struct mr_cache *other, *third;
	uint64_t addrs[N_PAGES], addr;

	open_home(&f, 4096);
	other = one_more(&f);
	third = one_more(&f);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 256, 4096), 256);
	assert_int_equal(mr_frag_alloc_bulk(other, addrs + 256, 256, 4096),
			 256);
	mr_frag_free_bulk(third, addrs, 3);
	mr_frag_free_bulk(third, addrs + 256, 3);
	assert_int_equal(mr_frag_alloc_bulk(other, &addr, 1, 4096), 0);
	mr_frag_free_bulk(third, addrs + 3, 1);
	/* The one that it came with is open again. */
	assert_int_equal(cache_stats(third).n_open, 1);
	mr_frag_free_bulk(f.cache, addrs + 4, 252);
	mr_frag_free_bulk(other, addrs + 259, 253);
	mr_cache_destroy(third);
	mr_cache_destroy(other);
	fixture_close(&f);
}
