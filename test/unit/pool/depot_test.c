/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/depot/depot.c by one thread. */
#include "support/pool_unit.h"

enum { N = 4 };

TEST(last_in_first_out)
{
	struct mri_magazine all[N] = { 0 };
	struct mri_stack stack;
	uint64_t n_failed = 0;

	mri_stack_init(&stack, all, sizeof(all[0]));
	assert_int_equal(mri_stack_pop(&stack, &n_failed), -1);
	for (uint32_t i = 0; i < N; i++)
		mri_stack_push(&stack, i, &n_failed);
	for (int64_t i = N - 1; i >= 0; i--)
		assert_int_equal(mri_stack_pop(&stack, &n_failed), i);
	assert_int_equal(mri_stack_pop(&stack, &n_failed), -1);
	assert_int_equal(n_failed, 0);
}

/*
 * A thread that slept between its load of the head and its swap must not take
 * a head that went and came back for the one that it saw: its next is old.
 */
TEST(head_that_came_back_is_another)
{
	struct mri_magazine all[N] = { 0 };
	struct mri_stack stack;
	uint64_t n_failed = 0, seen;

	mri_stack_init(&stack, all, sizeof(all[0]));
	mri_stack_push(&stack, 0, &n_failed);
	mri_stack_push(&stack, 1, &n_failed);
	seen = stack.head;
	assert_int_equal(mri_stack_pop(&stack, &n_failed), 1);
	assert_int_not_equal(stack.head, seen);
	mri_stack_push(&stack, 1, &n_failed);
	assert_int_equal((uint32_t)stack.head, (uint32_t)seen);
	assert_int_not_equal(stack.head, seen);
}

/* Pops alone change the tag too: pop, pop, push of the first one. */
TEST(pops_change_the_tag)
{
	struct mri_magazine all[N] = { 0 };
	struct mri_stack stack;
	uint64_t n_failed = 0, seen;

	mri_stack_init(&stack, all, sizeof(all[0]));
	for (uint32_t i = 0; i < 3; i++)
		mri_stack_push(&stack, i, &n_failed);
	seen = stack.head >> 32;
	for (uint32_t i = 1; i <= 3; i++) {
		mri_stack_pop(&stack, &n_failed);
		assert_int_equal(stack.head >> 32, seen + i);
	}
	assert_int_equal(mri_stack_pop(&stack, &n_failed), -1);
	assert_int_equal(stack.head >> 32, seen + 3); /* nothing happened */
}

TEST(tag_wraps_without_touching_the_place)
{
	struct mri_magazine all[N] = { 0 };
	struct mri_stack stack;
	uint64_t n_failed = 0;

	mri_stack_init(&stack, all, sizeof(all[0]));
	stack.head = (uint64_t)UINT32_MAX << 32;
	mri_stack_push(&stack, 3, &n_failed);
	assert_int_equal(stack.head, 4); /* tag 0 again, place 3 */
	mri_stack_push(&stack, 0, &n_failed);
	assert_int_equal(mri_stack_pop(&stack, &n_failed), 0);
	assert_int_equal(mri_stack_pop(&stack, &n_failed), 3);
	assert_int_equal(mri_stack_pop(&stack, &n_failed), -1);
}

TEST(several_are_popped_in_one_swap)
{
	struct mri_magazine all[N] = { 0 };
	struct mri_stack stack;
	uint64_t n_failed = 0;
	uint32_t places[N];

	mri_stack_init(&stack, all, sizeof(all[0]));
	assert_int_equal(mri_stack_pop_bulk(&stack, places, N, &n_failed), 0);
	for (uint32_t n = 1; n <= N; n++) {
		uint64_t tag;

		for (uint32_t i = 0; i < N; i++)
			mri_stack_push(&stack, i, &n_failed);
		tag = stack.head >> 32;
		assert_int_equal(
			mri_stack_pop_bulk(&stack, places, n, &n_failed), n);
		assert_int_equal(stack.head >> 32, tag + 1);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(places[i], N - 1 - i);
		assert_int_equal(
			mri_stack_pop_bulk(&stack, places, N, &n_failed),
			N - n);
		assert_int_equal((uint32_t)stack.head, 0);
	}
	assert_int_equal(n_failed, 0);
}
