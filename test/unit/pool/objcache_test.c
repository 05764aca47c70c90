/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/object/objcache.c by one thread. */
#include "support/obj_model.h"

enum { M = MR_MAGAZINE_PAGES };

/* Sizes whose odd part is 1, 3, 5, 49...: the division is exact in each. */
TEST(sequences_of_calls_agree_with_the_model)
{
	static const struct {
		struct mr_objpool_config config;
		bool is_callers;
	} pools[] = {
		{ { .object_bytes = 1, .align_bytes = 8, .n_objects = 5000 },
		  false },
		{ { .object_bytes = 24, .align_bytes = 8, .n_objects = 300 },
		  false },
		{ { .object_bytes = 40, .align_bytes = 8, .n_objects = 1000 },
		  true },
		{ { .object_bytes = 392, .align_bytes = 8, .n_objects = 1000,
		    .magazine_objects = 128 },
		  false },
		{ { .object_bytes = 64, .align_bytes = 64, .n_objects = 2000,
		    .magazine_objects = 512 },
		  false },
		{ { .object_bytes = 65, .align_bytes = 64, .n_objects = 2000,
		    .magazine_objects = 256 },
		  true },
		{ { .object_bytes = 5000, .align_bytes = 4096, .n_objects = 3 },
		  false },
		{ { .object_bytes = 777, .align_bytes = 16, .n_objects = 700 },
		  false },
	};
	static struct obj_model m;
	uint64_t random = UINT64_C(0x9e3779b97f4a7c15);

	for (uint32_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
		obj_model_open(&m, pools[i].config, pools[i].is_callers);
		for (uint32_t k = 0; k < 4000; k++) {
			const uint32_t r = test_random(&random, 1 << 16);

			obj_model_step(&m, (uint8_t)(r >> 8), (uint8_t)r);
		}
		obj_model_close(&m);
	}
}

/* What came back last leaves first, across magazines too. */
TEST(last_in_first_out)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = 6 * M };
	void *objects[3 * M], *again;
	struct objects f;

	objects_open(&f, &config);
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 3 * M), 3 * M);
	for (uint32_t i = 0; i < 3 * M; i++)
		free_object(f.cache, objects[i]);
	for (uint32_t i = 3 * M; i-- > 0;) {
		again = alloc_object(f.cache);
		assert_ptr_equal(again, objects[i]);
	}
	mr_obj_free_bulk(f.cache, objects, 3 * M);
	objects_close(&f);
}

/* Two magazines: at their border no sequence goes to the depot each time. */
TEST(the_depot_is_asked_once_per_magazine)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = 10 * M };
	void *objects[5 * M];
	struct mr_objpool_stats s;
	struct objects f;

	objects_open(&f, &config);
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 5 * M), 5 * M);
	assert_int_equal(obj_stats(f.pool).alloc_refill, 0); /* never used */
	mr_obj_free_bulk(f.cache, objects, 5 * M);
	s = obj_stats(f.pool);
	assert_int_equal(s.recycle_cache_full, 3);
	assert_int_equal(s.n_cached, 2 * M);
	assert_int_equal(s.recycle_cached, 5 * M);
	assert_int_equal(s.alloc_fast, 5 * M);
	/* One more than two magazines, then back and forth over the border. */
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 2 * M + 1),
			 2 * M + 1);
	assert_int_equal(obj_stats(f.pool).alloc_refill, 1);
	for (uint32_t i = 0; i < 1000; i++) {
		mr_obj_free_bulk(f.cache, objects, 2);
		assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 2), 2);
	}
	s = obj_stats(f.pool);
	assert_int_equal(s.alloc_refill, 1);
	assert_int_equal(s.recycle_cache_full, 3);
	assert_int_equal(s.alloc_empty, 0);
	mr_obj_free_bulk(f.cache, objects, 2 * M + 1);
	objects_close(&f);
}

/* The cursor of what was never used: its last magazine is a short one. */
TEST(never_used_objects_leave_by_magazines)
{
	const struct mr_objpool_config config = { .object_bytes = 64,
						  .n_objects = 2 * M + 3 };
	struct mr_objcache *caches[3];
	void *objects[3][M];
	struct objects f;

	objects_open(&f, &config);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(mr_objcache_create(f.pool, &caches[i], NULL),
				 0);
		assert_int_equal(mr_obj_alloc_bulk(caches[i], objects[i], M),
				 i < 2 ? M : 3);
		assert_ptr_equal(objects[i][i < 2 ? M - 1 : 2],
				 f.pool->layout.memory + i * 64 * M);
	}
	assert_int_equal(obj_stats(f.pool).alloc_empty, M - 3);
	/* Asking again moves nothing: a cursor that runs on wraps one day. */
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(mr_obj_alloc_bulk(f.cache, objects[2] + 3, 1),
				 0);
	assert_int_equal(f.pool->next_unused, 3 * M);
	for (uint32_t i = 0; i < 3; i++) {
		mr_obj_free_bulk(caches[i], objects[i], i < 2 ? M : 3);
		mr_objcache_destroy(caches[i]);
	}
	assert_obj_in_flight(f.pool, 0);
	objects_close(&f);
}

TEST(no_more_caches_than_agreed)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = 1,
						  .max_caches = 3 };
	struct mr_objcache *caches[2], *fourth = NULL;
	struct mr_reason why = { "" };
	struct objects f;

	objects_open(&f, &config);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(mr_objcache_create(f.pool, &caches[i], NULL),
				 0);
	assert_int_equal(mr_objcache_create(f.pool, &fourth, &why), -ENOSPC);
	assert_reason_has(&why, "all of their 3 caches");
	assert_null(fourth);
	mr_objcache_destroy(NULL);
	mr_objcache_destroy(caches[0]);
	assert_int_equal(mr_objcache_create(f.pool, &caches[0], NULL), 0);
	mr_objcache_destroy(caches[0]);
	mr_objcache_destroy(caches[1]);
	objects_close(&f);
}

/* More than n_objects is a bug of the caller's: refused, not lost, counted. */
TEST(more_objects_than_agreed_are_refused)
{
	static char memory[64 * 2000] __attribute__((aligned(64)));
	const struct mr_objpool_config config = { .object_bytes = 64,
						  .n_objects = M,
						  .max_caches = 1,
						  .memory = memory,
						  .memory_bytes =
							  sizeof(memory) };
	struct mr_objpool_stats s;
	void *objects[2000];
	struct objects f;
	uint32_t n;

	for (uint32_t i = 0; i < 2000; i++)
		objects[i] = memory + i * 64;
	objects_open(&f, &config);
	mr_obj_free_bulk(f.cache, objects, 2000);
	s = obj_stats(f.pool);
	assert_int_equal(s.n_free + s.free_invalid, 2000);
	assert_true(s.n_free >= M && s.free_invalid > 0);
	n = mr_obj_alloc_bulk(f.cache, objects, 2000);
	assert_int_equal(n, s.n_free);
	mr_obj_free_bulk(f.cache, objects, M);
	assert_int_equal(obj_stats(f.pool).n_free, M);
	objects_close(&f);
}

/*
 * Freed twice, and twice again, until no magazine is empty. A cache that cannot
 * be made then leaves what there is, and can be made when there is room.
 */
TEST(no_cache_without_empty_magazines)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = M,
						  .max_caches = 2 };
	struct mr_objcache *second = NULL;
	struct mr_reason why = { "" };
	struct objects f;
	void *objects[2 * M + 1];

	objects_open(&f, &config);
	objects[0] = alloc_object(f.cache);
	while (obj_stats(f.pool).free_invalid == 0)
		free_object(f.cache, objects[0]);
	assert_int_equal(mr_objcache_create(f.pool, &second, &why), -ENOMEM);
	assert_reason_has(&why, "no empty magazine");
	assert_null(second);
	/* One is empty, which is too few, and is still there afterwards. */
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, 2 * M + 1),
			 2 * M + 1);
	assert_int_equal(mri_stack_n(&f.pool->depot.empty, 9), 1);
	assert_int_equal(mr_objcache_create(f.pool, &second, &why), -ENOMEM);
	assert_int_equal(mri_stack_n(&f.pool->depot.empty, 9), 1);
	assert_int_equal(obj_stats(f.pool).n_caches, 1);
	assert_int_equal(mr_obj_alloc_bulk(f.cache, objects, M), M);
	assert_int_equal(mr_objcache_create(f.pool, &second, &why), 0);
	mr_objcache_destroy(second);
	while (mr_obj_alloc_bulk(f.cache, objects + M, 1) > 0)
		;
	mr_obj_free_bulk(f.cache, objects, M);
	objects_close(&f);
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

TEST(cache_that_gets_no_magazine_loses_none)
{
	const struct mr_objpool_config config = { .object_bytes = 8,
						  .n_objects = M };
	struct mr_objcache *second = NULL;
	struct objects f;
	uint32_t n_empty;

	objects_open(&f, &config);
	n_empty = mri_stack_n(&f.pool->depot.empty, 1000);
	n_failing = 1;
	assert_int_equal(mr_objcache_create(f.pool, &second, NULL), -ENOMEM);
	assert_int_equal(mri_stack_n(&f.pool->depot.empty, 1000), n_empty);
	objects_close(&f);
}
