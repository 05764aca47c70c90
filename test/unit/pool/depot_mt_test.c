/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test of lib/pool/depot/depot.c by more threads than cores, for
 * ThreadSanitizer: a pop whose first swap fails must see what is in the
 * magazine. Elsewhere, other calls order the accesses first.
 */
#include "support/pool_unit.h"

#include "support/mt.h"

enum { N_THREADS = 6 };

struct shared {
	struct mri_stack filled, empty;
	uint32_t n_magazines;
	struct mri_magazine magazines[64];
	uint32_t owners[64]; /* whose a magazine is now; 0: a stack's */
};

/* Few magazines make the head come back often, which is what ABA needs. */
static void take_and_give(struct mt_thread *thread)
{
	struct mt_run *run = thread->run;
	struct shared *shared = run->shared;
	uint64_t n_failed = 0;

	for (uint64_t op = 0; op < run->n_ops && !mt_failed(run); op++) {
		struct mri_stack *from =
			mt_random(thread, 2) ? &shared->filled : &shared->empty;
		struct mri_stack *to =
			mt_random(thread, 2) ? &shared->filled : &shared->empty;
		const int64_t place = mri_stack_pop(from, &n_failed);
		struct mri_magazine *magazine;
		uint32_t nobody = 0;

		if (place < 0)
			continue;
		if (!mt_check(run, place < shared->n_magazines) ||
		    !mt_check(run, __atomic_compare_exchange_n(
					   &shared->owners[place], &nobody,
					   thread->id, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED)))
			return;
		/* Plain accesses: the stack's order must hand them over. */
		magazine = &shared->magazines[place];
		for (uint32_t i = 1; i < 4; i++)
			mt_check(run, magazine->numbers[i] ==
					      magazine->numbers[0] + i);
		magazine->numbers[0] += thread->id;
		for (uint32_t i = 1; i < 4; i++)
			magazine->numbers[i] = magazine->numbers[0] + i;
		mt_maybe_yield(thread, 64);
		__atomic_store_n(&shared->owners[place], 0, __ATOMIC_RELAXED);
		mri_stack_push(to, (uint32_t)place, &n_failed);
	}
}

TEST(each_magazine_is_in_one_place)
{
	static const uint32_t n_magazines[] = { 1, 2, 3, 64 };

	for (size_t c = 0; c < 4; c++) {
		static struct shared shared;
		struct mt_run run = { .body = take_and_give,
				      .shared = &shared,
				      .n_threads = N_THREADS,
				      .n_ops = mt_n_ops(150000) };
		uint64_t n_failed = 0;
		bool is_seen[64] = { false };
		uint32_t n = 0;
		int64_t place;

		memset(&shared, 0, sizeof(shared));
		shared.n_magazines = n_magazines[c];
		mri_stack_init(&shared.filled, shared.magazines,
			       sizeof(shared.magazines[0]));
		mri_stack_init(&shared.empty, shared.magazines,
			       sizeof(shared.magazines[0]));
		/* The tags wrap soon after the start. */
		shared.filled.head = (uint64_t)(UINT32_MAX - 1000) << 32;
		for (uint32_t i = 0; i < n_magazines[c]; i++) {
			for (uint32_t p = 0; p < 4; p++)
				shared.magazines[i].numbers[p] = p;
			mri_stack_push(&shared.filled, i, &n_failed);
		}
		assert_int_equal(mt_run(&run), 0);
		while ((place = mri_stack_pop(&shared.filled, &n_failed)) >=
			       0 ||
		       (place = mri_stack_pop(&shared.empty, &n_failed)) >= 0) {
			assert_false(is_seen[place]);
			is_seen[place] = true;
			n++;
		}
		assert_int_equal(n, n_magazines[c]);
	}
}
