/* SPDX-License-Identifier: BSD-3-Clause */
/* What the new process does with the copy of a worker's tables: hand_over.h. */
#include <arpa/inet.h>

#include "hand_over.h"
#include "ports/ports_set.h"
#include "session.h"

/* The records of a copy on their way into maps. */
struct taking {
	struct nat_maps *const *maps;
	uint32_t n; /* of these */
	struct nat_maps *copy;
	uint32_t now_s;
};

static struct nat_maps *maps_of(const struct taking *t, uint32_t inside_addr)
{
	return t->maps[nat_steer_subscriber(inside_addr, t->n)];
}

/* The mapping that a static one of the old process was; MR_FLOW_NONE: the
 * configuration does not have it. */
static uint32_t find_static(const struct nat_maps *maps,
			    const struct nat_map *was)
{
	const uint32_t id = mr_flow_find(maps->table, &was->inside);
	const struct nat_map *map;

	if (id == MR_FLOW_NONE)
		return MR_FLOW_NONE;
	map = nat_map_at(maps, id);
	return ((map->flags ^ was->flags) & NAT_MAP_KIND) == 0 &&
			       map->outside_addr == was->outside_addr &&
			       map->outside_port == was->outside_port ?
		       id :
		       MR_FLOW_NONE;
}

/* One that is not static. MR_FLOW_NONE: it is not allowed. */
static uint32_t make_mapping(struct nat_maps *maps, const struct nat_map *was,
			     uint32_t now_s)
{
	const struct nat_end outside = { was->outside_addr, was->outside_port };
	const uint32_t ordinal = nat_subscriber_ordinal(
		&maps->static_ends.ordinals, was->inside.addr);
	uint32_t id;

	nat_maps_find_out(maps, &was->inside, 1, &id);
	if (id != MR_FLOW_NONE || ordinal == NAT_NO_ORDINAL ||
	    !nat_maps_has_outside(maps, was->inside.proto, outside) ||
	    nat_map_make(maps, &was->inside, ordinal, outside, was->last_s,
			 now_s, &id) != NAT_OK)
		return MR_FLOW_NONE;
	return id;
}

/* Returns whether it ended. */
static bool take_mapping(const struct taking *t, uint32_t old_id)
{
	const struct nat_map *was = nat_map_at(t->copy, old_id);
	const bool is_static = was->flags & NAT_MAP_STATIC;
	struct nat_maps *maps = maps_of(t, was->inside.addr);
	struct nat_map *map;
	uint32_t id;

	if (nat_maps_is_elsewhere(t->copy, old_id))
		return false;
	id = is_static ? find_static(maps, was) :
			 make_mapping(maps, was, t->now_s);
	if (id == MR_FLOW_NONE) {
		if (!is_static)
			nat_map_log(maps, was, t->now_s, false);
		maps->expired += !is_static;
		return !is_static;
	}
	if (was->inside.proto == IPPROTO_TCP && was->remote.addr != 0) {
		nat_map_set_first(maps, id, was->remote,
				  (enum nat_tcp)was->tcp_state,
				  was->remote_last_s);
		maps->windows[id] = t->copy->windows[old_id];
	}
	map = nat_map_at(maps, id);
	map->last_s = was->last_s;
	map->remote = was->remote;
	map->remote_last_s = was->remote_last_s;
	map->tcp_state = was->tcp_state;
	map->n_out = was->n_out;
	map->n_in = was->n_in;
	nat_map_set_timer(maps, id);
	return false;
}

/* Returns whether it ended, though its mapping did not. */
static bool take_session(const struct taking *t, uint32_t old_id)
{
	const struct nat_further *was = nat_further_at(t->copy, old_id);
	const struct nat_end remote = { was->key.addr, was->key.port };
	const struct nat_tuple inside =
		nat_map_at(t->copy, was->key.map_id)->inside;
	const uint32_t proto = nat_proto_of(inside.proto);
	struct nat_maps *maps = maps_of(t, inside.addr);
	const uint32_t id = mr_flow_find(maps->table, &inside);

	if (was->key.kind != NAT_KIND_SESSION || id == MR_FLOW_NONE)
		return false;
	/* Those of UDP and ICMP exist for the filter. */
	if ((proto != NAT_TCP &&
	     maps->filtering[proto] != t->copy->filtering[proto]) ||
	    nat_further_find(maps, id, remote) != MR_FLOW_NONE ||
	    nat_further_add(maps, id, remote, was->tcp_state, was->last_s) !=
		    NAT_OK)
		return true;
	nat_further_at(maps, nat_map_at(maps, id)->sessions - 1)->window =
		was->window;
	return false;
}

/* Ports in hold-down, in the order in which they were freed. */
static void take_held(const struct taking *t)
{
	const struct nat_ports *ports = t->copy->ports;
	uint32_t place = NAT_PLACE_NONE, freed_s;

	while ((place = nat_ports_next_held(ports, place, &freed_s)) !=
	       NAT_PLACE_NONE) {
		const uint32_t owner_id = nat_blocks_owner(ports, place);
		struct nat_session held = {
			.inside.proto = nat_ip_proto_of(ports, place),
			.outside = { htonl(nat_ports_addr_of(ports, place)),
				     htons(nat_ports_port_of(ports, place)) },
			.flags = NAT_MAP_RESTS,
			.age_s = t->now_s - freed_s,
		};

		if (owner_id != MR_FLOW_NONE)
			held.inside.addr =
				nat_subscriber_at(t->copy->subscribers,
						  owner_id)
					->addr;
		for (uint32_t i = 0; i < t->n; i++)
			if (nat_maps_restore(t->maps[i], &held, t->now_s) == 0)
				break;
	}
}

static void take_subscriber(const struct taking *t,
			    const struct nat_subscriber *was)
{
	struct nat_maps *maps = maps_of(t, was->addr);
	const uint32_t id = mr_flow_find(maps->subscribers, &was->addr);
	struct nat_subscriber *subscriber;
	uint32_t external = NAT_EXTERNAL_NONE;

	if (id == MR_FLOW_NONE)
		return;
	if (was->external != 0)
		external = nat_external_index(
			&maps->ports->externals,
			nat_external_addr(&t->copy->ports->externals,
					  was->external - 1));
	subscriber = nat_subscriber_at(maps->subscribers, id);
	if (external != NAT_EXTERNAL_NONE)
		subscriber->external = external + 1;
	subscriber->has_logged = was->has_logged;
	subscriber->logged_s = was->logged_s;
}

static bool has_same_blocks(const struct nat_maps *maps,
			    const struct nat_maps *copy)
{
	const struct nat_port_config *a = &maps->ports->config;
	const struct nat_port_config *b = &copy->ports->config;

	return a->first == b->first && a->last == b->last &&
	       a->block == b->block && maps->shard == copy->shard &&
	       maps->n_shards == copy->n_shards;
}

/* Whether its owner still has it. */
static bool has_block(const struct nat_maps *maps,
		      const struct nat_log_event *block)
{
	const struct nat_tuple outside = { block->outside_addr,
					   block->outside_port, block->proto,
					   0 };
	const uint32_t place = nat_place_of(maps->ports, &outside);
	const uint32_t owner_id = place == NAT_PLACE_NONE ?
					  MR_FLOW_NONE :
					  nat_blocks_owner(maps->ports, place);

	return owner_id != MR_FLOW_NONE &&
	       nat_subscriber_at(maps->subscribers, owner_id)->addr ==
		       block->inside_addr;
}

/* Log the end of blocks of the copy: of those that nobody has here. */
struct ending {
	const struct nat_maps *maps;
	uint32_t now_s;
};

static void end_block(void *opaque, const struct nat_log_event *block)
{
	const struct ending *ending = opaque;
	struct nat_log_event event = *block;

	event.what = NAT_LOG_BLOCK_END;
	event.now_s = ending->now_s;
	if (!has_block(ending->maps, block))
		ending->maps->log(ending->maps->opaque, &event);
}

static void end_blocks(const struct taking *t, const struct nat_maps *maps)
{
	struct ending ending = { maps, t->now_s };
	uint32_t id = MR_FLOW_NONE;

	while (maps->log != NULL && t->copy->ports->blocks != NULL &&
	       (id = mr_flow_next(t->copy->subscribers, id)) != MR_FLOW_NONE)
		nat_blocks_tell(t->copy->ports, id, end_block, &ending);
}

/* Enter what begins nothing and counts nothing. */
static uint32_t take_records(const struct taking *t)
{
	const struct nat_maps *copy = t->copy;
	uint32_t id = MR_FLOW_NONE, n_ended = 0;

	while ((id = mr_flow_next(copy->table, id)) != MR_FLOW_NONE)
		n_ended += take_mapping(t, id);
	while ((id = mr_flow_next(copy->sessions, id)) != MR_FLOW_NONE)
		n_ended += take_session(t, id);
	take_held(t);
	while ((id = mr_flow_next(copy->subscribers, id)) != MR_FLOW_NONE)
		take_subscriber(t, nat_subscriber_at(copy->subscribers, id));
	return n_ended;
}

static uint32_t convert(const struct taking *t, struct nat_maps *own)
{
	const bool same_blocks = has_same_blocks(own, t->copy);
	uint32_t n_ended;

	t->copy->now_s = t->now_s;
	t->copy->refreshes_inbound = own->refreshes_inbound;
	nat_rules_end_copy(t->copy, own);
	if (!same_blocks)
		end_blocks(t, own); /* nobody has any yet */
	for (uint32_t i = 0; i < t->n; i++) {
		t->maps[i]->is_taking = true;
		if (same_blocks)
			t->maps[i]->ports->log = NULL;
	}
	n_ended = take_records(t);
	for (uint32_t i = 0; i < t->n; i++) {
		t->maps[i]->is_taking = false;
		t->maps[i]->ports->log = t->maps[i]->log;
	}
	if (same_blocks)
		end_blocks(t, own);
	return n_ended;
}

#define SWAP(a, b)                                                             \
	do {                                                                   \
		__typeof__(a) was = (a);                                       \
		(a) = (b);                                                     \
		(b) = was;                                                     \
	} while (0)

/* The tables of the copy become these maps'. */
static void adopt(struct nat_maps *own, struct nat_maps *copy)
{
	nat_ports_replace(own->ports, copy->ports, copy->subscribers);
	copy->ports->random = &own->random;
	SWAP(own->ports, copy->ports);
	SWAP(own->table, copy->table);
	SWAP(own->others, copy->others);
	SWAP(own->sessions, copy->sessions);
	SWAP(own->subscribers, copy->subscribers);
	SWAP(own->wheel, copy->wheel);
	SWAP(own->session_wheel, copy->session_wheel);
	SWAP(own->windows, copy->windows);
	SWAP(own->rules, copy->rules);
	own->n_windows = copy->n_windows;
	own->n_max_mappings = copy->n_max_mappings;
	own->n_max_sessions = copy->n_max_sessions;
	own->n_max_static = copy->n_max_static;
	own->n_mappings = copy->n_mappings;
	own->n_sessions = copy->n_sessions;
	own->n_static = copy->n_static;
	own->n_one_to_ones = copy->n_one_to_ones;
	own->review = copy->review;
	own->reviewed = copy->reviewed;
}

static bool can_adopt(const struct nat_maps *own, const struct nat_maps *copy)
{
	return nat_config_digest(own->config) == copy->settings &&
	       own->shard == copy->shard && own->n_shards == copy->n_shards &&
	       nat_ports_is_like(own->ports, copy->ports);
}

uint32_t nat_maps_take(struct nat_maps *const *maps, uint32_t n,
		       struct nat_maps *copy, uint32_t now_s,
		       bool *ret_is_converted)
{
	struct nat_maps *own = maps[copy->shard % n];
	const struct taking t = { maps, n, copy, now_s };
	uint32_t n_ended = 0;

	*ret_is_converted = !can_adopt(own, copy);
	if (*ret_is_converted)
		n_ended = convert(&t, own);
	else
		adopt(own, copy);
	own->created += copy->created;
	own->expired += copy->expired;
	own->has_logged = copy->has_logged;
	own->logged_s = copy->logged_s;
	nat_maps_destroy(copy);
	return n_ended;
}
