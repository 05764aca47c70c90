/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The depot's stacks of magazines: last in, first out, so that the pages that
 * came back last, and are still in a core's cache, leave first.
 *
 * A pop reads the next magazine's place from a magazine that another thread may
 * have popped meanwhile. The read is of memory that stays a magazine, and what
 * it gives is used only if the compare-and-swap finds the head unchanged, tag
 * included. The tag has 32 bits: a thread would have to sleep through exactly
 * 2^32 pushes and pops between load and swap to be fooled.
 *
 * Order: the release in push, on the head, pairs with the acquire in pop; it
 * hands over the magazine's pages and everything that was written into them.
 */
#include "pool/pool.h"

static uint64_t next_head(uint64_t head, uint32_t place_plus_1)
{
	return ((head >> 32) + 1) << 32 | place_plus_1;
}

void mri_stack_push(struct mri_stack *stack, struct mri_magazine *all,
		    uint32_t place, uint64_t *n_failed)
{
	uint64_t head = __atomic_load_n(&stack->head, __ATOMIC_RELAXED);

	for (;;) {
		__atomic_store_n(&all[place].next, (uint32_t)head,
				 __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(
			    &stack->head, &head, next_head(head, place + 1),
			    true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
		mr_counter_add(n_failed, 1);
	}
}

int64_t mri_stack_pop(struct mri_stack *stack, struct mri_magazine *all,
		      uint64_t *n_failed)
{
	uint64_t head = __atomic_load_n(&stack->head, __ATOMIC_ACQUIRE);

	while ((uint32_t)head != 0) {
		const uint32_t place = (uint32_t)head - 1;
		const uint32_t next =
			__atomic_load_n(&all[place].next, __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(
			    &stack->head, &head, next_head(head, next), true,
			    __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return place;
		mr_counter_add(n_failed, 1);
	}
	return -1;
}
