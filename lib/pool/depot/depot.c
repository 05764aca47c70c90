/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The depot's stacks of magazines: last in, first out, so that the most
 * recently freed pages, still in a core's cache, leave first.
 *
 * A pop reads the next magazine's place from a magazine that another thread may
 * have popped meanwhile. It reads memory that stays a magazine, and uses the
 * result only if the compare-and-swap finds the head unchanged, including the
 * tag. The tag has 32 bits: it fails only if a thread sleeps through exactly
 * 2^32 pushes and pops between load and swap.
 *
 * The line of a head is requested for writing at once: a load would fetch it
 * from the core that has it, and the swap would go there again.
 *
 * Order: the release in push, on the head, pairs with the acquire in pop; it
 * hands over the magazine's pages and everything that was written into them.
 */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "pool/depot/magazine.h"

static uint64_t next_head(uint64_t head, uint32_t place_plus_1)
{
	return ((head >> 32) + 1) << 32 | place_plus_1;
}

static uint32_t *links_of(const struct mri_stack *stack, uint32_t place)
{
	return (uint32_t *)(void *)(stack->elements +
				    (size_t)place * stack->element_bytes);
}

void mri_stack_init(struct mri_stack *stack, void *elements,
		    uint32_t element_bytes)
{
	stack->head = 0;
	stack->elements = elements;
	stack->element_bytes = element_bytes;
	stack->has_links = false;
}

/*
 * The links of an element that is to lie on the one at head. What is below a
 * head stays as it is until the head changes, so they are right if the swap
 * succeeds.
 */
static inline void set_links(const struct mri_stack *stack, uint32_t *links,
			     uint64_t head)
{
	static const uint32_t none[MRI_STACK_LINKS];
	const uint32_t below = (uint32_t)head;
	const uint32_t *from = none;

	__atomic_store_n(&links[0], below, __ATOMIC_RELAXED);
	if (!stack->has_links)
		return;
	if (below != 0)
		from = links_of(stack, below - 1);
	for (uint32_t i = 1; i < MRI_STACK_LINKS; i++)
		__atomic_store_n(&links[i],
				 __atomic_load_n(&from[i - 1],
						 __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

void mri_stack_push(struct mri_stack *stack, uint32_t place, uint64_t *n_failed)
{
	uint32_t *links = links_of(stack, place);
	uint64_t head;

	mri_prefetch_to_write(stack);
	head = __atomic_load_n(&stack->head, __ATOMIC_RELAXED);
	for (;;) {
		set_links(stack, links, head);
		if (__atomic_compare_exchange_n(
			    &stack->head, &head, next_head(head, place + 1),
			    true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
		mr_counter_add(n_failed, 1);
	}
}

int64_t mri_stack_pop(struct mri_stack *stack, uint64_t *n_failed)
{
	uint64_t head;

	mri_prefetch_to_write(stack);
	head = __atomic_load_n(&stack->head, __ATOMIC_ACQUIRE);
	while ((uint32_t)head != 0) {
		const uint32_t place = (uint32_t)head - 1;
		const uint32_t next = __atomic_load_n(links_of(stack, place),
						      __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(
			    &stack->head, &head, next_head(head, next), true,
			    __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return place;
		mr_counter_add(n_failed, 1);
	}
	return -1;
}

/*
 * Add an element and those that it has links to to places[], until there are n.
 * Returns the place + 1 of the next one.
 */
static uint32_t follow_links(const struct mri_stack *stack, uint32_t next,
			     uint32_t *places, uint32_t n, uint32_t *n_got)
{
	const uint32_t *links = links_of(stack, next - 1);
	const uint32_t n_links = stack->has_links ? MRI_STACK_LINKS : 1;

	for (uint32_t i = 0; i < n_links && *n_got < n && next != 0; i++) {
		places[(*n_got)++] = next - 1;
		next = __atomic_load_n(&links[i], __ATOMIC_RELAXED);
	}
	return next;
}

uint32_t mri_stack_pop_bulk(struct mri_stack *stack, uint32_t *places,
			    uint32_t n, uint64_t *n_failed)
{
	uint64_t head;

	mri_prefetch_to_write(stack);
	head = __atomic_load_n(&stack->head, __ATOMIC_ACQUIRE);
	while ((uint32_t)head != 0) {
		uint32_t next = (uint32_t)head, n_got = 0;

		/* As in pop: what was read counts if the head is unchanged. */
		while (n_got < n && next != 0)
			next = follow_links(stack, next, places, n, &n_got);
		if (__atomic_compare_exchange_n(
			    &stack->head, &head, next_head(head, next), true,
			    __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return n_got;
		mr_counter_add(n_failed, 1);
	}
	return 0;
}

/* It may go astray on an element popped meanwhile, but stops at max. */
uint32_t mri_stack_n(const struct mri_stack *stack, uint32_t max)
{
	uint32_t next =
		(uint32_t)__atomic_load_n(&stack->head, __ATOMIC_ACQUIRE);
	uint32_t n;

	for (n = 0; n < max && next != 0; n++)
		next = __atomic_load_n(links_of(stack, next - 1),
				       __ATOMIC_RELAXED);
	return n;
}

uint32_t mri_magazine_default(uint64_t n, uint32_t max_caches)
{
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (max_caches == 0)
		max_caches = n_cpus > 0 ? (uint32_t)n_cpus : 1;
	return mr_magazine_default_pages(
		n < UINT32_MAX ? (uint32_t)n : UINT32_MAX, max_caches);
}

int mri_depot_init(struct mri_depot *depot, uint32_t max_magazines,
		   uint32_t n_magazines, uint32_t magazine_pages)
{
	/* Pairs of lines, none shared: CPUs prefetch a line's other half. */
	depot->magazine_bytes =
		mri_round_up(offsetof(struct mri_magazine, numbers[0]) +
				     magazine_pages * sizeof(uint32_t),
			     2 * MRI_CACHE_LINE);
	depot->magazine_pages = magazine_pages;
	depot->magazines =
		mri_table_alloc(max_magazines * depot->magazine_bytes,
				n_magazines * depot->magazine_bytes);
	if (depot->magazines == NULL)
		return -ENOMEM;
	mri_stack_init(&depot->filled, depot->magazines, depot->magazine_bytes);
	mri_stack_init(&depot->empty, depot->magazines, depot->magazine_bytes);
	mri_depot_grow(depot, n_magazines);
	return 0;
}

void mri_depot_grow(struct mri_depot *depot, uint32_t n_magazines)
{
	uint64_t n_failed = 0;

	for (uint32_t i = depot->n_magazines; i < n_magazines; i++) {
		mri_depot_at(depot, i)->place = i;
		__atomic_store_n(&depot->n_magazines, i + 1, __ATOMIC_RELAXED);
		mri_stack_push(&depot->empty, i, &n_failed);
	}
}

void mri_depot_fini(struct mri_depot *depot)
{
	mri_table_free(depot->magazines);
}
