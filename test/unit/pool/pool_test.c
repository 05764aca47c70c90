/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/pool.c: making, destroying, committing. */
#include "support/pool_test.h"
#include "support/unit_ctx.h"

#include <millrace/experimental/frag.h>

#define SIZE .size = sizeof(struct mr_pool_config)

TEST_CTX(wrong_config_is_refused_with_a_reason)
{
	static const struct {
		struct mr_pool_config config;
		const char *words;
	} cases[] = {
		{ { .size = 0 }, "mr_pool_config.size is 0" },
		{ { .size = sizeof(struct mr_pool_config) + 1 }, "at most" },
		{ { SIZE, .page_bytes = 1024 }, "pages of 1024" },
		{ { SIZE, .page_bytes = 3000 }, "power of two" },
		{ { SIZE, .page_bytes = 65536 }, "2048 to 32768" },
		{ { SIZE, .headroom_bytes = 4033 }, "headroom of 4033" },
		{ { SIZE, .headroom_bytes = UINT32_MAX - 10,
		    .tailroom_bytes = 100 },
		  "headroom of" },
		{ { SIZE, .tailroom_bytes = 3905 }, "tailroom of 3905" },
		{ { SIZE, .page_bytes = 2048, .headroom_bytes = 1985 },
		  "a page of 2048" },
		{ { SIZE, .n_pages = (1u << 28) + 1 }, "at most 268435456" },
		{ { SIZE, .magazine_pages = 1 }, "power of two, 64 to 512" },
		{ { SIZE, .magazine_pages = 32 }, "power of two, 64 to 512" },
		{ { SIZE, .magazine_pages = 65 }, "power of two, 64 to 512" },
		{ { SIZE, .magazine_pages = 96 }, "power of two, 64 to 512" },
		{ { SIZE, .magazine_pages = 1024 }, "power of two, 64 to 512" },
		{ { SIZE, .magazine_pages = UINT32_MAX },
		  "power of two, 64 to 512" },
		{ { SIZE, .max_caches = 4097 }, "at most 4096" },
		{ { SIZE, .max_pages = (1u << 28) + 1 }, "at most 268435456" },
		{ { SIZE, .n_pages = 100, .max_pages = 99 },
		  "max_pages: 99 is less than its 100" },
		{ { SIZE, .numa_node_plus_1 = 257 }, "no NUMA node 256" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_pool *pool = (struct mr_pool *)1;
		struct mr_reason why = { "" };

		assert_int_equal(
			mr_pool_create(ctx, &cases[i].config, &pool, &why),
			-EINVAL);
		assert_reason_has(&why, cases[i].words);
		assert_ptr_equal(pool, (struct mr_pool *)1);
		assert_int_equal(allocator.n_out, 1);
	}
}

TEST_CTX(defaults_are_what_the_header_says)
{
	const struct mr_pool_config old = { .size = 8,
					    .n_pages = 100,
					    .page_bytes = 77, /* not read */
					    .max_caches = 1 << 20 };
	struct mr_pool_stats s;
	struct mr_pool *pool;

	assert_int_equal(mr_pool_create(ctx, NULL, &pool, NULL), 0);
	s = pool_stats(pool);
	assert_int_equal(s.n_pages, 8192);
	assert_int_equal(s.n_free, 8192);
	assert_int_equal(s.page_bytes, 4096);
	assert_int_equal(s.headroom_bytes, 128);
	assert_int_equal(s.max_caches, 64);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);

	assert_int_equal(mr_pool_create(ctx, &old, &pool, NULL), 0);
	s = pool_stats(pool);
	assert_int_equal(s.n_pages, 100);
	assert_int_equal(s.page_bytes, 4096);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	assert_int_equal(mr_pool_destroy(NULL, NULL), 0);
}

TEST(every_allocation_may_fail)
{
	const struct mr_pool_config config = { SIZE, .n_pages = 100,
					       .page_bytes = 8192 };
	struct mr_pool *pool = NULL;
	struct mr_reason why;
	int err = -1;

	for (uint32_t k = 1; err < 0; k++) {
		struct test_allocator a = { 0 };
		struct mr_ctx *own = test_ctx(&a);

		a.fail_at = a.n_calls + k;
		why.text[0] = '\0';
		err = mr_pool_create(own, &config, &pool, &why);
		if (err < 0) {
			assert_int_equal(err, -ENOMEM);
			assert_reason_has(&why, "no memory");
			assert_int_equal(a.n_out, 1);
		} else {
			assert_int_equal(k, 3); /* pool, region */
			mr_pool_destroy(pool, NULL);
		}
		mr_ctx_destroy(own);
		assert_int_equal(a.n_out, 0);
	}
}

TEST_POOL(pools_share_a_region_until_it_is_full)
{
	struct mr_pool *pools[MRI_MAX_TENANTS];
	struct mr_pool_config config = { SIZE, .n_pages = 16 };
	struct mr_region_stats before = { .size = sizeof(before) };
	struct mr_region_stats after = before;
	struct mr_reason why = { "" };

	fixture_open(&f, 16, 2048);
	assert_ptr_equal(mr_pool_region(f.pool), f.region);
	for (int i = 1; i < MRI_MAX_TENANTS; i++)
		pools[i] = pool_beside(&f, 16, 4096);
	mr_region_stats(f.region, &before);
	config.region = f.region;
	assert_int_equal(mr_pool_create(f.ctx, &config, &pools[0], &why),
			 -ENOMEM);
	assert_reason_has(&why, "16 pools");
	mr_region_stats(f.region, &after);
	assert_int_equal(after.n_segments, before.n_segments);
	for (int i = 1; i < MRI_MAX_TENANTS; i++)
		assert_int_equal(mr_pool_destroy(pools[i], NULL), 0);
	mr_region_stats(f.region, &after);
	assert_int_equal(after.n_segments, 1);
}

TEST_POOL(a_pool_in_use_is_not_destroyed)
{
	struct mr_reason why = { "" };
	uint64_t addrs[3];

	fixture_open(&f, 256, 4096);
	assert_int_equal(mr_pool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "0 ports and 1 caches");
	mr_frag_alloc_bulk(f.cache, addrs, 3, 4096);
	mr_cache_destroy(f.cache);
	assert_int_equal(mr_pool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "3 pages of pool are in flight");
	mr_cache_create(f.pool, &f.cache, NULL);
	mr_frag_free_bulk(f.cache, addrs, 3);
	mr_cache_destroy(f.cache);
	assert_int_equal(mri_pool_commit(f.pool, "p", 1, 0, NULL), 0);
	assert_int_equal(mr_pool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "1 ports and 0 caches");
	mri_pool_uncommit(f.pool, 1);
	mr_cache_create(f.pool, &f.cache, NULL);
}

/* Each place that a page can be in has its number in the reason. */
TEST_POOL(destroying_says_where_the_pages_are)
{
	struct mr_frag_cache *frags;
	struct mr_reason why = { "" };
	struct mr_pool *beside;
	struct mr_cache *other, *far;
	uint64_t addrs[256], frag;

	fixture_open_with(&f, (struct mr_pool_config){ .n_pages = 1000 });
	assert_int_equal(mr_cache_create(f.pool, &other, NULL), 0);
	assert_int_equal(mr_frag_cache_create(f.cache, &frags, NULL), 0);
	beside = pool_beside(&f, 64, 4096);
	assert_int_equal(mr_cache_create(beside, &far, NULL), 0);
	/* 256 taken: 64 to another cache, 192 to cache and depot. */
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 256, 4096), 256);
	mr_frag_free_bulk(other, addrs, 64);
	mr_frag_free_bulk(f.cache, addrs + 64, 192);
	/* 10 in rings and frames, 8 in a block that is cut, 24 fetched. */
	assert_int_equal(mri_pool_commit(f.pool, "xdp:a", 7, 0, NULL), 0);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, addrs, 10), 10);
	assert_int_equal(mr_frag_cache_alloc(frags, 100, 0, &frag), 0);
	assert_int_equal(mr_pool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "is in use by 1 ports and 2 caches");
	assert_reason_has(&why,
			  "in flight: 10 in rings of ports and in frames");
	assert_reason_has(&why, ", 8 in blocks of frags");
	assert_reason_has(&why, "free: 702 in the page allocator");
	assert_reason_has(&why, ", 216 in caches, 64 in the depot");
	assert_reason_has(&why, ", 0 in quarantine");
	/* With nobody left: frames, frags, and what is in hands of others. */
	mri_pool_uncommit(f.pool, 7);
	mr_frag_cache_destroy(frags);
	mr_cache_destroy(f.cache);
	mr_cache_destroy(other);
	mr_frag_free_bulk(far, addrs, 2);
	assert_int_equal(mr_pool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "18 pages of pool are in flight");
	assert_reason_has(&why, "8 of frames that were not freed");
	assert_reason_has(&why, ", 8 in blocks of frags");
	assert_reason_has(&why, ", 2 in open magazines of caches of other");
	mr_cache_flush(far);
	mr_pool_frag_free_bulk(f.pool, addrs + 2, 8);
	mr_pool_frag_free_bulk(f.pool, &frag, 1);
	mr_cache_destroy(far);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
	assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
}

/* And so has the quarantine. */
TEST_POOL(destroying_names_the_quarantine)
{
	struct mr_reason why = { "" };
	uint64_t addrs[40];

	fixture_open_with(
		&f, (struct mr_pool_config){ .n_pages = 100,
					     .safety = MR_SAFETY_POISON });
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 40, 4096), 40);
	mr_frag_free_bulk(f.cache, addrs, 31);
	assert_int_equal(mr_pool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "in flight: 9 in rings");
	assert_reason_has(&why, ", 31 in quarantine");
	mr_frag_free_bulk(f.cache, addrs + 31, 9);
}

/* A port of another pool has the whole region registered. */
TEST_POOL(pinned_pool_is_not_destroyed_and_still_found)
{
	struct mr_pool *beside;
	struct mr_cache *cache;
	struct mr_reason why = { "" };
	uint64_t addr;

	fixture_open(&f, 64, 4096);
	beside = pool_beside(&f, 64, 4096);
	mr_region_pin(f.region, "xdp:lan", 1 << 20);
	assert_int_equal(mr_pool_destroy(beside, &why), -EBUSY);
	assert_reason_has(&why, "xdp:lan");
	/* Nothing was changed: it works, and its frames find home. */
	mr_cache_create(beside, &cache, NULL);
	addr = alloc_one(cache, 4096);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_in_flight(beside, 0);
	assert_int_equal(pool_stats(f.pool).free_invalid, 0);
	mr_cache_destroy(cache);
	mr_region_unpin(f.region, "xdp:lan", 1 << 20);
	/* A magazine of it is still open. */
	assert_int_equal(mr_pool_destroy(beside, &why), -EBUSY);
	assert_reason_has(&why, "1 pages of beside are in flight: 0 of frames");
	assert_reason_has(&why, "1 in open magazines of caches of other pools");
	mr_cache_flush(f.cache);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
}

TEST_POOL(commitments_add_up_and_are_refused_with_the_number)
{
	struct mr_cache *cache;
	struct mr_reason why = { "" };

	fixture_open(&f, 1000, 4096);
	assert_int_equal(pool_stats(f.pool).n_committed, 128);
	assert_int_equal(mri_pool_commit(f.pool, "xdp:a", 873, 0, &why),
			 -ENOMEM);
	assert_reason_has(&why, "xdp:a needs 873 pages");
	assert_reason_has(&why, "at least 1001 pages and has 1000");
	assert_int_equal(pool_stats(f.pool).n_committed, 128);
	assert_int_equal(mri_pool_commit(f.pool, "xdp:a", 872, 0, &why), 0);
	assert_int_equal(pool_stats(f.pool).n_committed, 1000);
	assert_int_equal(mri_pool_commit(f.pool, "b", UINT64_C(1) << 40, 0,
					 NULL),
			 -ENOMEM);

	/* No cache may come later and make the port run dry. */
	assert_int_equal(mr_cache_create(f.pool, &cache, &why), -ENOMEM);
	assert_reason_has(&why, "at least 1128 pages and has 1000");
	mri_pool_uncommit(f.pool, 872);
	assert_int_equal(mri_pool_commit(f.pool, "xdp:a", 744, 0, NULL), 0);
	assert_int_equal(mr_cache_create(f.pool, &cache, NULL), 0);
	assert_int_equal(pool_stats(f.pool).n_committed, 1000);
	mr_cache_destroy(cache);
	assert_int_equal(pool_stats(f.pool).n_committed, 872);
	mri_pool_uncommit(f.pool, 744);
}

TEST_CTX(pool_names_itself_in_the_memory_map)
{
	const struct mr_pool_config config = { SIZE, .n_pages = 16,
					       .name = "unit-pool-name" };
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mr_pool *pool;
	char line[512];
	int n_found = 0;

	assert_int_equal(mr_pool_create(ctx, &config, &pool, NULL), 0);
	while (fgets(line, sizeof(line), maps) != NULL)
		n_found += strstr(line, "memfd:unit-pool-name") != NULL;
	fclose(maps);
	assert_int_equal(n_found, 1);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
}
