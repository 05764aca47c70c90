/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside a flow table.
 *
 *     hash --> bucket: 7 x { hash, record number } --> overflow bucket
 *                             |
 *                             +--> record: key, the program's data
 *
 * Linear hashing (W. Litwin, 1980): there are n_low buckets, a power of two,
 * plus one for each of these that has been split. One is split when there are
 * too many records; the last one is joined with its origin when there are few
 * enough.
 *
 * space.c reserves addresses, and slab.c hands out memory in numbered items:
 * records and overflow buckets.
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
	MRI_SMALL_STEP = 64 << 10, /* if there is no memory for that */
	MRI_BUCKET_ENTRIES = 7,
	/* A bucket is split above 7/2 records per bucket, joined below 7/4. */
	MRI_SPLIT_ABOVE = 14, /* quarters */
	MRI_JOIN_BELOW = 7,
	MRI_MIN_BUCKETS = 8,
};

/* A fixed address range, with memory at its start. */
struct mri_space {
	uint8_t *base; /* 2 MiB aligned; NULL: none */
	uint64_t max_bytes;
	uint64_t ready_bytes; /* writable */
};

/* -ENOMEM if there is no such address range. All of it reads as zero. */
int mri_space_reserve(struct mri_space *space, uint64_t max_bytes);
void mri_space_free(struct mri_space *space);
/* Make it writable up to end_bytes. False: no memory. */
bool mri_space_ready(struct mri_space *space, uint64_t end_bytes);
/* Allocate the memory now, rather than on first write. */
void mri_space_touch(struct mri_space *space, uint64_t end_bytes);
/*
 * Free what was written from begin, which is OS page aligned, to end: it stays
 * writable, and reads as zero.
 */
void mri_space_give_back(struct mri_space *space, uint64_t begin_bytes,
			 uint64_t end_bytes);
/* Memory the kernel has allocated if all from begin to end was written. */
uint64_t mri_space_taken(uint64_t begin_bytes, uint64_t end_bytes);

/* Items of a slab on separate OS pages. */
struct mri_chunk {
	uint32_t n_used;
	uint32_t n_touched;  /* ever used, from the first on */
	uint32_t free;       /* item; its first word has the next */
	uint32_t prev, next; /* chunks; of those with room, or freed */
};

/* Items with fixed numbers; memory is freed by chunks. */
struct mri_slab {
	struct mri_space space;
	uint32_t n; /* used */
	uint32_t n_max;
	uint32_t item_bytes;
	uint32_t chunk_shift;           /* log2 of the items in a chunk */
	uint32_t n_started;             /* chunks used since it was empty */
	uint32_t room_first, room_last; /* chunks in use with a free item */
	uint32_t returned;              /* freed chunks */
	uint64_t start_bytes;           /* allocated at once and kept */
	struct mri_chunk *chunks;
};

int mri_slab_init(struct mri_slab *slab, struct mr_ctx *ctx, uint32_t n_max,
		  uint32_t item_bytes, uint32_t n_start);
void mri_slab_fini(struct mri_slab *slab, struct mr_ctx *ctx);
/* Whether the next item is available; makes it so if possible. */
bool mri_slab_has_room(struct mri_slab *slab);
/* An item's number, or MR_FLOW_NONE if there is no memory or no more items. */
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
	uint32_t n_low; /* largest power of two up to n_buckets */
	uint32_t key_bytes;
	uint32_t n_min_buckets;
	uint64_t hash_keys[4];
	struct mri_slab overflows;
	struct mri_slab records;
	struct mri_space bucket_space;
	uint64_t touched_bytes; /* of it; the rest was freed */
	struct mr_ctx *ctx;
};

/* What a table never has fewer of. */
uint32_t mri_flow_min_buckets(uint32_t n_start);

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

/* Bit i: entry i has this hash. */
static inline uint32_t mri_bucket_match(const struct mri_bucket *bucket,
					uint32_t hash)
{
	uint32_t hits = 0;
#ifdef __SSE2__
	/* Two times four; the eighth is n, which the mask below excludes. */
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

/* Search a chain by key, starting at this bucket. */
uint32_t mri_chain_find(const struct mr_flow_table *table,
			const struct mri_bucket *bucket, uint32_t hash,
			const void *key);
bool mri_chain_has(const struct mr_flow_table *table, uint32_t hash,
		   uint32_t id);
/* False: it needs another bucket and there is no memory. */
bool mri_chain_append(struct mr_flow_table *table, uint32_t hash, uint32_t id);
/* False: no such entry. */
bool mri_chain_remove(struct mr_flow_table *table, uint32_t hash, uint32_t id);

/* Split a bucket if the table is too full, join two if it is too empty. */
void mri_table_grow(struct mr_flow_table *table);
void mri_table_shrink(struct mr_flow_table *table);

#endif
