/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside a flow table.
 *
 *     hash --> bucket: 7 x { hash, number of the record } --> overflow bucket
 *                             |
 *                             +--> record: key, what the program keeps
 *
 * Linear hashing (W. Litwin, 1980): there are n_low buckets, a power of two,
 * and as many more as of these have been split. One is split when a record too
 * many has come, the last one is joined with where it came from when enough
 * have gone.
 *
 * Memory is reserved as addresses (space.c), and handed out as numbered items
 * (slab.c): records and overflow buckets.
 */
#ifndef FLOW_FLOW_H
#define FLOW_FLOW_H

#include <stdbool.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <millrace/flow.h>

#include "base/base.h"

enum {
	MRI_SPACE_STEP = 1 << 21,  /* made writable at a time: a huge page */
	MRI_SMALL_STEP = 64 << 10, /* kept where there is not even that */
	MRI_BUCKET_ENTRIES = 7,
	/* A bucket is split above 7/2 records a bucket, joined below 7/4. */
	MRI_SPLIT_ABOVE = 14, /* quarters */
	MRI_JOIN_BELOW = 7,
	MRI_MIN_BUCKETS = 8,
};

/* Addresses that stay, and memory behind the first of them. */
struct mri_space {
	uint8_t *base; /* of 2 MiB aligned addresses; NULL: none */
	uint64_t max_bytes;
	uint64_t ready_bytes; /* writable */
};

/* -ENOMEM if there are no such addresses. All of it reads as zero. */
int mri_space_reserve(struct mri_space *space, uint64_t max_bytes);
void mri_space_free(struct mri_space *space);
/* Make it writable up to there. False: no memory. */
bool mri_space_ready(struct mri_space *space, uint64_t end_bytes);
/* Take the memory now, rather than when it is first written. */
void mri_space_touch(struct mri_space *space, uint64_t end_bytes);
/*
 * Give back what was written from begin, a border of OS pages, to end: it stays
 * writable, and reads as zero.
 */
void mri_space_give_back(struct mri_space *space, uint64_t begin_bytes,
			 uint64_t end_bytes);
/* What the kernel has given where all from begin to end was written. */
uint64_t mri_space_taken(uint64_t begin_bytes, uint64_t end_bytes);

/* Items of a slab that lie in OS pages of their own. */
struct mri_chunk {
	uint32_t n_used;
	uint32_t n_touched;  /* that have ever been used, from the first on */
	uint32_t free;       /* item; the next one is in its first word */
	uint32_t prev, next; /* chunk; among those with room, or given back */
};

/* Items with numbers that stay; memory goes back by the chunk. */
struct mri_slab {
	struct mri_space space;
	uint32_t n; /* used */
	uint32_t n_max;
	uint32_t item_bytes;
	uint32_t chunk_shift; /* log2 of the items in a chunk */
	uint32_t n_started; /* chunks that have been used since it was empty */
	uint32_t room_first, room_last; /* chunks in use that have a place */
	uint32_t returned;              /* chunks that were given back */
	uint64_t start_bytes;           /* taken at once and kept */
	struct mri_chunk *chunks;
};

int mri_slab_init(struct mri_slab *slab, struct mr_ctx *ctx, uint32_t n_max,
		  uint32_t item_bytes, uint32_t n_start);
void mri_slab_fini(struct mri_slab *slab, struct mr_ctx *ctx);
/* Whether the next item can be had; makes it so if it can. */
bool mri_slab_has_room(struct mri_slab *slab);
/* An item's number, MR_FLOW_NONE if there is no memory, or n_max are used. */
uint32_t mri_slab_take(struct mri_slab *slab);
/* Taking as many as were put needs no memory, so it cannot fail. */
void mri_slab_put(struct mri_slab *slab, uint32_t item);
uint64_t mri_slab_bytes(const struct mri_slab *slab);

static inline void *mri_slab_at(const struct mri_slab *slab, uint32_t item)
{
	return slab->space.base + (uint64_t)item * slab->item_bytes;
}

/* One cache line. All but the last bucket of a chain are full. */
struct mri_bucket {
	uint32_t hashes[MRI_BUCKET_ENTRIES];
	uint32_t n;
	uint32_t ids[MRI_BUCKET_ENTRIES];
	uint32_t next; /* overflow bucket, plus 1; 0: none */
};

struct mr_flow_table {
	struct mr_flow_head head; /* first */
	struct mri_bucket *buckets;
	uint32_t n_buckets;
	uint32_t n_low; /* largest power of two that is not above n_buckets */
	uint32_t key_bytes;
	uint32_t n_min_buckets;
	uint64_t hash_keys[4];
	struct mri_slab overflows;
	struct mri_slab records;
	struct mri_space bucket_space;
	uint64_t touched_bytes; /* of it; what is behind has been given back */
	struct mr_ctx *ctx;
};

static inline struct mri_bucket *
mri_bucket_of(const struct mr_flow_table *table, uint32_t hash)
{
	uint32_t i = hash & (2 * table->n_low - 1);

	if (i >= table->n_buckets)
		i &= table->n_low - 1;
	return &table->buckets[i];
}

static inline struct mri_bucket *
mri_bucket_next(const struct mr_flow_table *table,
		const struct mri_bucket *bucket)
{
	return bucket->next == 0 ?
		       NULL :
		       mri_slab_at(&table->overflows, bucket->next - 1);
}

/* Bit i is set where entry i has this hash. */
static inline uint32_t mri_bucket_match(const struct mri_bucket *bucket,
					uint32_t hash)
{
	uint32_t hits = 0;
#ifdef __SSE2__
	/* Two times four; the eighth is n, which the mask below leaves out. */
	const __m128i *at = (const __m128i *)bucket->hashes;
	const __m128i wanted = _mm_set1_epi32((int)hash);
	const __m128i low = _mm_cmpeq_epi32(_mm_load_si128(at), wanted);
	const __m128i high = _mm_cmpeq_epi32(_mm_load_si128(at + 1), wanted);

	hits = (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(low)) |
	       (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(high)) << 4;
#else
	for (uint32_t i = 0; i < MRI_BUCKET_ENTRIES; i++)
		hits |= (uint32_t)(bucket->hashes[i] == hash) << i;
#endif
	return hits & ((1u << bucket->n) - 1);
}

/* Search a chain by key, beginning with this bucket. */
uint32_t mri_chain_find(const struct mr_flow_table *table,
			const struct mri_bucket *bucket, uint32_t hash,
			const void *key);
bool mri_chain_has(const struct mr_flow_table *table, uint32_t hash,
		   uint32_t id);
/* False: it needs another bucket and there is no memory. */
bool mri_chain_append(struct mr_flow_table *table, uint32_t hash, uint32_t id);
/* False: there is no such entry. */
bool mri_chain_remove(struct mr_flow_table *table, uint32_t hash, uint32_t id);

/* Split a bucket if the table is too full, join two if it is too empty. */
void mri_table_grow(struct mr_flow_table *table);
void mri_table_shrink(struct mr_flow_table *table);

#endif
