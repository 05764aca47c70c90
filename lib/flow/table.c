/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow tables: creation, single lookups, changes, iteration. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "flow/flow.h"

static int check_config(const struct mr_flow_config *c,
			struct mr_reason *reterr_reason)
{
	if (c->key_bytes < 4 || c->key_bytes > MR_FLOW_KEY_MAX ||
	    c->key_bytes % 4 != 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "keys of %u bytes: must be a multiple of 4 from "
			       "4 to %d",
			       c->key_bytes, MR_FLOW_KEY_MAX);
	if (c->record_bytes < c->key_bytes ||
	    c->record_bytes > MR_FLOW_RECORD_MAX || c->record_bytes % 8 != 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "records of %u bytes: must be a multiple of 8 "
			       "from the key size, %u, to %d",
			       c->record_bytes, c->key_bytes,
			       MR_FLOW_RECORD_MAX);
	if (c->n_max == 0 || c->n_max > INT32_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "at most %u records: must be 1 to %d", c->n_max,
			       INT32_MAX);
	if (c->n_start > c->n_max)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u initial records: more than n_max, %u",
			       c->n_start, c->n_max);
	if (c->reserved != 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_flow_config.reserved is %u, must be 0",
			       c->reserved);
	return 0;
}

static int draw_seed(uint64_t *ret_seed, struct mr_reason *reterr_reason)
{
	/* This short, it is never truncated; and it does not wait. */
	if (getrandom(ret_seed, sizeof(*ret_seed), GRND_NONBLOCK) < 0)
		return mr_fail(reterr_reason, -EIO,
			       "getrandom: %s; set a seed, or try later",
			       mr_strerror(errno));
	return 0;
}

/* The buckets that n records need without a split. */
static uint32_t buckets_for(uint32_t n)
{
	return (uint32_t)(((uint64_t)n * 4 + MRI_SPLIT_ABOVE - 1) /
			  MRI_SPLIT_ABOVE);
}

uint32_t mri_flow_min_buckets(uint32_t n_start)
{
	const uint32_t n = buckets_for(n_start);

	return n > MRI_MIN_BUCKETS ? n : MRI_MIN_BUCKETS;
}

static int init_buckets(struct mr_flow_table *table,
			const struct mr_flow_config *c)
{
	const uint32_t n_max = buckets_for(c->n_max);
	const uint32_t n = mri_flow_min_buckets(c->n_start);

	table->n_buckets = table->n_min_buckets = n;
	table->n_low = 1u << (31 - __builtin_clz(n));
	table->touched_bytes = (uint64_t)n * sizeof(struct mri_bucket);
	if (mri_space_reserve(&table->bucket_space,
			      (uint64_t)(n_max > n ? n_max : n) *
				      sizeof(struct mri_bucket)) < 0 ||
	    !mri_space_ready(&table->bucket_space, table->touched_bytes))
		return -ENOMEM;
	mri_space_touch(&table->bucket_space, table->touched_bytes);
	table->buckets = (struct mri_bucket *)table->bucket_space.base;
	return 0;
}

int mr_flow_create(struct mr_ctx *ctx, const struct mr_flow_config *config,
		   struct mr_flow_table **ret_table,
		   struct mr_reason *reterr_reason)
{
	struct mr_flow_table *table;
	struct mr_flow_config c;
	int err;

	err = mri_copy_sized(&c, config, sizeof(c), "mr_flow_config",
			     reterr_reason);
	if (err == 0)
		err = check_config(&c, reterr_reason);
	if (err == 0 && c.seed == 0)
		err = draw_seed(&c.seed, reterr_reason);
	if (err < 0)
		return err;

	table = mr_alloc(ctx, MRI_CACHE_LINE, sizeof(*table));
	if (table == NULL)
		goto no_memory;
	table->ctx = ctx;
	table->key_bytes = c.key_bytes;
	mri_hash_init(table->hash_keys, c.seed);
	/* One per seven records, and one while two chains are joined. */
	if (init_buckets(table, &c) < 0 ||
	    mri_slab_init(&table->overflows, ctx,
			  c.n_max / MRI_BUCKET_ENTRIES + 2,
			  sizeof(struct mri_bucket), 0) < 0 ||
	    mri_slab_init(&table->records, ctx, c.n_max, c.record_bytes,
			  c.n_start) < 0)
		goto free_table;
	table->head.records = table->records.space.base;
	table->head.record_bytes = c.record_bytes;
	*ret_table = table;
	return 0;

free_table:
	mr_flow_destroy(table);
no_memory:
	return mr_fail(reterr_reason, -ENOMEM,
		       "no memory for %u records of %u bytes, or no address "
		       "space for %u",
		       c.n_start, c.record_bytes, c.n_max);
}

void mr_flow_destroy(struct mr_flow_table *table)
{
	if (table == NULL)
		return;
	mri_slab_fini(&table->records, table->ctx);
	mri_slab_fini(&table->overflows, table->ctx);
	mri_space_free(&table->bucket_space);
	mr_free(table->ctx, table);
}

static uint32_t hash_of(const struct mr_flow_table *table, const void *key)
{
	return mri_hash(table->hash_keys, key, table->key_bytes);
}

uint32_t mr_flow_find(const struct mr_flow_table *table, const void *key)
{
	const uint32_t hash = hash_of(table, key);

	return mri_chain_find(table, mri_bucket_of(table, hash), hash, key);
}

int mr_flow_add(struct mr_flow_table *table, const void *key, uint32_t *ret_id)
{
	const uint32_t hash = hash_of(table, key);
	const uint32_t there =
		mri_chain_find(table, mri_bucket_of(table, hash), hash, key);
	uint8_t *record;
	uint32_t id;

	if (there != MR_FLOW_NONE) {
		*ret_id = there;
		return -EEXIST;
	}
	if (table->records.n == table->records.n_max)
		return -ENOSPC;
	id = mri_slab_take(&table->records);
	if (id == MR_FLOW_NONE)
		return -ENOMEM;
	if (!mri_chain_append(table, hash, id)) {
		mri_slab_put(&table->records, id);
		return -ENOMEM;
	}
	record = mr_flow_record(table, id);
	memcpy(record, key, table->key_bytes);
	memset(record + table->key_bytes, 0,
	       table->head.record_bytes - table->key_bytes);
	mri_table_grow(table);
	*ret_id = id;
	return 0;
}

/* Whether a record ever had this number: else it may have no memory. */
static bool was_used(const struct mri_slab *slab, uint32_t id)
{
	const uint32_t chunk = id >> slab->chunk_shift;
	const struct mri_chunk *c;

	if (id >= slab->n_max)
		return false;
	c = &slab->chunks[chunk];
	return c->n_used > 0 &&
	       id - (chunk << slab->chunk_shift) < c->n_touched;
}

void mr_flow_remove(struct mr_flow_table *table, uint32_t id)
{
	uint32_t hash;

	if (!was_used(&table->records, id))
		return;
	hash = hash_of(table, mr_flow_record(table, id));
	if (!mri_chain_remove(table, hash, id))
		return;
	mri_slab_put(&table->records, id);
	mri_table_shrink(table);
}

int mr_flow_stats(const struct mr_flow_table *table,
		  struct mr_flow_stats *stats)
{
	const struct mr_flow_stats s = {
		.n = table->records.n,
		.n_max = table->records.n_max,
		.n_buckets = table->n_buckets,
		.n_overflows = table->overflows.n,
		.bytes = sizeof(*table) + mri_slab_bytes(&table->records) +
			 mri_slab_bytes(&table->overflows) +
			 mri_space_taken(0, table->touched_bytes),
	};

	return mri_fill_sized(stats, &s, sizeof(s));
}

uint32_t mr_flow_next(const struct mr_flow_table *table, uint32_t id)
{
	const struct mri_slab *slab = &table->records;

	id++; /* MR_FLOW_NONE + 1 is 0 */
	while (id < slab->n_max) {
		const uint32_t chunk = id >> slab->chunk_shift;
		const struct mri_chunk *c = &slab->chunks[chunk];
		const uint32_t first = chunk << slab->chunk_shift;

		if (c->n_used == 0 || id - first >= c->n_touched)
			id = first + (1u << slab->chunk_shift);
		else if (mri_chain_has(
				 table,
				 hash_of(table, mr_flow_record(table, id)), id))
			return id;
		else
			id++;
	}
	return MR_FLOW_NONE;
}
