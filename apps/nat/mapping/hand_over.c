/* SPDX-License-Identifier: BSD-3-Clause */
/* What the old process puts into a parcel: see hand_over.h. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "hand_over.h"
#include "ports/entry.h"
#include "ports/ports_set.h"
#include "session.h"

_Static_assert(sizeof(struct nat_map_image) == 48 &&
		       sizeof(struct nat_session_image) == 56 &&
		       sizeof(struct nat_held_image) == 16 &&
		       sizeof(struct nat_block_image) == 16 &&
		       sizeof(struct nat_subscriber_image) == 16 &&
		       sizeof(struct nat_maps_image) == 64 &&
		       sizeof(struct nat_window) == 32,
	       "another layout needs another number");

enum { LAYOUT = 1 };

/* Put n records, and free them. NULL: no memory; the other process will miss
 * the entry, and refuse. */
static void put_records(struct mr_parcel *parcel, uint32_t worker_idx,
			const char *what, void *records, size_t n_bytes)
{
	if (records != NULL)
		mr_parcel_put(parcel, nat_entry_name(worker_idx, what).text,
			      LAYOUT, records, n_bytes);
	free(records);
}

static struct nat_map_image image_of(const struct nat_map *map)
{
	return (struct nat_map_image){
		.inside = map->inside,
		.outside = { map->outside_addr, map->outside_port },
		.remote = map->remote,
		.last_s = map->last_s,
		.remote_last_s = map->remote_last_s,
		.n_out = map->n_out,
		.n_in = map->n_in,
		.flags = map->flags & NAT_MAP_KIND,
		.tcp_state = map->tcp_state,
	};
}

static void put_maps(const struct nat_maps *maps, struct mr_parcel *parcel,
		     uint32_t worker_idx)
{
	const size_t n = (size_t)maps->n_mappings + maps->n_static + 1;
	struct nat_map_image *images = malloc(n * sizeof(images[0]));
	struct nat_window *windows = malloc(n * sizeof(windows[0]));
	size_t n_images = 0, n_windows = 0;
	uint32_t id = MR_FLOW_NONE;

	while (images != NULL && windows != NULL &&
	       (id = mr_flow_next(maps->table, id)) != MR_FLOW_NONE) {
		if (nat_maps_is_elsewhere(maps, id))
			continue;
		nat_rules_take(maps, id);
		images[n_images++] = image_of(nat_map_at(maps, id));
		if (nat_map_at(maps, id)->inside.proto == IPPROTO_TCP)
			windows[n_windows++] = maps->windows[id];
	}
	put_records(parcel, worker_idx, "maps", images,
		    n_images * sizeof(images[0]));
	put_records(parcel, worker_idx, "windows", windows,
		    n_windows * sizeof(windows[0]));
}

static void put_sessions(const struct nat_maps *maps, struct mr_parcel *parcel,
			 uint32_t worker_idx)
{
	struct nat_session_image *images =
		malloc((maps->n_sessions + 1ul) * sizeof(images[0]));
	uint32_t id = MR_FLOW_NONE, n = 0;

	while (images != NULL &&
	       (id = mr_flow_next(maps->sessions, id)) != MR_FLOW_NONE) {
		const struct nat_further *further = nat_further_at(maps, id);
		const struct nat_further_key *key = &further->key;

		if (key->kind != NAT_KIND_SESSION)
			continue;
		images[n++] = (struct nat_session_image){
			.inside = nat_map_at(maps, key->map_id)->inside,
			.remote = { key->addr, key->port },
			.last_s = further->last_s,
			.tcp_state = further->tcp_state,
			.window = further->window,
		};
	}
	put_records(parcel, worker_idx, "sessions", images,
		    n * sizeof(images[0]));
}

static void put_held(const struct nat_maps *maps, struct mr_parcel *parcel,
		     uint32_t worker_idx)
{
	const struct nat_ports *ports = maps->ports;
	struct nat_held_image *images =
		malloc((ports->n_hold_down + 1) * sizeof(images[0]));
	uint32_t place = NAT_PLACE_NONE, n = 0, freed_s, owner_id;

	while (images != NULL && n < ports->n_hold_down) {
		place = nat_ports_next_held(ports, place, &freed_s);
		if (place == NAT_PLACE_NONE)
			break;
		owner_id = nat_blocks_owner(ports, place);
		images[n++] = (struct nat_held_image){
			.addr = htonl(nat_ports_addr_of(ports, place)),
			.owner = owner_id == MR_FLOW_NONE ?
					 0 :
					 nat_subscriber_at(maps->subscribers,
							   owner_id)
						 ->addr,
			.freed_s = freed_s,
			.port = htons(nat_ports_port_of(ports, place)),
			.proto = nat_ip_proto_of(ports, place),
		};
	}
	put_records(parcel, worker_idx, "held", images, n * sizeof(images[0]));
}

/* Blocks, as the log has them. */
struct blocks {
	struct nat_block_image *images; /* NULL: no memory */
	uint32_t n, n_max;
};

static void add_block(void *opaque, const struct nat_log_event *event)
{
	struct blocks *blocks = opaque;
	struct nat_block_image *more;

	if (blocks->n == blocks->n_max && blocks->images != NULL) {
		blocks->n_max *= 2;
		more = realloc(blocks->images,
			       blocks->n_max * sizeof(blocks->images[0]));
		if (more == NULL)
			free(blocks->images);
		blocks->images = more;
	}
	if (blocks->images == NULL)
		return;
	blocks->images[blocks->n++] = (struct nat_block_image){
		.addr = event->outside_addr,
		.owner = event->inside_addr,
		.port = event->outside_port,
		.n_ports = event->n_ports,
		.proto = event->proto,
	};
}

static void put_blocks(const struct nat_maps *maps, struct mr_parcel *parcel,
		       uint32_t worker_idx)
{
	struct blocks blocks = { .n_max = 256 };
	uint32_t id = MR_FLOW_NONE;

	blocks.images = malloc(blocks.n_max * sizeof(blocks.images[0]));
	while ((id = mr_flow_next(maps->subscribers, id)) != MR_FLOW_NONE)
		nat_blocks_tell(maps->ports, id, add_block, &blocks);
	put_records(parcel, worker_idx, "blocks", blocks.images,
		    blocks.n * sizeof(blocks.images[0]));
}

static void put_subscribers(const struct nat_maps *maps,
			    struct mr_parcel *parcel, uint32_t worker_idx)
{
	struct mr_flow_stats stats = { .size = sizeof(stats) };
	struct nat_subscriber_image *images;
	uint32_t id = MR_FLOW_NONE, n = 0;

	mr_flow_stats(maps->subscribers, &stats);
	images = malloc((stats.n + 1ul) * sizeof(images[0]));
	while (images != NULL &&
	       (id = mr_flow_next(maps->subscribers, id)) != MR_FLOW_NONE) {
		const struct nat_subscriber *s =
			nat_subscriber_at(maps->subscribers, id);

		images[n++] = (struct nat_subscriber_image){
			.addr = s->addr,
			.external = s->external == 0 ?
					    0 :
					    htonl(nat_external_addr(
						    &maps->ports->externals,
						    s->external - 1)),
			.has_logged = s->has_logged,
			.logged_s = s->logged_s,
		};
	}
	put_records(parcel, worker_idx, "subscribers", images,
		    n * sizeof(images[0]));
}

void nat_maps_put(const struct nat_maps *maps, struct mr_parcel *parcel,
		  uint32_t worker_idx)
{
	const struct nat_port_config *ports = &maps->ports->config;
	struct nat_maps_image image = {
		.created = maps->created,
		.expired = maps->expired,
		.first_port = ports->first,
		.last_port = ports->last,
		.block = ports->block,
		.shard = maps->shard,
		.n_shards = maps->n_shards,
		.has_logged = maps->has_logged,
		.logged_s = maps->logged_s,
	};

	for (uint32_t i = 0; i < NAT_PROTOS; i++)
		image.filtering[i] = maps->filtering[i];
	mr_parcel_put(parcel, nat_entry_name(worker_idx, "state").text, LAYOUT,
		      &image, sizeof(image));
	put_maps(maps, parcel, worker_idx);
	put_sessions(maps, parcel, worker_idx);
	put_held(maps, parcel, worker_idx);
	put_blocks(maps, parcel, worker_idx);
	put_subscribers(maps, parcel, worker_idx);
}

/* ---- in the next process ---- */

static int check_maps(uint32_t worker_idx, const struct nat_maps_state *state,
		      struct mr_reason *ret_why)
{
	uint32_t n_windows = 0;

	for (uint32_t i = 0; i < state->n_maps; i++) {
		const struct nat_map_image *map = &state->maps[i];
		const bool is_tcp = map->inside.proto == IPPROTO_TCP;

		n_windows += is_tcp;
		if (map->tcp_state >= NAT_TCP_STATES ||
		    (map->tcp_state != NAT_TCP_CLOSED && !is_tcp) ||
		    (map->flags & ~NAT_MAP_KIND) != 0 ||
		    map->inside.reserved != 0 || map->inside.addr == 0 ||
		    map->outside.addr == 0)
			return nat_entry_is_damaged(worker_idx, "maps", i,
						    ret_why);
	}
	if (n_windows != state->n_windows)
		return nat_entry_is_damaged(worker_idx, "windows", n_windows,
					    ret_why);
	return 0;
}

static int check_sessions(uint32_t worker_idx,
			  const struct nat_maps_state *state,
			  struct mr_reason *ret_why)
{
	for (uint32_t i = 0; i < state->n_sessions; i++)
		if (state->sessions[i].tcp_state >= NAT_TCP_STATES ||
		    state->sessions[i].remote.addr == 0 ||
		    nat_proto_of(state->sessions[i].inside.proto) == NAT_PROTOS)
			return nat_entry_is_damaged(worker_idx, "sessions", i,
						    ret_why);
	for (uint32_t i = 0; i < state->n_held; i++)
		if (nat_proto_of(state->held[i].proto) == NAT_PROTOS)
			return nat_entry_is_damaged(worker_idx, "held", i,
						    ret_why);
	for (uint32_t i = 0; i < state->n_blocks; i++)
		if (nat_proto_of(state->blocks[i].proto) == NAT_PROTOS)
			return nat_entry_is_damaged(worker_idx, "blocks", i,
						    ret_why);
	return 0;
}

int nat_maps_find(const struct mr_parcel *parcel, uint32_t worker_idx,
		  struct nat_maps_state *ret, struct mr_reason *ret_why)
{
	uint32_t n_states = 0;
	const struct {
		const char *what;
		uint32_t record_bytes;
		const void **records;
		uint32_t *n;
	} entries[] = {
		{ "state", sizeof(*ret->state), (const void **)&ret->state,
		  &n_states },
		{ "maps", sizeof(*ret->maps), (const void **)&ret->maps,
		  &ret->n_maps },
		{ "windows", sizeof(*ret->windows),
		  (const void **)&ret->windows, &ret->n_windows },
		{ "sessions", sizeof(*ret->sessions),
		  (const void **)&ret->sessions, &ret->n_sessions },
		{ "held", sizeof(*ret->held), (const void **)&ret->held,
		  &ret->n_held },
		{ "blocks", sizeof(*ret->blocks), (const void **)&ret->blocks,
		  &ret->n_blocks },
		{ "subscribers", sizeof(*ret->subscribers),
		  (const void **)&ret->subscribers, &ret->n_subscribers },
	};
	int err = 0;

	for (uint32_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		err = nat_entry_find(parcel, worker_idx, entries[i].what,
				     LAYOUT, entries[i].record_bytes,
				     entries[i].records, entries[i].n, ret_why);
		if (err < 0)
			return err;
	}
	if (n_states != 1)
		return nat_entry_is_damaged(worker_idx, "state", n_states,
					    ret_why);
	err = check_maps(worker_idx, ret, ret_why);
	return err < 0 ? err : check_sessions(worker_idx, ret, ret_why);
}
