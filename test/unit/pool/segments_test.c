/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/segments.c: pools that grow and shrink. */
#include "support/page_unit.h"
#include "support/pool_test.h"
#include "support/unit_ctx.h"

enum { MAX_PAGES = 4096 };

static uint64_t addrs[MAX_PAGES + 1];

static bool is_backed(uint64_t page)
{
	return mr_region_is_backed(f.region,
				   f.pool->addr + page * f.pool->page_bytes,
				   f.pool->page_bytes);
}

TEST_POOL(pool_grows_to_its_limit_and_shrinks)
{
	struct mr_reason why = { "" };
	struct mr_page_stats s;
	uint64_t n_back;

	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 100,
						       .max_pages = 1000,
						       .segment_pages = 200 });
	s = page_stats(f.pool);
	assert_int_equal(s.n_pages, 100);
	assert_int_equal(s.max_pages, 1000);
	assert_int_equal(s.n_segments, 1);
	assert_true(is_backed(99));
	assert_false(is_backed(200));
	/* At least so many, in whole segments, at most up to the limit. */
	assert_int_equal(mr_pool_grow(f.pool, 0, &why), 0);
	s = page_stats(f.pool);
	assert_true(s.n_pages >= 300 && s.n_pages < 340);
	assert_true(is_backed(s.n_pages - 1));
	assert_false(is_backed(s.n_pages));
	assert_int_equal(mr_pool_grow(f.pool, 500, &why), 0);
	assert_int_equal(mr_pool_grow(f.pool, 10000, &why), 0);
	assert_int_equal(page_stats(f.pool).n_pages, 1000);
	assert_int_equal(pool_stats(f.pool).n_pages, 1000);
	assert_int_equal(mr_pool_grow(f.pool, 1, &why), -ENOSPC);
	assert_reason_has(&why, "all of its 1000 pages");
	assert_int_equal(page_stats(f.pool).n_grown, 3);

	/* All of them work, and come in the order of their addresses. */
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 1001), 1000);
	for (uint32_t i = 0; i < 1000; i++)
		memset(f.base + addrs[i], (int)i, 4096);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(f.base[addrs[i] + 4095], (uint8_t)i);
	assert_in_flight(f.pool, 1000);
	/* One page holds its segment, and those before it. */
	mr_page_free_bulk(f.pool, 0, addrs, 999);
	assert_int_equal(mr_pool_shrink(f.pool, 0, &n_back, &why), 0);
	assert_int_equal(n_back, 0);
	mr_page_free_bulk(f.pool, 0, addrs + 999, 1);
	assert_int_equal(mr_pool_shrink(f.pool, 900, &n_back, &why), 0);
	assert_int_equal(page_stats(f.pool).n_pages, 1000 - n_back);
	assert_true(page_stats(f.pool).n_pages >= 900);
	assert_int_equal(mr_pool_shrink(f.pool, 0, NULL, &why), 0);
	s = page_stats(f.pool);
	assert_int_equal(s.n_segments, 1);
	assert_true(s.n_pages >= 100 && s.n_pages < 140);
	assert_int_equal(s.n_free, s.n_pages);
	assert_true(s.n_shrunk >= 2);
	assert_false(is_backed(s.n_pages));
	/* And up again. */
	assert_int_equal(mr_pool_grow(f.pool, 0, &why), 0);
	assert_in_flight(f.pool, 0);
}

/* Low segments are used first, so that the high ones drain. */
TEST_POOL(pages_in_use_are_in_low_segments)
{
	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 64,
						       .max_pages = 1024 });
	assert_int_equal(mr_pool_grow(f.pool, 960, NULL), 0);
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 1024), 1024);
	mr_page_free_bulk(f.pool, 0, addrs, 1024);
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 32), 32);
	for (uint32_t i = 0; i < 32; i++)
		assert_true(mri_page_of(f.pool, addrs[i]) < 64);
	mr_page_free_bulk(f.pool, 0, addrs, 32);
}

TEST_POOL(registered_segment_is_not_given_back)
{
	struct mr_reason why = { "" };
	uint64_t n_back = 7, n_pages;

	fixture_open_with(
		&f, (struct mr_pool_config){ .n_pages = 64, .max_pages = 640 });
	assert_int_equal(mr_pool_grow(f.pool, 64, NULL), 0);
	n_pages = page_stats(f.pool).n_pages;
	assert_int_equal(mr_region_pin(f.region, "xdp:lan",
				       mr_region_n_contiguous_bytes(f.region)),
			 0);
	assert_int_equal(mr_pool_grow(f.pool, 64, NULL), 0);
	/* The one that came later goes, those before it are held. */
	assert_int_equal(mr_pool_shrink(f.pool, 0, &n_back, &why), -EBUSY);
	assert_reason_has(&why, "xdp:lan");
	assert_true(n_back >= 64);
	assert_int_equal(page_stats(f.pool).n_pages, n_pages);
	assert_int_equal(page_stats(f.pool).n_free, n_pages);
	assert_true(is_backed(n_pages - 1));
	/* Nothing was changed: each page is there once, in whole blocks. */
	assert_int_equal(mr_page_alloc_bulk(f.pool, 3, addrs, 640),
			 n_pages / 8);
	mr_page_free_bulk(f.pool, 3, addrs, (uint32_t)n_pages / 8);
	mr_region_unpin(f.region, "xdp:lan", (uint64_t)n_pages * 4096);
	assert_int_equal(mr_pool_shrink(f.pool, 0, &n_back, &why), 0);
	assert_true(n_back >= 60);
}

TEST_POOL(pinned_pool_of_several_segments_is_not_destroyed)
{
	struct mr_reason why = { "" };

	fixture_open_with(
		&f, (struct mr_pool_config){ .n_pages = 64, .max_pages = 640 });
	assert_int_equal(mr_pool_grow(f.pool, 64, NULL), 0);
	mr_cache_destroy(f.cache);
	mr_region_pin(f.region, "xdp:lan", 4096);
	assert_int_equal(mr_pool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "xdp:lan");
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 128), 128);
	memset(f.base + addrs[127], 1, 4096);
	mr_page_free_bulk(f.pool, 0, addrs, 128);
	mr_region_unpin(f.region, "xdp:lan", 4096);
	assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
}

/* A cache that does not visit the depot knows at once. */
TEST_POOL(caches_know_at_once_that_the_pool_grew)
{
	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 64,
						       .max_pages = 1024 });
	assert_int_equal(f.cache->own_pages, 64);
	assert_int_equal(mr_pool_grow(f.pool, 960, NULL), 0);
	assert_int_equal(f.cache->own_pages, 1024);
	assert_int_equal(mr_pool_shrink(f.pool, 0, NULL, NULL), 0);
	assert_int_equal(f.cache->own_pages, page_stats(f.pool).n_pages);
}

/* What ports were promised stays. */
TEST_POOL(committed_pages_are_not_given_back)
{
	uint64_t n_back;

	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 256,
						       .max_pages = 1024 });
	assert_int_equal(mri_pool_commit(f.pool, "p", 300, 0, NULL), -ENOMEM);
	assert_int_equal(mr_pool_grow(f.pool, 768, NULL), 0);
	assert_int_equal(mri_pool_commit(f.pool, "p", 300, 0, NULL), 0);
	assert_int_equal(mr_pool_shrink(f.pool, 0, &n_back, NULL), 0);
	assert_int_equal(n_back, 0);
	mri_pool_uncommit(f.pool, 300);
	assert_int_equal(mr_pool_shrink(f.pool, 0, &n_back, NULL), 0);
	assert_int_equal(n_back, 768);
}

TEST_POOL(a_pool_knows_whether_it_lies_below_an_address)
{
	uint64_t n_bytes;

	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 64,
						       .max_pages = 1024 });
	n_bytes = mr_region_n_contiguous_bytes(f.region);
	assert_true(mr_pool_is_below(f.pool, n_bytes));
	assert_int_equal(mr_pool_grow(f.pool, 960, NULL), 0);
	assert_false(mr_pool_is_below(f.pool, n_bytes));
}

/* Memory that is not to be had: nothing changes, and nobody asks each time. */
TEST_CTX(no_memory_for_a_segment_is_enomem)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.os_pages = MR_OS_PAGES_4K,
		.max_bytes = 1,
	};
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 64,
					 .max_pages = 1 << 19 };
	struct mr_region *region;
	struct mr_pool *pool = NULL;
	struct mr_reason why = { "" };
	uint32_t n_lines;

	/* A range that the region does not have. */
	assert_int_equal(mr_region_create(ctx, &region_config, &region, NULL),
			 0);
	config.region = region;
	assert_int_equal(mr_pool_create(ctx, &config, &pool, &why), -ENOMEM);
	assert_reason_has(&why, "no room for");
	assert_null(pool);

	/* A region that is full of segments. */
	config.max_pages = 640;
	config.segment_pages = 64;
	assert_int_equal(mr_pool_create(ctx, &config, &pool, &why), 0);
	for (uint32_t i = 1; i < MRI_MAX_SEGMENTS; i++) {
		const struct mri_segment_wish wish = { .addr = MRI_ADDR_ANY,
						       .n_bytes = 1 };
		struct mr_segment_info info;

		assert_int_equal(mri_region_add(region, &wish, &info, NULL), 0);
	}
	assert_int_equal(mr_pool_grow(pool, 0, &why), -ENOMEM);
	assert_reason_has(&why, "64 segments");
	assert_int_equal(page_stats(pool).n_pages, 64);
	assert_int_equal(page_stats(pool).n_grown, 0);
	n_lines = allocator.n_lines;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(mr_page_alloc_bulk(pool, 0, addrs, 64),
				 i == 0 ? 64 : 0);
	assert_in_range(allocator.n_lines, n_lines + 1, n_lines + 49);
	mr_pool_frag_free_bulk(pool, addrs, 0);
	for (uint32_t i = 0; i < 64; i++)
		addrs[i] = pool->addr + i * 4096;
	mr_page_free_bulk(pool, 0, addrs, 64);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

/* page_pool's waive, by magazines: with node numbers that are made up. */
TEST_POOL(magazine_of_a_far_node_is_waived)
{
	struct mri_page_alloc *pa;
	struct mr_pool_stats s;

	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 512,
						       .max_pages = 1024,
						       .numa_node_plus_1 = 1 });
	assert_int_equal(mr_pool_grow(f.pool, 512, NULL), 0);
	pa = &f.pool->page_alloc;
	/* The first segment is far, the second one near. */
	pa->segments[0].numa_node = 1;
	pa->near = 1u << 1;
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 1024, 4096), 1024);
	assert_int_equal(mri_page_of(f.pool, addrs[0]) / 512, 1);
	/* To the depot: near ones first, so far ones lie on top. */
	mr_frag_free_bulk(f.cache, addrs, 1024);
	mr_cache_destroy(f.cache);
	assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 1, 4096), 1);
	s = pool_stats(f.pool);
	assert_int_equal(s.alloc_waive, 64);
	assert_in_flight(f.pool, 1);
	/* All others are to be had still. */
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs + 1, 1024, 4096),
			 1023);
	mr_frag_free_bulk(f.cache, addrs, 1024);
}

/* A pool that prefers nothing waives nothing. */
TEST_POOL(pool_without_preference_waives_nothing)
{
	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 512 });
	f.pool->page_alloc.segments[0].numa_node = 3;
	mr_frag_alloc_bulk(f.cache, addrs, 512, 4096);
	mr_frag_free_bulk(f.cache, addrs, 512);
	mr_frag_alloc_bulk(f.cache, addrs, 512, 4096);
	mr_frag_free_bulk(f.cache, addrs, 512);
	assert_int_equal(pool_stats(f.pool).alloc_waive, 0);
}

/* A node that there is not: the memory is somewhere, and works. */
TEST_POOL(a_missing_node_does_not_prevent_a_pool)
{
	fixture_open_with(&f, (struct mr_pool_config){
				      .n_pages = 64, .numa_node_plus_1 = 200 });
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 64), 64);
	mr_page_free_bulk(f.pool, 0, addrs, 64);
}

TEST_POOL(statistics_need_a_size)
{
	struct mr_page_stats s = { .size = 0 };

	fixture_open(&f, 70, 4096);
	assert_int_equal(mr_page_stats(f.pool, &s), -EINVAL);
	s = page_stats(f.pool);
	assert_int_equal(s.n_free_blocks[3], 8);
	assert_int_equal(s.n_free_blocks[2], 1);
	assert_int_equal(s.n_free_blocks[1], 1);
	assert_int_equal(s.n_free_blocks[0], 0);
}

/* Another thread may have freed one meanwhile; it is not lost by looking. */
TEST_POOL(pool_with_a_block_does_not_grow)
{
	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 64,
						       .max_pages = 128,
						       .segment_pages = 64 });
	for (uint32_t order = 0; order <= 3; order++)
		assert_true(mri_pool_grow_if_empty(f.pool, order));
	assert_int_equal(page_stats(f.pool).n_pages, 64);
	assert_int_equal(page_stats(f.pool).n_free, 64);
}

/* Free pages that are no such block are no reason to look for ever. */
TEST_POOL(pool_without_a_block_grows_by_one)
{
	uint64_t blocks[2];

	for (int safety = 0; safety < 2; safety++) {
		fixture_open_with(&f,
				  (struct mr_pool_config){
					  .n_pages = 64,
					  .max_pages = 128,
					  .segment_pages = 64,
					  .page_bytes = 4096,
					  .safety = (enum mr_safety)safety });
		assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 64), 64);
		for (uint32_t i = 0; i < 64; i += 8)
			mr_page_free_bulk(f.pool, 0, &addrs[i], 1);
		assert_int_equal(mr_page_alloc_bulk(f.pool, 3, blocks, 1), 1);
		assert_int_equal(page_stats(f.pool).n_pages, 128);
		assert_int_equal(mr_page_alloc_bulk(f.pool, 3, &addrs[100], 8),
				 7);
		/* At the limit there is none, and still free pages. */
		assert_int_equal(mr_page_alloc_bulk(f.pool, 3, &blocks[1], 1),
				 0);
		assert_int_equal(page_stats(f.pool).n_free, 8);
		mr_page_free_bulk(f.pool, 3, blocks, 1);
		mr_page_free_bulk(f.pool, 3, &addrs[100], 7);
		for (uint32_t i = 0; i < 64; i++)
			if (i % 8 != 0)
				mr_page_free_bulk(f.pool, 0, &addrs[i], 1);
		fixture_close(&f);
	}
}
