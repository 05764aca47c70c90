/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/depot/objpool.c by one thread. */
#include "support/objpool_unit.h"

static char some_memory[4096] __attribute__((aligned(4096)));

TEST(only_sane_magazines)
{
	static const uint32_t wrong[] = { 1, 32, 96, 1024, UINT32_MAX };
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mr_objpool *pool = NULL;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct mr_objpool_config config = {
			.size = sizeof(config),
			.n_objects = 1,
			.object_bytes = 8,
			.magazine_objects = wrong[i]
		};
		struct mr_reason why = { "" };

		assert_int_equal(mr_objpool_create(ctx, &config, &pool, &why),
				 -EINVAL);
		assert_reason_has(&why, "power of two, 64 to 512");
		assert_null(pool);
	}
	mr_ctx_destroy(ctx);
}

TEST(only_sane_values_make_a_pool)
{
	const struct {
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
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
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
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
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

TEST(memory_that_is_not_there)
{
	const struct mr_objpool_config config = { .size = sizeof(config),
						  .object_bytes = 64,
						  .n_objects = 100 };
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mr_objpool *pool = NULL;
	struct mr_objcache *cache = NULL;
	struct mr_reason why = { "" };

	for (uint32_t i = 1; i <= 3; i++) {
		a.fail_at = a.n_calls + i;
		assert_int_equal(mr_objpool_create(ctx, &config, &pool, &why),
				 -ENOMEM);
		assert_reason_has(&why, "100 objects of 64 bytes");
		assert_null(pool);
		assert_int_equal(a.n_out, 1); /* the context */
	}
	assert_int_equal(mr_objpool_create(ctx, &config, &pool, NULL), 0);
	a.fail_at = a.n_calls + 1;
	assert_int_equal(mr_objcache_create(pool, &cache, &why), -ENOMEM);
	assert_null(cache);
	assert_int_equal(obj_stats(pool).n_caches, 0);
	assert_int_equal(mr_objpool_destroy(pool, NULL), 0);
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
}

/* Sizes whose odd part is 1, 3, 5, 49...: the division is exact in each. */
TEST(every_object_is_there_once)
{
	static const uint32_t sizes[][2] = {
		{ 8, 8 },   { 1, 8 },   { 24, 8 },      { 40, 8 },  { 392, 8 },
		{ 64, 64 }, { 65, 64 }, { 5000, 4096 }, { 777, 16 }
	};
	enum { N = 1000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct mr_objpool_config config = { .object_bytes =
								  sizes[i][0],
							  .align_bytes =
								  sizes[i][1],
							  .n_objects = N };
		const uint32_t stride =
			(uint32_t)mri_round_up(sizes[i][0], sizes[i][1]);
		bool is_seen[N] = { false };
		void *objects[N + 1];
		struct objects f;
		char *memory;

		objects_open(&f, &config);
		memory = f.pool->layout.memory;
		assert_int_equal(obj_stats(f.pool).object_bytes, stride);
		assert_obj_in_flight(f.pool, 0);
		assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, N + 1), N);
		assert_obj_in_flight(f.pool, N);
		assert_int_equal(obj_stats(f.pool).alloc_empty, 1);
		for (uint32_t k = 0; k < N; k++) {
			const size_t at = (size_t)((char *)objects[k] - memory);

			assert_int_equal(at % stride, 0);
			assert_true(at / stride < N && !is_seen[at / stride]);
			is_seen[at / stride] = true;
			for (uint32_t b = 0; b < stride; b++)
				assert_int_equal(memory[at + b], 0);
			memset(objects[k], 0xff, stride);
		}
		mr_obj_free_bulk(f.cache, objects, N);
		objects_close(&f);
	}
}

/* All that is near an object, and far from it, but none. */
TEST(what_is_no_object_is_left_alone)
{
	static const uint32_t sizes[] = { 64, 192, 320, 4160 };
	enum { N = 3 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct mr_objpool_config config = { .object_bytes =
								  sizes[i],
							  .n_objects = N };
		uint64_t n_invalid = 0, n_valid = 0;
		void *objects[N];
		struct objects f;
		char *memory;

		objects_open(&f, &config);
		memory = f.pool->layout.memory;
		assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, N), N);
		for (int64_t at = -2 * (int64_t)sizes[i];
		     at <= (N + 2) * (int64_t)sizes[i]; at++) {
			const uintptr_t object =
				(uintptr_t)memory + (uintptr_t)at;
			const bool is_valid = at >= 0 && at % sizes[i] == 0 &&
					      at < N * (int64_t)sizes[i];

			free_object(f.cache, (void *)object);
			n_valid += is_valid;
			n_invalid += !is_valid;
			assert_int_equal(obj_stats(f.pool).free_invalid,
					 n_invalid);
			assert_int_equal(obj_stats(f.pool).n_free, n_valid);
		}
		for (uint32_t bit = 13; bit < 64; bit++) {
			free_object(f.cache, (void *)((uintptr_t)memory ^
						      (uintptr_t)1 << bit));
			free_object(f.cache, (void *)((uintptr_t)1 << bit));
			n_invalid += 2;
		}
		free_object(f.cache, NULL);
		assert_int_equal(obj_stats(f.pool).free_invalid, n_invalid + 1);
		assert_obj_in_flight(f.pool, 0);
		objects_close(&f);
	}
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

/* In the caller's memory objects are where he frees the first ones. */
TEST(memory_of_the_callers)
{
	static char memory[64 * 100] __attribute__((aligned(64)));
	const struct mr_objpool_config config = { .object_bytes = 100,
						  .n_objects = 10,
						  .memory = memory,
						  .memory_bytes =
							  sizeof(memory) };
	static const uint32_t at[] = { 64, 192, 512, 6400 - 128 };
	void *objects[10];
	struct objects f;

	objects_open(&f, &config);
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 4), 0);
	assert_int_equal(obj_stats(f.pool).n_free, 0);
	assert_int_equal(obj_stats(f.pool).n_in_flight, 10);
	memset(memory, 0x5a, sizeof(memory));
	for (uint32_t i = 0; i < 4; i++)
		free_object(f.cache, memory + at[i]);
	free_object(f.cache, memory + 6400 - 64); /* reaches beyond the end */
	free_object(f.cache, memory + 32);
	assert_int_equal(obj_stats(f.pool).free_invalid, 2);
	assert_int_equal(obj_stats(f.pool).n_free, 4);
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 10), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_ptr_equal(objects[i], memory + at[i]);
	for (size_t i = 0; i < sizeof(memory); i++)
		assert_int_equal(memory[i], 0x5a);
	assert_int_equal(obj_stats(f.pool).n_free, 0);
	objects_close(&f); /* objects that are out hold nothing up */
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
