/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains of buckets, and how they are split and joined.
 *
 * All but the last bucket of a chain are full: the last entry replaces a
 * removed one. So there is at most one overflow bucket per seven records.
 *
 * Splitting redistributes the entries of a chain. Each bucket is copied and, if
 * it is an overflow bucket, freed before its entries move: two chains for the
 * entries of i full buckets need at most i - 2 overflow buckets, so the freed
 * ones suffice, and it cannot fail half way.
 */
#include <string.h>

#include "flow/flow.h"

_Static_assert(sizeof(struct mri_bucket) == 64, "a bucket is one cache line");

uint32_t mri_chain_find(const struct mr_flow_table *table,
			const struct mri_bucket *bucket, uint32_t hash,
			const void *key)
{
	for (; bucket != NULL; bucket = mri_bucket_next(table, bucket)) {
		uint32_t hits = mri_bucket_match(bucket, hash);

		for (; hits != 0; hits &= hits - 1) {
			const uint32_t id = bucket->ids[__builtin_ctz(hits)];

			if (memcmp(mr_flow_record(table, id), key,
				   table->key_bytes) == 0)
				return id;
		}
	}
	return MR_FLOW_NONE;
}

/* The record's index in a bucket; MRI_BUCKET_ENTRIES: not there. */
static uint32_t place_of(const struct mri_bucket *bucket, uint32_t id)
{
	for (uint32_t i = 0; i < bucket->n; i++)
		if (bucket->ids[i] == id)
			return i;
	return MRI_BUCKET_ENTRIES;
}

bool mri_chain_has(const struct mr_flow_table *table, uint32_t hash,
		   uint32_t id)
{
	const struct mri_bucket *bucket = mri_bucket_of(table, hash);

	for (; bucket != NULL; bucket = mri_bucket_next(table, bucket))
		if (place_of(bucket, id) < MRI_BUCKET_ENTRIES)
			return true;
	return false;
}

bool mri_chain_append(struct mr_flow_table *table, uint32_t hash, uint32_t id)
{
	struct mri_bucket *bucket = mri_bucket_of(table, hash);

	while (bucket->n == MRI_BUCKET_ENTRIES) {
		struct mri_bucket *next = mri_bucket_next(table, bucket);

		if (next == NULL) {
			const uint32_t item = mri_slab_take(&table->overflows);

			if (item == MR_FLOW_NONE)
				return false;
			next = mri_slab_at(&table->overflows, item);
			*next = (struct mri_bucket){ .n = 0 };
			bucket->next = item + 1;
		}
		bucket = next;
	}
	bucket->hashes[bucket->n] = hash;
	bucket->ids[bucket->n++] = id;
	return true;
}

bool mri_chain_remove(struct mr_flow_table *table, uint32_t hash, uint32_t id)
{
	struct mri_bucket *last = mri_bucket_of(table, hash), *hole = NULL;
	struct mri_bucket *before = NULL;
	uint32_t place = MRI_BUCKET_ENTRIES;

	for (;;) {
		struct mri_bucket *next = mri_bucket_next(table, last);

		if (hole == NULL) {
			place = place_of(last, id);
			if (place < MRI_BUCKET_ENTRIES)
				hole = last;
		}
		if (next == NULL)
			break;
		before = last;
		last = next;
	}
	if (hole == NULL)
		return false;
	last->n--;
	hole->hashes[place] = last->hashes[last->n];
	hole->ids[place] = last->ids[last->n];
	if (last->n == 0 && before != NULL) {
		mri_slab_put(&table->overflows, before->next - 1);
		before->next = 0;
	}
	return true;
}

/* Redistribute the entries of a chain that is no longer in the table. */
static void deal(struct mr_flow_table *table, struct mri_bucket bucket)
{
	for (;;) {
		const uint32_t next = bucket.next;

		for (uint32_t i = 0; i < bucket.n; i++)
			mri_chain_append(table, bucket.hashes[i],
					 bucket.ids[i]);
		if (next == 0)
			return;
		memcpy(&bucket, mri_slab_at(&table->overflows, next - 1),
		       sizeof(bucket));
		mri_slab_put(&table->overflows, next - 1);
	}
}

static bool is_load_above(const struct mr_flow_table *table, uint64_t n_buckets,
			  uint32_t quarters)
{
	return (uint64_t)table->records.n * 4 > n_buckets * quarters;
}

void mri_table_grow(struct mr_flow_table *table)
{
	const uint32_t n = table->n_buckets;
	const uint64_t end_bytes =
		(n + UINT64_C(1)) * sizeof(struct mri_bucket);
	struct mri_bucket *parent = &table->buckets[n - table->n_low];
	const struct mri_bucket chain = *parent;

	/* Without memory, chains just get longer. */
	if (!is_load_above(table, n, MRI_SPLIT_ABOVE) ||
	    !mri_space_ready(&table->bucket_space, end_bytes))
		return;
	if (table->touched_bytes < end_bytes)
		table->touched_bytes = end_bytes;
	*parent = table->buckets[n] = (struct mri_bucket){ .n = 0 };
	table->n_buckets++;
	if (table->n_buckets == 2 * table->n_low)
		table->n_low *= 2;
	deal(table, chain);
}

/* Free the space after the last bucket, in steps, to save system calls. */
static void give_buckets_back(struct mr_flow_table *table)
{
	const uint64_t end =
		(uint64_t)table->n_buckets * sizeof(struct mri_bucket);
	const uint64_t step =
		end > MRI_SPACE_STEP ? MRI_SPACE_STEP : MRI_SMALL_STEP;
	const uint64_t kept = mri_round_up(end, step);

	if (table->touched_bytes < kept + step)
		return;
	mri_space_give_back(&table->bucket_space, kept, table->touched_bytes);
	table->touched_bytes = kept;
}

void mri_table_shrink(struct mr_flow_table *table)
{
	const uint32_t last = table->n_buckets - 1;

	/* Joining two chains may need one more overflow bucket. */
	if (is_load_above(table, table->n_buckets, MRI_JOIN_BELOW) ||
	    last < table->n_min_buckets ||
	    !mri_slab_has_room(&table->overflows))
		return;
	table->n_buckets = last;
	if (table->n_buckets < table->n_low)
		table->n_low /= 2;
	deal(table, table->buckets[last]);
	give_buckets_back(table);
}
