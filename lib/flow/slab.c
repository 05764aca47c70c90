/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Items with numbers: records, and overflow buckets.
 *
 * They lie in chunks, the smallest number of items that ends at a 2 MiB
 * boundary. A chunk without used items is freed if another one has room, so
 * that one item that comes and goes does not allocate and free memory each
 * time; with the last item, all are freed. New items fill one chunk after the
 * other, so that the others become empty.
 *
 * The free items of a chunk are a list through their first words: last in,
 * first out, since the last is in the cache.
 */
#include <errno.h>
#include <string.h>

#include "flow/flow.h"

static uint64_t chunk_bytes(const struct mri_slab *slab)
{
	return (uint64_t)slab->item_bytes << slab->chunk_shift;
}

static uint32_t chunk_items(const struct mri_slab *slab, uint32_t chunk)
{
	const uint32_t first = chunk << slab->chunk_shift;

	return mri_min_u32(slab->n_max - first, 1u << slab->chunk_shift);
}

int mri_slab_init(struct mri_slab *slab, struct mr_ctx *ctx, uint32_t n_max,
		  uint32_t item_bytes, uint32_t n_start)
{
	uint64_t n_chunks;

	*slab = (struct mri_slab){ .n_max = n_max,
				   .item_bytes = item_bytes,
				   .room_first = MR_FLOW_NONE,
				   .room_last = MR_FLOW_NONE,
				   .returned = MR_FLOW_NONE };
	slab->chunk_shift = (uint32_t)(__builtin_ctz(MRI_SPACE_STEP) -
				       __builtin_ctz(item_bytes));
	n_chunks = ((uint64_t)n_max + (1u << slab->chunk_shift) - 1) >>
		   slab->chunk_shift;
	slab->chunks = mr_alloc(ctx, 0, n_chunks * sizeof(slab->chunks[0]));
	if (slab->chunks == NULL)
		return -ENOMEM;
	slab->start_bytes = (uint64_t)n_start * item_bytes;
	if (mri_space_reserve(&slab->space, n_chunks * chunk_bytes(slab)) < 0 ||
	    !mri_space_ready(&slab->space, slab->start_bytes)) {
		mri_slab_fini(slab, ctx);
		return -ENOMEM;
	}
	mri_space_touch(&slab->space, slab->start_bytes);
	return 0;
}

void mri_slab_fini(struct mri_slab *slab, struct mr_ctx *ctx)
{
	mri_space_free(&slab->space);
	mr_free(ctx, slab->chunks);
	slab->chunks = NULL;
}

static void append_room(struct mri_slab *slab, uint32_t chunk)
{
	struct mri_chunk *c = &slab->chunks[chunk];

	c->prev = slab->room_last;
	c->next = MR_FLOW_NONE;
	if (c->prev == MR_FLOW_NONE)
		slab->room_first = chunk;
	else
		slab->chunks[c->prev].next = chunk;
	slab->room_last = chunk;
}

static void remove_room(struct mri_slab *slab, uint32_t chunk)
{
	const struct mri_chunk *c = &slab->chunks[chunk];

	if (c->prev == MR_FLOW_NONE)
		slab->room_first = c->next;
	else
		slab->chunks[c->prev].next = c->next;
	if (c->next == MR_FLOW_NONE)
		slab->room_last = c->prev;
	else
		slab->chunks[c->next].prev = c->prev;
}

bool mri_slab_has_room(struct mri_slab *slab)
{
	const uint64_t n_bytes = chunk_bytes(slab);
	uint32_t chunk = slab->returned;

	if (slab->n == slab->n_max)
		return false;
	if (slab->room_first != MR_FLOW_NONE)
		return true;
	if (chunk != MR_FLOW_NONE) {
		slab->returned = slab->chunks[chunk].next;
	} else {
		chunk = slab->n_started;
		if (!mri_space_ready(&slab->space, (chunk + 1) * n_bytes))
			return false;
		slab->n_started++;
	}
	slab->chunks[chunk] = (struct mri_chunk){ .free = MR_FLOW_NONE };
	append_room(slab, chunk);
	return true;
}

uint32_t mri_slab_take(struct mri_slab *slab)
{
	struct mri_chunk *c;
	uint32_t chunk, item;

	if (!mri_slab_has_room(slab))
		return MR_FLOW_NONE;
	chunk = slab->room_first;
	c = &slab->chunks[chunk];
	if (c->free != MR_FLOW_NONE) {
		item = c->free;
		memcpy(&c->free, mri_slab_at(slab, item), sizeof(c->free));
	} else {
		item = (chunk << slab->chunk_shift) + c->n_touched++;
	}
	if (++c->n_used == chunk_items(slab, chunk))
		remove_room(slab, chunk);
	slab->n++;
	return item;
}

/* After the initially requested ones. */
static void give_back(struct mri_slab *slab, uint32_t chunk)
{
	const uint64_t kept = mri_space_taken(0, slab->start_bytes);
	uint64_t begin = chunk * chunk_bytes(slab);
	const uint64_t end = begin + (uint64_t)slab->chunks[chunk].n_touched *
					     slab->item_bytes;

	if (begin < kept)
		begin = kept;
	if (begin < end)
		mri_space_give_back(&slab->space, begin, end);
	slab->chunks[chunk].n_touched = 0;
}

/* The last item was freed: begin again with the first chunk. */
static void start_again(struct mri_slab *slab)
{
	uint32_t chunk = slab->room_first;

	if (chunk == 0 && slab->room_last == 0 &&
	    slab->chunks[0].n_touched * (uint64_t)slab->item_bytes <=
		    MRI_SMALL_STEP)
		return;
	for (; chunk != MR_FLOW_NONE; chunk = slab->chunks[chunk].next)
		give_back(slab, chunk);
	slab->n_started = 0;
	slab->returned = MR_FLOW_NONE;
	slab->room_first = slab->room_last = MR_FLOW_NONE;
}

void mri_slab_put(struct mri_slab *slab, uint32_t item)
{
	const uint32_t chunk = item >> slab->chunk_shift;
	struct mri_chunk *c = &slab->chunks[chunk];

	if (c->n_used == chunk_items(slab, chunk))
		append_room(slab, chunk);
	memcpy(mri_slab_at(slab, item), &c->free, sizeof(c->free));
	c->free = item;
	c->n_used--;
	slab->n--;
	if (c->n_used > 0)
		return;
	if (slab->n == 0) {
		start_again(slab);
	} else if (slab->room_first != slab->room_last) {
		remove_room(slab, chunk);
		give_back(slab, chunk);
		c->next = slab->returned;
		slab->returned = chunk;
	}
}

uint64_t mri_slab_bytes(const struct mri_slab *slab)
{
	const uint64_t kept = mri_space_taken(0, slab->start_bytes);
	uint64_t n = kept;

	for (uint32_t i = 0; (i << slab->chunk_shift) < slab->n_max; i++) {
		const uint64_t begin = i * chunk_bytes(slab);
		const uint64_t taken = mri_space_taken(
			begin, begin + (uint64_t)slab->chunks[i].n_touched *
					       slab->item_bytes);

		if (begin + taken > kept)
			n += begin + taken - (begin > kept ? begin : kept);
	}
	return n;
}
