/* SPDX-License-Identifier: BSD-3-Clause */
/* What the new process does with it: see hand_over.h. */
#include <arpa/inet.h>

#include "hand_over.h"
#include "ports/ports_set.h"
#include "session.h"

/* A worker's entries on their way into maps. */
struct taking {
	struct nat_maps *const *maps;
	uint32_t n; /* of these */
	const struct nat_maps_state *state;
	uint32_t now_s;
};

static struct nat_maps *maps_of(const struct taking *t, uint32_t inside_addr)
{
	return t->maps[nat_steer_subscriber(inside_addr, t->n)];
}

/* The mapping that a static one of the old process was; MR_FLOW_NONE: the
 * configuration does not have it. */
static uint32_t find_static(const struct nat_maps *maps,
			    const struct nat_map_image *image)
{
	const uint32_t id = mr_flow_find(maps->table, &image->inside);
	const struct nat_map *map;

	if (id == MR_FLOW_NONE)
		return MR_FLOW_NONE;
	map = nat_map_at(maps, id);
	return (map->flags & NAT_MAP_KIND) == image->flags &&
			       map->outside_addr == image->outside.addr &&
			       map->outside_port == image->outside.port ?
		       id :
		       MR_FLOW_NONE;
}

/* One that is not static. MR_FLOW_NONE: it is not allowed. */
static uint32_t make_mapping(struct nat_maps *maps,
			     const struct nat_map_image *image, uint32_t now_s)
{
	const uint32_t ordinal = nat_subscriber_ordinal(
		&maps->static_ends.ordinals, image->inside.addr);
	uint32_t id;

	nat_maps_find_out(maps, &image->inside, 1, &id);
	if (id != MR_FLOW_NONE || ordinal == NAT_NO_ORDINAL ||
	    !nat_maps_has_outside(maps, image->inside.proto, image->outside) ||
	    nat_map_make(maps, &image->inside, ordinal, image->outside,
			 image->last_s, now_s, &id) != NAT_OK)
		return MR_FLOW_NONE;
	return id;
}

static void log_end(const struct nat_maps *maps,
		    const struct nat_map_image *image, uint32_t now_s)
{
	const struct nat_map map = {
		.inside = image->inside,
		.outside_addr = image->outside.addr,
		.outside_port = image->outside.port,
	};

	nat_map_log(maps, &map, now_s, false);
}

/* Returns whether it ended. */
static bool take_mapping(const struct taking *t,
			 const struct nat_map_image *image,
			 const struct nat_window *window)
{
	const bool is_static = image->flags & NAT_MAP_STATIC;
	struct nat_maps *maps = maps_of(t, image->inside.addr);
	const uint32_t id = is_static ? find_static(maps, image) :
					make_mapping(maps, image, t->now_s);
	struct nat_map *map;

	if (id == MR_FLOW_NONE) {
		if (!is_static)
			log_end(maps, image, t->now_s);
		maps->expired += !is_static;
		return !is_static;
	}
	map = nat_map_at(maps, id);
	map->last_s = image->last_s;
	map->remote = image->remote;
	map->remote_last_s = image->remote_last_s;
	map->tcp_state = image->tcp_state;
	map->n_out = image->n_out;
	map->n_in = image->n_in;
	if (window != NULL)
		maps->windows[id] = *window;
	nat_map_set_timer(maps, id);
	return false;
}

static uint32_t take_mappings(const struct taking *t)
{
	const struct nat_window *window = t->state->windows;
	uint32_t n_ended = 0;

	for (uint32_t i = 0; i < t->state->n_maps; i++) {
		const struct nat_map_image *image = &t->state->maps[i];
		const bool is_tcp = image->inside.proto == IPPROTO_TCP;

		n_ended += take_mapping(t, image, is_tcp ? window : NULL);
		window += is_tcp;
	}
	return n_ended;
}

/* Returns whether it ended, though its mapping did not. */
static bool take_session(const struct taking *t,
			 const struct nat_session_image *image)
{
	struct nat_maps *maps = maps_of(t, image->inside.addr);
	const uint32_t id = mr_flow_find(maps->table, &image->inside);
	const uint32_t proto = nat_proto_of(image->inside.proto);

	if (id == MR_FLOW_NONE)
		return false;
	/* Those of UDP and ICMP exist for the filter. */
	if ((proto != NAT_TCP &&
	     maps->filtering[proto] != t->state->state->filtering[proto]) ||
	    nat_further_find(maps, id, image->remote) != MR_FLOW_NONE ||
	    nat_further_add(maps, id, image->remote, image->tcp_state,
			    image->last_s) != NAT_OK)
		return true;
	nat_further_at(maps, nat_map_at(maps, id)->sessions - 1)->window =
		image->window;
	return false;
}

static void take_held(const struct taking *t,
		      const struct nat_held_image *image)
{
	const struct nat_session session = {
		.inside = { .addr = image->owner, .proto = image->proto },
		.outside = { image->addr, image->port },
		.flags = NAT_MAP_RESTS,
		.age_s = t->now_s - image->freed_s,
	};

	for (uint32_t i = 0; i < t->n; i++)
		if (nat_maps_restore(t->maps[i], &session, t->now_s) == 0)
			return;
}

static void take_subscriber(const struct taking *t,
			    const struct nat_subscriber_image *image)
{
	struct nat_maps *maps = maps_of(t, image->addr);
	const uint32_t id = mr_flow_find(maps->subscribers, &image->addr);
	const uint32_t external = nat_external_index(&maps->ports->externals,
						     ntohl(image->external));
	struct nat_subscriber *subscriber;

	if (id == MR_FLOW_NONE)
		return;
	subscriber = nat_subscriber_at(maps->subscribers, id);
	if (image->external != 0 && external != NAT_EXTERNAL_NONE)
		subscriber->external = external + 1;
	subscriber->has_logged = image->has_logged != 0;
	subscriber->logged_s = image->logged_s;
}

static bool has_same_blocks(const struct nat_maps *maps,
			    const struct nat_maps_image *image)
{
	const struct nat_port_config *ports = &maps->ports->config;

	return image->first_port == ports->first &&
	       image->last_port == ports->last &&
	       image->block == ports->block && image->shard == maps->shard &&
	       image->n_shards == maps->n_shards;
}

/* Whether its owner still has it. */
static bool has_block(const struct nat_maps *maps,
		      const struct nat_block_image *image)
{
	const struct nat_tuple outside = { image->addr, image->port,
					   image->proto, 0 };
	const uint32_t place = nat_place_of(maps->ports, &outside);
	const uint32_t owner_id = place == NAT_PLACE_NONE ?
					  MR_FLOW_NONE :
					  nat_blocks_owner(maps->ports, place);

	return owner_id != MR_FLOW_NONE &&
	       nat_subscriber_at(maps->subscribers, owner_id)->addr ==
		       image->owner;
}

/* Log the end of blocks; of all, or of those that nobody has any more. */
static void end_blocks(const struct taking *t, const struct nat_maps *maps,
		       bool all)
{
	for (uint32_t i = 0; i < t->state->n_blocks; i++) {
		const struct nat_block_image *image = &t->state->blocks[i];
		const struct nat_log_event event = {
			.what = NAT_LOG_BLOCK_END,
			.now_s = t->now_s,
			.proto = image->proto,
			.inside_addr = image->owner,
			.outside_addr = image->addr,
			.outside_port = image->port,
			.n_ports = image->n_ports,
		};

		if (maps->log != NULL && (all || !has_block(maps, image)))
			maps->log(maps->opaque, &event);
	}
}

/* Enter what begins nothing and counts nothing. */
static uint32_t take_all(const struct taking *t)
{
	const struct nat_maps_state *state = t->state;
	uint32_t n_ended = take_mappings(t);

	for (uint32_t i = 0; i < state->n_sessions; i++)
		n_ended += take_session(t, &state->sessions[i]);
	for (uint32_t i = 0; i < state->n_held; i++)
		take_held(t, &state->held[i]);
	for (uint32_t i = 0; i < state->n_subscribers; i++)
		take_subscriber(t, &state->subscribers[i]);
	return n_ended;
}

uint32_t nat_maps_take(struct nat_maps *const *maps, uint32_t n,
		       uint32_t worker_idx, const struct nat_maps_state *state,
		       uint32_t now_s)
{
	struct nat_maps *own = maps[worker_idx % n];
	const bool same_blocks = has_same_blocks(own, state->state);
	const struct taking t = { maps, n, state, now_s };
	uint32_t n_ended;

	if (!same_blocks)
		end_blocks(&t, own, true);
	for (uint32_t i = 0; i < n; i++) {
		maps[i]->is_taking = true;
		if (same_blocks)
			maps[i]->ports->log = NULL;
	}
	n_ended = take_all(&t);
	for (uint32_t i = 0; i < n; i++) {
		maps[i]->is_taking = false;
		maps[i]->ports->log = maps[i]->log;
	}
	if (same_blocks)
		end_blocks(&t, own, false);
	own->created += state->state->created;
	own->expired += state->state->expired;
	own->has_logged = state->state->has_logged != 0;
	own->logged_s = state->state->logged_s;
	return n_ended;
}
