/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/depot/depot.c and objcache.c under all schedules with a few
 * preemptions, so also with a thread that stands still wherever it may; and
 * that faults put there on purpose are found.
 */
#include "support/stepped_depot.h"

#define mr_obj_alloc_bulk stepped_alloc_bulk
#define mr_obj_free_bulk stepped_free_bulk
#define mr_objcache_create stepped_objcache_create
#define mr_objcache_destroy stepped_objcache_destroy

#include "support/explore.h"
#include "support/objpool_unit.h"

#include "support/stepped.h"

#include "pool/depot/depot.c"

#include "object/objcache.c"

enum { MAX_PLACES = 8, N_THREADS = 3 };

/* Faults of a compare-and-swap, by what they do to the depot. */
static const struct stepped_fault right = { 0 };
static const struct stepped_fault compares_no_tag = { .seen_mask = UINT32_MAX };
static const struct stepped_fault compares_nothing = { .is_blind = true };
static const struct stepped_fault tag_not_advanced = { .stored_mask =
							       UINT32_MAX };
static const struct stepped_fault tag_of_4_bits = { .stored_mask = UINT64_C(
							    0xfffffffff) };

/* A stack, and who has what is not on it. */
struct stack {
	struct mri_stack stack;
	uint32_t n_places;
	uint32_t n_links;
	uint32_t links[MAX_PLACES * MRI_STACK_LINKS];
	uint32_t owners[MAX_PLACES]; /* 0: the stack */
	uint64_t n_ops, n_failed;
	uint64_t random;
} stack;

static void begin_stack(void *shared)
{
	struct stack *s = shared;

	memset(s->owners, 0, sizeof(s->owners));
	stepped_stack_init(&s->stack, s->links,
			   s->n_links * (uint32_t)sizeof(s->links[0]));
	s->stack.has_links = s->n_links > 1;
	/* The tag wraps soon, but not at once. */
	s->stack.head = (uint64_t)(UINT32_MAX - 5) << 32;
	for (uint32_t i = s->n_places; i-- > 0;)
		stepped_stack_push(&s->stack, i, &s->n_failed);
}

static const uint32_t *links_at(const struct stack *s, uint32_t place)
{
	return &s->links[(place - 1) * s->n_links];
}

/*
 * What is on the stack is nobody's, and all of the rest is somebody's. Links
 * lead to the elements below, in order.
 */
static void end_stack(void *shared)
{
	struct stack *s = shared;
	uint32_t n_on = 0, n_owned = 0;
	uint32_t place = (uint32_t)s->stack.head;

	while (place != 0 && n_on <= s->n_places) {
		const uint32_t next = *links_at(s, place);

		explore_check(place <= s->n_places &&
			      s->owners[place - 1] == 0);
		for (uint32_t i = 1; i < s->n_links; i++)
			explore_check(links_at(s, place)[i] ==
				      (next == 0 ? 0 :
						   links_at(s, next)[i - 1]));
		place = next;
		n_on++;
	}
	for (uint32_t i = 0; i < s->n_places; i++)
		n_owned += s->owners[i] != 0;
	explore_check(n_on + n_owned == s->n_places);
}

static int64_t take_place(struct stack *s, uint32_t who)
{
	const int64_t place = stepped_stack_pop(&s->stack, &s->n_failed);

	if (place >= 0) {
		explore_check(place < s->n_places && s->owners[place] == 0);
		s->owners[place] = who;
	}
	return place;
}

static void give_place(struct stack *s, int64_t place)
{
	if (place < 0)
		return;
	s->owners[place] = 0;
	stepped_stack_push(&s->stack, (uint32_t)place, &s->n_failed);
}

static void pops_one(void *shared)
{
	take_place(shared, 1);
}

/* The head that goes and comes back, with another one behind it. */
static void pops_two_pushes_the_first(void *shared)
{
	const int64_t first = take_place(shared, 2);

	take_place(shared, 2);
	give_place(shared, first);
}

static void pops_and_pushes(void *shared)
{
	const int64_t place = take_place(shared, 3);

	give_place(shared, place);
}

static void pop_at_once(struct stack *s, uint32_t n_most)
{
	uint32_t places[MAX_PLACES];
	const uint32_t n =
		stepped_stack_pop_bulk(&s->stack, places, n_most, &s->n_failed);

	for (uint32_t i = 0; i < n; i++) {
		explore_check(places[i] < s->n_places &&
			      s->owners[places[i]] == 0);
		s->owners[places[i]] = 4;
	}
	if (n > 0)
		give_place(s, places[0]);
}

static void pops_two_at_once(void *shared)
{
	pop_at_once(shared, 2);
}

/* By the links of two elements, if they have several. */
static void pops_six_at_once(void *shared)
{
	pop_at_once(shared, MRI_STACK_LINKS + 2);
}

/* 16 of them, and the second and third one are gone. */
static void takes_two_in_16_operations(void *shared)
{
	const int64_t first = take_place(shared, 2);

	take_place(shared, 2);
	take_place(shared, 2);
	give_place(shared, first);
	for (uint32_t i = 0; i < 6; i++)
		give_place(shared, take_place(shared, 2));
}

static struct explore explore_links(const struct stepped_fault *fault,
				    uint32_t n_places, uint32_t n_links,
				    void (*a)(void *), void (*b)(void *),
				    void (*c)(void *),
				    uint32_t max_preemptions)
{
	struct explore e = { .begin = begin_stack,
			     .threads = { a, b, c },
			     .end = end_stack,
			     .shared = &stack,
			     .n_threads = c != NULL ? 3 : 2,
			     .max_preemptions = max_preemptions };

	stack.n_places = n_places;
	stack.n_links = n_links;
	stepped_fault = *fault;
	explore_all(&e);
	stepped_fault = right;
	return e;
}

static struct explore explore_stack(const struct stepped_fault *fault,
				    uint32_t n_places, void (*a)(void *),
				    void (*b)(void *), void (*c)(void *),
				    uint32_t max_preemptions)
{
	return explore_links(fault, n_places, 1, a, b, c, max_preemptions);
}

TEST(the_depot_is_right)
{
	struct explore e;

	e = explore_stack(&right, 3, pops_one, pops_two_pushes_the_first, NULL,
			  4);
	explore_assert_right(&e, 100, 100);
	e = explore_stack(&right, 3, pops_and_pushes, pops_two_pushes_the_first,
			  pops_one, 2);
	explore_assert_right(&e, 1000, 100);
	e = explore_stack(&right, 1, pops_and_pushes, pops_and_pushes,
			  pops_and_pushes, 3);
	explore_assert_right(&e, 1000, 100);
	e = explore_stack(&right, 4, pops_two_at_once,
			  pops_two_pushes_the_first, pops_and_pushes, 2);
	explore_assert_right(&e, 1000, 100);
	e = explore_stack(&right, 4, pops_one, takes_two_in_16_operations, NULL,
			  2);
	explore_assert_right(&e, 100, 100);
}

TEST(a_stack_with_several_links_is_right)
{
	void (*const bulks[])(void *) = { pops_two_at_once, pops_six_at_once };

	for (uint32_t i = 0; i < 2; i++) {
		struct explore e;

		e = explore_links(&right, 7, MRI_STACK_LINKS, bulks[i],
				  pops_two_pushes_the_first, pops_and_pushes,
				  2);
		explore_assert_right(&e, 1000, 100);
		e = explore_links(&right, 7, MRI_STACK_LINKS, bulks[i],
				  bulks[1], NULL, 3);
		explore_assert_right(&e, 100, 100);
		e = explore_links(&compares_no_tag, 7, MRI_STACK_LINKS,
				  bulks[i], pops_two_pushes_the_first, NULL, 2);
		assert_true(e.n_failures > 0);
	}
}

TEST(faults_of_the_depot_are_found)
{
	const struct stepped_fault *faults[] = { &compares_no_tag,
						 &compares_nothing,
						 &tag_not_advanced };

	for (uint32_t i = 0; i < 3; i++) {
		struct explore e;

		e = explore_stack(faults[i], 3, pops_one,
				  pops_two_pushes_the_first, NULL, 1);
		assert_true(e.n_failures > 0);
		e = explore_stack(faults[i], 4, pops_two_at_once,
				  pops_two_pushes_the_first, NULL, 2);
		assert_true(e.n_failures > 0);
	}
}

/* A tag that comes round in 16 operations, and one that does not. */
TEST(a_tag_of_4_bits_is_found)
{
	struct explore e;

	e = explore_stack(&tag_of_4_bits, 3, pops_one,
			  pops_two_pushes_the_first, NULL, 4);
	/* 3 operations are not enough for it. */
	explore_assert_right(&e, 100, 100);
	e = explore_stack(&tag_of_4_bits, 4, pops_one,
			  takes_two_in_16_operations, NULL, 1);
	assert_true(e.n_failures > 0);
}

static void pops_and_pushes_for_long(void *shared)
{
	struct stack *s = shared;
	int64_t held[2] = { -1, -1 };

	while (s->n_ops > 0 && explore_state.explore->n_failures == 0) {
		int64_t *place = &held[test_random(&s->random, 2)];

		s->n_ops--;
		if (*place < 0) {
			*place = take_place(s, 1);
		} else {
			give_place(s, *place);
			*place = -1;
		}
	}
	give_place(s, held[0]);
	give_place(s, held[1]);
}

/* 2^20 operations at random: 4 bits of tag fail, 32 do not. */
TEST(a_million_operations)
{
	const struct stepped_fault *faults[] = { &right, &tag_of_4_bits };

	for (uint32_t i = 0; i < 2; i++) {
		struct explore e = {
			.begin = begin_stack,
			.threads = { pops_and_pushes_for_long,
				     pops_and_pushes_for_long,
				     pops_and_pushes_for_long },
			.end = end_stack,
			.shared = &stack,
			.n_threads = 3,
		};
		bool is_right;

		stack.n_places = 5;
		stack.n_links = 1;
		stack.n_ops = 1 << 20;
		stack.random = 88172645463325252u;
		stepped_fault = *faults[i];
		is_right = explore_at_random(&e, 0x9e3779b97f4a7c15);
		stepped_fault = right;
		assert_int_equal(is_right, i == 0);
		if (i == 0)
			assert_int_equal(stack.n_ops, 0);
	}
}

/* Two caches, and what each of them has out. */
enum { M = MR_MAGAZINE_PAGES, MAX_OBJECTS = 10 * M, N_OWN = 2 * M + M / 2 };

static struct caches {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_objpool *pool;
	struct mr_objcache *caches[2];
	void *objects[2][MAX_OBJECTS];
	uint32_t n[2];
	uint32_t n_objects;
	uint32_t n_used;  /* of them; all others were never used */
	uint32_t n_calls; /* of the first, begun and ended */
	uint32_t n_least; /* that the second got, whatever the first had */
} caches;

static void close_caches(struct caches *c)
{
	for (uint32_t i = 0; i < 2; i++) {
		mr_obj_free_bulk(c->caches[i], c->objects[i], c->n[i]);
		mr_objcache_destroy(c->caches[i]);
	}
	assert_obj_magazines(c->pool);
	assert_int_equal(mr_objpool_destroy(c->pool, NULL), 0);
	c->pool = NULL;
}

static void begin_caches(void *shared)
{
	struct caches *c = shared;

	if (c->pool != NULL)
		close_caches(c);
	mr_objpool_create(c->ctx,
			  &(struct mr_objpool_config){
				  .size = sizeof(struct mr_objpool_config),
				  .object_bytes = 8,
				  .n_objects = c->n_objects,
				  .max_caches = 2 },
			  &c->pool, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		mr_objcache_create(c->pool, &c->caches[i], NULL);
		c->n[i] = 0;
	}
	mr_obj_alloc_bulk(c->caches[1], c->objects[1], c->n_used);
	mr_obj_free_bulk(c->caches[1], c->objects[1], c->n_used);
}

static uint32_t alloc_some(struct caches *c, uint32_t i, uint32_t n)
{
	n = mr_obj_alloc_bulk(c->caches[i], c->objects[i] + c->n[i], n);
	c->n[i] += n;
	return n;
}

static void free_all(struct caches *c, uint32_t i)
{
	mr_obj_free_bulk(c->caches[i], c->objects[i], c->n[i]);
	c->n[i] = 0;
}

/* Each object is in one place. */
static void end_caches(void *shared)
{
	struct caches *c = shared;
	bool is_seen[MAX_OBJECTS] = { false };
	uint64_t n_left;

	alloc_some(c, 1, c->n_objects - c->n[1]);
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < c->n[i]; k++) {
			const uint64_t number = mri_obj_number(
				&c->pool->layout, c->objects[i][k]);

			explore_check(number < c->n_objects &&
				      !is_seen[number]);
			if (number < c->n_objects)
				is_seen[number] = true;
		}
	}
	explore_check(c->n[0] + c->n[1] +
			      mri_pair_n(&c->caches[0]->pair, &n_left) ==
		      c->n_objects);
}

static void allocs_in_first(void *shared)
{
	alloc_some(shared, 0, M);
	alloc_some(shared, 0, 1);
}

static void allocs_in_second(void *shared)
{
	alloc_some(shared, 1, M);
}

/* By the cursor, and the depot in both directions. */
static void allocs_and_frees_in_first(void *shared)
{
	struct caches *c = shared;

	for (uint32_t i = 0; i < 2; i++) {
		c->n_calls++;
		alloc_some(c, 0, N_OWN);
		c->n_calls++;
		free_all(c, 0);
	}
	c->n_calls++;
}

/*
 * If the first one stands still, all that is missing is what it has allocated,
 * and the three magazines that it may have in hand.
 */
static void takes_all_in_second(void *shared)
{
	struct caches *c = shared;
	const uint32_t n_calls = c->n_calls;
	const uint32_t n = alloc_some(c, 1, c->n_objects);

	explore_check(n_calls != c->n_calls ||
		      n >= c->n_objects - 3 * M - N_OWN);
	c->n_least = mri_min_u32(c->n_least, n);
	free_all(c, 1);
}

static struct explore explore_caches(void (*first)(void *),
				     void (*second)(void *), uint32_t n_objects,
				     uint32_t n_used, uint32_t max_preemptions)
{
	struct explore e = { .begin = begin_caches,
			     .threads = { first, second },
			     .end = end_caches,
			     .shared = &caches,
			     .n_threads = 2,
			     .max_preemptions = max_preemptions };

	caches.ctx = test_ctx(&caches.allocator);
	caches.n_objects = caches.n_least = n_objects;
	caches.n_used = n_used;
	explore_all(&e);
	return e;
}

static void end_exploration(void)
{
	close_caches(&caches);
	mr_ctx_destroy(caches.ctx);
	assert_int_equal(caches.allocator.n_out, 0);
}

TEST(each_new_object_goes_to_one_cache)
{
	struct explore e;

	e = explore_caches(allocs_in_first, allocs_in_second, M + 7, 0, 3);
	explore_assert_right(&e, 100, 50);
	end_exploration();
}

TEST(a_stopped_thread_keeps_only_the_objects_it_moves)
{
	struct explore e =
		explore_caches(allocs_and_frees_in_first, takes_all_in_second,
			       MAX_OBJECTS, 5 * M, 2);

	explore_assert_right(&e, 1000, 1000);
	assert_true(caches.n_least < MAX_OBJECTS - 2 * M);
	end_exploration();
}

/* The last test: it leaves a pool that is broken. */
TEST(an_addition_in_two_steps_is_found)
{
	struct explore e;

	stepped_fault.is_split = true; /* of the cursor */
	e = explore_caches(allocs_in_first, allocs_in_second, M + 7, 0, 3);
	stepped_fault = right;
	assert_true(e.n_failures > 0);
}
