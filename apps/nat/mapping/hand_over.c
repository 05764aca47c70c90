/* SPDX-License-Identifier: BSD-3-Clause */
/* Put a worker's tables into a parcel, and make copies of them: hand_over.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/experimental/flow_hand_over.h>

#include "hand_over.h"
#include "ports/entry.h"
#include "session.h"

enum { LAYOUT = 1 };

/* Entry "0/state". */
struct image {
	uint64_t created, expired, settings;
	uint32_t filtering[NAT_PROTOS];
	uint32_t first_port, last_port, shard, n_shards;
	uint32_t n_max_mappings, n_max_sessions, n_max_static;
	uint32_t n_mappings, n_sessions, n_static, n_one_to_ones, n_windows;
	uint32_t review, reviewed, has_logged, logged_s;
	uint32_t reserved;
};

_Static_assert(sizeof(struct image) == 104 &&
		       sizeof(struct nat_map) == 64 &&
		       sizeof(struct nat_further) == 64 &&
		       sizeof(struct nat_other) == 16 &&
		       sizeof(struct nat_subscriber) == 48 &&
		       sizeof(struct nat_window) == 32,
	       "another layout needs another number");

struct table {
	const char *what;
	struct mr_flow_table **table;
	uint32_t key_bytes, record_bytes;
};

enum { N_TABLES = 4 };

static void tables_of(struct nat_maps *maps, struct table tables[N_TABLES])
{
	tables[0] = (struct table){ "maps", &maps->table,
				    sizeof(struct nat_tuple),
				    sizeof(struct nat_map) };
	tables[1] = (struct table){ "others", &maps->others,
				    sizeof(struct nat_tuple),
				    sizeof(struct nat_other) };
	tables[2] = (struct table){ "sessions", &maps->sessions,
				    sizeof(struct nat_further_key),
				    sizeof(struct nat_further) };
	tables[3] = (struct table){ "subscribers", &maps->subscribers,
				    NAT_SUBSCRIBER_KEY,
				    sizeof(struct nat_subscriber) };
}

static struct image image_of(const struct nat_maps *maps)
{
	struct image image = {
		.created = maps->created,
		.expired = maps->expired,
		.settings = nat_config_digest(maps->config),
		.first_port = maps->config->ports.first,
		.last_port = maps->config->ports.last,
		.shard = maps->shard,
		.n_shards = maps->n_shards,
		.n_max_mappings = maps->n_max_mappings,
		.n_max_sessions = maps->n_max_sessions,
		.n_max_static = maps->n_max_static,
		.n_mappings = maps->n_mappings,
		.n_sessions = maps->n_sessions,
		.n_static = maps->n_static,
		.n_one_to_ones = maps->n_one_to_ones,
		.n_windows = maps->n_windows,
		.review = maps->review,
		.reviewed = maps->reviewed,
		.has_logged = maps->has_logged,
		.logged_s = maps->logged_s,
	};

	for (uint32_t i = 0; i < NAT_PROTOS; i++)
		image.filtering[i] = maps->filtering[i];
	return image;
}

void nat_maps_put(const struct nat_maps *maps, struct mr_parcel *parcel,
		  uint32_t i)
{
	const struct image image = image_of(maps);
	struct nat_maps same = *maps;
	struct table tables[N_TABLES];

	mr_parcel_put(parcel, nat_entry_name(i, "state").text, LAYOUT, &image,
		      sizeof(image));
	tables_of(&same, tables);
	for (uint32_t t = 0; t < N_TABLES; t++)
		mr_flow_put(*tables[t].table, parcel,
			    nat_entry_name(i, tables[t].what).text);
	mr_wheel_put(maps->wheel, parcel, nat_entry_name(i, "wheel").text);
	mr_wheel_put(maps->session_wheel, parcel,
		     nat_entry_name(i, "session-wheel").text);
	mr_parcel_lend(parcel, nat_entry_name(i, "windows").text, LAYOUT,
		       maps->windows,
		       maps->n_windows * sizeof(maps->windows[0]));
	nat_ports_put(maps->ports, parcel, i);
}

/* ---- in the next process ---- */

static int copy_tables(struct nat_maps *copy, const struct mr_parcel *parcel,
		       uint32_t worker_idx, struct mr_reason *ret_why)
{
	struct table tables[N_TABLES];
	int err = 0;

	tables_of(copy, tables);
	for (uint32_t t = 0; t < N_TABLES && err == 0; t++)
		err = mr_flow_take(
			copy->ctx, parcel,
			nat_entry_name(worker_idx, tables[t].what).text,
			tables[t].key_bytes, tables[t].record_bytes,
			tables[t].table, ret_why);
	if (err == 0)
		err = mr_wheel_take(copy->ctx, parcel,
				    nat_entry_name(worker_idx, "wheel").text,
				    &copy->wheel, ret_why);
	if (err == 0)
		err = mr_wheel_take(
			copy->ctx, parcel,
			nat_entry_name(worker_idx, "session-wheel").text,
			&copy->session_wheel, ret_why);
	return err;
}

static int copy_windows(struct nat_maps *copy, const struct mr_parcel *parcel,
			uint32_t worker_idx, struct mr_reason *ret_why)
{
	const uint32_t n_max = nat_maps_n_max(copy);

	if (copy->n_windows > n_max)
		return nat_entry_is_damaged(worker_idx, "state", 0, ret_why);
	copy->windows = calloc(n_max, sizeof(copy->windows[0]));
	if (copy->windows == NULL)
		return fail_with(ret_why, -ENOMEM, "no memory for windows");
	return mr_parcel_get(parcel, nat_entry_name(worker_idx, "windows").text,
			     LAYOUT, copy->windows,
			     copy->n_windows * sizeof(copy->windows[0]),
			     ret_why);
}

static void fill_copy(struct nat_maps *copy, const struct image *image)
{
	copy->created = image->created;
	copy->expired = image->expired;
	copy->settings = image->settings;
	copy->shard = image->shard;
	copy->n_shards = image->n_shards;
	copy->n_max_mappings = image->n_max_mappings;
	copy->n_max_sessions = image->n_max_sessions;
	copy->n_max_static = image->n_max_static;
	copy->n_mappings = image->n_mappings;
	copy->n_sessions = image->n_sessions;
	copy->n_static = image->n_static;
	copy->n_one_to_ones = image->n_one_to_ones;
	copy->n_windows = image->n_windows;
	copy->review = image->review;
	copy->reviewed = image->reviewed;
	copy->has_logged = image->has_logged != 0;
	copy->logged_s = image->logged_s;
	for (uint32_t i = 0; i < NAT_PROTOS; i++)
		copy->filtering[i] = (uint8_t)image->filtering[i];
}

int nat_maps_copy(struct nat_maps *own, const struct mr_parcel *parcel,
		  uint32_t worker_idx, struct nat_maps **ret_copy,
		  struct mr_reason *ret_why)
{
	struct nat_maps *copy;
	struct image image;
	int err = mr_parcel_get(parcel, nat_entry_name(worker_idx, "state").text,
				LAYOUT, &image, sizeof(image), ret_why);

	if (err == 0 && (image.n_shards == 0 ||
			 image.shard >= image.n_shards ||
			 image.review > NAT_REVIEW_SESSIONS))
		err = nat_entry_is_damaged(worker_idx, "state", 0, ret_why);
	if (err < 0)
		return err;
	copy = calloc(1, sizeof(*copy));
	if (copy == NULL)
		return fail_with(ret_why, -ENOMEM, "no memory");
	copy->ctx = own->ctx;
	copy->table = own->spare_table;
	copy->wheel = own->spare_wheel;
	own->spare_table = NULL;
	own->spare_wheel = NULL;
	fill_copy(copy, &image);
	err = copy_tables(copy, parcel, worker_idx, ret_why);
	if (err == 0)
		err = copy_windows(copy, parcel, worker_idx, ret_why);
	if (err == 0)
		err = nat_ports_copy(parcel, worker_idx, &copy->ports, ret_why);
	if (err < 0) {
		nat_maps_destroy(copy);
		return err;
	}
	copy->ports->config.first = (uint16_t)image.first_port;
	copy->ports->config.last = (uint16_t)image.last_port;
	copy->ports->subscribers = copy->subscribers;
	*ret_copy = copy;
	return 0;
}
