/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/depot/depot.c and objcache.c while one of their users is
 * stopped, ahead of each of its atomic operations in turn: the others go on, in
 * a bounded number of steps, and miss nothing but what the stopped one holds.
 */
#include "support/stepped_depot.h"

/* The same for objcache.c and objpool.c. */
#define mr_obj_alloc_bulk stepped_alloc_bulk
#define mr_obj_free_bulk stepped_free_bulk
#define mr_objcache_create stepped_objcache_create
#define mr_objcache_destroy stepped_objcache_destroy
#define mr_objpool_create stepped_objpool_create
#define mr_objpool_destroy stepped_objpool_destroy
#define mr_objpool_stats stepped_objpool_stats
#define mri_objcache_sum stepped_objcache_sum

#include "support/stop.h"

#include "support/objpool_unit.h"

#include "support/stepped.h"

#include "pool/depot/depot.c"

#include "pool/depot/objcache.c"

#include "pool/depot/objpool.c"

enum { N_MAGAZINES = 5, M = MR_MAGAZINE_PAGES };

struct stacks {
	struct mri_stack filled, empty;
	struct mri_magazine magazines[N_MAGAZINES];
};

static struct stacks *open_stacks(void)
{
	struct stacks *s = stop_share(sizeof(*s));
	uint64_t n_failed = 0;

	stepped_stack_init(&s->filled, s->magazines, sizeof(s->magazines[0]));
	stepped_stack_init(&s->empty, s->magazines, sizeof(s->magazines[0]));
	s->filled.head = (uint64_t)UINT32_MAX << 32; /* the tag wraps */
	for (uint32_t i = 0; i < N_MAGAZINES; i++)
		stepped_stack_push(i % 2 ? &s->filled : &s->empty, i,
				   &n_failed);
	return s;
}

static void child_takes_and_gives(void *opaque)
{
	struct stacks *s = opaque;
	uint64_t n_failed = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const int64_t a = stepped_stack_pop(&s->filled, &n_failed);
		const int64_t b = stepped_stack_pop(&s->empty, &n_failed);

		if (a >= 0)
			stepped_stack_push(&s->empty, (uint32_t)a, &n_failed);
		if (b >= 0)
			stepped_stack_push(&s->filled, (uint32_t)b, &n_failed);
	}
}

/* All magazines that are to be had, off both stacks; back again. How many. */
static uint32_t take_all(struct stacks *s)
{
	bool is_seen[N_MAGAZINES] = { false };
	uint32_t places[N_MAGAZINES + 1], n = 0;
	uint64_t n_failed = 0;

	for (uint32_t i = 0; i < 2; i++) {
		struct mri_stack *stack = i == 0 ? &s->filled : &s->empty;
		int64_t place;

		for (;;) {
			assert_steps(
				3, place = stepped_stack_pop(stack, &n_failed));
			if (place < 0)
				break;
			assert_true(place < N_MAGAZINES && !is_seen[place]);
			is_seen[place] = true;
			places[n++] = (uint32_t)place;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		assert_steps(3,
			     stepped_stack_push(i % 2 ? &s->filled : &s->empty,
						places[i], &n_failed));
	assert_int_equal(n_failed, 0);
	return n;
}

TEST(stopped_at_the_depot)
{
	uint32_t n_in_hand[3] = { 0 };
	pid_t pid;

	for (uint64_t k = 1;; k++) {
		struct stacks *s = open_stacks();
		const bool is_stopped =
			stop_start(child_takes_and_gives, s, k, &pid);
		const uint32_t n = take_all(s);

		assert_true(n >= N_MAGAZINES - 2);
		n_in_hand[N_MAGAZINES - n]++;
		assert_int_equal(take_all(s), n);
		if (is_stopped)
			stop_go_on(pid);
		assert_int_equal(take_all(s), N_MAGAZINES);
		munmap(s, sizeof(*s));
		if (!is_stopped)
			break;
	}
	/* It was stopped with no magazine, with one and with two in hand. */
	for (uint32_t i = 0; i < 3; i++)
		assert_true(n_in_hand[i] > 0);
}

/* A context whose memory two processes share; nothing of it is given back. */
struct arena {
	size_t n_used;
	char memory[1 << 20];
};

static void *arena_alloc(void *opaque, size_t align_bytes, size_t n_bytes)
{
	struct arena *arena = opaque;
	const size_t at = mri_round_up((uintptr_t)arena->memory + arena->n_used,
				       align_bytes) -
			  (uintptr_t)arena->memory;

	if (at + n_bytes > sizeof(arena->memory))
		return NULL;
	arena->n_used = at + n_bytes;
	return arena->memory + at;
}

static void arena_free(void *opaque, void *memory)
{
	(void)opaque;
	(void)memory;
}

enum { N_OBJECTS = 10 * M, N_CHILD = 2 * M + M / 2 };

struct users {
	struct mr_ctx *ctx;
	struct mr_objpool *pool;
	struct mr_objcache *mine, *its;
};

/* Through all of it: cursor, depot in both directions, swaps. */
static void child_allocs_and_frees(void *opaque)
{
	struct users *u = opaque;
	void *objects[N_CHILD];
	uint32_t n;

	for (uint32_t i = 0; i < 2; i++) {
		n = stepped_alloc_bulk(u->its, objects, N_CHILD);
		stepped_free_bulk(u->its, objects, n);
	}
}

static struct users open_users(struct arena *arena)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
						  .opaque = arena,
						  .alloc = arena_alloc,
						  .free = arena_free };
	const struct mr_objpool_config config = { .size = sizeof(config),
						  .object_bytes = 8,
						  .align_bytes = 8,
						  .n_objects = N_OBJECTS,
						  .max_caches = 2 };
	void *objects[N_OBJECTS];
	struct users u;

	arena->n_used = 0;
	assert_int_equal(mr_ctx_create(&ctx_config, &u.ctx, NULL), 0);
	assert_int_equal(mr_objpool_create(u.ctx, &config, &u.pool, NULL), 0);
	assert_int_equal(mr_objcache_create(u.pool, &u.mine, NULL), 0);
	assert_int_equal(mr_objcache_create(u.pool, &u.its, NULL), 0);
	/* Some in the depot, some in a cache, some never used. */
	assert_int_equal(mr_obj_alloc_bulk(u.mine, objects, 5 * M), 5 * M);
	mr_obj_free_bulk(u.mine, objects, 5 * M);
	return u;
}

static uint32_t alloc_all(struct users *u, void **objects)
{
	const uint32_t n = mr_obj_alloc_bulk(u->mine, objects, N_OBJECTS);
	bool is_seen[N_OBJECTS] = { false };

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t number =
			mri_obj_number(&u->pool->layout, objects[i]);

		assert_true(number < N_OBJECTS && !is_seen[number]);
		is_seen[number] = true;
	}
	return n;
}

TEST(stopped_with_magazines_in_hand)
{
	struct arena *arena = stop_share(sizeof(*arena));
	void *objects[N_OBJECTS];
	uint32_t n_least = N_OBJECTS;
	pid_t pid;

	for (uint64_t k = 1;; k++) {
		struct users u = open_users(arena);
		const bool is_stopped =
			stop_start(child_allocs_and_frees, &u, k, &pid);
		uint32_t n;

		/* Twice: what goes into the depot comes out of it again. */
		for (uint32_t i = 0; i < 2; i++) {
			assert_steps(100 * N_OBJECTS / M,
				     n = alloc_all(&u, objects));
			assert_steps(100 * N_OBJECTS / M,
				     mr_obj_free_bulk(u.mine, objects, n));
			/* Three in hand, and what it has allocated. */
			assert_true(n >= N_OBJECTS - 3 * M - N_CHILD);
		}
		n_least = mri_min_u32(n_least, n);
		assert_int_equal(obj_stats(u.pool).free_invalid, 0);
		if (is_stopped)
			stop_go_on(pid);
		assert_obj_in_flight(u.pool, 0);
		mr_objcache_destroy(u.its);
		assert_int_equal(alloc_all(&u, objects), N_OBJECTS);
		mr_obj_free_bulk(u.mine, objects, N_OBJECTS);
		mr_objcache_destroy(u.mine);
		assert_obj_magazines(u.pool);
		assert_int_equal(mr_objpool_destroy(u.pool, NULL), 0);
		mr_ctx_destroy(u.ctx);
		if (!is_stopped)
			break;
	}
	assert_true(n_least < N_OBJECTS - 2 * M);
	munmap(arena, sizeof(*arena));
}
