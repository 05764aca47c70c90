/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_frag.h"

enum {
	BLOCK_BYTES = 32768,
	BLOCK_SHIFT = 15,
	BIAS = 32768,
	NONE = UINT32_MAX,
	MAX_LOCAL = 8, /* blocks on a thread's list; half are moved */
};

/* Aligned like a struct page: to a cache line. */
struct block {
	alignas(64) uint32_t n_refs;
	uint32_t next;
};

struct list {
	alignas(64) uint32_t first;
	uint32_t n;
};

struct kernel_frags {
	uint32_t block; /* the current block; or NONE */
	uint32_t offset, bias;
	uint32_t n_bytes, align; /* of a frag */
	uint32_t n_blocks;
	uint8_t *bytes;
	struct list local[2];
	struct list shared;
	alignas(64) pthread_spinlock_t lock; /* of `shared` */
	struct block blocks[];
};

static void push_block(struct kernel_frags *frags, struct list *list,
		       uint32_t block)
{
	frags->blocks[block].next = list->first;
	list->first = block;
	list->n++;
}

static uint32_t pop_block(struct kernel_frags *frags, struct list *list)
{
	const uint32_t block = list->first;

	if (block == NONE)
		return NONE;
	list->first = frags->blocks[block].next;
	list->n--;
	return block;
}

struct kernel_frags *kernel_frags_make(uint32_t n_blocks, uint32_t n_bytes,
				       uint32_t align)
{
	const size_t n_all =
		sizeof(struct kernel_frags) + n_blocks * sizeof(struct block);
	struct kernel_frags *frags = aligned_alloc(64, n_all);

	if (frags == NULL)
		return NULL;
	memset(frags, 0, n_all);
	frags->bytes = aligned_alloc(2 << 20, (size_t)n_blocks * BLOCK_BYTES);
	if (frags->bytes == NULL) {
		free(frags);
		return NULL;
	}
	memset(frags->bytes, 0, (size_t)n_blocks * BLOCK_BYTES);
	frags->block = NONE;
	frags->n_bytes = n_bytes;
	frags->align = align;
	frags->n_blocks = n_blocks;
	frags->local[0].first = frags->local[1].first = NONE;
	frags->shared.first = NONE;
	pthread_spin_init(&frags->lock, PTHREAD_PROCESS_PRIVATE);
	for (uint32_t i = n_blocks; i > 0; i--)
		push_block(frags, &frags->shared, i - 1);
	return frags;
}

void kernel_frags_free(void *state)
{
	struct kernel_frags *frags = state;

	pthread_spin_destroy(&frags->lock);
	free(frags->bytes);
	free(frags);
}

uint64_t kernel_frags_pinned(const struct kernel_frags *frags)
{
	const uint32_t n_free =
		frags->shared.n + frags->local[0].n + frags->local[1].n;

	return (uint64_t)(frags->n_blocks - n_free) * BLOCK_BYTES;
}

static void free_block(struct kernel_frags *frags, uint32_t thread,
		       uint32_t block)
{
	struct list *local = &frags->local[thread];

	push_block(frags, local, block);
	if (local->n <= MAX_LOCAL)
		return;
	pthread_spin_lock(&frags->lock);
	while (local->n > MAX_LOCAL / 2)
		push_block(frags, &frags->shared, pop_block(frags, local));
	pthread_spin_unlock(&frags->lock);
}

static uint32_t alloc_block(struct kernel_frags *frags)
{
	struct list *local = &frags->local[0];

	if (local->n == 0) {
		pthread_spin_lock(&frags->lock);
		for (uint32_t i = 0; i < MAX_LOCAL / 2; i++) {
			const uint32_t block = pop_block(frags, &frags->shared);

			if (block == NONE)
				break;
			push_block(frags, local, block);
		}
		pthread_spin_unlock(&frags->lock);
	}
	return pop_block(frags, local);
}

/* Get a whole block: the current one, if nobody else has part of it. */
static bool refill_cache(struct kernel_frags *frags)
{
	if (frags->block != NONE) {
		struct block *old = &frags->blocks[frags->block];

		if (__atomic_sub_fetch(&old->n_refs, frags->bias,
				       __ATOMIC_ACQ_REL) == 0) {
			__atomic_store_n(&old->n_refs, BIAS + 1,
					 __ATOMIC_RELAXED);
			frags->bias = BIAS + 1;
			frags->offset = 0;
			return true;
		}
	}
	frags->block = alloc_block(frags);
	if (frags->block == NONE)
		return false;
	__atomic_store_n(&frags->blocks[frags->block].n_refs, BIAS + 1,
			 __ATOMIC_RELAXED);
	frags->bias = BIAS + 1;
	frags->offset = 0;
	return true;
}

static uint8_t *in_hand(const struct kernel_frags *frags, uint32_t offset)
{
	return frags->bytes + ((size_t)frags->block << BLOCK_SHIFT) + offset;
}

/* Where a frag would begin in the current block, whether it fits or not. */
static uint32_t next_offset(const struct kernel_frags *frags, uint32_t align)
{
	return (frags->offset + align - 1) & -align;
}

static bool fits_block(const struct kernel_frags *frags, uint32_t offset,
		       uint32_t n_bytes)
{
	return frags->block != NONE && offset + n_bytes <= BLOCK_BYTES;
}

void *kernel_frag_cut(struct kernel_frags *frags, uint32_t n_bytes,
		      uint32_t align)
{
	uint32_t offset = next_offset(frags, align);

	if (!fits_block(frags, offset, n_bytes)) {
		if (!refill_cache(frags))
			return NULL;
		offset = 0;
	}
	frags->bias--;
	frags->offset = offset + n_bytes;
	return in_hand(frags, offset);
}

void *kernel_frag_alloc(struct kernel_frags *frags)
{
	return kernel_frag_cut(frags, frags->n_bytes, frags->align);
}

void *kernel_frag_probe(struct kernel_frags *frags)
{
	const uint32_t offset = next_offset(frags, frags->align);

	return fits_block(frags, offset, frags->n_bytes) ?
		       in_hand(frags, offset) :
		       NULL;
}

void *kernel_frag_prepare(struct kernel_frags *frags)
{
	void *data = kernel_frag_probe(frags);

	return data == NULL && refill_cache(frags) ? in_hand(frags, 0) : data;
}

void kernel_frag_commit(struct kernel_frags *frags, const void *data)
{
	frags->bias--;
	frags->offset = (uint32_t)((const uint8_t *)data - in_hand(frags, 0)) +
			frags->n_bytes;
}

bool kernel_frag_abort(struct kernel_frags *frags, const void *data,
		       uint32_t n_bytes)
{
	if ((const uint8_t *)data + n_bytes != in_hand(frags, frags->offset))
		return false;
	frags->bias++;
	frags->offset -= n_bytes;
	return true;
}

void kernel_frag_free(struct kernel_frags *frags, uint32_t thread, void *data)
{
	const uint32_t block =
		(uint32_t)((uint64_t)((uint8_t *)data - frags->bytes) >>
			   BLOCK_SHIFT);

	if (__atomic_sub_fetch(&frags->blocks[block].n_refs, 1,
			       __ATOMIC_ACQ_REL) == 0)
		free_block(frags, thread, block);
}
