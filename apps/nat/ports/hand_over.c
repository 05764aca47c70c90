/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports in a parcel, as they lie: of the arrays only the sets that were ever
 * used. The ports that come out need no configuration until they are used.
 */
#include <errno.h>
#include <string.h>

#include "entry.h"
#include "ports_set.h"

enum { LAYOUT = 1 };

/* Entry "0/ports". */
struct image {
	uint64_t n_used, n_hold_down, n_static, n_touched;
	uint32_t n_slots, n_addrs_max, n_sets, set_words, shard, n_shards;
	uint32_t first_slot, end_slot, class_slot, n_addrs, n_ranges;
	uint32_t blocks_per_set, first_block, end_block, block_words;
	uint32_t hold_down_s, n_batches_max, first_batch, n_batches;
	uint32_t block;
};

_Static_assert(sizeof(struct image) == 112 &&
		       sizeof(struct nat_port_set) == 24 &&
		       sizeof(struct nat_block) == 16 &&
		       sizeof(struct nat_batch) == 8,
	       "another layout needs another number");

/* An array with a part for each set. */
struct array {
	const char *what;
	uint8_t *base;
	size_t set_bytes;
};

enum { N_ARRAYS = 3 };

static void arrays_of(const struct nat_ports *ports,
		      struct array arrays[N_ARRAYS])
{
	arrays[0] = (struct array){ "index", (uint8_t *)ports->index,
				    ports->n_slots * sizeof(*ports->index) };
	arrays[1] = (struct array){ "bits", (uint8_t *)ports->bits,
				    ports->set_words * sizeof(*ports->bits) };
	arrays[2] = (struct array){ "owners", (uint8_t *)ports->blocks,
				    ports->blocks_per_set *
					    sizeof(*ports->blocks) };
}

static struct image image_of(const struct nat_ports *ports)
{
	return (struct image){
		.n_used = ports->n_used,
		.n_hold_down = ports->n_hold_down,
		.n_static = ports->n_static,
		.n_touched = ports->n_touched,
		.n_slots = ports->n_slots,
		.n_addrs_max = ports->n_addrs_max,
		.n_sets = ports->n_sets,
		.set_words = ports->set_words,
		.shard = ports->shard,
		.n_shards = ports->n_shards,
		.first_slot = ports->first_slot,
		.end_slot = ports->end_slot,
		.class_slot = ports->class_slot,
		.n_addrs = ports->externals.n_addrs,
		.n_ranges = ports->externals.n_ranges,
		.blocks_per_set = ports->blocks_per_set,
		.first_block = ports->first_block,
		.end_block = ports->end_block,
		.block_words = ports->block_words,
		.hold_down_s = ports->hold_down_s,
		.n_batches_max = ports->n_batches_max,
		.first_batch = ports->first_batch,
		.n_batches = ports->n_batches,
		.block = ports->config.block,
	};
}

static void lend(struct mr_parcel *parcel, uint32_t i, const char *what,
		 const void *bytes, size_t n_bytes)
{
	mr_parcel_lend(parcel, nat_entry_name(i, what).text, LAYOUT, bytes,
		       n_bytes);
}

void nat_ports_put(const struct nat_ports *ports, struct mr_parcel *parcel,
		   uint32_t worker_idx)
{
	const struct image image = image_of(ports);
	const struct nat_externals *externals = &ports->externals;
	struct array arrays[N_ARRAYS];

	mr_parcel_put(parcel, nat_entry_name(worker_idx, "ports").text, LAYOUT,
		      &image, sizeof(image));
	mr_parcel_put(parcel, nat_entry_name(worker_idx, "ranges").text, LAYOUT,
		      externals->by_index,
		      externals->n_ranges * sizeof(externals->by_index[0]));
	lend(parcel, worker_idx, "sets", ports->sets,
	     ports->n_sets * sizeof(ports->sets[0]));
	lend(parcel, worker_idx, "batches", ports->batches,
	     ports->n_batches_max * sizeof(ports->batches[0]));
	lend(parcel, worker_idx, "full", ports->full_memory,
	     nat_full_bytes(ports));
	lend(parcel, worker_idx, "block-bits", ports->block_bits,
	     ports->blocks == NULL ? 0 : nat_block_bits_bytes(ports));
	arrays_of(ports, arrays);
	for (uint32_t a = 0; a < N_ARRAYS; a++) {
		lend(parcel, worker_idx, arrays[a].what, NULL, 0);
		for (uint32_t s = 0;
		     s < ports->n_sets && arrays[a].base != NULL; s++)
			if (ports->sets[s].is_touched)
				mr_parcel_lend(
					parcel, NULL, 0,
					arrays[a].base +
						s * arrays[a].set_bytes,
					arrays[a].set_bytes);
	}
}

/* ---- in the next process ---- */

static bool is_sound(const struct image *image)
{
	const uint32_t n_addrs = image->n_addrs_max;

	return image->n_slots > 0 && image->n_slots <= 65536 && n_addrs > 0 &&
	       image->n_addrs <= n_addrs &&
	       n_addrs <= NAT_INDEX_HOLD_DOWN / NAT_PROTOS / image->n_slots &&
	       image->n_sets == n_addrs * NAT_PROTOS &&
	       image->set_words ==
		       2 * nat_bits_memory(image->n_slots / 2) &&
	       image->n_shards > 0 && image->shard < image->n_shards &&
	       image->end_slot <= image->n_slots && image->n_batches_max > 1 &&
	       image->n_batches <= image->n_batches_max &&
	       image->first_batch < image->n_batches_max &&
	       (image->blocks_per_set == 0 ||
		(image->block > 0 &&
		 image->blocks_per_set ==
			 (image->n_slots + image->block - 1) / image->block &&
		 image->block_words ==
			 nat_bits_memory(image->blocks_per_set)));
}

/* Copy an entry of this size. */
static int get(const struct mr_parcel *parcel, uint32_t worker_idx,
		const char *what, void *to, size_t n_bytes,
		struct mr_reason *ret_why)
{
	return mr_parcel_get(parcel, nat_entry_name(worker_idx, what).text,
			     LAYOUT, to, n_bytes, ret_why);
}

static int copy_array(struct nat_ports *ports, const struct mr_parcel *parcel,
		      uint32_t worker_idx, const struct array *array,
		      struct mr_reason *ret_why)
{
	const void *bytes = NULL;
	size_t n_bytes = 0, at = 0;
	const int err = mr_parcel_find(
		parcel, nat_entry_name(worker_idx, array->what).text, LAYOUT,
		&bytes, &n_bytes, ret_why);

	if (err < 0 || array->base == NULL)
		return err;
	if (n_bytes != ports->n_touched * array->set_bytes)
		return nat_entry_is_damaged(worker_idx, array->what, 0,
					    ret_why);
	for (uint32_t s = 0; s < ports->n_sets && at < n_bytes; s++) {
		if (!ports->sets[s].is_touched)
			continue;
		memcpy(array->base + s * array->set_bytes,
		       (const uint8_t *)bytes + at, array->set_bytes);
		at += array->set_bytes;
	}
	return 0;
}

static int copy_all(struct nat_ports *ports, const struct mr_parcel *parcel,
		    uint32_t i, struct mr_reason *ret_why)
{
	struct array arrays[N_ARRAYS];
	uint64_t n_touched = 0;
	int err = get(parcel, i, "sets", ports->sets,
		       ports->n_sets * sizeof(ports->sets[0]), ret_why);

	if (err == 0)
		err = get(parcel, i, "batches", ports->batches,
			   ports->n_batches_max * sizeof(ports->batches[0]),
			   ret_why);
	if (err == 0)
		err = get(parcel, i, "full", ports->full_memory,
			   nat_full_bytes(ports), ret_why);
	if (err == 0 && ports->blocks != NULL)
		err = get(parcel, i, "block-bits", ports->block_bits,
			   nat_block_bits_bytes(ports), ret_why);
	for (uint32_t s = 0; s < ports->n_sets && err == 0; s++)
		n_touched += ports->sets[s].is_touched;
	if (err == 0 && n_touched != ports->n_touched)
		err = nat_entry_is_damaged(i, "sets", 0, ret_why);
	arrays_of(ports, arrays);
	for (uint32_t a = 0; a < N_ARRAYS && err == 0; a++)
		err = copy_array(ports, parcel, i, &arrays[a], ret_why);
	return err;
}

static int copy_ranges(struct nat_externals *externals,
		       const struct mr_parcel *parcel, uint32_t worker_idx,
		       const struct image *image, struct mr_reason *ret_why)
{
	if (image->n_ranges > image->n_addrs)
		return nat_entry_is_damaged(worker_idx, "ranges", 0, ret_why);
	if (!nat_externals_alloc(externals, image->n_ranges))
		return fail_with(ret_why, -ENOMEM, "no memory");
	externals->n_addrs = image->n_addrs;
	externals->n_ranges = image->n_ranges;
	return get(parcel, worker_idx, "ranges", externals->by_index,
		    image->n_ranges * sizeof(externals->by_index[0]), ret_why);
}

int nat_ports_copy(const struct mr_parcel *parcel, uint32_t worker_idx,
		   struct nat_ports **ret_ports, struct mr_reason *ret_why)
{
	struct nat_ports *ports = NULL;
	struct image image;
	int err = get(parcel, worker_idx, "ports", &image, sizeof(image),
		      ret_why);

	if (err == 0 && !is_sound(&image))
		err = nat_entry_is_damaged(worker_idx, "ports", 0, ret_why);
	if (err < 0)
		return err;
	ports = calloc(1, sizeof(*ports));
	if (ports == NULL)
		return fail_with(ret_why, -ENOMEM, "no memory");
	*ports = (struct nat_ports){
		.n_slots = image.n_slots,
		.n_addrs_max = image.n_addrs_max,
		.n_sets = image.n_sets,
		.set_words = image.set_words,
		.shard = image.shard,
		.n_shards = image.n_shards,
		.reciprocal = (1u << 20) / image.n_shards + 1,
		.first_slot = image.first_slot,
		.end_slot = image.end_slot,
		.class_slot = image.class_slot,
		.blocks_per_set = image.blocks_per_set,
		.first_block = image.first_block,
		.end_block = image.end_block,
		.block_words = image.block_words,
		.hold_down_s = image.hold_down_s,
		.first_batch = image.first_batch,
		.n_batches = image.n_batches,
		.config.block = (uint16_t)image.block,
		.n_used = image.n_used,
		.n_hold_down = image.n_hold_down,
		.n_static = image.n_static,
		.n_touched = image.n_touched,
	};
	if (nat_ports_alloc(ports, image.n_batches_max) < 0)
		err = fail_with(ret_why, -ENOMEM, "no memory for ports");
	if (err == 0)
		err = copy_ranges(&ports->externals, parcel, worker_idx, &image,
				  ret_why);
	if (err == 0)
		nat_externals_sort(&ports->externals);
	if (err == 0)
		err = copy_all(ports, parcel, worker_idx, ret_why);
	if (err == 0)
		*ret_ports = ports;
	else
		nat_ports_destroy(ports);
	return err;
}

bool nat_ports_is_like(const struct nat_ports *a, const struct nat_ports *b)
{
	return a->n_slots == b->n_slots && a->n_sets == b->n_sets &&
	       a->shard == b->shard && a->n_shards == b->n_shards &&
	       a->first_slot == b->first_slot && a->end_slot == b->end_slot &&
	       a->config.block == b->config.block &&
	       a->blocks_per_set == b->blocks_per_set &&
	       a->hold_down_s == b->hold_down_s &&
	       a->externals.n_addrs == b->externals.n_addrs &&
	       nat_externals_equal(&a->externals, &b->externals);
}

void nat_ports_replace(const struct nat_ports *ports, struct nat_ports *copy,
		       struct mr_flow_table *subscribers)
{
	copy->config = ports->config;
	copy->random = ports->random;
	copy->subscribers = subscribers;
	copy->log = ports->log;
	copy->opaque = ports->opaque;
	copy->is_paired = ports->is_paired;
}
