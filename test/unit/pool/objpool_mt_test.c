/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/objpool.c and objcache.c by more threads than cores. */
#include "support/objpool_unit.h"

#include "support/mt.h"

enum { N_THREADS = 6, N_OBJECTS = 1000, MAX_HELD = 300, WORDS = 8 };

struct shared {
	struct mr_objpool *pool;
	uint32_t owners[N_OBJECTS]; /* whose an object is; 0: the pool's */
};

/* Ours from here on: nobody else has it, and it is as its last owner left it.
 */
static bool claim(struct mt_thread *thread, uint64_t *object)
{
	struct shared *shared = thread->run->shared;
	const size_t at =
		(size_t)((char *)object - shared->pool->layout.memory) /
		(WORDS * 8);
	uint32_t nobody = 0;

	if (!mt_check(thread->run, at < N_OBJECTS) ||
	    !mt_check(thread->run,
		      __atomic_compare_exchange_n(
			      &shared->owners[at], &nobody, thread->id, false,
			      __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
		return false;
	/* Plain accesses: the pool's order must hand them over. */
	for (uint32_t i = 1; i < WORDS; i++)
		mt_check(thread->run, object[i] == object[0] * i);
	object[0] += thread->id;
	for (uint32_t i = 1; i < WORDS; i++)
		object[i] = object[0] * i;
	return true;
}

static void disclaim(struct mt_thread *thread, const uint64_t *object)
{
	struct shared *shared = thread->run->shared;
	const size_t at =
		(size_t)((const char *)object - shared->pool->layout.memory) /
		(WORDS * 8);

	__atomic_store_n(&shared->owners[at], 0, __ATOMIC_RELAXED);
}

/* Bursts of random lengths; now and then the cache ends and another begins. */
static void alloc_and_free(struct mt_thread *thread)
{
	struct mt_run *run = thread->run;
	struct shared *shared = run->shared;
	struct mr_objcache *cache = NULL;
	void *held[MAX_HELD];
	uint32_t n_held = 0;

	for (uint64_t op = 0; op < run->n_ops && !mt_failed(run); op++) {
		uint32_t n;

		if (cache == NULL &&
		    !mt_check(run, mr_objcache_create(shared->pool, &cache,
						      NULL) == 0))
			return;
		if (mt_random(thread, 2) == 0) {
			n = mt_random(thread, MAX_HELD - n_held + 1);
			n = mr_obj_alloc_bulk(cache, held + n_held, n);
			for (uint32_t i = 0; i < n; i++)
				if (!claim(thread, held[n_held + i]))
					return;
			n_held += n;
		} else {
			n = mt_random(thread, n_held + 1);
			n_held -= n;
			for (uint32_t i = 0; i < n; i++)
				disclaim(thread, held[n_held + i]);
			mr_obj_free_bulk(cache, held + n_held, n);
		}
		mt_maybe_yield(thread, 64);
		if (mt_random(thread, 100) == 0) {
			mr_objcache_destroy(cache);
			cache = NULL;
		}
	}
	if (cache == NULL)
		mr_objcache_create(shared->pool, &cache, NULL);
	for (uint32_t i = 0; i < n_held; i++)
		disclaim(thread, held[i]);
	mr_obj_free_bulk(cache, held, n_held);
	mr_objcache_destroy(cache);
}

TEST(each_object_has_one_owner)
{
	const struct mr_objpool_config config = {
		.object_bytes = WORDS * 8,
		.n_objects = N_OBJECTS,
		.max_caches = N_THREADS + 1, /* and the fixture's */
	};
	static struct shared shared;
	struct mt_run run = { .body = alloc_and_free,
			      .shared = &shared,
			      .n_threads = N_THREADS,
			      .n_ops = mt_n_ops(10000) };
	struct objects f;

	memset(&shared, 0, sizeof(shared));
	objects_open(&f, &config);
	shared.pool = f.pool;
	assert_int_equal(mt_run(&run), 0);
	assert_obj_in_flight(f.pool, 0);
	assert_int_equal(obj_stats(f.pool).free_invalid, 0);
	objects_close(&f);
}
