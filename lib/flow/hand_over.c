/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow tables in parcels: buckets, overflow buckets and records as they lie,
 * and of each chunk of these how it is used.
 *
 *     name     struct table_image, then the buckets
 *     name.o   of the overflow buckets: their chunks; name.p: all that were used
 *     name.r   the same of the records; name.q
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <millrace/experimental/flow_hand_over.h>

#include "flow/flow.h"

enum { LAYOUT = 1 };

struct slab_image {
	uint32_t n, n_max, item_bytes, n_started;
	uint32_t room_first, room_last, returned;
	uint32_t n_start; /* items allocated at once */
};

struct table_image {
	uint32_t key_bytes, n_buckets;
	uint64_t hash_keys[4];
	struct slab_image overflows, records;
};

_Static_assert(sizeof(struct table_image) == 104 &&
		       sizeof(struct mri_chunk) == 20 &&
		       sizeof(struct mri_bucket) == 64,
	       "another layout needs another number");

/* Of chunks, and of their items. */
static const char *const of_overflows[] = { ".o", ".p" };
static const char *const of_records[] = { ".r", ".q" };

struct name {
	char text[MR_PARCEL_NAME_BYTES];
};

static struct name name_of(const char *name, const char *suffix)
{
	struct name all;

	snprintf(all.text, sizeof(all.text), "%.36s%s", name, suffix);
	return all;
}

static struct slab_image image_of(const struct mri_slab *slab)
{
	return (struct slab_image){
		.n = slab->n,
		.n_max = slab->n_max,
		.item_bytes = slab->item_bytes,
		.n_started = slab->n_started,
		.room_first = slab->room_first,
		.room_last = slab->room_last,
		.returned = slab->returned,
		.n_start = (uint32_t)(slab->start_bytes / slab->item_bytes),
	};
}

static void put_slab(const struct mri_slab *slab, struct mr_parcel *parcel,
		     const char *name, const char *const suffixes[2])
{
	mr_parcel_put(parcel, name_of(name, suffixes[0]).text, LAYOUT, slab->chunks,
		      slab->n_started * sizeof(slab->chunks[0]));
	mr_parcel_lend(parcel, name_of(name, suffixes[1]).text, LAYOUT, NULL,
		       0);
	for (uint32_t i = 0; i < slab->n_started; i++)
		mr_parcel_lend(parcel, NULL, 0,
			       mri_slab_at(slab, i << slab->chunk_shift),
			       (size_t)slab->chunks[i].n_touched *
				       slab->item_bytes);
}

void mr_flow_put(const struct mr_flow_table *table, struct mr_parcel *parcel,
		 const char *name)
{
	struct table_image image = {
		.key_bytes = table->key_bytes,
		.n_buckets = table->n_buckets,
		.overflows = image_of(&table->overflows),
		.records = image_of(&table->records),
	};

	memcpy(image.hash_keys, table->hash_keys, sizeof(image.hash_keys));
	mr_parcel_put(parcel, name, LAYOUT, &image, sizeof(image));
	mr_parcel_lend(parcel, NULL, 0, table->buckets,
		       table->n_buckets * sizeof(struct mri_bucket));
	put_slab(&table->overflows, parcel, name, of_overflows);
	put_slab(&table->records, parcel, name, of_records);
}

/* ---- take ---- */

static int fail_damaged(const char *name, struct mr_reason *reterr_reason)
{
	return mr_fail(reterr_reason, -EPROTO,
		       "the table %s of the state is damaged", name);
}

/* Whether the chunks are those of such a slab, and have so many bytes. */
static bool is_slab(const struct mri_slab *slab, const struct slab_image *image,
		    const struct mri_chunk *chunks, size_t n_chunk_bytes,
		    size_t n_bytes)
{
	const uint32_t n_items = 1u << slab->chunk_shift;
	uint64_t n_touched = 0, n_used = 0;

	if (image->item_bytes != slab->item_bytes ||
	    image->n_max != slab->n_max ||
	    n_chunk_bytes != image->n_started * sizeof(chunks[0]) ||
	    ((uint64_t)image->n_started << slab->chunk_shift) >=
		    (uint64_t)slab->n_max + n_items)
		return false;
	for (uint32_t i = 0; i < image->n_started; i++) {
		if (chunks[i].n_touched > n_items ||
		    chunks[i].n_used > chunks[i].n_touched)
			return false;
		n_touched += chunks[i].n_touched;
		n_used += chunks[i].n_used;
	}
	return n_used == image->n && n_touched * slab->item_bytes == n_bytes;
}

static int take_slab(struct mri_slab *slab, const struct slab_image *image,
		     const struct mr_parcel *parcel, const char *name,
		     const char *const suffixes[2],
		     struct mr_reason *reterr_reason)
{
	const void *chunks = NULL, *items = NULL;
	size_t n_chunk_bytes = 0, n_bytes = 0, n;
	const uint8_t *from;
	int err = mr_parcel_find(parcel, name_of(name, suffixes[0]).text, LAYOUT,
				 &chunks, &n_chunk_bytes, reterr_reason);

	if (err == 0)
		err = mr_parcel_find(parcel, name_of(name, suffixes[1]).text,
				     LAYOUT, &items, &n_bytes, reterr_reason);
	if (err == 0 && !is_slab(slab, image, chunks, n_chunk_bytes, n_bytes))
		err = fail_damaged(name, reterr_reason);
	if (err == 0 &&
	    !mri_space_ready(&slab->space,
			     ((uint64_t)image->n_started << slab->chunk_shift) *
				     slab->item_bytes))
		err = mr_fail(reterr_reason, -ENOMEM, "no memory for %s", name);
	if (err < 0)
		return err;
	memcpy(slab->chunks, chunks, n_chunk_bytes);
	from = items;
	for (uint32_t i = 0; i < image->n_started; i++, from += n) {
		n = (size_t)slab->chunks[i].n_touched * slab->item_bytes;
		memcpy(mri_slab_at(slab, i << slab->chunk_shift), from, n);
	}
	slab->n = image->n;
	slab->n_started = image->n_started;
	slab->room_first = image->room_first;
	slab->room_last = image->room_last;
	slab->returned = image->returned;
	return 0;
}

static int take_buckets(struct mr_flow_table *table,
			const struct table_image *image, const void *buckets,
			const char *name, struct mr_reason *reterr_reason)
{
	const uint64_t n_bytes =
		(uint64_t)image->n_buckets * sizeof(struct mri_bucket);

	if (image->n_buckets < table->n_min_buckets)
		return fail_damaged(name, reterr_reason);
	if (!mri_space_ready(&table->bucket_space, n_bytes))
		return mr_fail(reterr_reason, -ENOMEM, "no memory for %s",
			       name);
	memcpy(table->buckets, buckets, n_bytes);
	table->n_buckets = image->n_buckets;
	table->n_low = 1u << (31 - __builtin_clz(image->n_buckets));
	if (table->touched_bytes < n_bytes)
		table->touched_bytes = n_bytes;
	memcpy(table->hash_keys, image->hash_keys, sizeof(image->hash_keys));
	return 0;
}

/* The memory of a table without records becomes that of the image's. False: it
 * has another size. */
static bool reuse(struct mr_flow_table *table, const struct table_image *image)
{
	const struct slab_image *records = &image->records;

	if (table->records.n != 0 || table->key_bytes != image->key_bytes ||
	    table->records.item_bytes != records->item_bytes ||
	    table->records.n_max != records->n_max)
		return false;
	table->n_min_buckets = mri_flow_min_buckets(records->n_start);
	table->records.start_bytes =
		(uint64_t)records->n_start * records->item_bytes;
	return true;
}

int mr_flow_take(struct mr_ctx *ctx, const struct mr_parcel *parcel,
		 const char *name, uint32_t key_bytes, uint32_t record_bytes,
		 struct mr_flow_table **inout_table,
		 struct mr_reason *reterr_reason)
{
	struct mr_flow_config config = { .size = sizeof(config), .seed = 1 };
	struct mr_flow_table *table = *inout_table;
	struct table_image image;
	const void *bytes = NULL;
	size_t n_bytes = 0;
	int err = mr_parcel_find(parcel, name, LAYOUT, &bytes, &n_bytes,
				 reterr_reason);

	if (err < 0)
		return err;
	if (n_bytes < sizeof(image))
		return fail_damaged(name, reterr_reason);
	memcpy(&image, bytes, sizeof(image));
	if (image.key_bytes != key_bytes ||
	    image.records.item_bytes != record_bytes ||
	    n_bytes - sizeof(image) !=
		    (uint64_t)image.n_buckets * sizeof(struct mri_bucket))
		return fail_damaged(name, reterr_reason);
	*inout_table = NULL;
	if (table != NULL && !reuse(table, &image)) {
		mr_flow_destroy(table);
		table = NULL;
	}
	config.key_bytes = image.key_bytes;
	config.record_bytes = image.records.item_bytes;
	config.n_max = image.records.n_max;
	config.n_start = image.records.n_start;
	if (table == NULL)
		err = mr_flow_create(ctx, &config, &table, reterr_reason);
	if (err < 0)
		return err;
	err = take_buckets(table, &image, (const uint8_t *)bytes + sizeof(image),
			   name, reterr_reason);
	if (err == 0)
		err = take_slab(&table->overflows, &image.overflows, parcel,
				name, of_overflows, reterr_reason);
	if (err == 0)
		err = take_slab(&table->records, &image.records, parcel, name,
				of_records, reterr_reason);
	if (err == 0)
		*inout_table = table;
	else
		mr_flow_destroy(table);
	return err;
}
