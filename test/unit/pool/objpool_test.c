/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/object/objpool.c by one thread. */
#include "support/objpool_unit.h"
#include "support/unit_ctx.h"

static char some_memory[4096] __attribute__((aligned(4096)));

static const struct {
	struct mr_objpool_config config;
	const char *words;
} wrong[] = {
	{ { .n_objects = 1 }, "objects of 0 bytes" },
	{ { .n_objects = 1, .object_bytes = (1 << 24) + 1 },
	  "must be 1 to 16777216" },
	{ { .n_objects = 0, .object_bytes = 8 }, "0 objects" },
	{ { .n_objects = UINT32_MAX, .object_bytes = 8 },
	  "must be 1 to 4294967294" },
	{ { .n_objects = 1, .object_bytes = 8, .align_bytes = 4 },
	  "power of two, 8 to 4096" },
	{ { .n_objects = 1, .object_bytes = 8, .align_bytes = 24 },
	  "power of two, 8 to 4096" },
	{ { .n_objects = 1, .object_bytes = 8, .align_bytes = 8192 },
	  "power of two, 8 to 4096" },
	{ { .n_objects = 1, .object_bytes = 8, .magazine_objects = 1 },
	  "power of two, 64 to 512" },
	{ { .n_objects = 1, .object_bytes = 8, .magazine_objects = 32 },
	  "power of two, 64 to 512" },
	{ { .n_objects = 1, .object_bytes = 8, .magazine_objects = 96 },
	  "power of two, 64 to 512" },
	{ { .n_objects = 1,
	    .object_bytes = 8,
	    .magazine_objects = 1024 },
	  "power of two, 64 to 512" },
	{ { .n_objects = 1,
	    .object_bytes = 8,
	    .magazine_objects = UINT32_MAX },
	  "power of two, 64 to 512" },
	{ { .n_objects = 1, .object_bytes = 8, .max_caches = 4097 },
	  "at most 4096" },
	{ { .n_objects = 1,
	    .object_bytes = 8,
	    .memory = some_memory + 8,
	    .memory_bytes = 64 },
	  "aligned to 64 bytes" },
	{ { .n_objects = 3,
	    .object_bytes = 65,
	    .memory = some_memory,
	    .memory_bytes = 2 * 128 + 64 },
	  "take 321" },
	{ { .n_objects = 3,
	    .object_bytes = 8,
	    .align_bytes = 8,
	    .memory = some_memory,
	    .memory_bytes = UINT64_C(8) << 32 },
	  "2^32 times" },
};

TEST_CTX(only_sane_values_make_a_pool)
{
	struct mr_objpool *pool = NULL;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct mr_objpool_config config = wrong[i].config;
		struct mr_reason why = { "" };

		config.size = sizeof(config);
		assert_int_equal(mr_objpool_create(ctx, &config, &pool, &why),
				 -EINVAL);
		assert_reason_has(&why, wrong[i].words);
		assert_null(pool);
	}
	assert_int_equal(mr_objpool_create(ctx,
					   &(struct mr_objpool_config){ 0 },
					   &pool, NULL),
			 -EINVAL);
	assert_int_equal(mr_objpool_destroy(NULL, NULL), 0);
}

TEST(the_last_byte_is_enough)
{
	static char memory[321] __attribute__((aligned(64)));
	const struct mr_objpool_config config = { .object_bytes = 65,
						  .n_objects = 3,
						  .memory = memory,
						  .memory_bytes = 321 };
	struct objects f;

	objects_open(&f, &config);
	assert_int_equal(obj_stats(f.pool).object_bytes, 128);
	free_object(f.cache, memory + 256); /* to its last byte */
	assert_int_equal(obj_stats(f.pool).n_free, 1);
	free_object(f.cache, memory + 320);
	assert_int_equal(obj_stats(f.pool).free_invalid, 1);
	assert_ptr_equal(alloc_object(f.cache), memory + 256);
	objects_close(&f);
}

TEST_CTX(missing_memory_is_enomem_and_leaves_nothing)
{
	const struct mr_objpool_config config = { .size = sizeof(config),
						  .object_bytes = 64,
						  .n_objects = 100 };
	struct mr_objpool *pool = NULL;
	struct mr_objcache *cache = NULL;
	struct mr_reason why = { "" };

	for (uint32_t i = 1; i <= 2; i++) {
		allocator.fail_at = allocator.n_calls + i;
		assert_int_equal(mr_objpool_create(ctx, &config, &pool, &why),
				 -ENOMEM);
		assert_reason_has(&why, "100 objects of 64 bytes");
		assert_null(pool);
		assert_int_equal(allocator.n_out, 1); /* the context */
	}
	assert_int_equal(mr_objpool_create(ctx, &config, &pool, NULL), 0);
	allocator.fail_at = allocator.n_calls + 1;
	assert_int_equal(mr_objcache_create(pool, &cache, &why), -ENOMEM);
	assert_null(cache);
	assert_int_equal(obj_stats(pool).n_caches, 0);
	assert_int_equal(mr_objpool_destroy(pool, NULL), 0);
}

TEST(a_pool_in_use_is_not_destroyed)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = 10,
						  .name = "flows" };
	struct mr_reason why = { "" };
	struct objects f;
	void *object;

	objects_open(&f, &config);
	object = alloc_object(f.cache);
	assert_int_equal(mr_objpool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "flows is in use by 1 caches");
	mr_objcache_destroy(f.cache);
	assert_int_equal(mr_objpool_destroy(f.pool, &why), -EBUSY);
	assert_reason_has(&why, "1 of the flows are in flight");
	assert_int_equal(mr_objcache_create(f.pool, &f.cache, NULL), 0);
	free_object(f.cache, object);
	objects_close(&f);
}

TEST(statistics_of_any_size)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = 10 };
	struct mr_objpool_stats s = { 0 };
	struct objects f;

	objects_open(&f, &config);
	assert_int_equal(mr_objpool_stats(f.pool, &s), -EINVAL);
	s.size = offsetof(struct mr_objpool_stats, n_free);
	assert_int_equal(mr_objpool_stats(f.pool, &s), 0);
	assert_int_equal(s.n_objects, 10);
	assert_int_equal(s.n_free, 0);
	s = obj_stats(f.pool);
	assert_int_equal(s.n_free, 10);
	assert_int_equal(s.n_caches, 1);
	assert_int_equal(s.max_caches, 64);
	assert_int_equal(s.object_bytes, 64);
	objects_close(&f);
}

/* Sums of counters that have wrapped at 2^64 still have the right distance. */
TEST(counters_wrap)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = 10 };
	struct objects f;
	void *objects[5];

	objects_open(&f, &config);
	f.pool->counters.n_alloc = f.pool->counters.n_free = UINT64_MAX - 2;
	assert_obj_in_flight(f.pool, 0);
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 5), 5);
	assert_obj_in_flight(f.pool, 5);
	mr_obj_free_bulk(f.cache, objects, 2);
	assert_obj_in_flight(f.pool, 3);
	mr_obj_free_bulk(f.cache, objects + 2, 3);
	objects_close(&f);
}
